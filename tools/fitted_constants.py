#!/usr/bin/env python3
"""Lists the fitted constants of platforms/ with what identifies each: the rows of its source that depend on it, and a 90 % interval.

  tools/fitted_constants.py [PROGRAM]      writes it between "<!-- fitted constants:begin -->" and "...:end -->" of docs/accuracy.md; ten minutes
  tools/fitted_constants.py --check        exit code 1 where that list is not of the numbers in platforms/, or fewer than ten rows identify one

A constant is any number whose source is "fitted: ...". Equal numbers under one key with one source, in several files, are one constant. The interval: the
constant alone is moved over a grid, all others as shipped, every row predicted at each value; the value of the least mean |ln(predicted / measured)|,
every set counting alike, is looked up for 200 bootstrap samples of the rows, and the 5th and 95th percentiles are printed. The grid ends at 0.45 and 2.2 times the value.
"""
import collections
import csv
import json
import math
import os
import pathlib
import random
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PAGE = ROOT / "docs/accuracy.md"
BEGIN, END = "<!-- fitted constants:begin -->", "<!-- fitted constants:end -->"
FEWEST_ROWS = 10
NUMBER = re.compile(r"^([0-9.]+)( \S+)?$")
INTERVAL, ROWS = re.compile(r" \([^()]*–[^()]*\)"), re.compile(r"; (\d+)\)$")
FACTORS = [math.exp(step / 20) for step in range(-16, 17, 2)]
FROM_ZERO = [0, 10, 25, 50, 75, 100, 150, 200, 300, 400]  # of a constant that is 0, in its unit
SAMPLES, FINER = 200, 10
SPEED_OF_NODE = 0.88  # of H100 boards of 700 W against products alone, as in sim/validate/kernel_score_test.cpp


def fitted_numbers():
    """By key, text of the value and source: the files."""
    found = collections.OrderedDict()

    def walk(value, path, name):
        if isinstance(value, list):
            value = {str(place): each for place, each in enumerate(value)}
        if not isinstance(value, dict):
            return
        source = value.get("source", "")
        for key, each in value.items():
            said = source.get(key, source.get("*", "")) if isinstance(source, dict) else source
            if key != "source" and key != "head_size" and said.startswith("fitted:") and not isinstance(each, bool) and NUMBER.match(str(each)):
                found.setdefault(("/".join([*path, key]), str(each), said), []).append(name)
            elif key != "source":
                walk(each, [*path, key], name)

    for file in sorted(each for kind in ("", "devices", "software") for each in (ROOT / "platforms" / kind).glob("*.json")):
        walk(json.loads(file.read_text()), [], str(file.relative_to(ROOT / "platforms"))[:-len(".json")])
    return found


def run(program, *arguments, data=ROOT):
    """What the program prints as JSON; nothing where it refuses the value."""
    done = subprocess.run([program, *arguments, "--json", "--quiet"], capture_output=True, text=True, cwd=ROOT, env={**os.environ, "WINDTUNNEL_DATA": str(data)})
    return json.loads(done.stdout) if done.returncode in (0, 1) else None


class Rows:
    """Predicts the rows that a source names, with one number of a file changed. Rows are (set, name): ln(predicted / measured)."""

    def __init__(self, program):
        self.program = program
        self.sets, self.layers = measurement_sets(), []

    def named(self, source):
        return [name for name in self.sets if re.search(rf"\b{re.escape(name)}(?![\w-])", source)]

    def predict(self, key, text, source, name):
        if "validation/kernels" in source:
            if "rowwise" in source:
                return self.rowwise(float(text))
            return self.norms(text, key, source) if "memory_rates" in key else self.kernels(key, text, source, name)
        rows = {}
        for each in self.named(source):
            kind, _, rest = name.rpartition("/")
            pointer = {"devices": "/platform/node_types/0/device/", "software": "/software/"}.get(kind, "/platform/") + key
            answer = self.validate(each, rest if not kind and self.sets[each]["kind"] == "collective" else None, f"--set={pointer}={text}")
            if answer is None:
                return {}
            if key.startswith("memory/") and kind == "software":
                rows.update({(each, f"{r['id']} {r['kind']} {r['ranks']}"): math.log(r["predicted_bytes"] / r["measured_bytes"]) for r in answer["memory"]})
            else:
                rows.update({(each, r["id"]): math.log(r["predicted_s"] / r["measured_s"]) for r in answer["points"] if r.get("predicted_s")})
        return rows

    def validate(self, name, platform, change):
        """Collectives are those of the platform that has the constant, whatever cluster they were measured on."""
        with tempfile.TemporaryDirectory() as folder:
            if platform:
                document = {**self.sets[name], "base": {"platform": platform}}
                name = str(pathlib.Path(folder) / "set.json")
                pathlib.Path(name).write_text(json.dumps(document))
            return run(self.program, "validate", name, change)

    def kernels(self, key, text, source, name):
        """Of the tables that the source names: "gemm-h100", or of attention; norms by cuDNN; "of 2.6 ms and more"."""
        device = json.loads((ROOT / f"platforms/{name}.json").read_text())
        part, *steps = device, *key.split("/")
        for step in steps[:-1]:
            part = part[int(step)] if isinstance(part, list) else part[step]
        part[steps[-1]] = text if isinstance(part[steps[-1]], str) else float(text)
        with tempfile.TemporaryDirectory() as folder:
            file = pathlib.Path(folder) / f"{device['name']}.json"
            file.write_text(json.dumps(device))
            answer = run(self.program, "device", str(file), "--kernels")
        table = (re.findall(r"kernels (gemm|grouped|norms|deepbench)", source) or ["attention"])[0].replace("deepbench", "gemm")
        least_s = float((re.findall(r"of ([0-9.]+) ms and more", source) or [0])[0]) / 1000
        return {(table, str(place)): math.log(r["predicted_s"] / r["measured_s"]) for place, r in enumerate(answer[0]["points"] if answer else [])
                if r["kernels"] == table and r["measured_s"] >= least_s and (table != "norms" or r["group"].startswith("cudnn"))}

    def rowwise(self, efficiency):
        """Linear layers between a norm and a sigmoid with a scale for each row, as in sim/validate/kernel_score_test.cpp: products by the program."""
        if not self.layers:
            with open(ROOT / "validation/kernels/rowwise.csv", encoding="utf-8") as file:
                self.layers = [{key: float(value) for key, value in row.items()} for row in csv.DictReader(file) if int(row["m"]) >= 4096]
            with tempfile.TemporaryDirectory() as root:
                data = pathlib.Path(root)
                shutil.copytree(ROOT / "validation/kernels", data / "validation/kernels")
                for folder in ("models", "platforms"):
                    (data / folder).symlink_to(ROOT / folder)
                products = [f"h100-sxm-80gb,rowwise,{precision},{a:.0f},{b:.0f},{c:.0f},1,0,1" for r in self.layers for precision in ("bf16", "fp8")
                            for a, b, c in ((r["m"], r["n"], r["k"]), (r["m"], r["k"], r["n"]), (r["k"], r["n"], r["m"]))]
                header = "device,source,precision,m,n,k,batch,accumulated_bytes,time_us"
                (data / "validation/kernels/gemm.csv").write_text("\n".join([header, *products]) + "\n")
                times = [r["predicted_s"] for r in run(self.program, "device", "h100-sxm-80gb", "--kernels", data=data)[0]["points"] if r["kernels"] == "gemm"]
            for place, row in enumerate(self.layers):
                row["bf16"], row["fp8"] = (sum(times[6 * place + first:6 * place + first + 3]) / SPEED_OF_NODE for first in (0, 3))
        rate, launch = 3350e9 * 0.8, 5e-6  # of h100-sxm-80gb
        rows = {}
        for place, r in enumerate(self.layers):
            m, k, n = r["m"], r["k"], r["n"]
            around = 2 * 5 * (m * k + m * n) / rate + 4 * launch
            casts = (12 * m * k + 8 * m * n + 14 * k * n) / efficiency / rate + 8 * launch
            rows["rowwise", str(place)] = math.log((r["fp8"] + around + casts) * r["speedup"] / (r["bf16"] + around))
        return rows

    @staticmethod
    def norms(text, key, source):
        """Norms move their bytes at the rate, and take the GPU's overhead of a kernel."""
        device = {"h200": "h200-sxm", "gb200": "gb200"}[re.search(r"norms-(\w+)", source)[1]]
        backend = "torch_compile" if "compiled" in source else "pytorch"
        overhead_us = float(json.loads((ROOT / f"platforms/devices/{device}.json").read_text())["kernel_overhead"].split()[0])
        rate = float(text.split()[0]) * 1e3  # bytes a microsecond
        with open(ROOT / "validation/kernels/norms.csv", encoding="utf-8") as file:
            return {("norms", str(place)): math.log((float(r["bytes"]) / rate + overhead_us) / float(r["time_us"])) for place, r in enumerate(csv.DictReader(file))
                    if (r["device"], r["backend"], r["direction"]) == (device, backend, key.rsplit("/", 1)[-1])}


def plain(number):
    """Three digits, without an exponent: 1040."""
    return f"{float(f'{number:.3g}'):g}"


def least(values):
    return values.index(min(values))


def identified_by(rows, key, value, source, name):
    """How many rows depend on the constant, and its 90 % interval."""
    number, unit = NUMBER.match(value).groups()
    number, unit = float(number), unit or ""
    grid, errors = [], []
    for each in [number * factor for factor in FACTORS] if number else FROM_ZERO:
        predicted = rows.predict(key, f"{each:.6g}{unit}", source, name)
        if predicted:
            grid.append(each)
            errors.append(predicted)
    if len(grid) < 2:
        return 0, None
    depend = [row for row in errors[0] if all(row in each for each in errors) and max(e[row] for e in errors) - min(e[row] for e in errors) > 1e-5]
    if not depend:
        return 0, None
    in_set = collections.Counter(row[0] for row in depend)
    fine = [(place, step / FINER) for place in range(len(grid) - 1) for step in range(FINER)] + [(len(grid) - 2, 1)]
    dense = [grid[place] + share * (grid[place + 1] - grid[place]) for place, share in fine]
    losses = [[abs(errors[place][row] + share * (errors[place + 1][row] - errors[place][row])) / in_set[row[0]] for place, share in fine] for row in depend]
    draw, best = random.Random(0), []
    for _ in range(SAMPLES):
        sample = draw.choices(losses, k=len(losses))
        coarse = least([sum(row[at] for row in sample) for at in range(0, len(dense), FINER)]) * FINER
        near = range(max(coarse - FINER, 0), min(coarse + FINER + 1, len(dense)))
        best.append(dense[near[least([sum(row[at] for row in sample) for at in near])]])
    best.sort()
    return len(depend), (best[SAMPLES // 20], best[-SAMPLES // 20 - 1])


def rows_named(source, sets):
    """The measurement sets and tables of kernels that a source names."""
    kernels = re.findall(r"\b(?:gemm|norms|attention)-\w+|\bdeepbench\b|\bgrouped\b|\browwise\b", source)
    if "cudnn-frontend" in source:
        kernels = ["cudnn-frontend"]
    return ", ".join(dict.fromkeys([*kernels, *(name for name in sets if re.search(rf"\b{re.escape(name)}(?![\w-])", source))]))


def measurement_sets():
    """By name."""
    documents = [json.loads(file.read_text()) for file in sorted((ROOT / "validation").glob("*/*.json"))]
    return {each["name"]: each for each in documents if isinstance(each, dict) and each.get("schema") == "windtunnel/measurements-v1"}


def lines_of(numbers, said):
    """A line for each set of rows and group of files; `said` gives what stands in parentheses behind a value."""
    sets, by_rows = measurement_sets(), collections.OrderedDict()
    for (key, value, source), names in numbers.items():
        folder, _, name = key.rpartition("/")
        groups = by_rows.setdefault((tuple(names), rows_named(source, sets)), collections.OrderedDict())
        groups.setdefault(folder, []).append(f"`{name}` {value}{said(key, value, source, names)}")
    for (names, rows), groups in by_rows.items():
        texts = "; ".join(group_text(folder, constants) for folder, constants in groups.items())
        yield f"- **{', '.join(names)}** (on {rows}): {texts}"


def group_text(folder, constants):
    """The constants of an object; rows that all of them rest on are said once."""
    counts = {found[1] if (found := ROWS.search(each)) else "" for each in constants}
    if not folder or len(constants) == 1 or len(counts) > 1 or counts == {""}:
        return (f"`{folder}`: " if folder else "") + ", ".join(constants)
    return f"`{folder}` ({counts.pop()} rows): " + ", ".join(ROWS.sub(")", each) for each in constants)


def rows_listed(listed):
    """For each constant of the list with an interval: how many rows it rests on."""
    for line in listed.strip().splitlines():
        for group in re.split(r"; (?=`[\w/]+`(?: \(\d+ rows\))?: )", line):
            common = re.search(r"\((\d+) rows\): ", group)
            for found in INTERVAL.finditer(group):
                own = ROWS.search(found[0])
                yield int((own or common or "00")[1])


def main():
    numbers = fitted_numbers()
    page = PAGE.read_text()
    head, rest = page.split(BEGIN)
    listed, tail = rest.split(END)
    if "--check" in sys.argv:
        counts = list(rows_listed(listed))
        wrong = "\n".join(lines_of(numbers, lambda *_: "")) != INTERVAL.sub("", re.sub(r" \(\d+ rows\)", "", listed)).strip()
        few = [count for count in counts if count < FEWEST_ROWS]
        if wrong or few or len(counts) != len(numbers):
            sys.exit(f"docs/accuracy.md does not list the fitted constants as they are, or with fewer than {FEWEST_ROWS} rows {few}: tools/fitted_constants.py")
        return
    program = pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/release/windtunnel").resolve()
    rows = Rows(program)

    def said(key, value, source, names):
        count, interval = identified_by(rows, key, value, source, names[0])
        text = f" ({plain(interval[0])}–{plain(interval[1])}; {count})" if interval else f" ({count})"
        print(f"{names[0]} {key} {value}{text}", file=sys.stderr)
        return text

    PAGE.write_text(f"{head}{BEGIN}\n\n" + "\n".join(lines_of(numbers, said)) + f"\n\n{END}{tail}")


if __name__ == "__main__":
    main()

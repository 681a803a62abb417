#!/usr/bin/env python3
"""How far predictions are off for a stack or cluster of which nothing was measured: every measurement set is predicted without the constants that were fitted on it; most sets have none.

  tools/leave_one_set_out.py [PROGRAM]      (default: build/release/windtunnel)

What stands in for those constants says tools/leave_one_set_out.json. Prints a table, and writes it between the lines "<!-- left out:begin -->" and
"<!-- left out:end -->" of docs/accuracy.md; writes the errors to validation/residuals.json, from which intervals of what nobody measured are taken.
"""

import json
import math
import pathlib
import re
import statistics
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
PART = r"^/(software|platform/node_types/[0-9]+)/"
BEGIN, END = "<!-- left out:begin -->", "<!-- left out:end -->"


def answer(program, *arguments):
    done = subprocess.run([program, *arguments, "--json", "--quiet"], capture_output=True, text=True, cwd=ROOT)
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(arguments)}: {done.stderr}")
    return json.loads(done.stdout)


def stacks_of(measurements):
    """Names of the software profiles that the points of a set use, whatever their release."""
    base = measurements.get("base", {}).get("software")
    names = {point["scenario"].get("software", base) for point in measurements["points"]}
    return {name.partition("@")[0] for name in names if isinstance(name, str)}


class Table:
    def __init__(self, program):
        self.program = program
        plan = json.loads((ROOT / "tools/leave_one_set_out.json").read_text())
        self.sets, self.groups = plan["sets"], plan["groups"]
        self.profiles = [json.loads(file.read_text()) for file in sorted((ROOT / "platforms/software").glob("*.json"))]
        self.measured, self.never_fitted = {}, {}
        for file in (ROOT / "validation").glob("*/*.json"):
            measurements = json.loads(file.read_text())
            if measurements.get("kind") == "iteration":
                sets = self.never_fitted if measurements.get("never_fitted") else self.measured
                sets[measurements["name"]] = measurements
        if sorted(self.measured) != sorted(name for group in self.groups for name in group["sets"]):
            sys.exit("tools/leave_one_set_out.json: the groups do not have every set of iterations once")

    def median_of_others(self, pointer, left_out):
        """Of the measured stacks that the set does not use and whose files give the value; a quantity as they write it."""
        key = pointer.removeprefix("/software/")
        others = [profile for profile in self.profiles if profile["profiled"] and profile["name"] not in stacks_of(left_out)]
        values = [profile[key] for profile in others if key in profile]
        numbers = sorted(float(str(value).split()[0]) for value in values)
        unit = next((" " + value.split()[1] for value in values if isinstance(value, str)), "")
        return f"{statistics.median(numbers):g}{unit}"

    def stand_ins(self, entry):
        values = {}
        for constant, sets in entry.get("refit", {}).items():
            with tempfile.TemporaryDirectory() as folder:  # with --residuals the rows alone decide, not the shipped value
                residuals = str(pathlib.Path(folder) / "residuals.json")
                fitted = answer(self.program, "calibrate", *sets, "--fit", constant, "--residuals", residuals)["constants"][0]
            values[fitted["pointer"]] = fitted["value"]
        for pointer, value in entry["values"].items():
            values[pointer] = self.median_of_others(pointer, self.measured[entry["set"]]) if value == "median" else value
        return values

    def score(self, name, values):
        changes = [f"--set={pointer}={value}" for pointer, value in values.items()]
        points = answer(self.program, "validate", name, *changes)["points"]
        return [math.log(point["predicted_s"] / point["measured_s"]) for point in points if "predicted_s" in point]

    def rows(self):
        for entry in self.sets:
            values = self.stand_ins(entry)
            yield entry["set"], values, self.score(entry["set"], {}), self.score(entry["set"], values)
        with_constants = {entry["set"] for entry in self.sets}
        for name in sorted(set(self.measured) - with_constants):
            shipped = self.score(name, {})
            yield name, {}, shipped, shipped


def percent(errors):
    return 100 * statistics.mean(abs(math.exp(error) - 1) for error in errors)


def bias(errors):
    return 100 * statistics.mean(math.exp(error) - 1 for error in errors)


def group_text(group, errors, measured, indent):
    """ln(measured / predicted) by set, and the stacks that ran it."""
    names = sorted(group["sets"])
    sets = ",\n".join(f"{indent}    {json.dumps(name)}: {json.dumps([round(-error, 5) for error in errors[name]])}" for name in names)
    stacks = ",\n".join(f"{indent}    {json.dumps(name)}: {json.dumps(sorted(stacks_of(measured[name])))}" for name in names)
    head = f'{{\n{indent}  "name": {json.dumps(group["name"])},\n{indent}  "device_families": {json.dumps(group["device_families"])},\n'
    return f'{head}{indent}  "sets": {{\n{sets}\n{indent}  }},\n{indent}  "software": {{\n{stacks}\n{indent}  }}\n{indent}}}'


def write_residuals(table, errors):
    """`unseen` of the residuals' file: sets in groups of GPUs, and those that nothing may be fitted on, which are cited only."""
    file = ROOT / "validation/residuals.json"
    text = file.read_text()
    kept = text[:text.index(',\n  "unseen"')] if '"unseen"' in text else text.rstrip()[:-1].rstrip()
    written = ",\n".join("      " + group_text(group, errors, table.measured, "      ") for group in table.groups)
    bench = {"name": "sets that nothing may be fitted on", "device_families": [], "sets": [name for name in table.never_fitted if errors.get(name)]}
    cited = f',\n    "never_fitted": {group_text(bench, errors, table.never_fitted, "    ")}' if bench["sets"] else ""
    method = "every set predicted without what was fitted on it or its cluster: tools/leave_one_set_out.py"
    file.write_text(f'{kept},\n  "unseen": {{\n    "method": {json.dumps(method)},\n    "groups": [\n{written}\n    ]{cited}\n  }}\n}}\n')


def main():
    program = str(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/release/windtunnel").resolve())
    lines = ["| set | rows | as shipped, mean % | left out, mean % | bias | what stood in |", "|---|---|---|---|---|---|"]
    means, errors = [], {}
    table = Table(program)
    for name, values, shipped, left_out in table.rows():
        means.append(percent(left_out))
        errors[name] = left_out
        texts = ", ".join(f"`{re.sub(PART, '', pointer)}` {value if isinstance(value, str) else format(value, '.3g')}" for pointer, value in values.items())
        lines.append(f"| {name} | {len(left_out)} | {percent(shipped):.1f} | **{percent(left_out):.1f}** | {bias(left_out):+.1f} | {texts or 'nothing was fitted on it'} |")
        print(lines[-1], file=sys.stderr)
    lines.append(f"| mean over sets | | | **{statistics.mean(means):.1f}** | | |")
    print("\n".join(lines))
    for name in sorted(table.never_fitted):
        errors[name] = table.score(name, {})
    write_residuals(table, errors)
    page = ROOT / "docs/accuracy.md"
    text = page.read_text()
    if BEGIN in text:
        head, rest = text.split(BEGIN)
        page.write_text(head + BEGIN + "\n\n" + "\n".join(lines) + "\n\n" + END + rest.split(END)[1])


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""How far predictions are off for a stack or cluster of which nothing was measured: every measurement set is predicted without the constants that were fitted on it; most sets have none.

  tools/leave_one_set_out.py [PROGRAM]      (default: build/release/windtunnel)

What stands in for those constants says tools/leave_one_set_out.json. Prints a table, and writes it between the lines "<!-- left out:begin -->" and
"<!-- left out:end -->" of docs/accuracy.md; writes the errors to validation/residuals.json, from which intervals of what nobody measured are taken.
"""

import collections
import functools
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
LEAST_OF_SET = 0.25  # of the points of a set that ran a stack, or the one it extends: with fewer its errors are those of other stacks
TIMES = {"iteration_time_s", "tokens_per_s_per_gpu", "samples_per_s"}  # keys of `measured` that say how long an iteration took
BEGIN, END = "<!-- left out:begin -->", "<!-- left out:end -->"


def answer(program, *arguments):
    done = subprocess.run([program, *arguments, "--json", "--quiet"], capture_output=True, text=True, cwd=ROOT)
    if done.returncode not in (0, 1):
        sys.exit(f"{' '.join(arguments)}: {done.stderr}")
    return json.loads(done.stdout)


@functools.cache
def shipped_profiles():
    return [json.loads(file.read_text()) for file in sorted((ROOT / "platforms/software").glob("*.json"))]


def stacks_of(measurements, least=0.0):
    """Names of the software profiles that at least that share of a set's points use, themselves or as what they extend, whatever their release. A point
    whose profile has a name of its own ran a stack of that name, for which another's profile stands in."""
    base = measurements.get("base", {}).get("software")
    given = [point["scenario"].get("software", base) for point in measurements["points"]]
    named = base.get("name") if isinstance(base, dict) else None
    names = [software.get("name", named) or software["extends"] if isinstance(software, dict) else software for software in given]
    counts = collections.Counter(name.partition("@")[0] for name in names if name)
    extended = {profile["name"]: profile["extends"].partition("@")[0] for profile in shipped_profiles() if "extends" in profile}
    return {name for name, count in counts.items() if count + counts[extended.get(name)] >= least * counts.total()}


def trains_experts(measurements):
    """True if a quarter or more of a set's points train a model with experts."""
    def keys_of(model):
        if isinstance(model, str):
            return keys_of(json.loads((ROOT / f"models/{model}.json").read_text()))
        return {**keys_of(model["extends"]), **model} if "extends" in model else model

    def has_experts(scenario):
        model = scenario.get("model", {})
        return bool((keys_of(model) if isinstance(model, str) else {**keys_of(base), **keys_of(model)}).get("moe"))
    base = measurements.get("base", {}).get("model", {})
    return sum(has_experts(point["scenario"]) for point in measurements["points"]) >= LEAST_OF_SET * len(measurements["points"])


class Kind:
    """What decides for whose intervals the errors of a set count."""

    def __init__(self, measurements):
        self.stacks = stacks_of(measurements, LEAST_OF_SET)
        self.is_stand_in = not self.stacks & {profile["name"] for profile in shipped_profiles()}
        self.has_experts = trains_experts(measurements)


class Table:
    def __init__(self, program):
        self.program = program
        plan = json.loads((ROOT / "tools/leave_one_set_out.json").read_text())
        self.sets, self.groups = plan["sets"], plan["groups"]
        self.profiles = shipped_profiles()
        self.measured, self.never_fitted = {}, {}
        for file in (ROOT / "validation").glob("*/*.json"):
            measurements = json.loads(file.read_text())
            if any(TIMES & point["measured"].keys() for point in measurements["points"]):
                sets = self.never_fitted if measurements.get("never_fitted") else self.measured
                sets[measurements["name"]] = measurements

    def median_of_others(self, pointer, left_out):
        """Of the measured stacks that the set does not use, whose files give the value, and not from that set; a quantity as they write it."""
        key = pointer.removeprefix("/software/")
        others = [profile for profile in self.profiles if profile.get("profiled") and profile["name"] not in stacks_of(left_out)
                  and left_out["name"] not in str(profile["source"].get(key))]
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
        return [(math.log(point["predicted_s"] / point["measured_s"]), point["outside_kernels"]) for point in points if "predicted_s" in point]

    def rows(self):
        for entry in self.sets:
            values = self.stand_ins(entry)
            yield entry["set"], values, self.score(entry["set"], {}), self.score(entry["set"], values)
        with_constants = {entry["set"] for entry in self.sets}
        for name in sorted(set(self.measured) - with_constants):
            shipped = self.score(name, {})
            yield name, {}, shipped, shipped
        for name in sorted(self.never_fitted):
            shipped = self.score(name, {})
            if shipped:
                yield name, None, shipped, shipped


def percent(runs):
    return 100 * statistics.mean(abs(math.exp(error) - 1) for error, _ in runs)


def bias(runs):
    return 100 * statistics.mean(math.exp(error) - 1 for error, _ in runs)


def weighted_quantile(numbers, share):
    """The first of the sorted (number, weight) at which that share of the weight is reached."""
    wanted, held = share * sum(weight for _, weight in numbers) - 1e-9, 0
    for number, weight in sorted(numbers):
        held += weight
        if held >= wanted:
            return number
    return max(numbers)[0]


def fitted_allowance(runs_of_sets):
    """How large an error usually is, by the share of the time outside kernels: fitted_allowance() of sim/evidence/pair_errors.cpp."""
    runs = [(share, abs(error), 1 / len(runs)) for runs in runs_of_sets for error, share in runs]
    few, much = (weighted_quantile([(share, weight) for share, _, weight in runs], third) for third in (1 / 3, 2 / 3))
    low = [run for run in runs if run[0] <= few]
    high = [run for run in runs if run[0] > few and run[0] >= much]
    near, far = (weighted_quantile([(share, weight) for share, _, weight in third], 0.5) for third in (low, high))
    small, large = (weighted_quantile([(error, weight) for _, error, weight in third], 0.5) for third in (low, high))
    growth = max((large - small) / (far - near), 0)
    base = max(small - growth * near, 1e-4)
    return lambda share: base + growth * share


FEW_SETS = 5  # of stacks without a profile: the sign of the next one's error is not known


def bounds(others, own, allowance, own_are_stand_ins=False):
    """Of ln(predicted / measured), by the share of the time outside kernels: UnseenErrors::bounds of sim/evidence, of at least nine sets, of which
    `own` ran the stack, or are what is known of stacks without a profile."""
    if own_are_stand_ins and len(own) < FEW_SETS:
        own = [runs + [(-error, share) for error, share in runs] for runs in own]
    count = len(others) + len(own)
    kinds = [(own, count / (len(own) + 1)), (others, count / (len(own) + 1) / len(others))] if own and others else [(others or own, 1)]
    weighted = sorted((error / allowance(share), weight / len(runs)) for sets, weight in kinds for runs in sets for error, share in runs)
    wanted, held, end, best = 0.9 * (count + 1) - 1e-9, 0, 0, None
    for low, weight in weighted:
        while held < wanted and end < len(weighted):
            held, end = held + weighted[end][1], end + 1
        if held < wanted:
            break
        if best is None or weighted[end - 1][0] - low < best[1] - best[0]:
            best = low, weighted[end - 1][0]
        held -= weight
    return lambda share: (min(best[0], 0) * allowance(share), max(best[1], 0) * allowance(share))


def ends_of(name, runs, kinds, knows_stack):
    """The ends of the interval of each run of a set, as all other sets give it, or those of other stacks alone."""
    def is_of_stack(other):
        return bool(kinds[other].stacks & kinds[name].stacks)
    left = [other for other in runs if other != name and (knows_stack or not is_of_stack(other))]
    own = [other for other in left if is_of_stack(other)]
    if kinds[name].is_stand_in:
        own = [other for other in left if kinds[other].is_stand_in and kinds[other].has_experts == kinds[name].has_experts]
    profiled = [other for other in left if not kinds[other].is_stand_in]
    interval = bounds([runs[other] for other in profiled if other not in own], [runs[other] for other in own], fitted_allowance([runs[other] for other in profiled]),
                      kinds[name].is_stand_in)
    return [interval(share) for _, share in runs[name]]


def share_inside(name, runs, kinds, knows_stack):
    """Of the runs of a set, in their intervals."""
    return statistics.mean(low <= error <= high for (error, _), (low, high) in zip(runs[name], ends_of(name, runs, kinds, knows_stack)))


def width(name, runs, kinds, knows_stack):
    """The mean width of these intervals, as a share of the prediction."""
    return statistics.mean(math.exp(-low) - math.exp(-high) for low, high in ends_of(name, runs, kinds, knows_stack))


def group_lines(groups, runs, kinds):
    """By kind of set: how many of its runs lie inside, how wide the intervals are, how far off its own runs."""
    lines = ["kind of set | sets | mean error, % | inside, % | width, % of the prediction | stack unseen: inside, % | width, %", "---|---|---|---|---|---|---"]
    for group, names in groups.items():
        cells = []
        for knows_stack in (True, False):
            inside = statistics.mean(share_inside(name, runs, kinds, knows_stack) for name in names)
            cells += [f"{100 * inside:.0f}", f"{100 * statistics.median(width(name, runs, kinds, knows_stack) for name in names):.0f}"]
        off = statistics.mean(percent(runs[name]) for name in names)
        lines.append(f"{group} | {len(names)} | {off:.1f} | " + " | ".join(cells))
    return lines


def write_residuals(runs, kinds):
    """`unseen` of the residuals' file: ln(measured / predicted) and the share of the time outside kernels by set, and the stacks that ran it."""
    file = ROOT / "validation/residuals.json"
    text = file.read_text()
    pairs = text[text.index(',\n  "pairs"'):] if ',\n  "pairs"' in text else "\n}\n"
    kept = text[:text.index(',\n  "unseen"')] if '"unseen"' in text else text.rstrip()[:-1].rstrip()
    def set_of(name):
        errors = {"residuals": [round(-error, 5) for error, _ in runs[name]], "outside_kernels": [round(share, 5) for _, share in runs[name]]}
        return {"software": sorted(kinds[name].stacks), **({"experts": True} if kinds[name].has_experts else {}), **errors}
    sets = ",\n".join(f"      {json.dumps(name)}: {json.dumps(set_of(name))}" for name in sorted(runs))
    method = "every set predicted without what was fitted on it or its cluster, sets that were never fitted as shipped: tools/leave_one_set_out.py"
    file.write_text(f'{kept},\n  "unseen": {{\n    "method": {json.dumps(method)},\n    "sets": {{\n{sets}\n    }},\n    "profiles": {json.dumps(sorted(profile["name"] for profile in shipped_profiles()))}\n  }}{pairs}')


def main():
    program = str(pathlib.Path(sys.argv[1] if len(sys.argv) > 1 else ROOT / "build/release/windtunnel").resolve())
    rows, runs, kinds = [], {}, {}
    table = Table(program)
    for name, values, shipped, left_out in table.rows():
        runs[name] = left_out
        kinds[name] = Kind({**table.measured, **table.never_fitted}[name])
        texts = ", ".join(f"`{re.sub(PART, '', pointer)}` {value if isinstance(value, str) else format(value, '.3g')}" for pointer, value in (values or {}).items())
        rows.append((name, shipped, bool(texts)))
        print(name, texts, file=sys.stderr)
    lines = ["set | as shipped, mean % | left out, mean % | bias | inside, %", "---|---|---|---|---"]
    inside = {name: share_inside(name, runs, kinds, False) for name in runs}
    for name, shipped, is_left_out in rows:
        if is_left_out:  # the others are predicted as shipped
            lines.append(f"{name} | {percent(shipped):.1f} | **{percent(runs[name]):.1f}** | {bias(runs[name]):+.1f} | {100 * inside[name]:.0f}")
    for what, names in (("sets that may be fitted", table.measured), ("all sets", runs)):
        means = [percent(runs[name]) for name in names]
        lines.append(f"mean over {what} | | **{statistics.mean(means):.1f}** | | **{100 * statistics.mean(inside[name] for name in names):.0f}**")
    listed = {name for names in table.groups.values() for name in names}
    if unknown := listed - set(runs):
        sys.exit(f"tools/leave_one_set_out.json: no such sets: {', '.join(sorted(unknown))}")
    groups = {**table.groups, "other stacks": sorted(set(runs) - listed), "all": sorted(runs)}
    lines += ["", *group_lines(groups, runs, kinds)]
    print("\n".join(lines))
    write_residuals(runs, kinds)
    page = ROOT / "docs/accuracy.md"
    text = page.read_text()
    if BEGIN in text:
        head, rest = text.split(BEGIN)
        page.write_text(head + BEGIN + "\n\n" + "\n".join(lines) + "\n\n" + END + rest.split(END)[1])


if __name__ == "__main__":
    main()

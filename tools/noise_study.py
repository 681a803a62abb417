#!/usr/bin/env python3
"""Noise of MLPerf's step times: fitted on small systems, scored on large ones (docs/noise.md).

  tools/noise_study.py fit [OUT]               writes platforms/noise/mlperf-small.json, or OUT
  tools/noise_study.py score PROGRAM [STEPS]   simulates each system STEPS (400) times, writes validation/mlperf/step-scores.csv
  tools/noise_study.py table                   predicted next to measured, from that file
  tools/noise_study.py chart OUT.svg           the same as a picture

Measured: validation/mlperf/step-times.csv. Left out are steps in which the program did something else as well: the first three of a run, and slow
ones (above 1.03 times the median) that come within two steps of the same number in every run of a system, as the one after the first evaluation.
"""
import csv
import json
import math
import pathlib
import re
import statistics
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
TIMES = ROOT / "validation/mlperf/step-times.csv"
SCORES = ROOT / "validation/mlperf/step-scores.csv"
NOISE = ROOT / "platforms/noise/mlperf-small.json"
FIRST_STEPS, SLOW, WITHIN = 3, 1.03, 2
MOST_GPUS_OF_SMALL = 512
# No point of the sets: it ran the plan of another on other nodes, with other replicas.
LIKE = {"llama31_405b-v5.1-Nebius-nebius_h200_n64": ("llama31_405b-v5.0-Nebius-nebius_soperator_8xH200_n128_ngc25.01_nemo", 64, 8)}
STALL = 4  # a step so many sigmas above the median had a stall
NORMAL_95 = 1.6449  # the 95th percentile of the standard normal distribution


def quantile(values, share):
    """As numpy does: between the two nearest, linearly."""
    values = sorted(values)
    place = share * (len(values) - 1)
    below = int(place)
    return values[below] + (values[min(below + 1, len(values) - 1)] - values[below]) * (place - below)


def noise_steps(runs):
    """The steps of each run that are no program's doing."""
    median = statistics.median(time for run in runs for time in run)
    slow = [{i for i, time in enumerate(run) if time > SLOW * median} for run in runs]

    def is_own(step):
        return all(any(abs(step - other) <= WITHIN for other in found) for found in slow)
    return [[time for i, time in enumerate(run) if i >= FIRST_STEPS and not (i in slow[number] and is_own(i))]
            for number, run in enumerate(runs)]


def lag1(runs):
    shared = total = 0
    for run in runs:
        mean = statistics.mean(run)
        shared += sum((one - mean) * (other - mean) for one, other in zip(run, run[1:]))
        total += sum((time - mean) ** 2 for time in run)
    return shared / total


def figures(runs):
    times = [time for run in runs for time in run]
    median = statistics.median(times)
    return {"steps": len(times), "median_s": median, "p5": quantile(times, 0.05) / median, "p95": quantile(times, 0.95) / median,
            "p99": quantile(times, 0.99) / median, "lag1": lag1(runs),
            **{f"above_{limit}": sum(time > limit * median for time in times) / len(times) for limit in (1.02, 1.05, 1.2)}}


def systems():
    found = {}
    for row in csv.DictReader(TIMES.read_text().splitlines()):
        system = found.setdefault(row["id"], {"id": row["id"], "gpus": int(row["gpus"]), "runs": []})
        system["runs"].append([float(time) for time in row["times_s"].split()])
    return list(found.values())


def rounded(value, digits=3):
    return float(f"{value:.{digits}g}")


def fit():
    """What befalls all GPUs at once: half of what lies between the 5th and the 95th percentile, times the root of the step time, the mean of
    the systems. Stalls: steps more than four such sigmas above the median of their run; how many per GPU and second, and the mean and deviation
    of the logarithms of how much longer they took."""
    sigmas, correlations, stalls, gpu_seconds = [], [], [], 0
    small = [system for system in systems() if system["gpus"] <= MOST_GPUS_OF_SMALL]
    for system in small:
        runs = noise_steps(system["runs"])
        found = figures(runs)
        sigma = (found["p95"] - found["p5"]) / 2 / NORMAL_95
        sigmas.append(sigma * math.sqrt(found["median_s"]))
        for run in runs:
            median = statistics.median(run)
            quiet = [min(time, median * (1 + STALL * sigma)) for time in run]
            correlations.append(lag1([quiet]))
            stalls += [time - median for time in run if time > median * (1 + STALL * sigma)]
            gpu_seconds += sum(run) * system["gpus"]
    logs = [math.log(stall) for stall in stalls]
    source = f"fitted: mlperf/step-times, {len(small)} systems of {min(s['gpus'] for s in small)} to {max(s['gpus'] for s in small)} GPUs (tools/noise_study.py)"
    return {"description": "Step times of small MLPerf systems: what befalls all GPUs at once, and stalls of single ones",
            "step_jitter": {"all": rounded(statistics.mean(sigmas)), "all_lasts": "1 s", "correlation": rounded(statistics.mean(correlations)), "source": source},
            "stalls": {"per_gpu_hour": rounded(3600 * len(stalls) / gpu_seconds), "median": f"{rounded(math.exp(statistics.mean(logs)))} s",
                       "spread": rounded(statistics.stdev(logs)), "source": f"{source}; {len(stalls)} stalls"}}


def points():
    found = {}
    for name in ("gpt3-175b", "llama31-405b"):
        for point in json.loads((ROOT / f"validation/mlperf/{name}.json").read_text())["points"]:
            found[point["id"]] = point["scenario"]
    for own, (like, nodes, data) in LIKE.items():
        found[own] = {**found[like], "nodes": nodes, "parallel": {**found[like]["parallel"], "data": data}}
    return found


def simulate(program, scenario, steps):
    """The median step, the step without noise, and all steps of the series."""
    done = subprocess.run([program, "run", "-", "--steps", str(steps), "--json", "--quiet"], input=json.dumps(scenario), capture_output=True, text=True)
    if done.returncode > 1:
        sys.exit(done.stderr)
    return json.loads(done.stdout)


def score(program, steps):
    scenarios, known, rows = points(), {}, []
    for system in systems():
        scenario = {"version": 1, **scenarios[system["id"]], "noise": "mlperf-small"}
        key = json.dumps(scenario, sort_keys=True)
        if key not in known:
            known[key] = simulate(program, scenario, steps)
        predicted = figures([known[key]["times_s"]])
        rows.append({"id": system["id"], "gpus": system["gpus"], "fitted": system["gpus"] <= MOST_GPUS_OF_SMALL,
                     "measured": figures(noise_steps(system["runs"])), "predicted": predicted})
        print(system["id"], predicted["p95"], rows[-1]["measured"]["p95"], file=sys.stderr)
    rows.sort(key=lambda row: (not row["fitted"], row["gpus"], row["id"]))
    return rows


def write_scores(rows):
    lines = [",".join(["id", "gpus", "fitted", "which", *rows[0]["measured"]])]
    for row in rows:
        for which in ("measured", "predicted"):
            lines.append(",".join([row["id"], str(row["gpus"]), str(int(row["fitted"])), which, *(f"{value:.6g}" for value in row[which].values())]))
    SCORES.write_text("\n".join(lines) + "\n")


def scores():
    rows = {}
    for row in csv.DictReader(SCORES.read_text().splitlines()):
        entry = rows.setdefault(row["id"], {"id": row["id"], "gpus": int(row["gpus"]), "fitted": row["fitted"] == "1"})
        entry[row["which"]] = {key: float(value) for key, value in row.items() if key not in ("id", "gpus", "fitted", "which")}
    return list(rows.values())


def short_name(row):
    model, _, rest = row["id"].split("-", 2)
    system = re.sub(r"^(University-of-Florida|[^-]+)-|_ngc[0-9.]+|_nemo|_pytorch|_soperator_8x", "", rest).replace("nebiusH200", "nebius_h200").replace("ND_H100", "azure_h100")
    return f"{'GPT-3' if model == 'gpt3' else '405B'} {system}"


def factor(row):
    """Between predicted and measured distance of the 95th percentile from the median."""
    one, other = row["predicted"]["p95"] - 1, row["measured"]["p95"] - 1
    return max(one / other, other / one)


def table():
    rows = scores()
    lines = ["system                       GPUs   step  95th percentile/median   above 1.02 x median   above 1.05 x median",
             "                                       s   measured  predicted   measured  predicted   measured  predicted"]
    for fitted in (True, False):
        lines.append("fitted on these" if fitted else "not seen by the fit")
        for row in rows:
            if row["fitted"] != fitted:
                continue
            measured, predicted = row["measured"], row["predicted"]
            shares = "".join(f" {100 * of[key]:8.2f} %" for key in ("above_1.02", "above_1.05") for of in (measured, predicted))
            lines.append(f"  {short_name(row):24} {row['gpus']:6} {measured['median_s']:6.2f} {measured['p95']:10.4f} {predicted['p95']:10.4f}{shares}")
    large = [row for row in rows if not row["fitted"]]
    ratios = sorted(max(row["measured"]["p95"] / row["predicted"]["p95"], row["predicted"]["p95"] / row["measured"]["p95"]) for row in large)
    factors = sorted(map(factor, large))
    shares = sorted(abs(row["measured"]["above_1.05"] - row["predicted"]["above_1.05"]) for row in large)
    lines.append(f"not seen: 95th percentile/median within a factor of {ratios[-1]:.3f}, half within {statistics.median(ratios):.3f}; its distance from 1 within "
                 f"{factors[-1]:.1f}, half within {statistics.median(factors):.1f}")
    lines.append(f"          share above 1.05 x median within {100 * shares[-1]:.1f} points, half within {100 * statistics.median(shares):.1f}")
    return "\n".join(lines) + "\n"


def chart():
    """Predicted against measured distance of the 95th percentile from the median, both axes logarithmic."""
    rows = scores()
    least, most, size, left, top = 1e-3, 1e-1, 420, 70, 40

    def place(value):
        return size * (math.log10(min(max(value, least), most)) - math.log10(least)) / (math.log10(most) - math.log10(least))
    out = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {left + size + 300} {top + size + 60}" font-family="sans-serif" font-size="12">',
           '<title>95th percentile of step times above their median, measured and predicted</title>',
           f'<rect width="{left + size + 300}" height="{top + size + 60}" fill="#ffffff"/>',
           f'<text x="{left}" y="24" font-size="15">95th percentile above the median step: predicted against measured</text>']
    for tick in (0.001, 0.003, 0.01, 0.03, 0.1):
        x, y = left + place(tick), top + size - place(tick)
        out.append(f'<line x1="{x:.1f}" y1="{top}" x2="{x:.1f}" y2="{top + size}" stroke="#dddddd"/><line x1="{left}" y1="{y:.1f}" x2="{left + size}" y2="{y:.1f}" stroke="#dddddd"/>')
        out.append(f'<text x="{x:.1f}" y="{top + size + 16}" text-anchor="middle">{100 * tick:g} %</text><text x="{left - 8}" y="{y + 4:.1f}" text-anchor="end">{100 * tick:g} %</text>')
    out.append(f'<text x="{left + size / 2}" y="{top + size + 40}" text-anchor="middle">measured</text>')
    out.append(f'<text x="16" y="{top + size / 2}" transform="rotate(-90 16 {top + size / 2})" text-anchor="middle">predicted</text>')
    for ratio, dash in ((1, ""), (2, ' stroke-dasharray="4 4"'), (0.5, ' stroke-dasharray="4 4"')):
        low, high = max(least, least / ratio), min(most, most / ratio)
        out.append(f'<line x1="{left + place(low):.1f}" y1="{top + size - place(low * ratio):.1f}" x2="{left + place(high):.1f}" y2="{top + size - place(high * ratio):.1f}" stroke="#888888"{dash}/>')
    for number, row in enumerate(rows, 1):
        x, y = left + place(row["measured"]["p95"] - 1), top + size - place(row["predicted"]["p95"] - 1)
        fill = "#ffffff" if row["fitted"] else "#1f5fa8"
        out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="5" fill="{fill}" stroke="#1f5fa8"/><text x="{x + 7:.1f}" y="{y - 6:.1f}">{number}</text>')
        out.append(f'<text x="{left + size + 20}" y="{top + 18 * number}">{number}  {short_name(row)}, {row["gpus"]} GPUs</text>')
    y = top + 18 * (len(rows) + 2)
    out.append(f'<text x="{left + size + 20}" y="{y}">open: the fit is made of these</text><text x="{left + size + 20}" y="{y + 18}">dashed: twice, and half</text>')
    return "\n".join(out + ["</svg>"]) + "\n"


def main():
    words = sys.argv[1:]
    if words[:1] == ["fit"] and len(words) <= 2:
        (pathlib.Path(words[1]) if words[1:] else NOISE).write_text(json.dumps(fit(), indent=2) + "\n")
    elif words[:1] == ["score"] and 2 <= len(words) <= 3:
        write_scores(score(words[1], int(words[2]) if words[2:] else 400))
    elif words == ["table"]:
        sys.stdout.write(table())
    elif words[:1] == ["chart"] and len(words) == 2:
        pathlib.Path(words[1]).write_text(chart())
    else:
        sys.exit(__doc__)


if __name__ == "__main__":
    main()

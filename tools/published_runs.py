#!/usr/bin/env python3
"""Days of published training runs next to those that `windtunnel job` predicts for them (docs/job.md).

  tools/published_runs.py [PROGRAM]     a line a run of validation/runs.json; PROGRAM: windtunnel
"""
import json
import pathlib
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent


def predicted(run, program):
    """What `job --json` prints, whether the plan fits in memory (exit code 0) or not (1). Scenarios name shipped machines and stacks."""
    scenario = {"version": 1, "name": run["run"], **run["scenario"]}
    for key, folder in (("platform", "platforms"), ("software", "platforms/software")):
        if not (ROOT / folder / f"{scenario[key]}.json").is_file():
            sys.exit(f"{run['run']}: {scenario[key]!r} is no shipped {key}")
    done = subprocess.run([program, "job", "-", "--json", "--quiet"], input=json.dumps(scenario), capture_output=True, text=True, check=False)
    if done.returncode > 1 or not done.stdout:
        sys.exit(f"{run['run']}: {done.stderr}")
    return json.loads(done.stdout)


def main():
    if len(sys.argv) > 2 or sys.argv[1:2] == ["--help"]:
        sys.exit(__doc__)
    program = sys.argv[1] if len(sys.argv) == 2 else "windtunnel"
    runs = json.loads((ROOT / "validation/runs.json").read_text())["runs"]
    inside = 0
    print(f"{'run':14}{'GPUs':>8}{'published':>12}{'predicted':>12}{'90 % of runs':>18}")
    for run in runs:
        job = predicted(run, program)
        published = run["days"] if "days" in run else run["gpu_hours"] / job["gpus"] / 24
        low, high = job["days"]["p5"], job["days"]["p95"]
        holds = low <= published <= high
        inside += holds
        print(f"{run['run']:14}{job['gpus']:8,}{published:12.1f}{job['days']['median']:12.1f}{f'{low:.1f} to {high:.1f}':>18}"
              f"  {'inside' if holds else 'outside'}")
    print(f"inside: {inside} of {len(runs)}")


if __name__ == "__main__":
    main()

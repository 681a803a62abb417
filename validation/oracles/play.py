#!/usr/bin/env python3
"""Plays drawn cases of the oracles against the program; see README.md beside this file."""
import argparse
import concurrent.futures
import importlib
import json
import os
import pathlib
import random
import sys
import tempfile
import time

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from program import ROOT, Program  # noqa: E402

MOST_TOLD = 20  # cases, and of each so many differences
MOST_DIFFERENCES = 5
ORACLES = ["pipeline", "fluid", "closed_forms", "search"]


def play(oracle, path, seed, case, keep):
    """One case: how many figures were compared, and what differs."""
    module, source = importlib.import_module(oracle), random.Random(f"{oracle} {seed} {case}")
    scenario = module.draw(source)
    with tempfile.TemporaryDirectory() as folder:
        try:
            found = module.check(Program(path, folder), scenario, source)
            compared, differences = found.compared, found.differences
        except Exception as error:  # of the oracle or of the program: shown with its case, as a difference is
            compared, differences = 0, [f"{type(error).__name__}: {error}"]
    if differences:
        keep.mkdir(parents=True, exist_ok=True)
        (keep / f"{oracle}-{seed}-{case}.json").write_text(json.dumps(scenario, indent=2) + "\n")
    return case, compared, differences


def play_some(arguments):
    return [play(*each) for each in arguments]


def tell(differences):
    for each in differences[:MOST_DIFFERENCES]:
        print(f"  {each[:300]}")
    if len(differences) > MOST_DIFFERENCES:
        print(f"  and {len(differences) - MOST_DIFFERENCES} more")


def options():
    parser = argparse.ArgumentParser(prog="tools/oracles.sh", description="Play drawn cases of the oracles in validation/oracles against the program.")
    parser.add_argument("program", nargs="?", type=pathlib.Path, default=ROOT / "build/release/windtunnel", help="default: build/release/windtunnel")
    parser.add_argument("--cases", type=int, default=300, help="of each oracle (default: 300)")
    parser.add_argument("--first", type=int, default=0, help="number of the first case (default: 0)")
    parser.add_argument("--seed", type=int, default=1, help="default: 1; a case depends on seed and number only")
    parser.add_argument("--oracle", choices=ORACLES, action="append", help="one of them only (repeatable)")
    parser.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)), help="default: one a core")
    parser.add_argument("--keep", type=pathlib.Path, default=pathlib.Path("out/oracles"), help="where scenarios that differ are kept (default: out/oracles)")
    return parser.parse_args()


def main():
    given = options()
    program, failed = given.program.resolve(), False
    for oracle in given.oracle or ORACLES:
        begin, differing, compared = time.monotonic(), 0, 0
        cases = [(oracle, program, given.seed, case, given.keep) for case in range(given.first, given.first + given.cases)]
        batches = [cases[i:i + 10] for i in range(0, len(cases), 10)]
        with concurrent.futures.ProcessPoolExecutor(given.jobs) as pool:
            for case, figures, differences in (each for batch in pool.map(play_some, batches) for each in batch):
                compared += figures
                differing += bool(differences)
                if differences and differing <= MOST_TOLD:
                    print(f"{oracle} --seed {given.seed} --first {case} --cases 1, {given.keep}/{oracle}-{given.seed}-{case}.json:")
                    tell(differences)
        print(f"{oracle}: {given.cases} cases, {compared} figures compared, {differing} cases differ ({time.monotonic() - begin:.0f} s)")
        failed |= differing > 0
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

#!/usr/bin/env python3
"""Draws scenarios with every feature there is, and checks that the program keeps its promises on each:

  tools/scenario_generator.py BUILD_DIRECTORY [--cases N] [--seed S] [--first I] [--jobs J] [--keep FOLDER] [--refusals]

What can be read can be run and explained; a breakdown adds up; every number is finite; an interval holds the time; memory agrees with its
verdict; the same bytes twice, and from the module and the program; nothing slower on faster hardware (tools/generator/promises.py has the
tolerance and its reason); a job asks not whether context or pipeline cuts its replicas; no other command breaks on what `run` takes.
Every scenario is run; which of the dearer promises it is asked for, its number says. Scenarios run in worker processes by the Python module,
one in 100 also by the program. A scenario that breaks a promise, or crashes or stalls its worker, is made smaller, printed and kept in FOLDER
(BUILD_DIRECTORY/generator). Case I of seed S is the same whatever else is drawn. 20,000 take two and a half minutes of one core.
"""
import argparse
import collections
import gc
import json
import mmap
import os
import pathlib
import random
import re
import signal
import struct
import sys
import tempfile
import time
import traceback

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools/generator"))
from document import DocumentDraw  # noqa: E402
from features import FeatureDraw, Library  # noqa: E402
from promises import LONGEST, Broken, Promises, Refused, Runner, limit_memory  # noqa: E402
from schema_values import Schema  # noqa: E402
from shrink import shrink  # noqa: E402

MOST_REFUSED = 0.05  # more, and we draw what is not valid
MOST_SHRUNK = 20  # kinds of broken promises that are made smaller


def scratch():
    """A folder for the files of one process, in memory where there is such a place."""
    return tempfile.TemporaryDirectory(dir="/dev/shm" if os.access("/dev/shm", os.W_OK) else None)


class Generator:
    def __init__(self, seed):
        self.seed, self.rng = seed, random.Random()
        self.schema = Schema(json.loads((ROOT / "docs/scenario.schema.json").read_text()))
        self.library = Library(ROOT)
        self.features = FeatureDraw(self.schema, self.library, self.rng)
        self.documents = DocumentDraw(self.schema, self.library, self.rng)

    def draw(self, number):
        """Scenario `number`, and the file that it extends."""
        self.rng.seed(f"{self.seed}:{number}")
        return self.documents.draw(self.features.draw())


def promises_of(options, generator, folder):
    """Checks of scenarios by the module of the build, and of some by its program."""
    process = Runner(str(options.build / "windtunnel"), ROOT, folder)
    os.environ["WINDTUNNEL_DATA"] = str(ROOT)
    sys.path.insert(0, str(options.build / "python"))
    import windtunnel
    from module import ModuleRunner
    return Promises(ModuleRunner(windtunnel, process.program, ROOT, folder), generator.library, process)


class Worker:
    """A process that checks its share of the cases. It says in shared memory which case it is at and writes results, a line each, to a file."""

    def __init__(self, share, options, folder):
        self.share, self.options = share, options
        self.results = folder / f"{share}.jsonl"
        self.at = mmap.mmap(-1, 8)
        self.pid = None

    @property
    def case(self):
        return struct.unpack("q", self.at)[0]

    def start(self, first):
        self.at[:] = struct.pack("q", first)
        self.seen, self.since = first, time.monotonic()
        self.pid = os.fork()
        if self.pid == 0:
            quietly(lambda: self.run(first))

    def run(self, first):
        limit_memory()
        generator = Generator(self.options.seed)
        gc.set_threshold(100_000)  # no more of its rounds than of the cases that fill memory
        with scratch() as folder, open(self.results, "a") as results:
            promises = promises_of(self.options, generator, folder)
            for number in range(first, self.options.first + self.options.cases, self.options.jobs):
                self.at[:] = struct.pack("q", number)
                if what := outcome(promises, *generator.draw(number), number):
                    print(json.dumps([number, *what]), file=results, flush=True)
            print(json.dumps([-1, "anomaly", *promises.largest_anomaly]), file=results, flush=True)


def quietly(work):
    """Does `work` and ends this process, without what its parent has open."""
    try:
        work()
    except BaseException:
        traceback.print_exc()
        os._exit(1)
    os._exit(0)


def outcome(promises, document, base, number):
    """Nothing, or how a case ended: refused or broken, what, details."""
    try:
        promises.check(document, base, number)
    except Refused as refusal:
        return "refused", str(refusal), ""
    except Broken as broken:
        return "broken", broken.what, str(broken)
    return None


def crash(status):
    return "crashes: " + (signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else f"exit code {os.waitstatus_to_exitcode(status)}")


def alone(options, document, base, number):
    """How a case ends in a process of its own."""
    read, write = os.pipe()
    pid = os.fork()
    if pid == 0:
        def work():
            limit_memory()
            signal.alarm(LONGEST)
            with scratch() as folder:
                what = outcome(promises_of(options, Generator(options.seed), folder), document, base, number)
            os.write(write, json.dumps(what).encode())
        sys.stderr = open(os.devnull, "w")
        quietly(work)
    os.close(write)
    with os.fdopen(read, "rb") as pipe:
        text = pipe.read()
    status = os.waitpid(pid, 0)[1]
    if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGALRM:
        return "broken", "does not end", ""
    return ("broken", crash(status), "") if status or not text else json.loads(text)


class Campaign:
    """Starts the workers, starts one again behind a case that ended it, and keeps what broke."""

    def __init__(self, options, folder):
        self.options = options
        self.workers = [Worker(share, options, folder) for share in range(options.jobs)]
        self.crashes = []

    def run(self):
        for worker in self.workers:
            worker.start(self.options.first + worker.share)
        running = {worker.pid: worker for worker in self.workers}
        while running:
            pid, status = os.waitpid(-1, os.WNOHANG)
            if pid == 0:
                self.end_stalled(running.values())
                time.sleep(0.05)
                continue
            worker = running.pop(pid)
            if status == 0:
                continue
            self.crashes.append([worker.case, "broken", crash(status), ""])
            if worker.case + self.options.jobs < self.options.first + self.options.cases:
                worker.start(worker.case + self.options.jobs)
                running[worker.pid] = worker

    @staticmethod
    def end_stalled(workers):
        for worker in workers:
            if worker.case != worker.seen:
                worker.seen, worker.since = worker.case, time.monotonic()
            elif time.monotonic() - worker.since > 3 * LONGEST:
                os.kill(worker.pid, signal.SIGKILL)

    def results(self):
        lines = [json.loads(line) for worker in self.workers if worker.results.exists() for line in worker.results.read_text().splitlines()]
        return sorted(lines + self.crashes)

    def keep(self, number, what):
        """The case as it is, and made smaller while it breaks the same promise."""
        document, base = Generator(self.options.seed).draw(number)
        self.options.keep.mkdir(parents=True, exist_ok=True)
        still = lambda smaller: (alone(self.options, smaller, base, number) or ("", ""))[1] == what  # noqa: E731
        small = shrink(document, still) if still(document) else document
        for name, value in ((f"{number}-whole", document), (f"{number}-base", base), (f"{number}-small", small)):
            (self.options.keep / f"{name}.json").write_text(json.dumps(value, indent=1) + "\n")
        print(f"  kept: {self.options.keep}/{number}-small.json\n{json.dumps(small)}")


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("build", type=pathlib.Path)
    options.add_argument("--cases", type=int, default=20000)
    options.add_argument("--first", type=int, default=0)
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--jobs", type=int, default=len(os.sched_getaffinity(0)))
    options.add_argument("--keep", type=pathlib.Path)
    options.add_argument("--refusals", action="store_true", help="print why scenarios were refused, and how often")
    options = options.parse_args()
    options.build = options.build.resolve()
    options.keep = options.keep or options.build / "generator"
    with tempfile.TemporaryDirectory() as folder:
        campaign = Campaign(options, pathlib.Path(folder))
        campaign.run()
        results = campaign.results()
    broken, refused = collections.defaultdict(list), collections.Counter()
    anomaly, kind = max(((each[2], each[3]) for each in results if each[1] == "anomaly"), key=lambda each: each[0], default=(0, None))
    for number, how, what, details in (each for each in results if each[1] != "anomaly"):
        if how == "refused":
            refused[re.sub(r'"[^"]*"', "…", re.sub(r"[0-9.]+", "N", what.partition("error: ")[2]))] += 1
        else:
            broken[what].append((number, details))
    for what, cases in sorted(broken.items())[:MOST_SHRUNK]:
        print(f"{what}: {len(cases)} times, first in case {cases[0][0]}: {cases[0][1]}")
        campaign.keep(cases[0][0], what)
    print(f"{options.cases} scenarios: {sum(refused.values())} refused, {sum(map(len, broken.values()))} broken promises of {len(broken)} kinds; "
          f"longest on faster hardware: {anomaly:+.2%} ({kind})")
    if options.refusals:
        for why, count in refused.most_common(60):
            print(f"{count:6} {why}")
    if sum(refused.values()) > MOST_REFUSED * options.cases + 2:
        sys.exit(f"more than {MOST_REFUSED:.0%} refused: not what a generator of valid scenarios draws (--refusals prints them)")
    sys.exit(1 if broken else 0)


if __name__ == "__main__":
    main()

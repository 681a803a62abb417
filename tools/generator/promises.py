"""What the program promises for every scenario, checked by running it."""
import json
import math
import os
import pathlib
import re
import resource
import subprocess

from faster import KINDS, chooses, faster

LONGEST = 120  # seconds for one command; a scenario takes some tens of milliseconds, a searched placement seconds
MOST_MEMORY = 4 << 30  # bytes of one process; a scenario takes some tens of megabytes
ROUNDING = 1e-9
SAME_ENGINES = 1e-7  # SimGrid rounds what is left of a flow; 2e-8 was the most in 1,000,000 drawn programs
IN_PROCESS = 200  # of so many scenarios one is also run by a process of the program
EXPLAINED = 20  # of so many one is explained, which takes tens of simulations
# How much longer an iteration on faster hardware may take where flows share links, as a share of the iteration. Max-min sharing is not
# monotone: a flow that starts earlier takes bandwidth from one that others wait for. What a flow loses to others is at most the time in
# which its links carry theirs, and so all that the critical path loses is at most the time in which all links together are busy; that
# is the hard limit here. It is loose. Where nothing shares a link every order is fixed, times are maxima of sums, and there is no tolerance.
MOST_ANOMALY = 0.05
MESSAGE = re.compile(r"error: .{10,}")
POINTED = re.compile(r"error: .{5,} at /\S")  # of a file: what is wrong, and the key where it is


class Broken(Exception):
    """A promise that does not hold: `what` in a few words that stay the same while the scenario shrinks, and the details."""

    def __init__(self, what, details=""):
        super().__init__(f"{what}: {details}")
        self.what = what


def promise(holds, what, details=""):
    if not holds:
        raise Broken(what, details)


class Refused(Exception):
    """The program refuses the scenario, and says why at a key."""


def check_message(command, message):
    """A refusal says what is wrong, and of a scenario also where."""
    first = message.strip().splitlines()[0] if message.strip() else ""
    promise((POINTED if command == "run" else MESSAGE).search(first), f"{command}: exit code 2 without a message", message)


def numbers_of(value, path=""):
    """Every number of a document with its place."""
    if isinstance(value, float):
        yield path, value
    for key, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
        yield from numbers_of(each, f"{path}/{key}")


def limit_memory():
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))


class Runner:
    """Runs commands on a scenario in a folder of its own."""

    def __init__(self, program, root, folder):
        self.program, self.folder = program, pathlib.Path(folder)
        self.environment = {**os.environ, "WINDTUNNEL_DATA": str(root), "NO_COLOR": "1"}

    def write(self, document, name="scenario.json"):
        (self.folder / name).write_text(json.dumps(document))
        return name

    def command(self, *arguments):
        """Exit code 0 or 1 and what was printed; anything else is refused or broken."""
        try:
            done = subprocess.run([self.program, *arguments], capture_output=True, text=True, cwd=self.folder, env=self.environment,
                                  timeout=LONGEST, stdin=subprocess.DEVNULL, preexec_fn=limit_memory)
        except subprocess.TimeoutExpired:
            raise Broken(f"{arguments[0]} does not end") from None
        if done.returncode in (0, 1):
            return done.returncode, done.stdout
        if done.returncode == 2:
            check_message(arguments[0], done.stderr)
            raise Refused(done.stderr.strip().splitlines()[0])
        where = re.search(r"(\w+\.cpp:\d+)", done.stderr)
        raise Broken(f"{arguments[0]}: exit code {done.returncode} {where[1] if where else ''}".rstrip(), done.stderr.strip())


def check_report(report, exit_code):
    time, lines = report["iteration_time_s"], report["breakdown_s"]
    for place, number in numbers_of(report):
        promise(math.isfinite(number), f"a number is not finite: {re.sub('[0-9]+', 'N', place)}", number)
    for share in ("mfu_causal", "hfu"):
        promise(0 <= report.get(share, 0) <= 1, f"{share} is no share of what the GPUs can do", report.get(share))
    promise(time > 0, "the iteration takes no time", time)
    promise(abs(sum(lines.values()) - time) <= ROUNDING * time, "the breakdown does not add up", (sum(lines.values()), time))
    promise(min(lines.values()) >= -ROUNDING * time, "a line of the breakdown is negative", lines)
    for stage in report["stage_times_s"]:
        promise(abs(sum(stage.values()) - stage["stage"] - 2 * stage["end"]) <= ROUNDING * time, "a stage's breakdown does not add up", stage)
        promise(stage["end"] <= time * (1 + ROUNDING), "a stage ends after the iteration", (stage["end"], time))
    if interval := report.get("iteration_time_interval_s"):
        promise(0 < interval[0] <= time <= interval[1], "the interval does not hold the time", (interval, time))
    check_memory(report["memory"], exit_code)
    for link in report.get("links", {}).get("hottest", []):
        promise(link["utilisation"] <= 1 + ROUNDING, "a link carries more than it can", link)


def check_memory(memory, exit_code):
    stages, most = memory["per_stage"], max(stage["total"] for stage in memory["per_stage"])
    promise(abs(memory["max_bytes"] - most) <= 1, "max_bytes is not the largest stage's total", (memory["max_bytes"], most))
    fits = all(stage["required"] <= stage["usable"] for stage in stages)
    promise(memory["fits"] == fits, "`fits` contradicts the bytes", memory)
    worst = stages[memory["worst_stage"]]  # whose GPUs the capacity is of
    promise(worst["usable"] <= memory["capacity_bytes"] * (1 + ROUNDING), "more memory is usable than there is", memory)
    promise(exit_code == (0 if fits else 1), "the exit code contradicts `fits`", exit_code)
    for stage in stages:
        parts = sum(stage[part] for part in ("weights", "gradients", "optimizer", "activations", "buffers"))
        promise(abs(parts - stage["allocated"]) <= ROUNDING * parts + 1, "a stage's memory does not add up", stage)


def parsed(text):
    try:
        return json.loads(text)
    except ValueError as error:
        raise Broken("run --json prints no JSON", error) from None


def without_wall_time(text):
    return re.sub(r'"wall_s": *[^,}\s]+', "", text)


class Promises:
    """All checks of one scenario. `number` says which of the dearer ones it gets, and whether it is a process of the program that answers."""

    def __init__(self, runner, library, process=None):
        self.fast, self.process, self.library = runner, process or runner, library
        self.largest_anomaly = (0, None)

    def check(self, document, base, number):
        """Raises Broken, or Refused where the program would not simulate the scenario."""
        self.runner = self.fast
        self.runner.write(base, "base.json")
        file = self.runner.write(document)
        exit_code, text = self.runner.command("run", file, "--json")
        report = parsed(text)
        check_report(report, exit_code)
        self.check_faster(document, base, KINDS[number % len(KINDS)], report)
        if number % IN_PROCESS == IN_PROCESS - 1:
            self.check_process(document, file, number // IN_PROCESS, exit_code, text)
        elif number % EXPLAINED == EXPLAINED // 2:
            self.unless_refused(self.check_explain, document, file, text, report)
        else:
            check = (self.check_again, self.check_resolved, self.check_equal)[number // len(KINDS) % 3]
            self.unless_refused(check, document, file, text, report)

    def check_process(self, document, file, number, exit_code, text):
        """What only the program answers."""
        self.runner = self.process
        code, printed = self.runner.command("run", file, "--json", "--engine", "native")
        promise(without_wall_time(printed) == without_wall_time(text) and code == exit_code, "the program gives other bytes than the module")
        checks = (self.check_engines, self.check_outputs, self.check_toggle, self.check_sweep, self.check_rank, self.check_job, self.check_steps)
        self.unless_refused(checks[number % len(checks)], document, file, text, parsed(text))

    @staticmethod
    def unless_refused(check, *arguments):
        try:
            check(*arguments)
        except Refused:
            pass

    def check_again(self, document, file, text, report):
        again = self.runner.command("run", file, "--json")[1]
        promise(without_wall_time(again) == without_wall_time(text), "the same scenario gives other bytes")

    def check_engines(self, document, file, text, report):
        other = parsed(self.runner.command("run", file, "--json")[1])["iteration_time_s"]
        promise(abs(other - report["iteration_time_s"]) <= SAME_ENGINES * other, "SimGrid gives another time", (report["iteration_time_s"], other))

    def check_faster(self, document, base, kind, report):
        whole = {**base, **document, "training": {**base.get("training", {}), **document.get("training", {})}}
        whole.pop("extends", None)
        if chooses(whole):
            return
        name = self.runner.write(faster(whole, kind, self.library), "faster.json")
        other = parsed(self.runner.command("run", name, "--json")[1])
        before, after = report["iteration_time_s"], other["iteration_time_s"]
        links = other["links"]
        busy = links.get("mean_utilisation", 0) * links.get("in_use", 0) * after
        allowed = min(busy, MOST_ANOMALY * before)
        if after > before * self.largest_anomaly[0] + before:
            self.largest_anomaly = (after / before - 1, kind)
        promise(after <= before * (1 + ROUNDING) + allowed, f"slower with a faster {kind}", (before, after, allowed))

    def check_equal(self, document, file, text, report):
        """What is written otherwise and means the same takes the same time."""
        parallel = document.get("parallel", {})
        same = None
        if parallel.get("schedule", "1f1b") == "1f1b" and parallel.get("virtual_pipeline", 1) == 1 and parallel.get("pipeline", 1) > 1:
            same = {"schedule": "interleaved_1f1b", "virtual_pipeline": 1}
        elif parallel.get("data") == 1 and parallel.get("context", 1) == 1 and parallel.get("zero_stage", 0) == 0:
            same = {"zero_stage": 1}
        if same is None:
            return
        name = self.runner.write({**document, "parallel": {**parallel, **same}}, "same.json")
        other = parsed(self.runner.command("run", name, "--json")[1])["iteration_time_s"]
        promise(abs(other - report["iteration_time_s"]) <= ROUNDING * other, f"another time with {same}", (report["iteration_time_s"], other))

    def check_resolved(self, document, file, text, report):
        resolved = self.runner.command("show", file, "--resolved")[1]
        lines = [re.sub(r"\s+// [^\"]*$", "", line) for line in resolved.splitlines()]
        name = self.runner.write(json.loads("\n".join(lines)), "resolved.json")
        again = parsed(self.runner.command("run", name, "--json")[1])
        promise(again["iteration_time_s"] == report["iteration_time_s"], "the resolved scenario takes another time",
                (report["iteration_time_s"], again["iteration_time_s"]))

    def check_outputs(self, document, file, text, report):
        self.runner.command("run", file, "--out", "out")
        for name in ("report.json", "report.html", "trace.json.gz"):
            promise((self.runner.folder / "out" / name).stat().st_size > 0, f"run --out leaves no {name}")

    def check_explain(self, document, file, text, report):
        self.runner.command("explain", file, "--json")

    def check_toggle(self, document, file, text, report):
        for key in ("/compression", "/parallel/schedule", "/parallel/overlap_gradient_reduce", "/training/recompute"):
            block, name = key[1:].split("/") if key.count("/") > 1 else (key[1:], None)
            if block in document and (name is None or name in document[block]):
                return self.runner.command("compare", file, "--toggle", key, "--json")
        return None

    def check_sweep(self, document, file, text, report):
        if "sweep" in document:
            self.runner.command("sweep", file, "--dry-run")

    def check_rank(self, document, file, text, report):
        self.runner.command("rank", file, "--json", "--budget", "3", "--top", "2", "--jobs", "1")

    def check_steps(self, document, file, text, report):
        for place, number in numbers_of(parsed(self.runner.command("run", file, "--steps", "20", "--json")[1])):
            promise(math.isfinite(number), "a number of steps is not finite", place)

    def check_job(self, document, file, text, report):
        if "job" not in document:
            return
        for place, number in numbers_of(parsed(self.runner.command("job", file, "--draws", "20", "--json")[1])):
            promise(math.isfinite(number), "a number of a job is not finite", place)

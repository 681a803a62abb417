"""What the program promises for every scenario, checked by running it."""
import json
import math
import os
import pathlib
import re
import resource
import subprocess

from faster import KINDS, by_rings, faster, may_be_slower, with_shaken_links
from job import jobs_by_degree

LONGEST = 120  # seconds for one command; a scenario takes some tens of milliseconds, a searched placement seconds
MOST_MEMORY = 4 << 30  # bytes of one process; a scenario takes some tens of megabytes
ROUNDING = 1e-9
OF_A_BYTE = 1e-3  # shards are no whole bytes; of terabytes a double keeps less, hence math.ulp() in addition
MEMORY = ("--json", "--memory")
SHAKEN, UNSTABLE = 1e-9, 1000  # a bandwidth that much off changes the time by no more than so many times as much, unless nothing keeps flows in step
SAME_ENGINES = 1e-7  # SimGrid rounds what is left of a flow; 2e-8 was the most in 1,000,000 drawn programs
IN_PROCESS = 100  # of so many scenarios one is also run by a process of the program
CHECKS_IN_PROCESS = ("check_engines", "check_outputs", "check_toggle", "check_sweep", "check_rank", "check_job", "check_degrees", "check_steps")
EXPLAINED = 100  # of so many one is explained, which takes tens of simulations
FASTER = 3  # of so many one runs on faster hardware, too, and one is written otherwise or run again
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
    first = next((line for line in message.splitlines() if "error: " in line), "")  # notes may stand before it
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
            raise Refused(next(line for line in done.stderr.splitlines() if "error: " in line))
        where = re.search(r"(\w+\.cpp:\d+)", done.stderr)
        raise Broken(f"{arguments[0]}: exit code {done.returncode} {where[1] if where else ''}".rstrip(), done.stderr.strip())


def check_report(report, exit_code):
    time, lines = report["iteration_time_s"], report["breakdown_s"]
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
        tensors = stage["tensors"]
        rounded = len(tensors) * math.ulp(stage["allocated"])
        promise(abs(math.fsum(tensor["bytes"] for tensor in tensors) - stage["allocated"]) <= OF_A_BYTE + rounded, "a stage's tensors do not add up", stage)
        promise(all(tensor["bytes"] > 0 and tensor["count"] > 0 for tensor in tensors), "a tensor holds nothing", stage)


def parsed(text):
    """The document, whose numbers are finite: others are words to the parser, a walk through all of them would take as long as the rest."""
    words = []
    try:
        value = json.loads(text, parse_constant=lambda word: words.append(word) or float(word))
    except ValueError as error:
        raise Broken("--json prints no JSON", error) from None
    for place, number in numbers_of(value) if words else ():
        promise(math.isfinite(number), f"a number is not finite: {re.sub('[0-9]+', 'N', place)}", number)
    return value


def without_wall_time(text):
    return re.sub(r'"wall_s": *[^,}\s]+', "", text)


class Case:
    """A scenario and what `run` says of it."""

    def __init__(self, document, base, number):
        self.document, self.number = document, number
        self.whole = {**base, **document, "training": {**base.get("training", {}), **document.get("training", {})}}
        self.whole.pop("extends", None)
        self.file = self.exit_code = self.text = self.report = None


class Promises:
    """All checks of one scenario. Its number says which of those it gets that take more commands, and whether the program answers, too."""

    def __init__(self, runner, library, process=None):
        self.fast, self.process, self.library = runner, process or runner, library
        self.largest_anomaly = (0, None)

    def check(self, document, base, number):
        """Raises Broken, or Refused where the program would not simulate the scenario."""
        self.runner = self.fast
        self.runner.write(base, "base.json")
        case = Case(document, base, number)
        case.file = self.runner.write(document)
        case.exit_code, case.text = self.runner.command("run", case.file, *MEMORY)
        case.report = parsed(case.text)
        check_report(case.report, case.exit_code)
        if number % IN_PROCESS == IN_PROCESS - 1:
            self.check_process(case)
        elif number % EXPLAINED == EXPLAINED // 2:
            self.unless_refused(self.check_explain, case)
        elif number % FASTER == 0:
            self.check_faster(case, KINDS[number // FASTER % len(KINDS)])
        elif number % FASTER == 1:
            checks = (self.check_again, self.check_resolved, self.check_equal)
            self.unless_refused(checks[number // FASTER % len(checks)], case)

    def check_process(self, case):
        """What only the program answers."""
        self.runner = self.process
        code, printed = self.runner.command("run", case.file, *MEMORY, "--engine", "native")
        promise(without_wall_time(printed) == without_wall_time(case.text) and code == case.exit_code, "the program gives other bytes than the module")
        self.unless_refused(getattr(self, CHECKS_IN_PROCESS[case.number // IN_PROCESS % len(CHECKS_IN_PROCESS)]), case)

    @staticmethod
    def unless_refused(check, case):
        try:
            check(case)
        except Refused:
            pass

    def report_of(self, document, name, *options):
        """What `run` says of another scenario."""
        return parsed(self.runner.command("run", self.runner.write(document, name), *MEMORY, *options)[1])

    def check_again(self, case):
        again = self.runner.command("run", case.file, *MEMORY)[1]
        promise(without_wall_time(again) == without_wall_time(case.text), "the same scenario gives other bytes")

    def check_engines(self, case):
        other, time = parsed(self.runner.command("run", case.file, *MEMORY)[1])["iteration_time_s"], case.report["iteration_time_s"]
        if abs(other - time) <= SAME_ENGINES * other:
            return
        # Groups that share links may leave each other's step by more each time (a factor of 7 for each all-reduce has been seen), until rounding decides.
        shaken = [self.report_of(with_shaken_links(case.whole, part, self.library), "shaken.json", "--engine", "native")["iteration_time_s"] for part in (-SHAKEN, SHAKEN)]
        is_unstable = max(shaken) - min(shaken) > UNSTABLE * SHAKEN * time
        promise(is_unstable, "SimGrid gives another time", (time, other))

    def check_faster(self, case, kind):
        if may_be_slower(case.whole, kind):
            return
        document, usual = case.whole, case.report
        if kind in ("network", "links in a node"):
            document = by_rings(document, self.library)
            usual = self.report_of(document, "rings.json")
        other = self.report_of(faster(document, kind, self.library), "faster.json")
        before, after = usual["iteration_time_s"], other["iteration_time_s"]
        links = other["links"]
        busy = links.get("mean_utilisation", 0) * links.get("in_use", 0) * after
        allowed = min(busy, MOST_ANOMALY * before)
        if after > before * self.largest_anomaly[0] + before:
            self.largest_anomaly = (after / before - 1, kind)
        promise(after <= before * (1 + ROUNDING) + allowed, f"slower with a faster {kind}", (before, after, allowed))

    def check_equal(self, case):
        """What is written otherwise and means the same takes the same time."""
        parallel = case.whole["parallel"]
        same = None
        if parallel.get("schedule", "1f1b") == "1f1b" and parallel.get("virtual_pipeline", 1) == 1 and parallel.get("pipeline", 1) > 1:
            same = {"schedule": "interleaved_1f1b", "virtual_pipeline": 1}
        elif (parallel.get("data") == 1 and parallel.get("context", 1) == 1 and parallel.get("zero_stage", 0) == 0 and
              parallel.get("schedule") != "dualpipe" and "moe" not in case.whole["model"]):  # which hold stages, or experts, more than once
            same = {"zero_stage": 1}
        if same is None:
            return
        time, other = case.report["iteration_time_s"], self.report_of({**case.whole, "parallel": {**parallel, **same}}, "same.json")["iteration_time_s"]
        promise(abs(other - time) <= ROUNDING * other, f"another time with {same}", (time, other))

    def check_resolved(self, case):
        resolved = self.runner.command("show", case.file, "--resolved")[1]
        lines = [re.sub(r"\s+// [^\"]*$", "", line) for line in resolved.splitlines()]
        try:
            again = self.report_of(json.loads("\n".join(lines)), "resolved.json")["iteration_time_s"]
        except Refused as refusal:
            raise Broken("the resolved scenario is refused", refusal) from None
        time = case.report["iteration_time_s"]
        promise(again == time, "the resolved scenario takes another time", (time, again))

    def check_outputs(self, case):
        self.runner.command("run", case.file, "--out", "out")
        for name in ("report.json", "report.html", "trace.json.gz"):
            promise((self.runner.folder / "out" / name).stat().st_size > 0, f"run --out leaves no {name}")

    def check_explain(self, case):
        self.runner.command("explain", case.file, "--json")

    def check_toggle(self, case):
        for key in ("/compression", "/parallel/schedule", "/parallel/overlap_gradient_reduce", "/training/recompute"):
            block, name = key[1:].split("/") if key.count("/") > 1 else (key[1:], None)
            if block in case.document and (name is None or name in case.document[block]):
                return self.runner.command("compare", case.file, "--toggle", key, "--json")
        return None

    def check_sweep(self, case):
        if "sweep" in case.document:
            self.runner.command("sweep", case.file, "--dry-run")

    def check_rank(self, case):
        self.runner.command("rank", case.file, "--json", "--budget", "3", "--top", "2", "--jobs", "1")

    def check_steps(self, case):
        parsed(self.runner.command("run", case.file, "--steps", "20", "--json")[1])

    def job_of(self, file):
        return parsed(self.runner.command("job", file, "--draws", "20", "--json")[1])

    def check_job(self, case):
        job = self.job_of(case.file) if "job" in case.document else {}
        for key in ("days", "cost", "energy_mwh", "tonnes_co2"):
            figure = job.get(key)
            for part in (figure, *((figure[of] for of in ("of_which_step", "of_which_run")) if "step_interval_s" in job else ())) if figure else ():
                promise(part["p5"] <= figure["median"] <= part["p95"], f"job: the interval of {key} does not hold its median", figure)

    def check_degrees(self, case):
        """Context and pipeline cut a replica alike, as far as its job is concerned."""
        jobs = [self.job_of(self.runner.write(each, "degrees.json")) for each in jobs_by_degree(case.whole)]
        for key in ("gpus", "tokens", "days", "goodput", "mean_shares", "failures", "checkpoint", "with_enough_spares") if jobs else ():
            promise(jobs[0].get(key) == jobs[1].get(key), f"job: other {key} with context in place of pipeline", [job.get(key) for job in jobs])

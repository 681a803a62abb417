#!/usr/bin/env python3
"""Totals of a PyTorch profiler trace by a second way, to check `windtunnel import kineto --json`.

  trace_totals.py TRACE < REPORT        exits 1 where they differ by more than a nanosecond

Nothing is shared with the program. It streams the file and unites intervals; here the whole file is a
tree, numbers are exact decimals, and the time line is cut at every begin and end and each piece given to
what runs in it. Where a kernel belongs (class, phase, kind of copy) is found by looking at every thread
and group again.
"""
import collections
import decimal
import gzip
import json
import sys

path = sys.argv[1]
with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
    trace = json.load(file, parse_float=decimal.Decimal)
events = trace["traceEvents"]
reports = json.load(sys.stdin)["found"]["traces"]

LINES = ["compute", "optimizer", "codec", "tensor_comm", "pipeline_comm", "data_comm", "embedding_sync", "other_comm",
         "copies", "launch_gaps", "pipeline_bubble", "idle"]
COMPUTING = LINES[:3]
TALKING = LINES[3:8]
CATEGORIES = {"kernel", "gpu_memcpy", "gpu_memset", "launch", "bubble"}


def nanoseconds(number):
    return int((decimal.Decimal(number) * 1000).to_integral_value())


def span(event):
    begin = nanoseconds(event["ts"])
    return begin, begin + nanoseconds(event["dur"])


groups = {group["pg_name"]: group["pg_desc"] for group in trace.get("distributedInfo", {}).get("pg_config", [])}
launches, engine, steppers, steps = {}, collections.defaultdict(list), collections.defaultdict(list), set()
for event in events:
    if event.get("ph") != "X":
        continue
    thread = event["pid"], event["tid"]
    if event.get("cat") in ("cuda_runtime", "cuda_driver"):
        launches[event.get("args", {}).get("correlation")] = thread, nanoseconds(event["ts"])
    elif event["name"].startswith("autograd::engine::evaluate_function"):
        engine[thread].append(span(event))
    elif event["name"].startswith("Optimizer.step#"):
        steppers[thread].append(span(event))
    elif event["name"].startswith("ProfilerStep#") and event.get("cat") == "user_annotation":
        steps.add((event["name"], span(event)))
launches.pop(None, None)


def phase_of(event):
    own = {"forward": "forward", "backward": "backward", "weight gradient": "backward", "optimizer": "optimizer",
           "codec": "codec", "encode": "codec", "decode": "codec"}
    launch = launches.get(event.get("args", {}).get("correlation"))
    if launch is None:
        return own.get(event["name"], "unknown")
    thread, at = launch
    if any(begin <= at < end for begin, end in steppers[thread]):
        return "optimizer"
    return "backward" if any(begin <= at < end for begin, end in engine[thread]) else "forward"


def group_of(event):
    args = event.get("args", {})
    name = args.get("Process Group Name", "")
    return args.get("Process Group Description") or groups.get(name) or name


def class_of(event):
    group = group_of(event).lower()
    for word, line in (("tensor", "tensor_comm"), ("pipeline", "pipeline_comm"), ("data", "data_comm"),
                       ("embedding", "embedding_sync")):
        if word in group:
            return line
    return "other_comm"


def sort_of(event):
    """The line, phase, stream label and kernel label (None for a kernel that computes) of an event."""
    category, name = event["cat"], event["name"]
    if category in ("launch", "bubble"):
        return {"launch": "launch_gaps", "bubble": "pipeline_bubble"}[category], None, None, None
    if category == "gpu_memcpy":
        label = "memcpy " + name.split(" ")[1]
        return "copies", None, label, label
    if category == "kernel" and name.startswith("nccl"):
        label = "nccl " + name.split("(")[0].split("_")[1]
        return class_of(event), None, label, label + (f" ({group_of(event)})" if group_of(event) else "")
    phase = phase_of(event)
    line = phase if phase in ("optimizer", "codec") else "compute"
    return line, phase, "memset" if category == "gpu_memset" else "compute", "memset" if category == "gpu_memset" else None


work = collections.defaultdict(list)
for event in events:
    if event.get("ph") == "X" and event.get("cat") in CATEGORIES:
        work[event["pid"]].append((span(event), str(event["tid"]), sort_of(event)))

failures = 0


def expect(what, reported, counted):
    """`counted` in nanoseconds or pieces, `reported` in seconds or pieces."""
    global failures
    scale = 1 if what.endswith("count") else 1e9
    if abs(reported * scale - counted) > 0.5:
        failures += 1
        print(f"{what}: the program says {reported * scale}, the cuts {counted}")


def check(where, reported, pieces, window):
    """Cuts the window at every begin and end; `window` None: from the first to the last."""
    if window is None:
        window = min(begin for (begin, _), _, _ in pieces), max(end for (_, end), _, _ in pieces)
    cuts, kernels, numbers, streams = [], collections.Counter(), collections.Counter(), collections.Counter()
    for (begin, end), stream, (line, phase, label, kernel) in pieces:
        begin, end = max(begin, window[0]), min(end, window[1])
        if end <= begin:
            continue
        cuts += [(begin, 1, line, phase), (end, -1, line, phase)]
        if label:
            streams[stream, label] += end - begin
            streams[stream, label, "count"] += 1
        if kernel:
            kernels[kernel] += end - begin
            numbers[kernel] += 1
    cuts.sort(key=lambda cut: cut[0])
    running, phases, sums = collections.Counter(), collections.Counter(), collections.Counter()
    time = window[0]
    for at, step, line, phase in cuts + [(window[1], 0, "idle", None)]:
        length, time = at - time, at
        computing = any(running[each] for each in COMPUTING)
        talking = any(running[each] for each in TALKING)
        sums["window_s"] += length
        sums["busy_s"] += length * (computing or talking or running["copies"] > 0)
        sums["compute_s"] += length * computing
        sums["communication_s"] += length * talking
        sums["overlap_s"] += length * (computing and talking)
        for each in TALKING:
            sums["class", each] += length * (running[each] > 0)
            sums["class exposed", each] += length * (running[each] > 0 and not computing)
        for each, number in phases.items():
            sums["phase", each] += length * (number > 0)
        sums["line", next((each for each in LINES if running[each]), "idle")] += length
        running[line] += step
        phases[phase] += step
    sums["idle_s"] = sums["window_s"] - sums["busy_s"]
    sums["exposed_communication_s"] = sums["communication_s"] - sums["overlap_s"]
    for key in [key for key in sums if isinstance(key, str)]:
        expect(f"{where} {key}", reported[key], sums[key])
    for line in LINES:
        expect(f"{where} breakdown {line}", reported["breakdown_s"][line], sums["line", line])
    for each in TALKING:
        of_class = reported["communication_by_class"].get(each, {"time_s": 0, "exposed_s": 0})
        expect(f"{where} {each}", of_class["time_s"], sums["class", each])
        expect(f"{where} {each} exposed", of_class["exposed_s"], sums["class exposed", each])
    for phase in ("forward", "backward", "optimizer", "codec", "unknown"):
        expect(f"{where} {phase}", reported["compute_by_phase_s"].get(phase, 0), sums["phase", phase])
    for kernel, length in kernels.items():
        total = reported["kernels"].get(kernel, {"time_s": 0, "count": 0})
        expect(f"{where} {kernel}", total["time_s"], length)
        expect(f"{where} {kernel} count", total["count"], numbers[kernel])
    computing = sum(total["time_s"] for name, total in reported["kernels"].items() if name not in kernels)
    expect(f"{where} kernels that compute", computing,
           sum(length for key, length in streams.items() if key[1:] == ("compute",)))
    for key, number in streams.items():
        total = reported["streams"][key[0]][key[1]]
        expect(f"{where} {' '.join(key)}", total["count" if len(key) == 3 else "time_s"], number)


[report] = [each for each in reports if each["file"] == path]
if len(report["gpus"]) != len(work) or len(report["steps"]) != len(steps):
    sys.exit(f"{len(report['gpus'])} GPUs and {len(report['steps'])} steps reported; {len(work)} and {len(steps)} are there")
for gpu in report["gpus"]:
    check(f"GPU {gpu['device']}", gpu, work[gpu["device"]], None)
for step, (name, window) in zip(report["steps"], sorted(steps, key=lambda step: step[1])):
    if step["name"] != name:
        sys.exit(f"{step['name']} reported, {name} is there")
    for gpu in step["gpus"]:
        check(f"{name} GPU {gpu['device']}", gpu, work[gpu["device"]], window)
sys.exit(failures > 0)

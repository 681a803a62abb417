#!/usr/bin/env python3
"""Whether a trace that Windtunnel wrote is one that Holistic Trace Analysis (HTA) and Perfetto read as meant.

  trace_rules.py TRACE REPORT [--rank N] [--last [--exact]]   exits 1 with the rules that are broken

TRACE is a file of `run --rank-traces` (one simulated device), REPORT the report.json of the same run. --rank: which
it must be of. --last: the device is the one that ends last, whose breakdown the report has. --exact: there is no pipeline
and nothing waits, so that communication is the report's too. HTA is no
package of Debian and not needed: the rules are what its parser and breakdown expect of a file, read from its sources
(facebookresearch/HolisticTraceAnalysis: hta/common/trace_file.py, trace_parser.py, trace.py, trace_filter.py,
hta/utils/utils.py, hta/analyzers/breakdown_analysis.py, communication_analysis.py), stated and tried here anew.
"""
import gzip
import json
import math
import re
import sys

path, report_path = sys.argv[1], sys.argv[2]
rank = int(sys.argv[sys.argv.index("--rank") + 1]) if "--rank" in sys.argv else None
last, exact = "--last" in sys.argv, "--exact" in sys.argv
problems = []


def rule(name, holds, detail=""):
    if not holds:
        problems.append(f"{name}: broken{f' ({detail})' if detail else ''}")


# File: HTA takes what ends in .gz or .json and reads it as one object.
rule("the name ends in .json or .gz", path.endswith((".json", ".gz")))
with (gzip.open if path.endswith(".gz") else open)(path, "rt", encoding="utf-8") as file:
    text = file.read()
trace = json.loads(text)
report = json.load(open(report_path, encoding="utf-8"))
rule("the root is an object with a list traceEvents", isinstance(trace.get("traceEvents"), list))
events = trace["traceEvents"]

# Rank: distributedInfo.rank, an integer from 0, one file a rank. Its fast reader stops at traceEvents and understands
# flat objects only, so that all of it must stand before, in the first line.
info = trace.get("distributedInfo", {})
if not isinstance(info.get("rank"), int) or info["rank"] < 0:
    sys.exit("distributedInfo.rank is an integer from 0: broken")
rule("distributedInfo.world_size is above the rank", info.get("rank", 0) < info.get("world_size", 0))
rule("the rank is that of the file's name", rank is None or info.get("rank") == rank, f"{info.get('rank')}")
found = re.search(r'"rank"\s*:\s*(\d+)', text.split("\n", 1)[0])
rule("the rank stands in the first line", found is not None and int(found.group(1)) == info.get("rank"))
head = [key for key in trace if key != "traceEvents"]
rule("everything else stands before traceEvents", list(trace)[-1] == "traceEvents")
rule("what stands before is flat", all(not isinstance(value, (dict, list)) for key in head
                                       if isinstance(trace[key], dict) for value in trace[key].values()))

# Events: rows without dur or cat are dropped, as are those of cat "Trace"; the rest become columns of one type each.
kept = [event for event in events if "dur" in event and "cat" in event and event["cat"] != "Trace"]
rule("there are events with dur and cat", bool(kept))
for event in kept:
    rule("name and cat are texts", isinstance(event["name"], str) and isinstance(event["cat"], str), str(event)[:100])
    for key in ("ts", "dur"):
        value = event[key]
        rule(f"{key} is a finite number from 0", isinstance(value, (int, float)) and math.isfinite(value) and value >= 0)
    for key in ("pid", "tid"):
        rule(f"{key} is an integer", isinstance(event[key], int), str(event)[:100])
    rule("args is an object", isinstance(event.get("args", {}), dict))
ARGUMENTS = {"stream": int, "device": int, "Collective name": str, "In msg nelems": int, "Out msg nelems": int,
             "Group size": int, "dtype": str, "Process Group Name": str, "Process Group Description": str}
for event in kept:
    for key, kind in ARGUMENTS.items():
        value = event.get("args", {}).get(key)
        rule(f"args['{key}'] is of its type", value is None or isinstance(value, kind), repr(value))

# GPU work: whatever has a stream above 0; everything else counts as the CPU's side.
kernels = [event for event in kept if event.get("args", {}).get("stream", -1) != -1]
rule("GPU work has a stream above 0", bool(kernels) and all(event["args"]["stream"] > 0 for event in kernels))
rule("work with a stream is kernels, and all kernels have one",
     {id(e) for e in kernels} == {id(e) for e in kept if e["cat"] == "kernel"})
rule("a file holds the work of one process", len({event["pid"] for event in kernels}) == 1)

# Kernel types, by name. Older versions match "^nccl.*Kernel", today's the beginning "nccl"; memory work is named
# Memcpy or Memset; all else computes.
communication = [event for event in kernels if event["name"].startswith("nccl")]
rule("communication matches the older pattern too",
     all(re.match(r"^nccl.*Kernel", event["name"]) for event in communication))
rule("no kernel looks like a copy or a synchronisation",
     not any(re.match(r".*(Memcpy|Memset|Sync)|^dma", event["name"]) for event in kernels))
computation = [event for event in kernels if not event["name"].startswith("nccl")]
for event in communication:
    missing = [key for key in ("Collective name", "Group size", "Process Group Name", "Process Group Description")
               if key not in event["args"]]
    rule("communication says its collective and group", not missing, f"{event['name']}: {missing}")
    if "note" not in event["args"] and event["args"]["Group size"] > 1:
        rule("a message or collective says its size", event["args"].get("In msg nelems", 0) > 0 and
             event["args"].get("dtype") == "Byte", str(event["args"]))

# Steps: "ProfilerStep#N" with a whole number; with one step all work is kept, with more the last is left out.
steps = [event for event in kept if event["name"].startswith("ProfilerStep")]
rule("there is one step, named as HTA reads it",
     len(steps) == 1 and re.match(r"ProfilerStep\s*#\s*(\d+)", steps[0]["name"]) is not None)
rule("the step is the iteration", len(steps) == 1 and
     abs(steps[0]["dur"] - report["iteration_time_s"] * 1e6) <= 0.001 + 1e-9 * steps[0]["dur"])


def nanoseconds(number):
    return round(number * 1000)


def united(kernels):
    """HTA's merged intervals: sorted by begin, joined where the next begins not after the last end."""
    merged = []
    for begin, end in sorted((nanoseconds(e["ts"]), nanoseconds(e["ts"]) + nanoseconds(e["dur"])) for e in kernels):
        if merged and begin <= merged[-1][1]:
            merged[-1][1] = max(merged[-1][1], end)
        else:
            merged.append([begin, end])
    return merged


def length(merged):
    return sum(end - begin for begin, end in merged)


# Breakdown: kernel time = compute + non-compute + idle, all from 0 up; and what the report says of this device.
everything = united(kernels)
kernel_time = everything[-1][1] - everything[0][0]
compute_time = length(united(computation))
idle_time = kernel_time - length(everything)
non_compute = kernel_time - compute_time - idle_time
communicating = length(united(communication))
rule("idle, compute and non-compute are parts of the kernel time",
     0 <= idle_time <= kernel_time and 0 < compute_time <= kernel_time and non_compute >= 0)
overlap = compute_time + communicating - length(everything)
rule("overlap is a part of both", 0 <= overlap <= min(compute_time, communicating))

lines = report["breakdown_s"]
if last:
    # Rounded to a nanosecond at each border of a kernel.
    tolerance = 1e-9 * len(kernels)
    said = lines["compute"] + lines["optimizer"] + lines["codec"]
    rule("compute equals the report's compute, optimizer and codec",
         abs(compute_time * 1e-9 - said) <= tolerance, f"{compute_time * 1e-9} here, {said} there")
    said = lines["tensor_comm"] + lines["data_comm"] + lines["embedding_sync"] + lines["pipeline_comm"]
    # With a pipeline, messages are also under way while the device waits for others: there HTA sees no less.
    rule("exposed communication is the report's" if exact else "exposed communication is no less than the report's",
         (abs(non_compute * 1e-9 - said) <= tolerance) if exact else non_compute * 1e-9 >= said - tolerance,
         f"{non_compute * 1e-9} here, {said} there")

for problem in sorted(set(problems))[:20]:
    print(problem)
sys.exit(bool(problems))

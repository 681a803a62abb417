#!/usr/bin/env python3
"""Totals of a PyTorch profiler trace by a second way, to check `windtunnel import kineto --json`.

  trace_totals.py TRACE < REPORT        exits 1 where they differ by more than a nanosecond a piece of work

The time line is cut at every begin and end, and each piece is given to what runs in it; the program unites
intervals instead.
"""
import collections
import gzip
import json
import sys

path = sys.argv[1]
with (gzip.open if path.endswith(".gz") else open)(path, "rt") as file:
    events = json.load(file)["traceEvents"]
report = json.load(sys.stdin)["found"]

work_of = {"kernel": "compute", "gpu_memcpy": "memcpy", "gpu_memset": "memset"}
cuts = collections.defaultdict(list)
streams = collections.defaultdict(lambda: collections.defaultdict(lambda: [0, 0.0]))
for event in events:
    if event.get("ph") != "X" or event.get("cat") not in work_of:
        continue
    work = work_of[event["cat"]]
    label = work
    if work == "compute" and event["name"].startswith("nccl"):
        work, label = "nccl", "nccl " + event["name"].split("(")[0].split("_")[1]
    elif work == "memcpy":
        label = "memcpy " + event["name"].split(" ")[1]
    begin = round(event["ts"] * 1000)
    end = begin + round(event["dur"] * 1000)
    cuts[event["pid"]] += [(begin, 1, work), (end, -1, work)]
    total = streams[event["pid"]][str(event["tid"]), label]
    total[0] += 1
    total[1] += (end - begin) / 1e9

failures = 0


def expect(what, reported, counted):
    global failures
    if abs(reported - counted) > 1e-9 * (1 + len(events)):
        failures += 1
        print(f"{what}: the program says {reported}, the cuts {counted}")


if len(report["gpus"]) != len(cuts):
    sys.exit(f"{len(report['gpus'])} GPUs reported, {len(cuts)} in the trace")
for gpu in report["gpus"]:
    ends = sorted(cuts[gpu["device"]], key=lambda cut: cut[0])
    running = collections.Counter()
    sums = collections.Counter()
    for (time, step, work), following in zip(ends, ends[1:] + [ends[-1]]):
        running[work] += step
        length = (following[0] - time) / 1e9
        computing = running["compute"] + running["memset"] > 0
        talking = running["nccl"] > 0
        sums["window_s"] += length
        sums["busy_s"] += length * (computing or talking or running["memcpy"] > 0)
        sums["compute_s"] += length * computing
        sums["communication_s"] += length * talking
        sums["overlap_s"] += length * (computing and talking)
    sums["idle_s"] = sums["window_s"] - sums["busy_s"]
    sums["exposed_communication_s"] = sums["communication_s"] - sums["overlap_s"]
    for key, counted in sums.items():
        expect(f"GPU {gpu['device']} {key}", gpu[key], counted)
    for (stream, label), (count, seconds) in streams[gpu["device"]].items():
        reported = gpu["streams"][stream][label]
        expect(f"stream {stream} {label} count", reported["count"], count)
        expect(f"stream {stream} {label} time_s", reported["time_s"], seconds)
sys.exit(failures > 0)

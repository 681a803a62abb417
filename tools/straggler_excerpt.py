#!/usr/bin/env python3
"""Makes the samples of `import straggler-trace` out of the timelines that the authors publish.

    tools/straggler_excerpt.py timeline-AR.json.gz sim/importers/samples/straggler-AR.json.gz --every 11

Source: github.com/ByteDance-Seed/StragglerAnalysis, data/timeline-{AR,SE,ST}.json.gz (Apache-2.0). Every Nth step is kept whole, beginning
with the first; times are rounded to microseconds. Nothing else is changed.
"""

import argparse
import gzip
import json


def excerpt(events, every):
    steps = sorted({event["args"]["step"] for event in events if event["ph"] == "X"})
    kept = set(steps[::every])
    for event in events:
        if event["ph"] != "X":
            yield event
        elif event["args"]["step"] in kept:
            yield event | {"ts": round(event["ts"]), "dur": round(event["dur"])}


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("timeline")
    parser.add_argument("output")
    parser.add_argument("--every", type=int, default=1, help="keep each Nth step")
    options = parser.parse_args()
    with gzip.open(options.timeline) as file:
        events = json.load(file)
    text = json.dumps(list(excerpt(events, options.every)), separators=(",", ":"))
    with open(options.output, "wb") as raw, gzip.GzipFile("", "wb", 9, raw, mtime=0) as file:
        file.write(text.encode())


if __name__ == "__main__":
    main()

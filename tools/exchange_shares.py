#!/usr/bin/env python3
"""Shares of kernels and of exchanges of tokens in a trace of `windtunnel run --detail layer --trace TRACE`.

  tools/exchange_shares.py TRACE --stage S --microbatch M [--layers FIRST LAST]

Looks at the first GPU of a stage, from the exchange with which microbatch M begins layer FIRST of its chunk to the one with which it begins layer
LAST (2 and 4: not the first, whose start overlaps with nothing). docs/moe.md compares what it prints with a published profile.
"""
import argparse
import gzip
import json


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("trace")
    parser.add_argument("--stage", type=int, required=True)
    parser.add_argument("--microbatch", type=int, required=True)
    parser.add_argument("--layers", type=int, nargs=2, default=(2, 4))
    asked = parser.parse_args()
    opened = gzip.open if asked.trace.endswith(".gz") else open
    with opened(asked.trace, "rt") as file:
        events = json.load(file)["traceEvents"]
    process = next(e["pid"] for e in events if e.get("name") == "process_name" and f" pp{asked.stage} " in e["args"]["name"])
    threads = {e["args"]["name"]: e["tid"] for e in events if e.get("name") == "thread_name" and e["pid"] == process}
    spans = [e for e in events if e.get("ph") == "X" and e["pid"] == process]
    kernels = [e for e in spans if e["tid"] == threads["compute"] and e["cat"] == "kernel"]
    exchanges = [e for e in spans if e["tid"] == threads["comm:tensor"] and e["args"].get("operation", "").endswith("of tokens")]
    begin, end = (min(e["ts"] for e in exchanges if e["args"]["microbatch"] == asked.microbatch and e["args"]["layer"] == layer)
                  for layer in asked.layers)

    def busy(of):
        return sum(max(0, min(end, e["ts"] + e["dur"]) - max(begin, e["ts"])) for e in of)

    time, layers = end - begin, asked.layers[1] - asked.layers[0]
    for what, share in (("two microbatches through a layer", time), ("kernels", busy(kernels)), ("exchanges", busy(exchanges)),
                        ("no kernel", time - busy(kernels))):
        print(f"{what:34}{share / layers / 1000:6.1f} ms {100 * share / time:6.1f} %")


if __name__ == "__main__":
    main()

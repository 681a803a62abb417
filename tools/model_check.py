#!/usr/bin/env python3
"""Computes what docs/model.md says a pass of a stage takes, from the files alone, and compares it with the program's result.

  tools/model_check.py PROGRAM

The formulas are those of validation/oracles/passes.py, written a second time, from the page and not from the code.
"""
import gzip
import json
import pathlib
import re
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.dont_write_bytecode = True
sys.path.insert(0, str(ROOT / "validation" / "oracles"))
from passes import Page  # noqa: E402
from program import Program  # noqa: E402

CASES = [
    ("gpt-39b-512xa100", []),
    ("gpt-39b-512xa100", ["/training/recompute=selective", "/parallel/sequence_parallel=true", "/training/micro_batch=2"]),
    ("gpt-8.3b-64xv100", []),
    ("gpt-8.3b-64xv100", ["/software=deepspeed-megatron-2020"]),
    ("gpt-8.3b-128xa100", ["/parallel/tensor=2", "/parallel/data=null", "/training/recompute=none"]),
    ("gpt-175b-interleaved", []),
    ("gpt-39b-512xa100", ["/model=llama2-70b", "/software=composer-fsdp-2023", "/training/attention=flash", "/training/precision=bf16",
                          "/parallel={\"zero_stage\": 3}", "/training/micro_batch=1", "/training/global_batch=512"]),
    ("gpt-39b-512xa100", ["/parallel={\"zero_stage\": 3, \"tensor\": 8}", "/training/gradient_dtype=fp32"]),
]
run = Program(pathlib.Path(sys.argv[1]).resolve(), ROOT).call


def simulated(options, folder):
    """The lengths of the first passes of each stage, of replica 0, in the trace."""
    trace = pathlib.Path(folder) / "trace.json.gz"
    run("run", *options, "--trace", str(trace))
    events = json.loads(gzip.open(trace).read())["traceEvents"]
    stages = {each["pid"]: int(re.search(r"dp0 pp(\d+) ", each["args"]["name"])[1]) for each in events
              if each["name"] == "process_name" and "dp0 pp" in each["args"]["name"]}
    found = {}
    for each in events:
        if each.get("cat") == "gpu_user_annotation" and each["pid"] in stages:
            found.setdefault((stages[each["pid"]], each["name"].split()[0]), each["dur"] * 1e-6)
    return found


def main():
    failures, compared = [], 0
    with tempfile.TemporaryDirectory() as folder:
        for name, sets in CASES:
            options = [name] + [word for each in sets for word in ("--set", each)]
            text = run("show", "--resolved", *options)
            page = Page(json.loads("\n".join(re.sub(r"\s+// [^\"]*$", "", line) for line in text.splitlines())))
            took = simulated(options, folder)
            # Interleaved, a stage's first forward pass is of its first chunk and its first backward pass of its last.
            for stage in {0, page.p // 2, page.p - 1}:
                first, last, l = stage == 0, stage == page.p - 1, page.L // page.p // page.v
                one = page.v == 1
                for what, said in (("forward", page.forward(l, first, last and one)), ("backward", page.backward(l, first and one, last))):
                    compared += 1
                    if abs(said - took[stage, what]) > 1e-9 + 1e-9 * said:  # the trace has nanoseconds
                        failures.append(f"{' '.join([name] + sets)}: {what} of stage {stage} takes {took[stage, what]} s, docs/model.md says {said} s")
    if failures:
        sys.exit("\n".join(failures))
    print(f"{compared} passes take what docs/model.md says, to the nanosecond")


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Checks the defaults of docs/scenario.schema.json against the program:

  tools/scenario_defaults.py PROGRAM

Of one scenario, written out whole, every key with a default is left out and then written out again with the schema's default. The resolved scenario
must show those values, and both must give the same report; also with more than one GPU, where collectives and messages have their defaults too.
"""
import json
import pathlib
import re
import sys
import tempfile

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
from scenario_reference import ROOT, read_reference  # noqa: E402
sys.path.insert(0, str(ROOT / "validation" / "oracles"))
from program import Program  # noqa: E402

# Some layers on one GPU, since the degrees are 1 by default; a codec of every kind of key; and blocks for a search, a job and noise.
BASE = ["gpt-8.3b-128xa100", "--set", "/nodes=null", "--set", '/parallel={"edge_layers": {}}', "--set", "/training/global_batch=64",
        "--set", "/model/layers=16", "--set", "/search/tensor=[8]",
        "--set", '/job={"steps": 1000, "price": {"gpu_hour": 2}, "power": {"computing": 600, "communicating": 300, "idle": 100}}', "--set", '/noise={"stalls": {"per_gpu_hour": 1}}', "--set", "/platform/node_types/0/count=1",
        "--set", '/platform/bandwidth_matrix={"unit": "GB/s", "rows": [[0]]}',
        "--set", '/model/mla={"key_value_rank": 512, "key_size": 64, "rope_size": 32, "value_size": 64}', "--set", '/software/experts={"source": "assumed: a test"}',
        "--set", '/software/host_gathers={"per_tensor": "1 ms", "per_rank": "1 us", "tensors_per_layer": 12, "source": "assumed: a test"}']
# Models with experts have a scenario of their own.
EXPERTS = ["--set", '/model/moe={"experts": 8, "top_k": 2, "ffn_hidden": 1024}']
CODECS = {"pipeline_forward": {"codec": "int8"}, "pipeline_backward": {"codec": "powersgd", "rank": 16},
          "data_gradients": {"codec": "topk", "density": 0.1}, "tensor_activations": {"codec": "zfp", "rate": 8},
          "zero_gather": {"codec": "mpc", "ratio": 1.3}, "embedding_sync": {}}
LABELS = ("name", "scenario_hash", "assumptions", "version")
run = Program(pathlib.Path(sys.argv[1]).resolve(), ROOT).call


def resolved(*arguments):
    """The resolved scenario without its comments, which stand behind two blanks at the ends of lines."""
    return json.loads("\n".join(re.sub(r"\s+// [^\"]*$", "", line) for line in run("show", "--resolved", *arguments).splitlines()))


def with_plain_sources(value):
    """Every source as one text, which holds whatever keys are there."""
    if isinstance(value, dict):
        return {key: "assumed: a test" if key == "source" else with_plain_sources(each) for key, each in value.items()}
    return [with_plain_sources(each) for each in value] if isinstance(value, list) else value


def place(document, pointer):
    """The object that holds the key, and the key."""
    *path, key = pointer[1:].replace("/N", "/0").split("/")
    for part in path:
        document = document[int(part)] if isinstance(document, list) else document.get(part)
        if document is None:
            return None, key
    return document, key


def belongs(pointer):
    """Whether the key means something in this scenario: error feedback only where a codec has it."""
    parts = pointer.split("/")
    if pointer.startswith("/model/moe/"):
        return False  # check_experts()
    if pointer.startswith("/model/window/"):
        return False  # of a block that this scenario lacks
    return parts[-1] != "error_feedback" or CODECS[parts[2]].get("codec") in ("powersgd", "topk")


def report(folder, name, document):
    file = pathlib.Path(folder) / (name + ".json")
    file.write_text(json.dumps(document))
    result = json.loads(run("run", str(file), "--json"))
    del result["engine"]["wall_s"]
    return {key: value for key, value in result.items() if key not in LABELS}, resolved(str(file))


def check_experts(defaults, failures):
    """The defaults of a model with experts; how many there are."""
    own = {pointer: value for pointer, value in defaults.items() if pointer.startswith("/model/moe/") and not pointer.startswith("/model/moe/balance/")}
    document = with_plain_sources(resolved(*BASE, *EXPERTS))
    bare, written = json.loads(json.dumps(document)), json.loads(json.dumps(document))
    for pointer, value in own.items():
        (holder, key), (target, _) = place(bare, pointer), place(written, pointer)
        holder.pop(key, None)
        target[key] = value
    with tempfile.TemporaryDirectory() as folder:
        if report(folder, "bare", bare)[0] != report(folder, "written", written)[0]:
            failures.append("the report of a model with experts differs when its defaults are written out")
    return len(own)


def main():
    defaults = {pointer: value for pointer, value in read_reference().defaults.items() if belongs(pointer)}
    document = with_plain_sources(resolved(*BASE, "--set", "/compression=" + json.dumps(CODECS)))
    for key in ("stage_layers", "data", "zero_prefetch"):  # follow from the degrees and the software
        document["parallel"].pop(key, None)
    for key in ("attention_kernel", "cross_entropy"):  # follow from the software
        document["training"].pop(key, None)
    del document["nodes"]
    document["neighbours"] = [{"link": "node0 up", "rate": "1 GB/s"}]
    document["software"]["eager_layer_traffic"] = json.loads(json.dumps(document["software"]["layer_traffic"]))
    failures = []
    num_of_experts = check_experts(read_reference().defaults, failures)
    bare, written = json.loads(json.dumps(document)), json.loads(json.dumps(document))
    for pointer, value in defaults.items():
        if pointer == "/software" or pointer.startswith("/parallel/schedule/"):
            continue  # here in place of the default: a whole profile, a named schedule
        (holder, key), (target, _) = place(bare, pointer), place(written, pointer)
        if holder is None:
            failures.append(f"{pointer}: the scenario of this test has no place for it")
            continue
        holder.pop(key, None)
        target[key] = value
    with tempfile.TemporaryDirectory() as folder:
        (bare_report, bare_resolved), (written_report, _) = report(folder, "bare", bare), report(folder, "written", written)
        for each in (bare, written):
            each["parallel"] |= {"tensor": 4, "pipeline": 2}
        wide, wide_written = report(folder, "wide", bare)[0], report(folder, "wide written", written)[0]
        del bare["software"]
        bare_resolved["software"]["name"] = report(folder, "no software", bare)[1]["software"]["name"]
    shown = 0
    for pointer, value in defaults.items():
        holder, key = place(bare_resolved, pointer)
        if holder is None or key not in holder:
            continue  # what means nothing when it is left out is not written back
        found = holder[key]["name"] if pointer == "/software" else holder[key]
        shown += 1
        if found != value:
            failures.append(f"{pointer}: the schema says {json.dumps(value)}, the program {json.dumps(found)}")
    for without, given in ((bare_report, written_report), (wide, wide_written)):
        if without != given:
            failures.append("the report differs when the defaults are written out: " +
                            ", ".join(key for key in without if without[key] != given.get(key)))
    if failures:
        sys.exit("\n".join(failures))
    print(f"{len(defaults) + num_of_experts} defaults of the schema, {shown} shown by --resolved, are the program's")


if __name__ == "__main__":
    main()

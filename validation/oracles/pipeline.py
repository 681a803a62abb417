"""Oracle of pipelines: Megatron-LM's loops and other orders of passes, on stages and links that all differ, against `run`.

Every message has its links to itself. Compared: whether a schedule finishes at all, the iteration time, and in half of the cases when each pass
begins and ends.
"""
import collections

import orders
from compare import NANOSECOND, Comparison
from draw import SOURCE, Draw
from machine import Clock, Machine, Rings, ring
from passes import Page, amount
from program import Refused
from stages import BLOCKS, Schedule, Worker, pass_times, text_of, times_at_once


def draw(random):
    """A scenario with one replica."""
    d = Draw(random)
    schedule = random.choice(["gpipe", "1f1b", "1f1b", "interleaved_1f1b", "interleaved_1f1b", "interleaved_1f1b", "zero_bubble_h1", "zero_bubble_v", "zero_bubble_v", "dualpipe",
                              "dualpipe_v", "file"])
    stages, chunks = random.randint(1, 6), 1
    if schedule == "interleaved_1f1b":
        stages, chunks = random.randint(3, 6), random.randint(2, 4)
    elif schedule == "zero_bubble_v":
        stages, chunks = random.randint(2, 6), 2
    elif schedule == "dualpipe":
        stages, chunks = random.choice([2, 4, 6, 8]), 2
    elif schedule == "dualpipe_v":
        stages, chunks = random.randint(2, 6), 2
    elif schedule == "file":
        stages, chunks = random.randint(3, 4), random.choice([1, 1, 2])
    microbatches = random.randint(1, 24)
    if schedule == "interleaved_1f1b":
        microbatches = stages * random.choice([1, 2, 2, 3, 5])
    elif schedule in BLOCKS:
        microbatches = 2 * stages + 2 * random.randint(0, 6)
    elif schedule == "file":
        microbatches = random.randint(1, 6)
    tensor = random.choice([1, 1, 1, 2, 4])
    # Where several stages share a node, no two messages may meet between the same nodes.
    several = [n for n in (2, 3) if stages % n == 0 and stages > n and (chunks == 1 or stages >= 3 * n) and schedule not in ("file", "zero_bubble_v", *BLOCKS)]
    stages_per_node = random.choice([1, 1] + several)
    nodes = stages // stages_per_node
    layers = [random.choice([0, 1, 1, 2, 3]) for _ in range(stages)]
    layers[0] += not sum(layers)
    parts = 1 if schedule == "dualpipe" else chunks  # whose layers are given by part of the model, of which each stage holds two
    rates = [[0 if i == j else float(f"{d.between(0.1, 5):.6g}") for j in range(nodes)] for i in range(nodes)]
    parallel = {"tensor": tensor, "pipeline": stages, "data": 1, "schedule": schedule, "virtual_pipeline": chunks,
                "pipeline_send": random.choice(["eager", "blocking_pairs"]), "sequence_parallel": tensor > 1 and random.choice([True, False]),
                "zero_stage": 0, "stage_layers": [each * parts for each in layers]}
    if schedule in BLOCKS or schedule == "zero_bubble_v" and microbatches == 1:
        parallel["pipeline_send"] = "eager"  # one microbatch alone would pass, which the program refuses with the rest
    if stages_per_node == 1:
        order = random.sample(range(nodes), nodes)
        parallel["placement"] = [f"{node}:{gpu}" for node in order for gpu in range(tensor)]
    if schedule == "file":
        path = random.choice(["loop", "v"])
        drawn = orders.drawn(random, stages, microbatches, chunks, path, random.choice([True, False]))
        parallel["schedule"] = {"version": 1, "name": "drawn", "stages": stages, "microbatches": microbatches, "chunks": chunks, "chunk_path": path,
                                "orders": [[text_of(each, chunks) for each in one] for one in drawn]}
    gpus = tensor * stages_per_node
    types = [d.node_type(f"gpu{i}-drawn", gpus, gpus, "400 Gbps", 1) for i in range(nodes)]
    scenario = {"version": 1, "name": "pipeline", "model": d.model(sum(layers) * parts, tensor) | {"tied_embeddings": False},
                "platform": {"name": "drawn", "node_types": types,
                             "fabric": {"latency": random.choice(["0 us", d.text(1, 200, "us")]), "collective_latency": "10 us"} | SOURCE},
                "nodes": nodes, "software": d.software(), "training": d.training(1, microbatches), "parallel": parallel}
    if nodes > 1:
        scenario["platform"]["bandwidth_matrix"] = {"unit": "GB/s", "rails": random.choice([1, 2]), "rows": rates} | SOURCE
    scenario["compression"] = {}
    for way in ("pipeline_forward", "pipeline_backward"):
        if stages > 1 and d.chance(0.25):
            codec = {"codec": "fixed", "ratio": random.choice([1, 2, 3.7]), "encode_rate": d.text(1, 50, "GB/s"), "decode_rate": d.text(1, 50, "GB/s")}
            if way == "pipeline_backward":
                codec["messages"] = random.choice(["all", "epilogue"])
            scenario["compression"][way] = codec
    return scenario


class Wires:
    """Messages between stages, each alone on its links."""

    def __init__(self, scenario):
        platform, parallel = scenario["platform"], scenario["parallel"]
        self.types, self.fabric, self.ranks = platform["node_types"], platform["fabric"], parallel["tensor"]
        self.matrix = platform.get("bandwidth_matrix")
        gpus = self.types[0]["gpus"]
        places = parallel.get("placement") or [f"{rank // gpus}:{rank % gpus}" for rank in range(self.ranks * parallel["pipeline"])]
        self.node = [int(places[stage * self.ranks].split(":")[0]) for stage in range(parallel["pipeline"])]

    def transfer(self, clock, source, target, size, done):
        a, b = self.node[source], self.node[target]
        if a == b:
            wires = self.types[a]["interconnect"]
            clock.after(amount(wires["point_to_point_latency"]) + size / amount(wires["point_to_point"]), done)
        else:
            clock.after(amount(self.fabric["latency"]) + size * self.ranks / self.rate(source, target), done)

    def rate(self, source, target):
        return self.matrix["rows"][self.node[source]][self.node[target]] * 1e9 * self.matrix["rails"]


def both_copies(scenario, wires, stage, other, parameters):
    """A ring of two reduces the gradients of both stages that hold the same parts, which nobody else sends beside."""
    latency = amount(wires.fabric["collective_latency"])
    size = (4 if scenario["training"]["gradient_dtype"] == "fp32" else 2) * parameters * wires.ranks
    return 2 * latency + size / min(wires.rate(stage, other), wires.rate(other, stage))


def layers_of_chunks(schedule, stage_layers, stage):
    """Of each chunk of a stage: those of its parts of the model where that is taken from both ends, else even shares."""
    if schedule.path.bidirectional:
        return [stage_layers[schedule.path.part(stage, chunk)] for chunk in range(schedule.chunks)]
    return [stage_layers[stage] // schedule.chunks] * schedule.chunks


def play(scenario):
    """The iteration time, and {(stage, kind, microbatch, chunk): (begin, end)}; None where it never ends."""
    parallel, wires = scenario["parallel"], Wires(scenario)
    pages = [Page(scenario, node) for node in wires.node]
    schedule = Schedule(scenario, pages[0].activation())
    clock, workers, ends, held = Clock(), [], [], []
    rings = Rings(clock, collections.defaultdict(lambda: 2), lambda clock, pair, done: clock.after(both_copies(scenario, wires, *pair, held[pair[0]]), done))
    machine = Machine(wires, clock, rings)

    def whole(worker, page):
        yield from worker.program()
        if schedule.path.bidirectional:
            yield ring((worker.stage, schedule.stages - 1 - worker.stage)[::1 if worker.stage < schedule.stages // 2 else -1])
        ends.append(clock.now + page.optimizer(held[worker.stage]) + amount(scenario["software"]["iteration_overhead"]))

    for stage, page in enumerate(pages):
        layers = layers_of_chunks(schedule, parallel["stage_layers"], stage)
        workers.append(Worker(schedule, stage, pass_times(page, schedule, stage, layers), machine, times_at_once=times_at_once(page, schedule, stage, layers)))
        held.append(page.parameters(sum(layers), *schedule.path.holds(stage)))
        machine.play(stage, whole(workers[-1], page))
    if not machine.run():
        return None
    return max(ends), {(worker.stage, *each[:3]): each[3:] for worker in workers for each in worker.log}


def check(program, scenario, random):
    """Plays the scenario on both sides."""
    found, traced = Comparison(), random.random() < 0.5
    expected = play(scenario)
    try:
        report, passes = program.traced(scenario) if traced else (program.run(scenario), {})
    except Refused as refusal:
        if expected is not None or "never" not in str(refusal):
            found.fail("the program refuses", str(refusal), "plays")
        return found
    if expected is None:
        found.fail("the program plays", report["iteration_time_s"], "stands still")
        return found
    iteration, ours = expected
    found.relative("iteration_time_s", report["iteration_time_s"], iteration)
    if traced:
        took = {key: end - begin for key, (begin, end) in ours.items()}
        found.equal("passes that take no time", sorted(key for key in passes if not took.get(key)), [])
        found.equal("passes left out", sorted(key for key in took if took[key] > 2 * NANOSECOND and key not in passes), [])  # rounded to nothing: may be
        for key in ours:
            for what, one, other in zip(("begins", "ends"), passes.get(key, ()), ours[key]):
                found.within(f"stage {key[0]} {key[1]}{key[2]}.{key[3]} {what}", one, other, NANOSECOND)
    return found

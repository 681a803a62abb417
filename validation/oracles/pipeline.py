"""Oracle of pipelines: Megatron-LM's loops and other orders of passes, on stages and links that all differ, against `run`.

Every message has its links to itself. Compared: whether a schedule finishes at all, the iteration time, and in half of the cases when each pass
begins and ends.
"""
import orders
from compare import NANOSECOND, Comparison
from draw import SOURCE, Draw
from machine import Machine
from passes import Page, amount
from program import Refused
from stages import Schedule, Worker, pass_times, text_of


def draw(random):
    """A scenario with one replica."""
    d = Draw(random)
    schedule = random.choice(["gpipe", "1f1b", "1f1b", "interleaved_1f1b", "interleaved_1f1b", "interleaved_1f1b", "zero_bubble_h1", "zero_bubble_v", "zero_bubble_v", "file"])
    stages, chunks = random.randint(1, 6), 1
    if schedule == "interleaved_1f1b":
        stages, chunks = random.randint(3, 6), random.randint(2, 4)
    elif schedule == "zero_bubble_v":
        stages, chunks = random.randint(2, 6), 2
    elif schedule == "file":
        stages, chunks = random.randint(3, 4), random.choice([1, 1, 2])
    microbatches = random.randint(1, 24)
    if schedule == "interleaved_1f1b":
        microbatches = stages * random.choice([1, 2, 2, 3, 5])
    elif schedule == "file":
        microbatches = random.randint(1, 6)
    tensor = random.choice([1, 1, 1, 2, 4])
    # Where several stages share a node, no two messages may meet between the same nodes.
    several = [n for n in (2, 3) if stages % n == 0 and stages > n and (chunks == 1 or stages >= 3 * n) and schedule not in ("file", "zero_bubble_v")]
    stages_per_node = random.choice([1, 1] + several)
    nodes = stages // stages_per_node
    layers = [random.choice([0, 1, 1, 2, 3]) for _ in range(stages)]
    layers[0] += not sum(layers)
    rates = [[0 if i == j else float(f"{d.between(0.1, 5):.6g}") for j in range(nodes)] for i in range(nodes)]
    parallel = {"tensor": tensor, "pipeline": stages, "data": 1, "schedule": schedule, "virtual_pipeline": chunks,
                "pipeline_send": random.choice(["eager", "blocking_pairs"]), "sequence_parallel": tensor > 1 and random.choice([True, False]),
                "zero_stage": 0, "stage_layers": [each * chunks for each in layers]}
    if schedule == "zero_bubble_v" and microbatches == 1:
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
    scenario = {"version": 1, "name": "pipeline", "model": d.model(sum(layers) * chunks, tensor) | {"tied_embeddings": False},
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
            rate = self.matrix["rows"][a][b] * 1e9 * self.matrix["rails"]
            clock.after(amount(self.fabric["latency"]) + size * self.ranks / rate, done)

def play(scenario):
    """The iteration time, and {(stage, kind, microbatch, chunk): (begin, end)}; None where it never ends."""
    parallel, wires = scenario["parallel"], Wires(scenario)
    pages = [Page(scenario, node) for node in wires.node]
    schedule = Schedule(scenario, pages[0].activation())
    machine, workers, ends = Machine(wires), [], []

    def whole(worker, tail):
        yield from worker.program()
        ends.append(worker.machine.clock.now + tail)

    for stage, (page, layers) in enumerate(zip(pages, parallel["stage_layers"])):
        workers.append(Worker(schedule, stage, pass_times(page, schedule, stage, layers // schedule.chunks), machine))
        held = page.parameters(layers, *(stage == end for end in schedule.path.ends()))
        machine.play(stage, whole(workers[-1], page.optimizer(held) + amount(scenario["software"]["iteration_overhead"])))
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
        found.equal("passes that take time", sorted(passes), sorted(key for key, (begin, end) in ours.items() if end > begin))
        for key in ours:
            for what, one, other in zip(("begins", "ends"), passes.get(key, ()), ours[key]):
                found.within(f"stage {key[0]} {key[1]}{key[2]}.{key[3]} {what}", one, other, NANOSECOND)
    return found

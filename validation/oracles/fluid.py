"""Oracle of contention: replicas whose messages, gradient rings, embedding synchronisation, gathers and scatters meet on links, against `run`.

Drawn are nodes of several kinds, several network cards, measured links that differ, tapered leaves, placements, rings of both shapes, sharding and
overlap. Compared: the iteration time.
"""
import collections

from compare import Comparison
from draw import SOURCE, Draw
from machine import Clock, Machine, Rings, compute, fork, happened, ring, wait
from network import Cluster, Fluid
from passes import Page, amount
from stages import Schedule, Worker, pass_times


def draw(random):
    d = Draw(random)
    tensor, stages, replicas, gpus = drawn_shape(random)
    nodes = max(1, tensor * stages * replicas // gpus)
    gpus = tensor * stages * replicas // nodes
    schedule, chunks = random.choice(["1f1b", "1f1b", "gpipe", "zero_bubble_h1", "zero_bubble_v", "interleaved_1f1b"]), 1
    if schedule in ("interleaved_1f1b", "zero_bubble_v") and stages == 1:
        schedule = "1f1b"
    if schedule == "interleaved_1f1b":
        chunks = random.randint(2, 3)
    microbatches = stages * random.randint(1, 3) if chunks > 1 else random.randint(1, 8)
    if schedule == "zero_bubble_v":
        chunks = 2
    layers = [random.randint(1, 3) for _ in range(stages)]
    parallel = {"tensor": tensor, "pipeline": stages, "data": replicas, "schedule": schedule, "virtual_pipeline": chunks,
                "pipeline_send": "eager" if schedule == "zero_bubble_v" else random.choice(["eager", "blocking_pairs"]), "sequence_parallel": tensor > 1 and random.choice([True, False]),
                "zero_stage": random.choice([0, 0, 1, 2] + [3, 3, 3, 3] * (stages == 1)), "stage_layers": [each * chunks for each in layers],
                "overlap_gradient_reduce": random.choice([True, False]), "gradient_ring": random.choice(["flat", "hierarchical"]),
                "rank_order": random.choice(["tensor-data-pipeline", "tensor-pipeline-data"])}
    if parallel["zero_stage"] == 3:
        layers = [random.randint(1, 6)]
        parallel |= {"zero_prefetch": random.choice([0, 1, 2, 3]), "overlap_gradient_reduce": False, "stage_layers": layers}
    if d.chance(0.5):
        units = [(node, unit) for node in range(nodes) for unit in range(gpus // tensor)]
        random.shuffle(units)
        parallel["placement"] = [f"{node}:{unit * tensor + i}" for node, unit in units for i in range(tensor)]
    even = parallel["zero_stage"] == 3 and d.chance(0.2)  # then it is a number
    software = d.software()
    if d.chance(0.3):
        software["embedding_gradient_type"] = random.choice(["fp16", "fp32"])
    scenario = {"version": 1, "name": "fluid", "model": d.model(sum(layers) * chunks, tensor), "platform": drawn_platform(d, nodes, gpus, even),
                "nodes": nodes, "software": software, "training": d.training(replicas, microbatches), "parallel": parallel, "compression": {}}
    if d.chance(0.3) and stages > 1:
        scenario["compression"]["embedding_sync"] = {"fused": True}
    return scenario


def drawn_shape(random):
    """Tensor degree, stages, replicas and GPUs per node: more than one node in most cases, and never more than a few devices."""
    while True:
        tensor, stages, replicas, gpus = random.choice([1, 1, 2, 4]), random.choice([1, 1, 1, 2, 3, 4]), random.randint(1, 6), random.choice([1, 2, 3, 4, 8])
        ranks = tensor * stages * replicas
        if gpus % tensor == 0 and ranks % gpus == 0 and stages * replicas > 1 and (ranks > gpus or random.random() < 0.1):
            return tensor, stages, replicas, gpus


def drawn_platform(d, nodes, gpus, even=False):
    """Nodes and links of any kind, or all alike."""
    random = d.random
    kinds = 1 if even else random.randint(1, min(3, nodes))
    borders = sorted(random.sample(range(1, nodes), kinds - 1))
    counts = [b - a for a, b in zip([0] + borders, borders + [nodes])]
    types = [d.node_type(f"gpu{i}-drawn", gpus, random.randint(1, gpus), d.text(5, 100, "Gbps"), count) for i, count in enumerate(counts)]
    fabric = {"latency": random.choice(["0 us", d.text(1, 100, "us")]), "collective_latency": random.choice(["0 us", d.text(1, 50, "us")])}
    if not even and d.chance(0.5):
        fabric |= {"nodes_per_leaf": random.randint(1, 3), "oversubscription": random.choice([1.5, 2, 4])}
    platform = {"name": "drawn", "node_types": types, "fabric": fabric | SOURCE}
    if not even and nodes > 1 and d.chance(0.4):
        rows = [[0 if i == j else float(f"{d.between(0.3, 10):.6g}") for j in range(nodes)] for i in range(nodes)]
        platform["bandwidth_matrix"] = {"unit": "GB/s", "rails": random.choice([1, 2]), "rows": rows} | SOURCE
    if not even and nodes > 1 and d.chance(0.4):
        pairs = random.sample([(i, j) for i in range(nodes) for j in range(nodes) if i != j], random.randint(1, 2))
        platform["link_overrides"] = [{"from": i, "to": j, "bandwidth": d.text(0.3, 10, "GB/s")} | SOURCE for i, j in pairs]
    if not even and nodes > 1 and d.chance(0.3):
        node = random.randrange(nodes)
        nics = next(kind["nics"] for i, kind in enumerate(types) if sum(counts[:i + 1]) > node)
        shares = [random.choice([0.1, 0.5, 0.9] + [0] * (nic > 0)) for nic in range(nics)]
        platform["faults"] = [{"node": node, "nic": nic, "share": share} | SOURCE for nic, share in enumerate(shares) if d.chance(0.6)]
    return platform


def width(kind):
    return 4 if kind == "fp32" else 2


class Reduction:
    """When a stage's gradients are reduced (docs/model.md, section 5): behind the last pass or on every microbatch (ZeRO 2), beside passes or not."""

    def __init__(self, job, replica, stage):
        self.job, self.replica, self.stage = job, replica, stage
        several, zero = len(job.replicas) > 1, job.parallel["zero_stage"]
        self.beside = several and zero < 3 and job.parallel["overlap_gradient_reduce"]
        self.each_microbatch = several and zero == 2
        self.at_the_end = several and zero < 2 and not self.beside
        making = [step for step in job.schedule.orders[stage] if step[0] == ("W" if job.schedule.split else "B")]
        last = {step[2]: step for step in making}
        self.reducing = making if self.each_microbatch else [step for step in making if step == last[step[2]]] if self.beside else []

    def pieces(self, step):
        return self.job.buckets(self.stage) if self.beside and step in self.reducing else 1

    def slowed(self, step, piece):
        """The bucket before has multiprocessors that the piece does without."""
        if not piece or step not in self.reducing or not self.beside:
            return 0
        job, (kind, _, chunk), pieces = self.job, step, self.pieces(step)
        page, path = job.page(self.replica, self.stage), job.schedule.path
        held = job.gradient_width * job.parameters(self.stage, chunk)
        alone = page.reduced_alone(held, *job.replicas_by_node(self.stage), job.parallel["zero_stage"] > 0)
        kernels = page.backward_kernels(kind, job.layers(self.stage), path.is_first(self.stage, chunk), path.is_last(self.stage, chunk))
        return page.taken(kernels / pieces, alone * job.gradients(self.stage, chunk) / held / pieces)

    def after_piece(self, step, piece):
        if self.beside and step in self.reducing:
            yield happened((step, piece))

    def after_pass(self, step):
        """Where shards are kept, the next pass waits for the reduction."""
        if self.each_microbatch and step in self.reducing:
            yield wait((step, "reduced")) if self.beside else ring(("gradients", self.stage, step))

    def stream(self):
        """The stream of the buckets: one after the other, each when its piece is done."""
        for step in self.reducing if self.beside else []:
            for piece in range(self.job.buckets(self.stage)):
                yield wait((step, piece))
                yield ring(("bucket", self.stage, step, piece))
            yield happened((step, "reduced"))

    def at_end(self):
        if self.at_the_end:
            yield ring(("gradients", self.stage))
        for step in self.reducing if self.beside else []:
            yield wait((step, "reduced"))


class ShardedWorker(Worker):
    """Passes of ZeRO 3, layer by layer (docs/model.md, section 6): a stream of kernels, and beside it one of collectives, which follow one another."""

    def __init__(self, job, page, *arguments):
        super().__init__(*arguments)
        self.page, self.layers = page, job.layers(0)
        self.split = job.schedule.split

    def run(self, kind, microbatch, chunk, at_once=False):
        step = kind, microbatch, chunk
        if kind == "W":
            yield compute(self.page.weight_gradient(self.layers, True))
            return
        part = "I" if kind == "B" and self.split else kind
        prefetch = self.page.prefetch(part)
        layer, gather, scatter, rest, read, cpu = self.page.sharded(part, self.layers)
        yield compute(read)
        begin = self.machine.clock.now
        if kind == "F":
            yield ring(("gather", step, "edges"))
        yield compute(rest)
        if prefetch:
            yield fork(self.collectives(step, prefetch))
        for i in range(self.layers):
            if prefetch:
                beside = gather * (i + 1 < self.layers) + scatter * (i > 0)
                yield wait((step, "gathered", i))
            else:
                beside = 0
                yield ring(("gather", step, i))
            tail = self.page.tail(layer, beside, part)
            yield compute(self.page.span(layer, beside, part) - tail)
            yield happened((step, "computed", i))
            yield compute(tail)
            if kind == "B" and not prefetch:
                yield ring(("scatter", step, i))
        if kind == "B":
            if prefetch:
                yield wait((step, "scattered"))
            yield ring(("scatter", step, "edges"))
        # The CPU launches on while the pass waits for others (section 3).
        taken = self.machine.clock.now - begin
        yield compute(self.page.floored(taken, cpu) - taken)

    def collectives(self, step, prefetch):
        """When a layer begins, what the one before it left is scattered, and then the one `prefetch` layers ahead is gathered."""
        def gather(i):
            if i < self.layers:
                yield ring(("gather", step, i))
                yield happened((step, "gathered", i))
        for i in range(prefetch + 1):
            yield from gather(i)
        for i in range(1, self.layers + 1):
            yield wait((step, "computed", i - 1))
            if step[0] == "B":
                yield ring(("scatter", step, i - 1))
            yield from gather(i + prefetch)
        yield happened((step, "scattered"))


class Job:
    """All replicas of a scenario, and their collectives."""

    def __init__(self, scenario, by_layer=False):
        self.scenario, self.parallel, self.by_layer = scenario, scenario["parallel"], by_layer
        self.cluster, self.clock = Cluster(scenario), Clock()
        self.flows = Fluid(self.clock, self.cluster.capacity)
        self.pages = [Page(scenario, i) for i in range(len(scenario["platform"]["node_types"]))]
        self.schedule = Schedule(scenario, self.pages[0].activation())
        self.stages, self.chunks = range(self.schedule.stages), range(self.schedule.chunks)
        self.replicas = range(self.parallel["data"])
        self.places = {(r, s): self.cluster.place(r, s) for r in self.replicas for s in self.stages}
        for page in self.pages:
            page.fullest, page.nodes = self.replicas_by_node(0)  # for the gathers of ZeRO 3
        training, software = scenario["training"], scenario["software"]
        self.gradient_width = width(training["gradient_dtype"])
        self.embedding_width = width(software.get("embedding_gradient_type", training["gradient_dtype"]))
        self.ends = self.schedule.path.ends()
        self.tied = scenario["model"]["tied_embeddings"] and self.ends[0] != self.ends[1]
        self.fused = self.tied and scenario["compression"].get("embedding_sync", {}).get("fused", False)
        self.rings = Rings(self.clock, {}, self.play_ring)
        self.ring_of = {}
        self.add_rings()

    def page(self, replica, stage):
        return self.pages[self.cluster.types[self.places[replica, stage].node]]

    def replicas_by_node(self, stage):
        """Replicas on the node that has most of them, and nodes."""
        nodes = [self.places[r, stage].node for r in self.replicas]
        return max(map(nodes.count, nodes)), len(set(nodes))

    def plays_layers(self):
        """ZeRO 3 where nodes or links differ, or the network cards of a node do not divide among its groups, or where it is asked for. Where all are
        alike, passes take what the formula says."""
        platform, nodes = self.scenario["platform"], len(self.cluster.types)
        tapered = 0 < platform["fabric"].get("nodes_per_leaf", 0) < nodes and platform["fabric"].get("oversubscription", 1) > 1
        node = platform["node_types"][0]
        groups, cards = max(1, node["gpus"] // self.parallel["tensor"]), node["nics"]
        shared = nodes > 1 and groups % cards > 0 and cards % groups > 0
        uneven = len(platform["node_types"]) > 1 or "bandwidth_matrix" in platform or platform.get("link_overrides") or platform.get("faults") or tapered or shared
        return self.parallel["zero_stage"] == 3 and len(self.replicas) > 1 and bool(uneven or self.by_layer)

    # Amounts
    def layers(self, stage):
        return self.parallel["stage_layers"][stage] // len(self.chunks)

    def parameters(self, stage, chunk):
        return self.pages[0].parameters(self.layers(stage), self.schedule.path.is_first(stage, chunk), self.schedule.path.is_last(stage, chunk))

    def stage_parameters(self, stage):
        return sum(self.parameters(stage, chunk) for chunk in self.chunks)

    def gradients(self, stage, chunk):
        """Bytes that a rank's gradients of a chunk are reduced with; where the embedding is synchronised by all replicas at once, without it."""
        held = self.gradient_width * self.parameters(stage, chunk)
        edge = self.schedule.path.is_first(stage, chunk) or self.schedule.path.is_last(stage, chunk)
        return held - (self.gradient_width * self.pages[0].word_embedding() if self.fused and edge else 0)

    def buckets(self, stage):
        return max(1, self.layers(stage))

    # Collectives
    def add_rings(self):
        if len(self.replicas) > 1:
            reduces = "scatter" if self.parallel["zero_stage"] > 0 else "all_reduce"
            for stage in self.stages:
                members = [(r, stage) for r in self.replicas]
                for step in self.schedule.orders[stage]:
                    for piece in range(self.buckets(stage)):
                        self.add_ring(("bucket", stage, step, piece), members, self.gradients(stage, step[2]) / self.buckets(stage), reduces)
                    self.add_ring(("gradients", stage, step), members, self.gradients(stage, step[2]), reduces)
                self.add_ring(("gradients", stage), members, sum(self.gradients(stage, c) for c in self.chunks), reduces)
                self.add_ring(("parameters", stage), members, self.pages[0].e * self.stage_parameters(stage), "gather")
                if self.plays_layers():
                    self.add_sharded_rings(members)
        if self.tied:
            edges = [[(r, end) for end in self.ends] for r in self.replicas]
            payload = self.embedding_width * self.pages[0].word_embedding()
            for replica, members in enumerate([sum(edges, [])] if self.fused else edges):
                self.add_ring(("embedding", replica), members, payload, "all_reduce", "flat")

    def add_sharded_rings(self, members):
        page = self.pages[0]
        for step in self.schedule.orders[0]:
            for part in ["edges", *range(self.layers(0))]:
                weights = page.edges() if part == "edges" else page.matrix_weights()
                for what, element in (("gather", page.e), ("scatter", self.gradient_width)):
                    self.add_ring((what, step, part), members, element * weights, what, "sharded")

    def add_ring(self, name, members, payload, kind, shape=None):
        self.rings.members[name] = len(members)
        self.ring_of[name] = members, payload, kind, shape or self.parallel["gradient_ring"]

    def in_node(self, by_node, payload, kind="all_reduce"):
        """The longest part of a ring inside a node."""
        return max(self.pages[self.cluster.types[node]].in_node(payload, len(there), kind) for node, there in by_node.items())

    def play_ring(self, clock, name, done):
        members, payload, kind, shape = self.ring_of[name]
        share = 1 if kind == "all_reduce" else 0.5
        by_node = collections.OrderedDict()
        for member in members:
            by_node.setdefault(self.places[member].node, []).append(member)
        n, nodes = len(members), len(by_node)
        inside = self.in_node(by_node, payload, kind)
        if nodes == 1:
            return clock.after(inside, done)
        latency, page = amount(self.cluster.fabric["collective_latency"]), self.page(*members[0])
        if shape == "hierarchical" and nodes < n:
            # Gather and scatter inside the nodes, one after the other with the ring through the nodes.
            halves = ("scatter", "gather") if kind == "all_reduce" else (kind,)
            first, volume = 0.0, share * 2 * (nodes - 1) / nodes * payload
            before = sum(self.in_node(by_node, payload, half) for half in halves) + share * 2 * (nodes - 1) * latency
        else:
            message = amount(self.cluster.fabric["latency"]) if shape == "sharded" else 0
            rate, cards = self.slowest_edge(by_node)
            t = self.parallel["tensor"]
            inside, before, volume = page.over_nodes(kind, payload, n, nodes, lambda size: self.in_node(by_node, size, kind), rate / t, max(1, round(cards / t)), len(next(iter(by_node.values()))), max(1, t / cards), [(self.pages[self.cluster.types[node]], len(there)) for node, there in by_node.items()])
            before += message
            first = before + inside
        self.play_edges(clock, list(by_node.values()), volume * self.parallel["tensor"], first, before, done)

    def slowest_edge(self, by_node):
        """What the slowest edge from node to node carries alone, and over how many cards."""
        rates, order = [], list(by_node)
        for node, after in zip(order, order[1:] + order[:1]):
            nics, carried, _ = self.cluster.working_nics(node, [gpu for member in by_node[node] for gpu in self.places[member].gpus])
            rates.append((min(self.cluster.nic_rate(node) * carried, self.cluster.own_rate(node, after) or float("inf")), len(nics)))
        return min(rates, key=lambda rate: rate[0])

    def play_edges(self, clock, groups, volume, inside, before, done):
        """`volume` over each edge from node to node, spread over the members there, behind a latency; and the part inside the nodes."""
        edges = []
        for here, there in zip(groups, groups[1:] + groups[:1]):
            lanes = max(len(here), len(there))
            edges += [(here[i % len(here)], there[i % len(there)], volume / lanes) for i in range(lanes)]
        left = [len(edges) + 1]

        def ended():
            left[0] -= 1
            if not left[0]:
                done()

        def start():
            for source, target, size in edges:
                self.flows.start(self.cluster.path(self.places[source], self.places[target]), size, ended)
        clock.after(inside, ended)
        clock.after(before, start)

    # Messages
    def wires(self, replica):
        job = self

        class Wires:
            def transfer(self, clock, source, target, size, done):
                here, there = job.places[replica, source], job.places[replica, target]
                if here.node == there.node:
                    wires = job.page(replica, source).wires
                    return clock.after(amount(wires["point_to_point_latency"]) + size / amount(wires["point_to_point"]), done)
                path = job.cluster.path(here, there)
                clock.after(amount(job.cluster.fabric["latency"]), lambda: job.flows.start(path, size * len(here.gpus), done))
        return Wires()

    def device(self, worker, replica, stage, ends):
        page = self.page(replica, stage)
        yield fork(worker.reduction.stream())
        yield from worker.program()
        yield from worker.reduction.at_end()
        if self.tied and stage in self.ends:
            yield ring(("embedding", 0 if self.fused else replica))
        yield compute(page.optimizer(self.stage_parameters(stage)))
        if len(self.replicas) > 1 and self.parallel["zero_stage"] in (1, 2):
            yield ring(("parameters", stage))
        ends.append(self.clock.now + amount(self.scenario["software"]["iteration_overhead"]))

    def play(self):
        ends, machines = [], []
        for replica in self.replicas:
            machines.append(Machine(self.wires(replica), self.clock, self.rings))
            for stage in self.stages:
                times = pass_times(self.page(replica, stage), self.schedule, stage, [self.layers(stage)] * len(self.chunks))
                arguments = self.schedule, stage, times, machines[-1], Reduction(self, replica, stage)
                worker = ShardedWorker(self, self.page(replica, stage), *arguments) if self.plays_layers() else Worker(*arguments)
                machines[-1].play(stage, self.device(worker, replica, stage, ends))
        self.clock.run()
        assert not any(machine.unfinished for machine in machines)
        return max(ends)


def check(program, scenario, random):
    found, job = Comparison(), Job(scenario)
    found.relative("iteration_time_s", program.run(scenario)["iteration_time_s"], job.play())
    if scenario["parallel"]["zero_stage"] == 3 and not job.plays_layers():
        by_layer = program.run(scenario, "--detail", "layer")["iteration_time_s"]
        found.relative("iteration_time_s layer by layer", by_layer, Job(scenario, by_layer=True).play())
    return found

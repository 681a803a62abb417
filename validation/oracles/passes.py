"""What docs/model.md says a pass, a collective in a node and an optimizer step take: its sections 1 to 4 and 6, and the slowest node of 7, in its symbols.

Written from the page and not from the code.
"""

import itertools
import math
import statistics
import orders

# NCCL's tables (src/graph/tuning.cc and search.cc, 2.26): GB/s of a channel by generation of GPU, over two nodes and over more.
MOST_OF_CHANNEL = {"tree": ((18.5, 10), (23.6, 17.8), (41.4, 36), (42.8, 24)),
                   "ring LL128": ((20, 20), (20, 20), (36.7, 36.7), (34.6, 73.4)),
                   "tree LL128": ((20, 20), (20, 20), (36.7, 29), (31.67, 20))}
NIC_STEPS = (48, 45, 42, 40, 30, 24, 22, 20, 17.5, 15, 12, 10, 6, 5, 3, 1.2)
TREE_CORRECTION = {"LL": (1, 1, 1, 1, .9, .8, .7, .7, .7, .7, .6, .5, .4, .4, .5, .6, .7, .8, .9, 1, 1, 1, 1),
                   "LL128": (1, 1, 1, 1, 1, .9, .8, .8, .8, .7, .6, .6, .6, .6, .6, .6, .8, .9, .9, .9, .9, 1, 1),
                   "Simple": (.9, .9, .9, .9, .9, .9, .9, .8, .7, .6, .6, .5, .5, .5, .5, .6, .7, .8, .7, .7, .8, .9, .9)}
BASE = {"LL": (6.6, 6.8), "LL128": (14, 14), "Simple": (8.4, 8.4)}  # us: of a ring, of a tree
INSIDE = {"LL": (1.0, 0.6), "LL128": (1.9, 1.25), "Simple": (3.4, 4.0)}  # of a hop over NVLink
BETWEEN = {"LL": (2.7, 5.0), "LL128": (4.0, 8.5), "Simple": (14, 14)}  # over the network

UNITS = {"s": 1, "ms": 1e-3, "us": 1e-6, "ns": 1e-9, "B": 1, "kB": 1e3, "MB": 1e6, "GB": 1e9, "KiB": 2**10, "MiB": 2**20, "GiB": 2**30,
         "B/s": 1, "MB/s": 1e6, "GB/s": 1e9, "Gbps": 1e9 / 8, "TFLOPS": 1e12}


def mesh_rings(lanes, n):
    """Directed cycles through the first n GPUs that share no lane in one direction; where there is none, the fewest lanes across a cut."""
    cycles = [(0,) + order for order in itertools.permutations(range(1, n)) if all(lanes[a][b] for a, b in zip((0,) + order, order + (0,)))]
    free = [row[:n] for row in lanes[:n]]

    def packed(first):
        most = 0
        for number in range(first, len(cycles)):
            arcs = list(zip(cycles[number], cycles[number][1:] + (0,)))
            if all(free[a][b] for a, b in arcs):
                for a, b in arcs:
                    free[a][b] -= 1
                most = max(most, 1 + packed(number))
                for a, b in arcs:
                    free[a][b] += 1
        return most
    cuts = [set(part) for size in range(1, n) for part in itertools.combinations(range(n), size)]
    return packed(0) or max(1, min(sum(lanes[a][b] for a in cut for b in range(n) if b not in cut) for cut in cuts))


def amount(value):
    """A text with a unit, in seconds, bytes, bytes per second or FLOP per second."""
    if not isinstance(value, str):
        return value
    number, unit = value.split()
    return float(number) * UNITS[unit]


class Page:
    """docs/model.md for one resolved scenario, on one of its node types."""

    def __init__(self, scenario, node_type=0):
        self.model, self.software = scenario["model"], scenario["software"]
        self.node, self.fabric = scenario["platform"]["node_types"][node_type], scenario["platform"]["fabric"]
        self.device, self.wires = self.node["device"], self.node["interconnect"]
        self.training, self.parallel = scenario["training"], scenario["parallel"]
        self.h, self.a, self.s, self.L = (self.model[key] for key in ("hidden", "heads", "sequence", "layers"))
        self.t, self.p, self.d, self.v = (self.parallel[key] for key in ("tensor", "pipeline", "data", "virtual_pipeline"))
        embedding, head = orders.Path.of(self.parallel).ends()
        self.ends_apart = embedding != head
        self.b = self.training["micro_batch"]
        # Replicas on the node that has most of them, and nodes, where ranks fill them in order.
        self.fullest, self.nodes = min(self.d, max(1, self.node["gpus"] // self.t)), -(-self.d * self.t // self.node["gpus"])
        self.T, self.z = self.b * self.s, self.b * self.a / self.t
        self.e = 4 if self.training["precision"] in ("fp32", "tf32") else 2
        self.head_size = self.h // self.a
        # What is in passes; the optimizer does not wait for slower nodes.
        self.slow = self.slowest()
        self.BW = amount(self.device["memory"]["bandwidth"]) * self.device["memory"]["bandwidth_efficiency"] / self.slow
        self.P = amount(self.device["peak"][self.training["precision"]]) / self.slow
        self.kl = amount(self.device["kernel_overhead"]) * self.slow
        self.flash = self.training["attention"] == "flash"
        self.fused = self.software.get("fused_kernels", True)
        self.sequence_parallel = self.parallel["sequence_parallel"]
        self.qkv = self.h + 2 * self.model["kv_heads"] * self.head_size
        self.ffn, self.gated = self.model["ffn_hidden"], self.model["gated_mlp"]
        # Whether both halves of a layer read its input, and their outputs are summed up before they are reduced; norms of a layer.
        self.parallel_halves = self.model.get("parallel_residual", self.model["family"] == "neox")
        self.reductions, self.norms = 1 if self.parallel_halves else 2, self.model.get("norms", 2)

    # Section 7
    def slowest(self):
        """How many times as long passes take while they wait for the slowest node."""
        def largest(n):
            return statistics.NormalDist().inv_cdf((n - 3 / 8) / (n + 1 / 4)) if n > 1 else 0
        N = -(-self.p * self.d * self.t // self.node["gpus"])
        r, bubble = min(max(self.p * self.t / self.node["gpus"], 1), N), (self.p - 1) / self.v
        m = self.training["global_batch"] // (self.b * self.d)
        waits = (m - 1) * largest(N) + (1 + bubble) * largest(N / r) / r ** 0.5
        return math.exp(self.node.get("pass_spread", 0) * waits / (m + bubble))

    # Section 1
    def product(self, M, N, K, batch=1, factor=1.0):
        gemm = self.device["gemm"]
        x = M * N * batch / (256 * 128 * self.device["multiprocessors"])
        eff = (gemm["peak_fraction"] * self.software["compute_efficiency"] * self.node["compute_efficiency"] * factor *
               x / (x + gemm["wave_half_size"]) * K / (K + gemm["inner_half_size"]))
        return max(2 * M * N * K * batch / (self.P * eff), self.e * (M * K + K * N + M * N) * batch / self.BW) + self.kl

    # Section 2
    def products(self):
        T, t, h = self.T, self.t, self.h
        return [(T, self.qkv / t, h), (T, h, h / t), (T, (2 if self.gated else 1) * self.ffn / t, h), (T, h, self.ffn / t)]

    def traffic(self, whole, small, mlp):
        whole /= self.t if self.sequence_parallel else 1
        return self.e / 2 * self.T * (whole * self.h + (small * self.h + mlp * (1.5 if self.gated else 1) * self.ffn) / self.t)

    def attention(self, backward):
        """Products and traffic of the attention core."""
        s, d, z = self.s, self.head_size, self.z
        factor = 1 if d % 8 == 0 else self.device["gemm"]["misaligned_factor"]
        if self.flash:
            key = "flash_backward_efficiency" if backward else "flash_forward_efficiency"
            return 2 * z * s * s * d * (2.5 if backward else 1) / (self.P * self.software[key]) + self.kl
        products = [(s, s, d), (s, d, s)]
        if backward:
            products = [each for M, N, K in products for each in ((M, K, N), (K, N, M))]
        return sum(self.product(*each, z, factor) for each in products) + self.score_bytes(backward) * z * s * s / self.BW + (
            self.kl if backward and not self.fused else 0)

    def score_bytes(self, backward):
        return self.e / 2 * ((11 if self.fused else 19) if backward else (9 if self.fused else 13))

    def further_norms(self, passes):
        """Norms but the two of which section 2 counts one before each half: one kernel each forward, two backward."""
        return (self.norms - 2) * (self.traffic(2 * passes, 0, 0) / self.BW + (passes - 1) * self.kl)

    def layer_forward(self):
        return self.further_norms(2) + sum(self.product(*each) for each in self.products()) + self.attention(False) + (
            self.traffic(22, 4, 4) + (0 if self.fused else self.traffic(16, 0, 4))) / self.BW + (9 if self.fused else 14) * self.kl

    def backward_products(self):
        return sum(self.product(M, K, N) + self.product(K, N, M) for M, N, K in self.products())

    def matrix_weights(self):
        return self.h * (self.qkv + self.h + (3 if self.gated else 2) * self.ffn) / self.t

    def accumulation(self):
        return self.software["gradient_accumulation_bytes"] * self.matrix_weights() / self.BW

    def layer_backward(self):
        again = {"none": 0, "selective": self.attention(False) + (0 if self.flash else 3 * self.kl), "full": self.layer_forward()}
        return (self.further_norms(3) + self.backward_products() + self.attention(True) + self.traffic(46, 12, 12) / self.BW + self.accumulation() +
                18 * self.kl + again[self.training["recompute"]])

    def layer_weight_gradient(self):
        return sum(self.product(K, N, M) for M, N, K in self.products()) + self.accumulation()

    # Section 4
    def in_node(self, payload, n, kind="all_reduce"):
        """A ring in a node: an all-reduce, or the "scatter" or "gather" that is half of one."""
        if n == 1:
            return 0.0
        wires = self.wires
        rings = mesh_rings(wires["lanes"], n) if wires["kind"] == "mesh" else 1
        B = amount(wires["saturated_bandwidth"]) * rings
        sends, idle = {"all_reduce": (2 * (n - 1), 1), "scatter": (n - 1, 0.69), "gather": (n - 1, 0.31)}[kind]
        S0, g = amount(wires["half_size"]) * (n / 8) ** wires["half_size_exponent"], wires["sharpness"]
        sends_and_loss = sends + idle * wires.get("group_loss", 0)
        if g > 1:  # below the payload of the least time, that time
            payload = max(payload, S0 * ((g - 1) * 2 * (n - 1) / sends_and_loss) ** (1 / g))
        transfer = payload / n * sends_and_loss / B
        if "switch_size" in wires and payload / (n * rings) < amount(wires["switch_size"]):
            transfer = max(transfer, payload / n * sends / (amount(wires["small_bandwidth"]) * rings))
        T0 = amount(wires["floor_base"]) + n * amount(wires["floor_per_gpu"])
        transfer += 2 * payload * (n - 1) / n / B * (S0 / payload) ** g
        return T0 + transfer if wires.get("floor") == "added" else max(T0, transfer)

    def activation(self):
        """Bytes of one activation: of a tensor all-reduce, and of a message between stages that is not scattered."""
        return self.e * self.T * self.h

    def transfer(self, kind="all_reduce"):
        """A tensor collective, without the stack's overhead."""
        slowdown = self.software["in_node_collective_slowdown"] * self.node["in_node_collective_slowdown"]
        return self.in_node(self.activation(), self.t, kind) * slowdown * self.slow

    def overhead(self):
        """Of one collective."""
        return amount(self.software["tensor_collective_overhead"]) * self.node["collective_overhead_factor"] * self.slow if self.t > 1 else 0

    def half(self, kind):
        return self.transfer(kind) + self.overhead()

    def all_reduce(self):
        """Or the gather and scatter that take its place."""
        return self.half("gather") + self.half("scatter") if self.sequence_parallel else self.half("all_reduce")

    def regathers(self):
        """Whether a half layer gathers its input once more backward."""
        return self.sequence_parallel and self.software.get("regathers_inputs", True)

    def exposed(self, hides):
        """One backward all-reduce, behind weight gradients of length `hides`; the second gather of sequence parallelism, behind as much of input
        gradients."""
        gathered = self.half("gather") if self.sequence_parallel else 0
        again = max(0, gathered - hides) if self.regathers() else 0
        return gathered + again + max(0, self.all_reduce() - gathered - hides)

    def hiding(self):
        return self.backward_products() / 4 if self.software["overlap_backward_tensor_collectives"] else 0

    def receipt(self, direction):
        """Scattered messages that the stack gathers again, in the node: what came, and backward what the stage itself had sent."""
        scattered = self.software["scatter_pipeline_messages"]
        if self.sequence_parallel or not scattered:
            return 0
        came = self.software["gather_scattered_messages"] and (direction == "F" or scattered is True)
        sent = direction == "B" and self.software.get("regathers_outputs", False)
        return (came + sent) * self.transfer("gather")

    def batch_read(self, first, last):
        """What the GPU waits for before a forward pass while the host reads a microbatch."""
        read = self.software.get("batch_read")
        if not read or not (read["on_every_stage"] or first or last):
            return 0
        launches = (read["kernels"] * amount(self.software["launch"]["kernel"]) +
                    read["collectives"] * amount(self.software["launch"]["collective"])) * self.node["launch_slowdown"]
        return launches + read["collectives"] * self.in_node(1, self.t if self.t <= self.node["gpus"] else 1) / 2

    # Section 6
    def gather(self, weights, element=None, kind="gather"):
        if self.parallel["zero_stage"] < 3 or self.d == 1:
            return 0.0
        size = (element or self.e) * weights
        NICs = amount(self.node["nic_rate"]) * self.node["nic_efficiency"] * self.node["nics"]
        inside = self.in_node(size, self.fullest, kind)
        if self.nodes == 1:
            return inside
        inside, latency, sent = self.over_nodes(kind, size, self.d, self.nodes, lambda size: self.in_node(size, self.fullest, kind), NICs / self.t, max(1, round(self.node["nics"] / self.t)), self.fullest, max(1, self.t / self.node["nics"]))
        return amount(self.fabric["latency"]) + latency + max(inside, sent * self.t / NICs)

    def hops(self, n, nodes, share_between=1, share_inside=1):
        """Latency of the 2 (n - 1) hops of a ring's all-reduce, one after the other; in one node it is part of the floor."""
        between, inside = share_between * amount(self.fabric["collective_latency"]), share_inside * amount(self.wires["floor_per_gpu"]) / 2
        return 0 if nodes == 1 else 2 * (n - 1) * (between * nodes / n + inside * (1 - nodes / n))

    def reduced_alone(self, payload, fullest, nodes, scatters):
        """Section 5: gradients of d replicas, `fullest` of them on the node with most, on an idle network."""
        if nodes == 1:
            return self.in_node(payload, fullest, "scatter" if scatters else "all_reduce")
        cards = amount(self.node["nic_rate"]) * self.node["nic_efficiency"] * self.node["nics"]
        rate, message = cards * min(1, fullest * self.t / self.node["gpus"]) / self.t, amount(self.fabric["latency"])
        kind = "scatter" if scatters else "all_reduce"
        out = min(1, fullest * self.t / self.node["gpus"]) * self.node["nics"] / self.t
        inside, latency, sent = self.over_nodes(kind, payload, self.d, nodes, lambda size: self.in_node(size, fullest, kind), rate, max(1, round(out)), fullest, max(1, 1 / out))
        return (1 if scatters else 2) * message + latency + max(inside, sent / rate)

    def over_nodes(self, kind, payload, n, nodes, in_node, rate, cards, first, sharing, others=()):
        """The way over several nodes that NCCL's tuner reckons to be fastest (section 4): the part inside, the latency, and what a node sends. On
        the first node are `first` members, on `others` (page, members). NCCL does not know that `sharing` collectives have the same cards."""
        here, hop, hop_inside = n / nodes, amount(self.fabric["collective_latency"]), amount(self.wires["floor_per_gpu"]) / 2
        share = 1 if kind == "all_reduce" else 0.5
        volume = share * 2 * (n - 1) / n * payload
        levels, sent, chunk = 2 * math.ceil(math.log2(nodes)), {2: 1, 3: 1.5}.get(nodes, 2) * payload, min(payload, 2 ** 19 * min(32, 2 * cards))

        def by_tree():
            if nodes == n:
                return 0, levels * (hop + chunk / rate), sent
            chain, bus = 2 * (math.ceil(here) - 1), 2 * (here - 1) / here * 2 ** 30 / in_node(2 ** 30)
            return in_node(payload * here / (here - 1)), levels * (hop + chunk / rate) + chain * (hop_inside + chunk / bus), sent
        best = None
        for (algorithm, protocol), (reckoned, latency, of_table) in self.tuned(kind, payload, n, nodes, rate * sharing, cards, first, others).items():
            if algorithm == "ring":
                way = in_node(payload), share * self.hops(n, nodes), volume
            else:
                way = by_tree() if algorithm == "tree" else (0, (8 + 2.8 * n) * 1e-6 + math.floor(math.log2(n)) / 3.5 * hop, volume / 0.75)
            if protocol != "Simple":
                way = payload / of_table, latency, (volume if algorithm == "ring" else sent) * {"LL": 2, "LL128": 128 / 120}[protocol]
            if best is None or reckoned < best[0]:
                best = reckoned, way
        return best[1]

    def tuned(self, kind, payload, n, nodes, rate, cards, first, others):
        """What NCCL reckons that each algorithm and protocol takes, its latency, and bytes a second: ncclTopoTuneModel() and ncclTopoGetAlgoTime()."""
        nic, nodes_of_group = amount(self.node["nic_rate"]), [(self, first), *others]
        gpus = [3 if "nvfp4" in formats else 2 if "fp8" in formats else 1 if "bf16" in formats else 0 for formats in (page.device["peak"] for page, _ in nodes_of_group)]
        gpu, has_ll128 = min(gpus), min(gpus) == max(gpus) and all(page.wires["kind"] != "pcie" for page, _ in nodes_of_group)
        step = next((each * 1e9 * math.floor(nic / (each * 1e9)) for each in NIC_STEPS if each * 1e9 <= nic), nic)
        line = rate * step / (nic * self.node["nic_efficiency"])
        wires, each_node = min(amount(page.wires["saturated_bandwidth"]) * (mesh_rings(page.wires["lanes"], count) if page.wires["kind"] == "mesh" and count > 1 else 1) for page, count in nodes_of_group), n // nodes
        exposed, whole = n == nodes, kind == "all_reduce"
        inside = float("inf") if exposed else wires * each_node / (each_node - 1) if each_node > 1 else wires
        channels = min(max(cards, 1), math.ceil(n / nodes))
        doubled = channels * (2 if line / channels >= 25e9 and (gpu < 2 or line / channels >= 50e9 or channels <= 4) else 1)
        most = {what: table[gpu][nodes > 2] * 1e9 * doubled for what, table in MOST_OF_CHANNEL.items()}
        ring = min(line, inside)
        in_tree = min(min(2 * line, NIC_STEPS[0] * 1e9 * channels) if nodes == 2 else line, inside)
        tree = min(0.92 * in_tree, most["tree"])
        ll, slower = (39e9 if nodes == 2 else 20.4e9), max(0, amount(self.fabric["collective_latency"]) - 14e-6)
        found = {}
        for protocol in ("LL", "LL128", "Simple"):
            if protocol == "LL128" and not has_ll128 or not whole and not exposed and protocol != "Simple":
                continue
            both = 2 if whole else 1
            crossings, levels, network = both * (nodes - 1), math.floor(math.log2(nodes)), slower * (2 if protocol == "Simple" else 1)
            latency = (BASE[protocol][0] + (both * (n - 1) - crossings) * INSIDE[protocol][0] + crossings * BETWEEN[protocol][exposed]) * 1e-6 + crossings * network
            if protocol == "Simple" and whole and payload / (2 * doubled * n) >= 64:
                latency *= 1.4 if gpu else 1.9
            bus = {"LL": min(ring / 2, ll), "LL128": min(0.92 * ring, most["ring LL128"]), "Simple": ring}[protocol]
            found["ring", protocol] = latency, bus * n / (both * (n - 1))
            if not whole:
                if exposed and protocol == "Simple" and self.software.get("gathers_by_pat", False):
                    found["PAT", protocol] = (8 + 2.8 * n + levels / 3.5 * BETWEEN[protocol][1]) * 1e-6 + levels / 3.5 * network, 0.75 * in_tree
                continue
            latency = (BASE[protocol][1] + 2 * (each_node - 1) * INSIDE[protocol][1] + 2 * levels * BETWEEN[protocol][1]) * 1e-6 + 2 * levels * network
            bus = {"LL": min(tree / 3.8, ll), "LL128": min(tree * 120 / 128, most["tree LL128"]), "Simple": tree}[protocol]
            place = max(0, math.floor(math.log2(payload / 64)))
            found["tree", protocol] = latency, bus / 2 * (0.85 if exposed else 1) * (TREE_CORRECTION[protocol][place] if place < 23 else 1)
        return {way: (latency + payload / rate, latency, rate) for way, (latency, rate) in found.items()}

    def scatter(self, weights):
        return self.gather(weights, 4 if self.training["gradient_dtype"] == "fp32" else 2, "scatter")

    def span(self, f, collectives, kind):
        """A layer on the stream of its kernels, which take f and are slowed by collectives beside them: with its all-reduces, which hide behind
        weight gradients, themselves slowed."""
        slow = self.slowed(f, collectives)
        if kind == "F":
            return slow + self.reductions * self.all_reduce()
        again = self.reductions * self.all_reduce() if self.training["recompute"] == "full" else 0
        return slow + again + self.reductions * self.exposed(self.hiding() * slow / f if kind == "B" else 0)

    def tail(self, f, collectives, kind):
        """What a layer still waits for its last all-reduce when its kernels have ended, and its gradients can be scattered."""
        if kind != "B" or not self.hiding():
            return 0
        hidden = self.half("scatter" if self.sequence_parallel else "all_reduce")
        return max(0, hidden - self.hiding() * self.slowed(f, collectives) / f)

    def waits(self, l, f, g, s, kind):
        """What l layers whose kernels take f wait for their gathers and scatters. Kinds: F, B, and I, the input gradients alone."""
        prefetch, alone = self.prefetch(kind), self.span(f, 0, kind)
        if not prefetch:
            return l * (g + s)
        if prefetch > 1 or self.tail(f, 0, kind):
            return self.two_streams(l, f, g, s, prefetch, kind) - l * alone

        def beside(collectives):
            return max(self.span(f, collectives, kind), collectives) - alone
        return g + beside(g) + (l - 2) * beside(g + s) + beside(s) + s if l > 1 else l * (g + s)

    def two_streams(self, l, f, g, s, prefetch, kind):
        """When l layers and their collectives have ended: a layer waits for its gather; when it ends, it leaves its scatter to the collectives' stream,
        and behind that the gather of the layer that is `prefetch` ahead of the next."""
        gathered, collectives, layers = [g * (i + 1) for i in range(min(prefetch + 1, l))], g * min(prefetch + 1, l), 0.0
        for i in range(l):
            beside = g * (i + 1 < l) + s * (i > 0)
            layers = max(layers, gathered[i]) + self.span(f, beside, kind)
            collectives = max(collectives, layers - self.tail(f, beside, kind)) + s
            if len(gathered) < l:
                collectives += g
                gathered.append(collectives)
        return max(layers, collectives)

    def sharded(self, kind, l):
        """A forward or backward pass of `l` layers taken apart: its layer, one layer's gather and scatter with nobody else on the network, the
        kernels of embedding and head, what it waits for the host to read a microbatch, and what launching all of it takes."""
        g, s, edges = self.gather(self.matrix_weights()), self.scatter(self.matrix_weights()), self.scatter(self.edges())
        read = 0.0
        if kind == "F":
            f, s, edges, read = self.layer_forward(), 0.0, self.gather(self.edges()), self.batch_read(True, True)
            gpu, cpu = self.forward_parts(l, True, True)
        elif kind == "B":
            f, (gpu, cpu) = self.layer_backward(), self.backward_parts(l, True, True, "B")
        else:
            f, (gpu, cpu) = self.layer_backward() - self.layer_weight_gradient(), self.input_gradient_parts(l, True, True)
        return f, g, s, gpu - l * self.span(f, 0, kind) - self.waits(l, f, g, s, kind) - edges, read, cpu

    def prefetch(self, kind):
        """Layers gathered ahead in a pass of that kind."""
        behind = kind != "F" and self.software.get("gathers_behind_scatters", False)
        return 0 if behind else self.parallel.get("zero_prefetch", 1)

    def taken(self, f, collectives):
        """By how much longer kernels of length f take with collectives beside them."""
        taken = self.device.get("collective_multiprocessors", 24) / self.device["multiprocessors"]
        return taken * min(collectives, f / (1 - taken))

    def slowed(self, f, collectives):
        return f + self.taken(f, collectives)

    def backward_kernels(self, kind, l, first, last):
        """Of a backward pass, or of its weight gradients."""
        if kind == "W":
            return self.weight_gradient_parts(l, last)[0]
        return l * self.layer_backward() + first * self.embedding() + last * self.head(True)

    # Sections 2 and 6: embedding and head
    def vocab(self):
        step = self.model["vocab_divisor"] * self.t
        return -(-self.model["vocab"] // step) * step

    def head(self, backward):
        M, N, K = self.T, self.vocab() / self.t, self.h
        factor, logits = self.device["gemm"].get("head_factor", 1), self.T * self.vocab() / self.t
        products = [(M, K, N), (K, N, M)] if backward else [(M, N, K)]
        share = 0.4 if backward else 0.6
        return sum(self.product(*each, 1, factor) for each in products) + share * self.software["cross_entropy_bytes"] * logits / self.BW

    def head_weight_gradient(self):
        return self.product(self.h, self.vocab() / self.t, self.T, 1, self.device["gemm"].get("head_factor", 1))

    def embedding(self):
        return 7 * self.activation() / self.BW

    def word_embedding(self):
        """Parameters of one rank's part of the word embedding."""
        return self.vocab() * self.h / self.t

    def edges(self):
        """Weights of embedding and head that are gathered with ZeRO 3, where one stage has both."""
        return self.embedding_parameters() + self.head_parameters()

    def biases(self):
        return self.model["family"] != "llama"

    def positions(self):
        return self.s * self.h if not self.model["rotary"] and self.model["family"] != "bloom" else 0

    # Section 3
    def floored(self, gpu, cpu):
        q = self.software["launch"]["sharpness"]
        return max(gpu, cpu) * (1 + (min(gpu, cpu) / max(gpu, cpu)) ** q) ** (1 / q) if cpu else gpu

    def launch(self, kernels):
        return kernels * amount(self.software["launch"]["kernel"]) * self.node["launch_slowdown"]

    def collective_launches(self, count):
        return count * amount(self.software["launch"]["collective"]) * self.node["launch_slowdown"] if self.t > 1 else 0

    def core_kernels(self):
        return 1 if self.flash else 2

    def kernels(self):
        """Of a layer, forward and backward: products, attention core, and kernels that only move memory."""
        fused = self.software["fused_kernels"]
        norms = self.norms - 2
        return [4 + self.core_kernels() + 9 + norms + (0 if fused else 5),
                8 + (1 if self.flash else 4) + 18 + 2 * norms + (0 if fused or self.flash else 1)]

    def launches(self):
        ahead = self.reductions * (2 if self.sequence_parallel else 1)
        return [self.launch(count) + self.collective_launches(collectives)
                for count, collectives in zip(self.kernels(), [ahead, ahead + self.reductions * self.regathers()])]

    def relaunches(self):
        """Of what a layer's backward pass computes again."""
        core = self.launch(1 if self.flash else 5)
        return {"none": 0, "selective": core, "full": self.launches()[0]}[self.training["recompute"]]

    def edge_launches(self, first, last, direction):
        products = last * (1 if direction == "F" else 2)
        return self.launch(products) + self.collective_launches(self.edge_collectives(first, last, direction))

    def edge_collectives(self, first, last, direction):
        """All-reduces of embedding and head; with sequence parallelism their halves: what the embedding gives is scattered and the head's input
        gathered; backward that input once more, its gradient scattered, and the embedding's gathered."""
        if self.sequence_parallel:
            return first + last if direction == "F" else first + last * (1 + self.regathers())
        return first if direction == "F" else last

    def edge_exchanges(self, first, last, direction):
        if not self.sequence_parallel:
            return self.edge_collectives(first, last, direction) * self.all_reduce()
        gather, scatter = self.half("gather"), self.half("scatter")
        return first * scatter + last * gather if direction == "F" else first * gather + last * (scatter + self.regathers() * gather)

    def forward_parts(self, l, first, last):
        f, g = self.layer_forward(), self.gather(self.matrix_weights())
        gpu = (l * (f + self.reductions * self.all_reduce()) + self.waits(l, f, g, 0, "F") + first * self.embedding() + self.edge_exchanges(first, last, "F") +
               last * self.head(False) + (not first) * self.receipt("F") + first * last * self.gather(self.edges()))
        return gpu, l * self.launches()[0] + self.edge_launches(first, last, "F")

    def forward(self, l, first, last):
        return self.batch_read(first, last) + self.floored(*self.forward_parts(l, first, last))

    def backward_parts(self, l, first, last, kind):
        """Of a backward pass (B), or of its weight and input gradients with nothing beside all-reduces (I): what the GPU takes, and what launching
        it takes."""
        f, g, scatter = self.layer_backward(), self.gather(self.matrix_weights()), self.scatter(self.matrix_weights())
        hides, kernels = (self.hiding(), f) if kind == "B" else (0, f - self.layer_weight_gradient())
        again = l if self.training["recompute"] == "full" else 0
        gpu = (l * (f + self.reductions * self.exposed(hides)) + self.waits(l, kernels, g, scatter, kind) +
               self.reductions * again * self.all_reduce() + first * self.embedding() + last * self.head(True) +
               self.edge_exchanges(first, last, "B") + (not last) * self.receipt("B") + first * last * self.scatter(self.edges()))
        return gpu, l * (self.launches()[1] + self.relaunches()) + self.edge_launches(first, last, "B")

    def backward(self, l, first, last):
        return self.floored(*self.backward_parts(l, first, last, "B"))

    # Section 2, the backward pass in two halves
    def weight_gradient_parts(self, l, last):
        return l * self.layer_weight_gradient() + last * self.head_weight_gradient(), l / 2 * self.launch(self.kernels()[1])

    def weight_gradient(self, l, last):
        return self.floored(*self.weight_gradient_parts(l, last))

    def input_gradient(self, l, first, last):
        return self.floored(*self.input_gradient_parts(l, first, last))

    def input_gradient_parts(self, l, first, last):
        both, weights = self.backward_parts(l, first, last, "I"), self.weight_gradient_parts(l, last)
        return both[0] - weights[0], both[1] - weights[1]

    def parts(self, kind, l, first, last):
        """What a pass takes on the GPU, and what launching it takes."""
        if kind == "F":
            return self.forward_parts(l, first, last)
        return self.input_gradient_parts(l, first, last) if kind == "I" else self.weight_gradient_parts(l, last)

    # The end of the iteration, section 5
    def layer_parameters(self):
        column = self.qkv + (2 if self.gated else 1) * self.ffn
        return self.matrix_weights() + (column / self.t + 2 * self.h if self.biases() else 0) + self.norms * (2 if self.biases() else 1) * self.h

    def embedding_parameters(self):
        return self.word_embedding() + self.positions() + (2 * self.h if self.model["family"] == "bloom" else 0)

    def head_parameters(self):
        own_words = not self.model["tied_embeddings"] or self.ends_apart
        return (2 if self.biases() else 1) * self.h + (self.word_embedding() if own_words else 0)

    def parameters(self, l, first, last):
        """Of one rank's part of a chunk."""
        return l * self.layer_parameters() + first * self.embedding_parameters() + last * self.head_parameters()

    def optimizer(self, parameters):
        owners = self.d if self.parallel["zero_stage"] else 1
        sgd = 8 if self.training["optimizer"] == "sgd" else 0  # one moment of 4 bytes that is neither read nor written
        return (max(0, self.software["optimizer_bytes"] - sgd) * parameters / owners + self.gradient_passes() * parameters) / (self.BW * self.slow)

    def gradient_passes(self):
        """Bytes of a parameter's gradient that are read or written before gradients are sharded."""
        if self.parallel["zero_stage"] > 1:
            return 0
        passes = self.software.get("zeroes_gradients", False) + 2 * (self.software.get("scales_gradients", False) and self.d > 1)
        return passes * (4 if self.training["gradient_dtype"] == "fp32" else 2)

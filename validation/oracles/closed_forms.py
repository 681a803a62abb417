"""Oracle of closed forms: bytes by traffic class, messages, FLOPs and memory, against `run`.

Sources: Narayanan et al. 2021 (arXiv:2104.04473), equation 3 and section 4.1; Korthikanti et al. 2022 (arXiv:2205.05198), equation 7 and table 2;
Patarasuk & Yuan 2009 for rings; Rajbhandari et al. 2020 (arXiv:1910.02054), sections 5 and 7; docs/memory.md for what a stack keeps.
"""
from compare import Comparison
from draw import Draw
from fluid import drawn_platform, drawn_shape, width
from passes import Page, amount


def draw(random):
    d = Draw(random)
    tensor, stages, replicas, gpus = drawn_shape(random)
    nodes = max(1, tensor * stages * replicas // gpus)
    gpus = tensor * stages * replicas // nodes
    zero = random.choice([0, 1, 2, 3]) if stages == 1 else random.choice([0, 1, 2])
    schedule, chunks = random.choice(["1f1b", "gpipe", "zero_bubble_h1", "interleaved_1f1b"]), 1
    if schedule == "interleaved_1f1b" and stages == 1:
        schedule = "1f1b"
    if schedule == "interleaved_1f1b":
        chunks = random.randint(2, 3)
    microbatches = stages * random.randint(1, 3) if chunks > 1 else random.randint(1, 12)
    layers = [random.choice([0, 1, 2, 5]) for _ in range(stages)]
    layers[-1] += not sum(layers)
    parallel = {"tensor": tensor, "pipeline": stages, "data": replicas, "schedule": schedule, "virtual_pipeline": chunks,
                "pipeline_send": random.choice(["eager", "blocking_pairs"]), "sequence_parallel": tensor > 1 and random.choice([True, False]),
                "zero_stage": zero, "stage_layers": [each * chunks for each in layers], "overlap_gradient_reduce": zero < 3 and random.choice([True, False])}
    platform = drawn_platform(d, nodes, gpus, even=False)
    scenario = {"version": 1, "name": "closed forms", "model": d.model(sum(layers) * chunks, tensor), "platform": platform,
                "nodes": nodes, "software": d.software(), "training": d.training(replicas, microbatches), "parallel": parallel, "compression": {}}
    for way in ("pipeline_forward", "pipeline_backward"):
        if stages > 1 and d.chance(0.3):
            scenario["compression"][way] = {"codec": "fixed", "ratio": random.choice([2, 3.7])}
    if "pipeline_backward" in scenario["compression"]:
        scenario["compression"]["pipeline_backward"]["messages"] = random.choice(["all", "epilogue"])
    if d.chance(0.3) and stages > 1:
        scenario["compression"]["embedding_sync"] = {"fused": True}
    return scenario


class Forms:
    def __init__(self, scenario):
        self.scenario = scenario
        self.model, self.training, self.parallel, self.software = (scenario[key] for key in ("model", "training", "parallel", "software"))
        self.page = Page(scenario)
        self.t, self.p, self.d, self.v = (self.parallel[key] for key in ("tensor", "pipeline", "data", "virtual_pipeline"))
        self.zero = self.parallel["zero_stage"]
        self.m = self.training["global_batch"] // self.training["micro_batch"] // self.d
        self.layers = self.parallel["stage_layers"]
        self.g, self.e = width(self.training["gradient_dtype"]), self.page.e

    # Bytes
    def ring(self, payload, members):
        """Sent by one member of an all-reduce."""
        return 2 * (members - 1) / members * payload

    def stage_parameters(self, stage):
        return self.page.parameters(self.layers[stage], stage == 0, stage == self.p - 1)

    def tied(self):
        return self.model["tied_embeddings"] and self.p > 1

    def fused(self):
        return self.tied() and self.scenario["compression"].get("embedding_sync", {}).get("fused", False)

    def pipeline_messages(self, way):
        """Compressed and other messages of one pipeline."""
        total, codec = (self.p * self.v - 1) * self.m, self.scenario["compression"].get(way)
        if not codec:
            return 0, total
        compressed = sum(map(self.epilogue, range(self.p))) if codec.get("messages") == "epilogue" else total
        return compressed, total - compressed

    def epilogue(self, stage):
        """Backward messages that a stage sends after its last forward pass; the model's first part sends none."""
        schedule, first = self.parallel["schedule"], stage == 0
        pairs = self.m * self.v
        if schedule == "gpipe":
            behind = self.m
        elif schedule == "interleaved_1f1b":
            warmup = pairs if self.m == self.p else min(2 * (self.p - stage - 1) + (self.v - 1) * self.p, pairs)
            behind = min(pairs, warmup + 1)
            return behind - (self.begins_model_among(behind) if first else 0)
        else:
            behind = min(self.p - stage, self.m)
        return 0 if first else behind

    def begins_model_among(self, last):
        """Of the last so many backward passes of the first stage: those of the model's first chunk. Backward passes go through all chunks, the last
        first, in groups of p microbatches."""
        order = [chunk for _ in range(self.m // self.p) for chunk in reversed(range(self.v)) for _ in range(self.p)]
        return order[len(order) - last:].count(0)

    def message_bytes(self, way):
        scattered = self.parallel["sequence_parallel"] or self.software["scatter_pipeline_messages"] in (True, *["activations"] * (way == "pipeline_forward"))
        compressed, plain = self.pipeline_messages(way)
        ratio = self.scenario["compression"].get(way, {}).get("ratio", 1)
        return (compressed / ratio + plain) * self.page.activation() * (1 if scattered else self.t) * self.d

    def traffic(self):
        words = self.page.word_embedding()
        embedding = width(self.software.get("embedding_gradient_type", self.training["gradient_dtype"])) * words
        members = 2 * self.d if self.fused() else 2
        return {"pipeline_forward": self.message_bytes("pipeline_forward"), "pipeline_backward": self.message_bytes("pipeline_backward"),
                "data_gradients": self.data_gradients(), "zero_gather": self.zero_gather(), "zero_scatter": self.zero_scatter(),
                "tensor_activations": self.tensor_activations(),
                "embedding_sync": 2 * self.d * self.t * self.ring(embedding, members) if self.tied() else 0}

    def data_gradients(self):
        if self.zero == 3:
            return 0
        left_out = (self.g * self.page.word_embedding() * 2) if self.fused() else 0
        gradients = self.g * sum(map(self.stage_parameters, range(self.p))) - left_out
        return self.d * self.t * self.ring(gradients, self.d) * {0: 1, 1: 0.5, 2: 0.5 * self.m}[self.zero]

    def zero_gather(self):
        if self.zero == 3:  # every layer forward and backward, embedding and head once a microbatch
            twice = sum(self.layers) * self.page.matrix_weights()
            return self.m * self.d * self.t * self.ring(self.e * (self.sharded_weights() + twice), self.d) / 2
        if self.zero == 0:
            return 0
        return self.d * self.t * self.ring(self.e * sum(map(self.stage_parameters, range(self.p))), self.d) / 2

    def zero_scatter(self):
        return self.m * self.d * self.t * self.ring(self.g * self.sharded_weights(), self.d) / 2 if self.zero == 3 else 0

    def sharded_weights(self):
        return sum(self.layers) * self.page.matrix_weights() + self.page.embedding_parameters() + self.page.head_parameters()

    def tensor_activations(self):
        """All-reduces of an activation: two a layer and direction, or one for halves in parallel, again where layers are recomputed; the
        embedding's and the head's."""
        layer, edges = self.page.reductions * (3 if self.training["recompute"] == "full" else 2), 2
        if self.page.regathers():  # half an all-reduce more for each input of a layer that is gathered, and for the head
            layer, edges = layer + self.page.reductions / 2, edges + 0.5
        return (layer * sum(self.layers) + edges) * self.m * self.d * self.t * self.ring(self.page.activation(), self.t)

    # Work
    def model_flops(self):
        """Forward 2 FLOPs a weight and token and 4 s h a token of attention; backward twice that."""
        s, h = self.model["sequence"], self.model["hidden"]
        return 3 * self.training["global_batch"] * (self.forward_flops() + 2 * s * h * self.model["vocab"])

    def forward_flops(self):
        s, h = self.model["sequence"], self.model["hidden"]
        return sum(self.layers) * (2 * s * self.page.matrix_weights() * self.t + 4 * s * s * h)

    def hardware_flops(self):
        s, h, B, L = self.model["sequence"], self.model["hidden"], self.training["global_batch"], sum(self.layers)
        again = {"none": 0, "selective": B * L * 4 * s * s * h, "full": B * self.forward_flops()}
        return self.model_flops() + again[self.training["recompute"]]

    def executed_flops(self):
        """Flash attention leaves out the half of the scores that the causal mask hides, and makes five products backward, not four."""
        if self.training["attention"] != "flash":
            return self.hardware_flops()
        core = self.training["global_batch"] * sum(self.layers) * self.model["sequence"] ** 2 * self.model["hidden"]
        return self.hardware_flops() - core * (5 if self.training["recompute"] == "none" else 7)

    def published_flops(self):
        """Korthikanti's equation 7, and Narayanan's equation 3 with full recomputation; for models of the papers' shape."""
        m, B, L = self.model, self.training["global_batch"], sum(self.layers)
        s, h, V = m["sequence"], m["hidden"], m["vocab"]
        if m["kv_heads"] != m["heads"] or m["ffn_hidden"] != 4 * h or m["gated_mlp"]:
            return {}
        return {"model": 72 * B * L * s * h**2 * (1 + s / (6 * h) + V / (12 * h * L))} | (
            {"hardware": 96 * B * s * L * h**2 * (1 + s / (6 * h) + V / (16 * L * h))} if self.training["recompute"] == "full" else {})

    # Memory: docs/memory.md
    def state_bytes(self):
        """Bytes a parameter: weights, gradients, stale gradients, optimizer, step; and whether gradients are freed."""
        sgd = 4 if self.training["optimizer"] == "sgd" else 0
        if self.e == 4:
            return 4, 4, 0, 8 - sgd, 0, False
        states = self.software["memory"]["states_" + self.training["precision"]]
        gradients, stale, step = states["gradients"], states["stale_gradients"], states["step_temporary"]
        freed = states["gradients_freed_each_step"]
        if width(self.training["gradient_dtype"]) > width(self.software["gradient_type"]):
            gradients, stale, step, freed = max(4, gradients), 0, 0, False
        elif width(self.training["gradient_dtype"]) < width(self.software["gradient_type"]):
            gradients, stale, step = min(2, gradients), 0, 4
        return states["weights"], gradients, stale, states["optimizer"] - sgd, step, freed

    def in_flight(self, stage):
        """Pairs of microbatch and chunk at most, and after the first backward pass."""
        pairs, schedule = self.m * self.v, self.parallel["schedule"]
        most = {"gpipe": pairs, "1f1b": self.p - stage, "zero_bubble_h1": self.p,
                "interleaved_1f1b": pairs if self.m == self.p else 2 * (self.p - stage - 1) + (self.v - 1) * self.p + 1}[schedule]
        return min(pairs, most), min(max(pairs - 1, 1), most)

    def memory(self, stage):
        s, b, h, t, e = self.model["sequence"], self.training["micro_batch"], self.model["hidden"], self.t, self.e
        page, first, last, layers = self.page, stage == 0, stage == self.p - 1, self.layers[stage]
        undivided = t if self.parallel["sequence_parallel"] else 1
        kv, f, gated = self.model["kv_heads"] / self.model["heads"], self.model["ffn_hidden"] / h, self.model["gated_mlp"]
        tokens, recompute = s * b * h, self.training["recompute"]
        boundary, mask = e * tokens / undivided, 0 if self.model["family"] == "llama" else 1
        # The layer's input, what norms before halves give, what norms behind them read, and the second half's input.
        whole = (1, 1 + (page.norms > 1), 2 * (page.norms > 2), not page.parallel_halves)
        layer = tokens * ((sum(whole) * e + 2 * mask) / undivided + e * (2 + 2 * kv + (3 if gated else 2) * f) / t)
        scores = 0 if self.training["attention"] == "flash" else (2 * e + mask) * self.model["heads"] * s * s * b / t
        passing = e * tokens * (2 / undivided + (2 if gated else 1) * f / t)
        # Of one of two bytes an fp32 copy too, which becomes the exponentials and the gradients; beside them what the last norm reads and gives.
        of_one = {"in_place": e, "fused": 2 * e, "plain": 16 if t > 1 else 12}.get(self.software.get("cross_entropy"), 6 if e == 2 else 4)
        logits = of_one * s * b * page.vocab() / t + 2 * boundary
        kept = {"full": boundary, "selective": layer, "none": layer + scores}[recompute]
        outputs = 0 if self.software["memory"]["frees_outputs"] else self.v - last
        each = layers * kept + outputs * boundary + first * mask * tokens / undivided
        work = passing - first * boundary + amount(self.software["memory"]["fixed_work"])
        if layers:
            widest = max(page.qkv, (2 if gated else 1) * self.model["ffn_hidden"])
            work += e * widest * h / t + (layer if recompute == "full" else 0) + (scores if recompute != "none" else 0)
        return self.account(stage, each, work, logits + amount(self.software["memory"]["fixed_work"]) if last else 0)

    def account(self, stage, each, work, logits):
        N, profile = self.stage_parameters(stage), self.software["memory"]
        weights, gradients, stale, optimizer, step, freed = self.state_bytes()
        owners, gradient_owners = self.d if self.zero >= 1 else 1, self.d if self.zero >= 2 else 1
        states = N * (weights + (gradients + stale) / gradient_owners + optimizer / owners)
        gone, step = freed * gradients * N / gradient_owners, step * N / owners
        most, later = (count / self.v * each for count in self.in_flight(stage))
        live = max(work, logits)
        if gone and self.m == 1:  # gradients of the one backward pass take the place of the activations that it frees, layer by layer
            layers = self.layers[stage]
            late = max(gone - each, 0) * (1 - 1 / layers) if layers else 0
            allocated = max(states - gone + most + max(work + late, logits), states + step)
        else:
            allocated = max(states - gone + most + live, states + later + live, states + step)
        reserved = profile["allocator_slack"] * max(states + later + max(live, step), allocated)
        node = min(self.scenario["platform"]["node_types"], key=lambda kind: amount(kind["device"]["memory"]["usable"]))
        context = amount(node["device"]["memory"]["context"]) + (amount(profile["extra_context"]) if self.t * self.p * self.d > 1 else 0)
        return {"parameters": N, "activation_per_microbatch": each, "microbatches_in_flight": self.in_flight(stage)[0] / self.v,
                "weights": weights * N, "optimizer": optimizer * N / owners, "allocated": allocated, "reserved": reserved, "context": context,
                "required": profile["fragmentation"] * allocated + context}


def check(program, scenario, random):
    found, forms, report = Comparison(), Forms(scenario), program.run(scenario)
    for kind, size in forms.traffic().items():
        found.relative(f"traffic_bytes {kind}", report["traffic_bytes"].get(kind, 0), size)
    for way in ("pipeline_forward", "pipeline_backward"):
        compressed, plain = forms.pipeline_messages(way)
        found.equal(f"messages {way}", report["messages"][way], {"compressed": compressed, "uncompressed": plain})
    check_rates(found, forms, report)
    for stage, said in enumerate(report["memory"]["per_stage"] if forms.zero < 3 else []):
        for what, value in forms.memory(stage).items():
            found.relative(f"memory of stage {stage}, {what}", said[what], value)
    return found


def check_rates(found, forms, report):
    seconds, training, types = report["iteration_time_s"], forms.training, forms.scenario["platform"]["node_types"]
    gpus, batch = forms.t * forms.p * forms.d, training["global_batch"]
    peaks = [(amount(kind["device"]["peak"][training["precision"]]), kind["count"]) for kind in types]
    peak = sum(rate * count for rate, count in peaks) / sum(count for _, count in peaks)
    found.relative("samples_per_s", report["samples_per_s"], batch / seconds)
    found.relative("tokens_per_s", report["tokens_per_s"], batch * forms.model["sequence"] / seconds)
    for short, flops in (("mfu", forms.model_flops()), ("hfu", forms.executed_flops())):
        found.relative(short, report[short], flops / seconds / gpus / peak)
    for what, flops in (("model", forms.model_flops()), ("hardware", forms.hardware_flops())):
        found.relative(f"{what}_tflops_per_gpu", report[f"{what}_tflops_per_gpu"], flops / seconds / gpus / 1e12)
        if what in forms.published_flops():
            found.relative(f"{what} FLOP of the paper", report[f"{what}_tflops_per_gpu"] * 1e12 * seconds * gpus, forms.published_flops()[what])

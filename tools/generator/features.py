"""Draws what a scenario is made of, one value for each feature, and makes the values agree: the drawn plan fills the nodes, its groups are
cut evenly, its schedule can be simulated. What the schema lists, it lists for us: a new schedule or codec is drawn from the day it has a name."""
import functools
import itertools
import json
import marshal
import math

DEGREES = {"tensor": (1, 2, 4, 8, 16), "context": (1, 1, 1, 2, 4), "pipeline": (1, 2, 3, 4, 6, 8), "data": (1, 2, 3, 4, 8)}
MOST_GPUS = (16, 32, 48)  # of a scenario, drawn: mistakes live in combinations, not in sizes
MOST_GPUS_TO_SEARCH = 8  # which takes tens of times as long as a simulation
# Features that are keys of the schema, with their values there; None: the key is left out.
CHOICES = ("/training/precision", "/training/attention_kernel", "/parallel/context_method", "/training/gradient_dtype", "/training/optimizer", "/training/recompute", "/training/attention",
           "/parallel/schedule", "/parallel/pipeline_send", "/parallel/sequence_parallel", "/parallel/overlap_gradient_reduce",
           "/parallel/gradient_ring", "/parallel/rank_order", "/training/fp8_recipe", "/training/compile",
           "/parallel/async_tensor_parallel", "/parallel/reshard_after_forward", "/parallel/no_sync", "/training/main_params_dtype", "/training/exp_avg_dtype",
           "/training/exp_avg_sq_dtype", "/training/overlap_optimizer_offload", "/training/frozen_dtype", "/training/cross_entropy", "/training/loss_parallel")
QUANTIZED = ("fp8", "mxfp8", "nvfp4")
TWO_CHUNKS = ("zero_bubble_v", "dualpipe", "dualpipe_v")  # schedules that go up and down the stages, each message by itself
TRAFFIC = ("pipeline_forward", "pipeline_backward", "data_gradients", "tensor_activations", "zero_gather")


def laid_over(base, part):
    """As `extends` means it: objects merge, null deletes, everything else replaces."""
    merged = {**base, **{key: laid_over(base[key], value) if isinstance(value, dict) and isinstance(base.get(key), dict) else value for key, value in part.items()}}
    if "node_types" in base and "node_types" in part:  # in order
        types = itertools.zip_longest(base["node_types"], part["node_types"], fillvalue={})
        merged["node_types"] = [laid_over(*each) for each in types]
    return {key: value for key, value in merged.items() if value is not None}


class Library:
    """The shipped files by name."""

    def __init__(self, root):
        self.files = {kind: {file.stem: json.loads(file.read_text()) for file in sorted((root / folder).glob("*.json"))}
                      for kind, folder in (("model", "models"), ("platform", "platforms"), ("software", "platforms/software"),
                                           ("device", "platforms/devices"))}
        for files in (self.files["software"], self.files["device"], self.files["platform"]):
            for name in files:
                while "extends" in files[name]:
                    part = dict(files[name])
                    base, _, release = part.pop("extends").partition("@")
                    files[name] = laid_over(files[base], part)
                    if release:  # one of them, which the program lays over the rest
                        files[name].pop("releases")
        self.packed = {(kind, name): marshal.dumps(file) for kind, files in self.files.items() for name, file in files.items()}

    def copy(self, kind, name):
        """A file to be changed; ten times as fast as copy.deepcopy."""
        return marshal.loads(self.packed[kind, name])

    def names(self, kind):
        return list(self.files[kind])

    def nodes(self, platform):
        """The node types of the first nodes, one each, and whether there are more."""
        types = []
        for node_type in self.files["platform"][platform]["node_types"]:
            types += [node_type] * node_type.get("count", 16)
        return types

    def precisions(self, node_type):
        return set(self.files["device"][node_type["device"]]["peak"]) - {"source"}

    def has_flash(self, software):
        return "flash_forward_efficiency" in self.files["software"][software]

    def kernels(self, device, stack, precision):
        """Kernels of fused attention that have a rate on a device, by its own table or by the stack's efficiencies."""
        device = device if isinstance(device, dict) else self.files["device"][device]
        table = device.get("attention", [])
        known = {kernel for each in table if each["precision"] not in QUANTIZED for kernel in each.get("kernels", ["cudnn"])}
        if precision in QUANTIZED and any(each["precision"] == "fp8" for each in table):
            known.add("fp8")
        devices = stack.get("flash_devices") or [device["name"]]
        elsewhere = [name for each in stack.get("flash_elsewhere", []) for name in each["devices"]]
        if "flash_forward_efficiency" in stack and (not table or device["name"] in devices + elsewhere):
            known.add(stack.get("attention_kernel", "cudnn"))
        return known

    def releases(self):
        """Every software profile, and every release of it."""
        return [name + release for name, file in self.files["software"].items()
                for release in ["", *("@" + each["from"] for each in file.get("releases", []))]]


class FeatureDraw:
    def __init__(self, schema, library, rng):
        self.library, self.rng = library, rng
        self.values = {pointer: [None, *schema.words(pointer)] for pointer in CHOICES}
        self.values["/parallel/schedule"] += ["written"]
        codecs = list(schema.codecs())
        both_ends = [name for name in codecs if not schema.needs_sums(name)]
        self.factors = {name for name in codecs if schema.sends_factors(name)}
        self.of_sharded_gradients = next(name for name in codecs if schema.needs_sums(name) and name not in self.factors)
        for traffic in TRAFFIC:
            gradients = traffic in ("pipeline_backward", "data_gradients")
            self.values["/compression/" + traffic] = [None] * 3 + (codecs if gradients else both_ends)
        self.values |= {
            "software": library.releases(), "model": library.names("model"), "platform": library.names("platform"),
            "experts a rank holds": [1, 2, "most"], "experts are cut by": [None, 1, 2, "tensor"], "tokens": [None, "zipf", "shares", "capacity", "consecutive"],
            "predicted tokens": [None, None, None, 0, 1, 2],
            "/training/recompute_modules": [None, None, *schema.lists("/training/recompute_modules")],
            "/training/recompute_layers": [None, None, {"first": 1}, {"every": 2}, {"every": 3}],
            "/training/optimizer_offload_fraction": [None, None, 0, 0.5, 1], "/training/activation_offload_fraction": [None, None, 0, 0.3, 1],
            "/training/lora_rank": [None, None, 0, 16, 64], "/training/lora_target_modules": [None, *schema.lists("/training/lora_target_modules")],
            "/parallel/edge_layers": [None, None, None, "embedding", "both"],
            "neighbours": [None, None, None, "a second job", "leaf0 up", "node0 up", "node1 nic0 down"],
            "noise": [None, "jitter", "slow", "all"], "job": [None, None, "short", "long", "elastic"],
            **{axis: sizes for axis, sizes in DEGREES.items()},
            "/parallel/zero_stage": [None, 0, 1, 2, 3], "/parallel/zero_prefetch": [None, 0, 1, 3],
            "/parallel/zero_group": [None, 0, 2],
            "/parallel/virtual_pipeline": [None, 1, 2, 3], "microbatches": [1, 2, 3, 4, 1, 2, 3, 4, 6, 8, 12, 16],
            "/training/micro_batch": [1, 2, 3, 4], "layers of a stage": [1, 2, 3],
            "/parallel/stage_layers": [None, "uneven", "balanced", "layout"],
            "/parallel/placement": [None, "megatron", "permuted", "permuted"] * 25 + ["search"],
            "/compression/embedding_sync": [None, False, True],
            "network": ["as shipped", "leaves", "matrix", "links", "faults", "two node types"] * 2 + schema.words("/platform/fabric/kind")[1:],
            "NICs of GPUs": [None] * 9 + ["given"],
            "changed files": [None, "platform", "device", "software", "model", "all"],
            "/nodes": [None, "given"], "extends": [False, True], "/training/lora_dropout": [None, 0, 0.1],
        }

    def draw(self):
        drawn = {name: self.rng.choice(values) for name, values in self.values.items()}
        self.fit_split(drawn)
        self.fit_experts(drawn)
        self.fit_context(drawn)
        self.fit_schedule(drawn)
        self.fit_training(drawn)
        self.fit_compression(drawn)
        self.fit_adapters(drawn)
        self.fit_states(drawn)
        return drawn

    @functools.cache
    def splits(self, platform, most_tensor, order):
        """Degrees that fill the platform's nodes, or a part of one, with the nodes they take."""
        gpus = [node["gpus"] for node in self.library.nodes(platform)]
        found = []
        filled = {sum(gpus[:n]): n for n in range(1, len(gpus) + 1)}
        tensors = [tensor for tensor in DEGREES["tensor"] if most_tensor % tensor == 0]
        for tensor, context, pipeline, data in itertools.product(tensors, sorted(set(DEGREES["context"])), DEGREES["pipeline"], DEGREES["data"]):
            ranks = tensor * context * pipeline * data
            nodes = 1 if ranks < gpus[0] else filled.get(ranks)
            if nodes and ranks <= max(MOST_GPUS) and self.is_even(tensor, pipeline, data * context, order, gpus):
                found.append((tensor, context, pipeline, data, nodes))
        return found

    @staticmethod
    def is_even(tensor, pipeline, data, order, gpus):
        """Whether every tensor group has as many ranks on each node that it is on, and is on as many nodes."""
        sizes = {"tensor": tensor, "pipeline": pipeline, "data": data}
        node_of = [node for node, count in enumerate(gpus) for _ in range(count)]
        strides, stride = {}, 1
        for axis in (order or "tensor-data-pipeline").split("-"):
            strides[axis] = stride
            stride *= sizes[axis]
        shape = None
        for first in (stage * strides["pipeline"] + replica * strides["data"] for stage in range(pipeline) for replica in range(data)):
            nodes = [node_of[first + i * strides["tensor"]] for i in range(tensor)]
            counts = [nodes.count(node) for node in set(nodes)]
            shape = shape or counts
            if counts != shape or min(counts) != max(counts):
                return False
        return True

    def fit_split(self, drawn):
        """The split that shares most with the drawn one."""
        heads = self.library.files["model"][drawn["model"]]["heads"]
        most_tensor = math.gcd(heads, max(DEGREES["tensor"]))
        splits = self.splits(drawn["platform"], most_tensor, drawn["/parallel/rank_order"])
        most = self.rng.choice(MOST_GPUS)
        splits = [split for split in splits if math.prod(split[:4]) <= most] or splits
        self.rng.shuffle(splits)
        wanted = (drawn["tensor"], drawn["context"], drawn["pipeline"], drawn["data"])
        best = max(splits, key=lambda split: sum(a == b for a, b in zip(split, wanted)))
        drawn["tensor"], drawn["context"], drawn["pipeline"], drawn["data"], drawn["nodes in use"] = best
        platform = self.library.files["platform"][drawn["platform"]]
        types = platform["node_types"]
        if drawn["network"] in ("rails", "rails_only") and len({node["nics"] for node in types}) > 1:
            drawn["network"] = "leaves"
        if drawn["network"] == "rails_only" and any(node["interconnect"]["kind"] == "pcie" for node in types):
            drawn["network"] = "rails"
        if drawn["network"] == "edge_list" and (len({node["nics"] for node in types}) > 1 or "domain_nodes" in platform):
            drawn["network"] = "leaves"  # an edge list names every tray
        if drawn["nodes in use"] == 1 and drawn["network"] not in ("as shipped", "matrix"):
            drawn["network"] = "as shipped"  # nothing would be on it
        if "bandwidth_matrix" in platform and drawn["network"] == "matrix":
            drawn["network"] = "as shipped"  # which is one
        if "domain_nodes" in platform and drawn["network"] in ("matrix", "links", "faults", "two node types"):
            drawn["network"] = "as shipped"  # pairs of nodes with rates of their own and faults are refused in NVLink domains
        if drawn["neighbours"] == "a second job" and (
                "domain_nodes" in platform or drawn["network"] != "as shipped" or 2 * drawn["nodes in use"] > len(self.library.nodes(drawn["platform"]))
                or len({node["device"] for node in types}) > 1 or len(types) > 1):
            drawn["neighbours"] = None  # it has no nodes, or others than the plan is made for
        if drawn["/parallel/zero_stage"] != 3:
            drawn["/parallel/zero_prefetch"] = None
        elif drawn["/parallel/overlap_gradient_reduce"] and drawn["pipeline"] == 1:
            drawn["/parallel/overlap_gradient_reduce"] = None  # they are scattered during the pass in any case
        software = self.library.files["software"][drawn["software"].split("@")[0]]
        if drawn["/parallel/zero_prefetch"] and not software.get("host_gathers", {"runs_ahead": True}).get("runs_ahead"):
            drawn["/parallel/zero_prefetch"] = 0
        if not drawn["/parallel/zero_stage"] or drawn["data"] % 2 or (drawn["/parallel/zero_stage"] == 3 and drawn["pipeline"] > 1):
            drawn["/parallel/zero_group"] = None
        counts_shards = software.get("memory", {}).get("sharded_parameters", "uncounted") != "uncounted"
        if drawn["/parallel/zero_stage"] != 3 or drawn["pipeline"] > 1 or not counts_shards:
            drawn["/parallel/no_sync"] = None  # refused
        if drawn["/parallel/zero_stage"] != 3:
            drawn["/parallel/reshard_after_forward"] = None
        elif drawn["/parallel/reshard_after_forward"] and drawn["pipeline"] > 1:
            drawn["/parallel/reshard_after_forward"] = False

    def fit_experts(self, drawn):
        moe = self.library.files["model"][drawn["model"]].get("moe")
        if not moe:
            drawn["/parallel/expert"] = drawn["/parallel/expert_tensor"] = drawn["tokens"] = None
            return
        if drawn["tensor"] > 1:
            drawn["/parallel/sequence_parallel"] = True
        ranks = drawn["tensor"] * drawn["context"] * drawn["data"]
        cut = drawn["experts are cut by"]
        cut = drawn["tensor"] if cut == "tensor" or ranks % (cut or 1) else cut
        drawn["/parallel/expert_tensor"], cut = cut, cut or 1
        degrees = [n for n in range(1, ranks // cut + 1)
                if ranks % (n * cut) == 0 and moe["experts"] % n == 0] or [None]
        drawn["/parallel/expert"] = degrees[-1] if drawn["experts a rank holds"] == "most" else self.rng.choice(degrees)
        drawn["/parallel/zero_group"] = None

    def fit_context(self, drawn):
        model = self.library.files["model"][drawn["model"]]
        if drawn["context"] == 1:
            drawn["/parallel/context_method"] = None
        elif model.get("kv_heads", model["heads"]) % (drawn["tensor"] * drawn["context"]):
            drawn["/parallel/context_method"] = "ring"
        if drawn["context"] > 1 and drawn["/parallel/context_method"] != "all_to_all":
            drawn["/training/attention"] = "flash"

    def fit_schedule(self, drawn):
        schedule, chunks = drawn["/parallel/schedule"], drawn["/parallel/virtual_pipeline"] or 1
        if schedule in TWO_CHUNKS and drawn["pipeline"] == 1 or schedule == "dualpipe" and drawn["pipeline"] % 2:
            schedule = drawn["/parallel/schedule"] = None
        if schedule in TWO_CHUNKS:
            chunks = drawn["/parallel/virtual_pipeline"] = 2
            drawn["/parallel/pipeline_send"] = "eager"
        elif schedule not in ("interleaved_1f1b", "written") or drawn["pipeline"] == 1:
            chunks = 1
            drawn["/parallel/virtual_pipeline"] = self.rng.choice((None, 1))
        if chunks > 1 and schedule == "interleaved_1f1b":
            drawn["microbatches"] = drawn["pipeline"] * self.rng.choice((1, 2, 3))
        if schedule == "written" and drawn["pipeline"] * drawn["microbatches"] * chunks > 64:
            drawn["microbatches"] = 4
        if schedule in ("dualpipe", "dualpipe_v"):
            drawn["microbatches"] = 2 * drawn["pipeline"] + 2 * self.rng.choice((0, 1, 3))
        if schedule == "dualpipe":
            self.fit_two_copies(drawn)
        drawn["chunks"] = chunks
        moe = self.library.files["model"][drawn["model"]].get("moe", {})
        if drawn["/parallel/stage_layers"] == "balanced" and (moe.get("dense_layers") or moe.get("every") or drawn["tokens"] == "capacity"):
            drawn["/parallel/stage_layers"] = "uneven"  # layers that differ are not balanced
        if drawn["/parallel/edge_layers"]:
            drawn["/parallel/stage_layers"] = None
            drawn["layers of a stage"] = 3
        may_choose = schedule == "written" and chunks > 1
        drawn["chunk_path"] = "v" if schedule in TWO_CHUNKS else self.rng.choice(("loop", "v")) if may_choose else "loop"
        if schedule == "written" and chunks > 1:
            drawn["/parallel/pipeline_send"] = "eager"  # all forward passes first deadlocks where both ends wait

    def fit_two_copies(self, drawn):
        """What a schedule that holds each part of the model on two stages is refused with, or has another form of."""
        if (drawn["/parallel/zero_stage"] or 0) > 1:
            drawn["/parallel/zero_stage"] = 1
            drawn["/parallel/zero_prefetch"] = drawn["/parallel/reshard_after_forward"] = drawn["/parallel/no_sync"] = None
        if drawn["/parallel/overlap_gradient_reduce"]:
            drawn["/parallel/overlap_gradient_reduce"] = False
        if drawn["/parallel/stage_layers"] in ("balanced", "layout"):
            drawn["/parallel/stage_layers"] = "uneven"
        if drawn["/parallel/placement"] == "search":
            drawn["/parallel/placement"] = "permuted"
        drawn["/compression/data_gradients"] = drawn["/parallel/zero_group"] = None

    def fit_training(self, drawn):
        types = self.library.nodes(drawn["platform"])[:drawn["nodes in use"]]
        known = set.intersection(*(self.library.precisions(node) for node in types))
        if (drawn["/training/precision"] or "fp16") not in known:
            drawn["/training/precision"] = self.rng.choice(sorted(known))
        name = drawn["software"].split("@")[0]
        if drawn["changed files"] in ("software", "all"):
            drawn["software"] = name
        if drawn["/training/attention"] == "flash" and not self.library.has_flash(name):
            drawn["changed files"] = "software"  # which is given its efficiencies
            drawn["software"] = name
        if drawn["/training/attention"] == "flash" and drawn["/training/precision"] in ("fp32", "tf32"):
            drawn["/training/precision"] = self.rng.choice(sorted(known - {"fp32", "tf32"}))
        stack = self.library.files["software"][name]
        recipe = drawn["/training/fp8_recipe"]
        if drawn["/training/precision"] != "fp8" or recipe == "row" and "row_cast_efficiency" not in stack or recipe == "mx" and "mxfp8" not in known:
            drawn["/training/fp8_recipe"] = None
        if "eager_layer_traffic" not in stack and not stack.get("memory", {}).get("keeps_norms"):
            drawn["/training/compile"] = None
        if not drawn["/parallel/sequence_parallel"]:
            drawn["/parallel/async_tensor_parallel"] = None
        kernels = ["flash2", "flash3", "cudnn"] + (["fp8"] if drawn["/training/precision"] in QUANTIZED else [])
        if drawn["/training/attention"] != "flash" or drawn["/training/attention_kernel"] not in kernels:
            drawn["/training/attention_kernel"] = None
        moe = "moe" in self.library.files["model"][drawn["model"]]
        if self.library.files["software"][name].get("recomputed_unit") == "operations":
            drawn["/training/recompute_modules"] = None
        latent = "mla" in self.library.files["model"][drawn["model"]]
        modules = drawn["/training/recompute_modules"]
        if modules and (drawn["/training/recompute"] != "selective" or
                        not moe and {"experts", "expert_activation", "shared_experts"} & set(modules) or
                        not latent and "up_projection" in modules or not moe and not latent and "norms" in modules):
            drawn["/training/recompute_modules"] = None
        if drawn["/training/recompute"] not in ("selective", "full"):
            drawn["/training/recompute_layers"] = None
        platform = self.library.files["platform"][drawn["platform"]]
        if (len({node["gpus"] for node in types}) > 1 or "domain_nodes" in platform) and drawn["/parallel/placement"] in ("permuted", "search"):
            drawn["/parallel/placement"] = None
        zero = drawn["/parallel/zero_stage"]
        if drawn["/parallel/placement"] == "search" and (zero in (1, 2) and drawn["/parallel/zero_group"] or zero == 1 and "broadcast_tensors" in stack):
            drawn["/parallel/placement"] = "permuted"
        if drawn["tensor"] * drawn["context"] * drawn["pipeline"] * drawn["data"] > MOST_GPUS_TO_SEARCH and drawn["/parallel/placement"] == "search":
            drawn["/parallel/placement"] = "permuted"

    def fit_compression(self, drawn):
        if drawn["/compression/data_gradients"] in self.factors and (drawn["/parallel/zero_stage"] or 0) >= 2:
            drawn["/compression/data_gradients"] = self.of_sharded_gradients

    def fit_adapters(self, drawn):
        model = self.library.files["model"][drawn["model"]]
        if (not drawn["/training/lora_rank"] or "mla" in model or model.get("mtp_layers") or drawn["predicted tokens"] or
                drawn["/training/fp8_recipe"] == "row" or drawn["/parallel/stage_layers"]):
            drawn["/training/lora_rank"] = self.rng.choice((None, 0))
            drawn["/training/lora_target_modules"] = drawn["/training/lora_dropout"] = drawn["/training/frozen_dtype"] = None
            return
        targets = drawn["/training/lora_target_modules"]
        if targets and (not model.get("gated_mlp") or drawn["changed files"] in ("model", "all")):
            drawn["/training/lora_target_modules"] = targets = [target for target in targets if target != "gate_proj"] or None
        if targets and "moe" in model:
            drawn["/training/lora_target_modules"] = [target for target in targets if target in ("q_proj", "k_proj", "v_proj", "o_proj")] or None
        if drawn["/training/optimizer"] == "muon":
            drawn["/training/optimizer"] = "adam"
        if drawn["/training/precision"] in QUANTIZED or "moe" in model:
            drawn["/training/frozen_dtype"] = None
        drawn["/compression/data_gradients"] = drawn["/compression/zero_gather"] = None

    def fit_states(self, drawn):
        """Types of states that the optimizer, the weights and the stack have, and a host to keep them."""
        precision = drawn["/training/precision"] or "fp16"
        stack = self.library.files["software"][drawn["software"].split("@")[0]]
        is_wide = any(states["weights"] > 2 for name, states in stack["memory"].items() if name.startswith("states_"))
        main = drawn["/training/main_params_dtype"]
        if precision in ("fp32", "tf32"):
            drawn["/training/main_params_dtype"] = None
        elif main in ("fp32_remainder", "fp16") and (is_wide or drawn["changed files"] in ("software", "all")):
            drawn["/training/main_params_dtype"] = "fp32"
        elif main == "fp32_remainder" and precision == "fp16":
            drawn["/training/main_params_dtype"] = "fp16"
        if drawn["/training/optimizer"] == "muon" and (drawn["/parallel/zero_stage"] or 0) > 1:
            drawn["/training/optimizer"] = "adam"
        if drawn["/training/optimizer"] == "sgd":
            drawn["/training/exp_avg_sq_dtype"] = None
        if drawn["/training/optimizer"] == "muon":
            drawn["/training/optimizer_offload_fraction"] = None
            for moment in ("/training/exp_avg_dtype", "/training/exp_avg_sq_dtype"):
                if drawn[moment] in ("fp8", "int8"):
                    drawn[moment] = "bf16"
        if not all("host" in node for node in self.library.files["platform"][drawn["platform"]]["node_types"]):
            for share in ("/training/optimizer_offload_fraction", "/training/activation_offload_fraction"):
                drawn[share] = drawn[share] and 0
        if drawn["/parallel/schedule"] in ("dualpipe", "dualpipe_v"):
            drawn["/training/activation_offload_fraction"] = None
        if not drawn["/training/optimizer_offload_fraction"]:
            drawn["/training/overlap_optimizer_offload"] = self.rng.choice((None, False))

"""Writes a scenario with the drawn features, and draws what features leave open: the options of codecs, the numbers of files."""
import copy

from features import TRAFFIC
from job import job_of, noise_of
from orders import written_schedule

DRAWN = "assumed: drawn"
# Keys that others hang on: their shape stays as it is shipped.
SHAPE = ("kind", "sequence", "lanes", "count", "gpus", "rows", "unit", "from", "to", "layers", "heads", "kv_heads", "hidden", "rate", "device", "peak",
         "name", "description", "source", "$schema", "usable", "capacity", "context", "oversubscription", "nodes_per_leaf", "switch_size",
         "small_bandwidth", "family", "precision", "head_size", "extends", "domain_nodes", "flash_devices", "experts", "top_k", "shared_ffn_hidden",
         "half_size", "nic_of_gpu", "nodes_per_switch", "taper", "uplinks", "nodes_per_group", "pxn", "dimensions", "link_rate", "nodes_per_router",
         "routers_per_group", "global_links", "groups", "local_rate", "global_rate", "links", "routing", "routing_seed")


class DocumentDraw:
    def __init__(self, schema, library, rng):
        self.schema, self.library, self.rng = schema, library, rng

    def draw(self, features):
        """The scenario, and the file that it extends (none: an empty one)."""
        f, rng = features, self.rng
        document = {"version": 1, "software": f["software"], **self.files(f), "training": self.training(f),
                    "parallel": self.parallel(f)}
        if f["/nodes"]:
            document["nodes"] = f["nodes in use"]
        if compression := self.compression(f):
            document["compression"] = compression
        if f["neighbours"] == "a second job":
            if isinstance(document["platform"], str):
                document["platform"] = copy.deepcopy(self.library.files["platform"][document["platform"]])
            document["platform"]["node_types"][-1].setdefault("count", 2 * f["nodes in use"])
            document["neighbours"] = [{"scenario": copy.deepcopy(document), "first_node": f["nodes in use"]}]
        elif f["neighbours"]:
            document["neighbours"] = [{"link": f["neighbours"], "rate": "3 GB/s", "busy": rng.choice((0, 0.5, 1))}]
        if noise := noise_of(f, rng):
            document["noise"] = noise
        if job := job_of(f, rng):
            document["job"] = job
        if rng.random() < 0.5:
            document["search"] = self.search(f)
        if rng.random() < 0.5:
            document["sweep"] = self.sweep(f)
        if rng.random() < 0.1:
            document["name"] = "drawn"
        return self.in_two_files(document) if f["extends"] else (document, {})

    def in_two_files(self, document):
        """Some blocks in the file that is extended, with values there that this one replaces."""
        base = {"version": 1}
        for key in [key for key in document if key not in ("version", "sweep") and self.rng.random() < 0.5]:
            base[key] = document.pop(key)
        if "training" in base and self.rng.random() < 0.5:
            document["training"] = {"micro_batch": base["training"]["micro_batch"]}
            base["training"] = {**base["training"], "micro_batch": 10 ** 6}
        return {**document, "extends": "base.json"}, base

    def training(self, f):
        block = {key[len("/training/"):]: f[key] for key in f if key.startswith("/training/") and f[key] is not None}
        return {"global_batch": f["microbatches"] * f["data"] * f["/training/micro_batch"], **block}

    def layers(self, f):
        """Layers of each stage."""
        stages = [f["layers of a stage"] * f["chunks"]] * f["pipeline"]
        if f["/parallel/stage_layers"] in ("uneven", "layout"):
            for _ in range(f["pipeline"]):
                giver, taker = self.rng.randrange(len(stages)), self.rng.randrange(len(stages))
                if stages[giver] > 0:
                    stages[giver], stages[taker] = stages[giver] - f["chunks"], stages[taker] + f["chunks"]
        return stages

    def parallel(self, f):
        block = {axis: f[axis] for axis in ("tensor", "context", "pipeline") if f[axis] > 1 or self.rng.random() < 0.5}
        derived = not self.part_of_a_node(f) if f["/nodes"] else f["data"] == 1  # what the nodes leave; without nodes 1
        if not derived or self.rng.random() < 0.7:
            block["data"] = f["data"]
        for key in f:
            if key.startswith("/parallel/") and f[key] is not None:
                block[key[len("/parallel/"):]] = f[key]
        stages = self.stages
        block |= {"stage_layers": stages} if block.get("stage_layers") == "uneven" else {}
        if block.get("stage_layers") == "layout":
            up = ["t" * (count // f["chunks"]) for count in stages]
            parts = [part for chunk in range(f["chunks"]) for part in (up[::-1] if f["chunk_path"] == "v" and chunk % 2 else up)]
            block["stage_layers"] = "|".join(["E" + parts[0], *parts[1:]]) + "L"
        if edges := block.get("edge_layers"):
            block["edge_layers"] = {"embedding": 1, **({"loss": 1} if edges == "both" else {})}
        if block.get("placement") == "permuted":
            block["placement"] = self.placement(f)
        if block.get("schedule") == "written":
            block["schedule"] = written_schedule(self.rng, f["pipeline"], f["microbatches"], f["chunks"], f["chunk_path"])
        return block

    def part_of_a_node(self, f):
        return f["tensor"] * f["context"] * f["pipeline"] * f["data"] < self.library.nodes(f["platform"])[0]["gpus"]

    def placement(self, f):
        """Whole nodes in another order, or the GPUs of a part of one."""
        gpus = self.library.nodes(f["platform"])[0]["gpus"]
        ranks, nodes = f["tensor"] * f["context"] * f["pipeline"] * f["data"], list(range(f["nodes in use"]))
        self.rng.shuffle(nodes)
        order = list(range(gpus))
        self.rng.shuffle(order)
        return [f"{node}:{gpu}" for node in nodes for gpu in order][:ranks]

    def compression(self, f):
        block = {traffic: self.codec(f, traffic) for traffic in TRAFFIC if f["/compression/" + traffic]}
        if f["/compression/embedding_sync"] is not None:
            block["embedding_sync"] = {"fused": f["/compression/embedding_sync"]}
        return block

    def codec(self, f, traffic):
        name, rng = f["/compression/" + traffic], self.rng
        options = {"rank": [1, 16, 4096], "rate": [4, 8, 13.5, 32], "ratio": [1, 1.3, 40], "density": [0.001, 0.1, 1], "bits": [1, 4, 8], "block": [1, 64, 2048],
                   "error_feedback": [False, True], "encode_rate": ["1 MB/s", "100 GB/s"], "decode_rate": ["1 MB/s", "100 GB/s"],
                   "threshold": ["1 B", "1 MB", "1 TB"], "buffer": ["64 KiB", "64 MiB"], "chunks": [1, 2, 7, 64],
                   "messages": self.schema.words(f"/compression/{traffic}/messages") if "messages" in self.keys(traffic) else [],
                   "stream": self.schema.words("/compression/pipeline_forward/stream"),
                   "stages": ["auto", f["pipeline"], [f["pipeline"] - 1]]}
        needed = self.schema.codec_choice(name)["required"]
        block = {"codec": name}
        if self.schema.sends_factors(name):
            options["chunks"] = [1]
        for key in self.schema.codecs()[name]:
            if key in self.keys(traffic) and (key in needed or rng.random() < 0.25):
                block[key] = rng.choice(options[key])
        return block

    def keys(self, traffic):
        return self.schema.properties(self.schema.keys["/compression/" + traffic])

    def search(self, f):
        lists = {axis: sorted({1, f[axis]}) for axis in ("tensor", "pipeline", "context", "data")}
        if f["/parallel/expert"]:
            lists |= {"expert": sorted({1, f["/parallel/expert"]}), "expert_tensor": [1, 2]}
        lists |= {"micro_batch": [1, 2], "virtual_pipeline": [1, 2], "zero_stage": [0, 1, 2, 3], "sequence_parallel": [False, True],
                  "schedule": self.schema.words("/parallel/schedule"), "recompute": self.schema.words("/training/recompute")}
        block = {key: values for key, values in lists.items() if self.rng.random() < 0.3}
        if self.rng.random() < 0.3:
            block["memory_margin"] = self.rng.choice(("0 %", "12.5 %", "2 GiB"))
        if self.rng.random() < 0.1:
            block["surely_fits"] = self.rng.random() < 0.5
        if self.rng.random() < 0.3:
            block["placement"] = self.rng.choice(self.schema.words("/search/placement"))
        return block

    def sweep(self, f):
        axes = {"/training/micro_batch": [1, 2], "/parallel/schedule": self.schema.words("/parallel/schedule"),
                "/parallel/zero_stage": [0, 1], "/parallel/tensor": [1, 2], "/platform": [f["platform"], "selene-a100"]}
        matrix = {key: values for key, values in axes.items() if self.rng.random() < 0.4} or {"/training/micro_batch": [1]}
        block = {"matrix": matrix}
        if self.rng.random() < 0.3:
            block["exclude"] = [{key: values[0] for key, values in matrix.items()}]
        if self.rng.random() < 0.3:
            block["include"] = [{"label": "alone", "/training/micro_batch": 1, "/parallel/tensor": 1}]
        if self.rng.random() < 0.3:
            block["points"] = [{"label": "as it is"}, {"label": "larger machines", "/platform": "dgx-h100"}]
            block["baseline"] = self.rng.choice(("as it is", 0))
            if "/platform" not in matrix and self.rng.random() < 0.5:
                for key in ("matrix", "exclude"):
                    block.pop(key, None)
        return block

    def files(self, f):
        """Model, platform and software: names where they are as shipped, else what stands in the files, changed."""
        self.stages = self.layers(f)
        changed = f["changed files"]
        model = {**self.library.copy("model", f["model"]), "layers": sum(self.stages)}
        if f["/parallel/edge_layers"]:  # which are cut from what divides evenly
            model["layers"] -= 1 if f["/parallel/edge_layers"] == "embedding" else 2
        platform = software = None
        if changed in ("model", "all"):
            self.change(model, self.schema.keys["/model"])
            model["family"] = self.rng.choice(self.schema.words("/model/family"))
            model["ffn_hidden"] = 16 * self.rng.choice((64, 1000))
            cut = f["tensor"] * f["context"]
            model["kv_heads"] = self.rng.choice([n for n in (cut, 2 * cut, model["heads"]) if model["heads"] % n == 0])
            model["sequence"] = self.rng.choice((256, 2048, 32768))
            model["parallel_residual"] = model.get("parallel_residual", model["family"] == "neox") and "moe" not in model
            model["norms"] = max(model.get("norms", 2), 1 if model["parallel_residual"] else 2)
        if f["predicted tokens"] is not None:
            model["mtp_layers"] = f["predicted tokens"]
        if moe := model.get("moe"):
            self.change_tokens(moe, f["tokens"])
            moe["dense_layers"] = min(moe.get("dense_layers", 0), model["layers"] - 1)
        if changed in ("platform", "device", "all") or f["network"] != "as shipped" or f["NICs of GPUs"]:
            platform = self.platform(f, changed)
        if changed in ("software", "all"):
            software = self.library.copy("software", f["software"].split("@")[0])
            self.change(software, self.schema.keys["/software"])
            self.give_sources(software)
            software |= {"flash_forward_efficiency": 0.5, "flash_backward_efficiency": 0.3}
            if software.get("attention_kernel") == "fp8":  # of which a stack has no efficiencies
                del software["attention_kernel"]
        self.fit_kernel(f, platform, software)
        return {"model": model, "platform": platform or f["platform"], "software": software or f["software"]}

    def fit_kernel(self, f, platform, software):
        """Fused attention by a kernel of which every GPU has a rate."""
        if f["/training/attention"] != "flash":
            return
        stack = software or self.library.files["software"][f["software"].split("@")[0]]
        types = platform["node_types"] if platform else self.library.nodes(f["platform"])[:f["nodes in use"]]
        known = set.intersection(*(self.library.kernels(node["device"], stack, f["/training/precision"]) for node in types))
        default = known & {stack.get("attention_kernel", "cudnn"), "cudnn"}
        if f["/training/attention_kernel"] not in known | ({None} if default else set()):
            f["/training/attention_kernel"] = self.rng.choice(sorted(known)) if known else None

    def change_tokens(self, moe, tokens):
        if tokens == "zipf":
            moe["balance"] = {"zipf": self.rng.choice((0.1, 0.5, 1.2))}
        elif tokens == "shares":
            moe["balance"] = {"shares": [self.rng.choice((0, 1, 2, 7)) for _ in range(moe["experts"] - 1)] + [1]}
        elif tokens == "consecutive":
            moe["balance"] = tokens
        elif tokens == "capacity":
            moe["capacity"] = self.rng.choice((0.5, 1, 1.25))
            moe["every"] = self.rng.choice((1, 2))

    def platform(self, f, changed):
        platform = self.library.copy("platform", f["platform"])
        types = platform["node_types"]
        if changed in ("device", "all"):
            for node in types:
                node["device"] = self.device(node["device"])
        if changed in ("platform", "all"):
            self.change(platform, self.schema.keys["/platform"])
            for node in types:
                if "switch_size" in node["interconnect"] and self.rng.random() < 0.3:
                    del node["interconnect"]["switch_size"], node["interconnect"]["small_bandwidth"]
            platform.pop("segment", None)
            if "domain_nodes" in platform and self.rng.random() < 0.5:
                platform["segment"] = self.rng.choice((1, platform["domain_nodes"]))
        self.network(platform, f)
        if f["NICs of GPUs"] == "given":
            for node in types:
                nics = range(node["nics"])
                node["nic_of_gpu"] = [self.rng.choice((self.rng.choice(nics), self.rng.sample(nics, self.rng.randint(1, min(2, len(nics))))))
                                      for _ in range(node["gpus"])]
        self.give_sources(platform)
        return platform

    def device(self, name):
        device = self.library.copy("device", name)
        self.change(device, self.schema.keys["/platform/node_types/N/device"])
        device["memory"] |= self.rng.choice(({}, {"usable": "2 GiB"}, {"capacity": "200 GiB", "usable": "199 GiB"}, {"context": "4 GiB"}))
        return device

    def network(self, platform, f):
        types, rng, nodes = platform["node_types"], self.rng, f["nodes in use"]
        if f["network"] == "leaves":
            leaf = platform.get("domain_nodes", 1) * rng.choice((1, 2, 3))
            platform["fabric"] |= {"nodes_per_leaf": leaf, "oversubscription": rng.choice((1, 1.5, 4))}
            if rng.random() < 0.5:
                platform["fabric"]["kind"] = "leaf_switches"
        elif f["network"] in self.schema.words("/platform/fabric/kind"):
            kept = {key: platform["fabric"][key] for key in ("latency", "collective_latency")}
            platform["fabric"] = {"kind": f["network"], **kept, **self.fabric_keys(f["network"], types, nodes, platform.get("domain_nodes", 1))}
        elif f["network"] == "matrix":
            types[-1].setdefault("count", nodes)
            count = sum(node["count"] for node in types)
            platform["bandwidth_matrix"] = {"unit": "GB/s", "rails": rng.choice((1, 2, 4)), "rows": [
                [round(rng.uniform(1, 25), 2) for _ in range(count)] for _ in range(count)]}
        elif f["network"] == "links":
            platform["link_overrides"] = [{"from": a, "to": (a + 1) % nodes, "bandwidth": rng.choice(("200 MB/s", "40 GB/s"))}
                                          for a in rng.sample(range(nodes), rng.randint(1, nodes))]
        elif f["network"] == "faults":
            nics = min(node["nics"] for node in types)
            places = rng.sample([(node, nic) for node in range(nodes) for nic in range(nics)], rng.randint(1, min(4, nodes * nics)))
            lost = {node for node, _ in places} if nics > 4 else set()
            platform["faults"] = [{"node": node, "nic": nic, "share": rng.choice((0.05, 0.5, 1) + ((0,) if node in lost else ()))} for node, nic in places]
        elif f["network"] == "two node types" and len(types) == 1:
            types.insert(0, {**copy.deepcopy(types[0]), "count": 1, "compute_efficiency": rng.choice((0.5, 0.9))})
            if "count" in types[1]:
                types[1]["count"] -= 1

    def fabric_keys(self, kind, types, nodes, trays):
        """Keys of a fabric that joins so many nodes of `trays` each."""
        rng = self.rng
        rate = lambda: rng.choice(("10 Gbps", "25 GB/s", "100 GB/s"))  # noqa: E731
        seed = {"routing_seed": rng.choice((0, 1, 7))} if rng.random() < 0.5 else {}
        if kind == "fat_tree":
            sizes = [trays * rng.choice((1, 2))]
            while len(sizes) < 3 and rng.random() < 0.5:
                sizes.append(sizes[-1] * rng.choice((2, 3)))
            keys = {"nodes_per_switch": sizes, "uplinks": [rng.choice((1, 2, 8)) for _ in sizes], "routing": rng.choice(("adaptive", "ecmp")), **seed}
            return keys | ({"taper": [rng.choice((1, 1.5, 4)) for _ in sizes]} if rng.random() < 0.7 else {})
        if kind == "rails":
            relays = all(node["interconnect"]["kind"] != "pcie" for node in types)
            return {"nodes_per_group": trays * rng.choice((1, 2)), "oversubscription": rng.choice((1, 2, 4)), "pxn": relays and rng.choice((False, True))}
        if kind == "rails_only":
            return {"nodes_per_group": trays * nodes}
        if kind == "torus":
            return {"dimensions": rng.choice(([nodes, 2], [2, nodes], [2, nodes, 2])), "link_rate": rate()}
        if kind == "dragonfly":
            routers, cables = rng.choice((1, 2, 3)), rng.choice((1, 2))
            groups = 1 + rng.choice([n for n in range(1, routers * cables + 1) if routers * cables % n == 0])
            return {"nodes_per_router": trays * -(-nodes // (routers * groups)), "routers_per_group": routers, "global_links": cables, "groups": groups,
                    "local_rate": rate(), "global_rate": rate(), "routing": rng.choice(("minimal", "valiant")), **seed}
        nics = rng.choice((None, range(types[0]["nics"])))
        plugs = [(f"node{node}", node // 2) if nics is None else (f"node{node} nic{nic}", nic) for node in range(nodes) for nic in nics or (0,)]
        links = [[plug, f"leaf{leaf}", rate()] for plug, leaf in plugs]
        links += [[f"leaf{leaf}", f"spine{spine}", rng.choice(("", "2 x ", "4 x ")) + rate()] for leaf in sorted({leaf for _, leaf in plugs}) for spine in range(2)]
        return {"links": links, "routing": rng.choice(("lowest_name", "ecmp")), **seed}

    def change(self, value, node):
        """Some of the keys that the schema knows, in place, objects and lists in it included."""
        for key, each in self.schema.properties(node).items():
            inner = self.schema.properties(each)
            for below in value[key] if isinstance(value.get(key), list) else [value.get(key)]:
                if inner and isinstance(below, dict) and key != "peak":  # of 8 bits below that of 16, attention is above the peak
                    self.change(below, each)
            if inner or key in SHAPE or self.rng.random() > 0.15:
                continue
            if (drawn := self.schema.changed(each, value.get(key), self.rng)) is not None:
                value[key] = min(drawn, 1) if key.endswith("efficiency") else drawn  # more is faster than the peak

    @staticmethod
    def give_sources(value):
        """A source for every number, whatever keys there are now; releases have a description in its place, models are named by their sizes."""
        for key, each in value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ():
            if key not in ("releases", "models"):
                DocumentDraw.give_sources(each)
        if isinstance(value, dict):
            value["source"] = DRAWN

"""Draws scenarios: clusters, models and software in which every number that a prediction takes is drawn."""

SOURCE = {"source": "assumed: drawn"}


class Draw:
    def __init__(self, random):
        self.random = random

    def text(self, low, high, unit):
        """An amount, as evenly spread over orders of magnitude as it can be."""
        return f"{self.between(low, high):.6g} {unit}"

    def between(self, low, high):
        return low * (high / low) ** self.random.random()

    def chance(self, share):
        return self.random.random() < share

    def device(self, name):
        uniform = self.random.uniform
        return {"name": name, "multiprocessors": self.random.choice([40, 80, 108, 132]), "kernel_overhead": self.text(0.5, 20, "us"),
                "peak": {kind: self.text(20, 1000, "TFLOPS") for kind in ("fp16", "bf16", "tf32", "fp32")} | SOURCE,
                "memory": {"capacity": "9000 GiB", "usable": "8000 GiB", "context": "1 GiB", "bandwidth": self.text(300, 4000, "GB/s"),
                           "bandwidth_efficiency": uniform(0.5, 1)} | SOURCE,
                "gemm": {"peak_fraction": uniform(0.5, 1), "inner_half_size": uniform(0, 300), "wave_half_size": uniform(0, 1),
                         "misaligned_factor": uniform(0.1, 1), "head_factor": uniform(0.5, 1)} | SOURCE,
                "codecs": {"launch": "10 us"} | SOURCE} | SOURCE

    def interconnect(self):
        wires = {"kind": "nvswitch", "saturated_bandwidth": self.text(20, 400, "GB/s"), "group_loss": self.random.uniform(0, 1),
                 "floor_base": self.text(1, 50, "us"), "floor_per_gpu": self.text(1, 10, "us"), "half_size": self.text(1, 10, "MiB"),
                 "half_size_exponent": self.random.uniform(-0.2, 0.2), "sharpness": self.random.uniform(0.6, 1.2),
                 "point_to_point": self.text(5, 100, "GB/s"), "point_to_point_latency": self.text(1, 30, "us")}
        if self.chance(0.3):
            wires["floor"] = "added"
        if self.chance(0.3):
            wires |= {"switch_size": self.text(0.1, 4, "MiB"), "small_bandwidth": self.text(10, 300, "GB/s")}
        return wires | SOURCE

    def node_type(self, name, gpus, nics, nic_rate, count):
        return {"count": count, "device": self.device(name), "gpus": gpus, "nics": nics, "nic_rate": nic_rate,
                "nic_efficiency": self.random.uniform(0.5, 1), "compute_efficiency": self.random.uniform(0.5, 1),
                "in_node_collective_slowdown": self.random.choice([1, self.random.uniform(1, 2)]),
                "collective_overhead_factor": self.random.uniform(0, 2), "launch_slowdown": self.random.uniform(0.5, 1.5), "interconnect": self.interconnect()} | SOURCE

    def software(self):
        random = self.random
        profile = {"name": "drawn", "compute_efficiency": random.uniform(0.7, 1), "gradient_accumulation_bytes": random.choice([0, 6]),
                   "optimizer_bytes": random.uniform(0, 40), "cross_entropy_bytes": random.uniform(0, 40), "fused_kernels": random.choice([True, False]),
                   "cross_entropy": random.choice(["in_place", "fused", "vocab_parallel", "plain"]), "zeroes_gradients": random.choice([True, False]), "scales_gradients": random.choice([True, False]),
                   "iteration_overhead": self.text(0.01, 2, "ms"), "in_node_collective_slowdown": random.choice([1, random.uniform(1, 2)]),
                   "tensor_collective_overhead": self.text(1, 400, "us"),
                   "overlap_backward_tensor_collectives": random.choice([True, False]), "scatter_pipeline_messages": random.choice([True, False, "activations"]),
                   "gather_scattered_messages": random.choice([True, False]), "regathers_outputs": random.choice([True, False]), "gathers_behind_scatters": random.choice([True, False]), "gathers_by_pat": random.choice([True, False]),
                   "flash_forward_efficiency": random.uniform(0.2, 0.7), "flash_backward_efficiency": random.uniform(0.2, 0.7)}
        launch = {"kernel": self.text(0.1, 100, "us"), "collective": self.text(1, 70, "us"), "sharpness": random.uniform(1, 6)}
        if self.chance(0.5):
            profile["batch_read"] = {"kernels": random.randint(0, 20), "collectives": random.randint(0, 3), "on_every_stage": random.choice([True, False])} | SOURCE
        return profile | SOURCE | {"gradient_type": random.choice(["fp16", "bf16", "fp32"]), "launch": launch | SOURCE, "memory": self.memory()}

    def memory(self):
        random = self.random

        def states():
            return {"weights": 2, "gradients": random.choice([2, 4, 6]), "stale_gradients": random.choice([0, 0, 6]), "optimizer": 12,
                    "step_temporary": random.choice([0, 4]), "gradients_freed_each_step": random.choice([True, False])} | SOURCE
        return {"states_fp16": states(), "states_bf16": states(), "allocator_slack": random.uniform(1, 1.3), "fragmentation": random.uniform(1, 1.1),
                "fixed_work": self.text(1, 100, "MiB"), "extra_context": self.text(0.1, 2, "GiB"), "frees_outputs": random.choice([True, False])} | SOURCE

    def model(self, layers, tensor):
        random = self.random
        heads = random.choice([each for each in (2, 4, 8, 16) if each % tensor == 0])
        head_size = random.choice([32, 36, 64, 128])
        hidden = heads * head_size
        return {"name": "drawn", "family": random.choice(["gpt", "neox", "bloom", "llama"]), "layers": layers, "hidden": hidden, "heads": heads,
                "kv_heads": random.choice([each for each in (heads, heads // 2, tensor) if each >= tensor and each % tensor == 0 and heads % each == 0]),
                "ffn_hidden": hidden * random.choice([2, 4]), "gated_mlp": random.choice([True, False]), "tied_embeddings": random.choice([True, False]),
                "rotary": random.choice([True, False]), "sequence": random.choice([128, 256, 512, 1024]), "vocab": random.randint(500, 20000),
                "vocab_divisor": random.choice([1, 64, 128])} | random.choice([{}, {"norms": 4}, {"parallel_residual": True},
                                                                            {"parallel_residual": True, "norms": 1}])

    def training(self, replicas, microbatches):
        random = self.random
        micro_batch = random.choice([1, 1, 2, 4])
        return {"global_batch": replicas * microbatches * micro_batch, "micro_batch": micro_batch, "precision": random.choice(["fp16", "bf16", "fp32", "tf32"]),
                "gradient_dtype": random.choice(["fp32", "fp16", "bf16"]), "optimizer": random.choice(["adam", "sgd"]),
                "recompute": random.choice(["none", "selective", "full"]), "attention": random.choice(["standard", "standard", "flash"])}

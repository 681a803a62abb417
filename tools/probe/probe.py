#!/usr/bin/env python3
"""Measures what `windtunnel import probe` makes a platform of. Needs PyTorch and nothing else.

    python3 probe.py                                            one GPU
    torchrun --nproc_per_node=8 probe.py                        one node
    torchrun --nnodes=2 --nproc_per_node=8 --rdzv_backend=c10d --rdzv_endpoint=HOST:29500 probe.py     two nodes, on each

Writes probe.json (schema windtunnel/probe-v1) on rank 0, in less than five minutes: what does not fit into --seconds is left out and
named under "skipped". With several ranks every GPU measures at the same time, as they work in training; the numbers are rank 0's.
Without a GPU a few small sizes run on the processor: that shows that the script works, and says nothing of a GPU.
"""
import argparse
import json
import os
import platform
import statistics
import subprocess
import sys
import time

import torch
import torch.distributed as dist
import torch.nn.functional as F

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
# By which share of the time each part must have ended. Parts that end early leave their time to those behind them.
PARTS = {"gemm": 0.20, "copy": 0.25, "launch": 0.28, "attention": 0.40, "norm": 0.43, "optimizer": 0.46, "host_copy": 0.50,
         "codec": 0.65, "collective": 0.92}


class OutOfTime(Exception):
    """The part's share of the time is spent."""


class Unsupported(Exception):
    """Rank 0 cannot run a collective, so that no rank does."""


class Probe:
    def __init__(self, seconds):
        self.begin = time.monotonic()
        self.seconds = seconds
        self.on_gpu = torch.cuda.is_available()
        self.rank = int(os.environ.get("RANK", "0"))
        self.ranks = int(os.environ.get("WORLD_SIZE", "1"))
        self.local_rank = int(os.environ.get("LOCAL_RANK", "0"))
        self.local_ranks = int(os.environ.get("LOCAL_WORLD_SIZE", str(self.ranks)))
        self.nodes = self.ranks // self.local_ranks
        self.device = torch.device("cuda", self.local_rank) if self.on_gpu else torch.device("cpu")
        if self.on_gpu:
            torch.cuda.set_device(self.device)
            self.precision = "bf16" if torch.cuda.get_device_capability()[0] >= 8 else "fp16"
        else:
            self.precision = "fp32"
        self.dtype = {"bf16": torch.bfloat16, "fp16": torch.float16, "fp32": torch.float32}[self.precision]
        self.element = 4 if self.precision == "fp32" else 2
        self.memory = torch.cuda.get_device_properties(self.device).total_memory if self.on_gpu else GIB
        self.measurements, self.skipped = [], []
        self.deadline = self.begin

    # Timing.

    def synchronize(self):
        if self.on_gpu:
            torch.cuda.synchronize()

    def span(self, call, calls):
        """Seconds of one of `calls` calls in a row: on the GPU's clock where there is one."""
        if not self.on_gpu:
            start = time.perf_counter()
            for _ in range(calls):
                call()
            return (time.perf_counter() - start) / calls
        start, end = torch.cuda.Event(enable_timing=True), torch.cuda.Event(enable_timing=True)
        start.record()
        for _ in range(calls):
            call()
        end.record()
        end.synchronize()
        return start.elapsed_time(end) * 1e-3 / calls

    def wall_span(self, call, calls):
        """The same on the host's clock, with the wait for the GPU at the end."""
        self.synchronize()
        start = time.perf_counter()
        for _ in range(calls):
            call()
        self.synchronize()
        return (time.perf_counter() - start) / calls

    def samples(self, call, span, least_time=4e-3, longest=0.4):
        """Times of `call`: 3 to 15 samples, each of calls enough for the clock, until `longest` seconds have passed."""
        for _ in range(2):
            call()
        self.synchronize()
        calls = max(1, min(1000, round(least_time / max(span(call, 1), 1e-7))))
        start, times = time.monotonic(), []
        while len(times) < 3 or (len(times) < 15 and time.monotonic() - start < longest):
            times.append(span(call, calls))
        return times

    def add(self, kind, times, **what):
        quarters = statistics.quantiles(times, n=4)
        self.measurements.append({"kind": kind, **what, "median_s": statistics.median(times),
                                  "spread_s": max(0.0, quarters[2] - quarters[0]), "count": len(times)})

    def measure(self, kind, call, span=None, divide=1, **what):
        if time.monotonic() > self.deadline:
            raise OutOfTime
        times = self.samples(call, span or self.span)
        self.add(kind, [each / divide for each in times], **what)

    def skip(self, what, why):
        self.skipped.append(what + ": " + " ".join(str(why).split())[:200])

    def run_part(self, part):
        self.deadline = self.begin + self.seconds * PARTS[part]
        try:
            getattr(self, "probe_" + part)()
        except OutOfTime:
            self.skip(part, "the rest, out of time")
        except RuntimeError as error:  # out of memory, or an operation that this build lacks
            self.skip(part, "the rest, " + str(error))
        if self.on_gpu:
            torch.cuda.empty_cache()

    def values(self, *shape, dtype=None):
        return torch.randn(*shape, device=self.device, dtype=dtype or self.dtype)

    # One GPU.

    def gemm_shapes(self):
        """(m, n, k, batch): the layers of transformers; short inner dimensions; few tiles; batches as attention without a fused kernel has them."""
        if not self.on_gpu:
            return [(256, 3 * h, h, 1) for h in (64, 128, 256)] + [(512, 512, k, 1) for k in (16, 64)] + [(128, 128, 32, 8)]
        shapes = [(m, n * h, k * h, 1) for h in (2048, 4096, 8192) for m in (2048, 8192) for n, k in ((3, 1), (1, 1), (4, 1), (1, 4))]
        shapes += [(8192, 8192, k, 1) for k in (256, 512, 1024)]
        shapes += [(m, m, 8192, 1) for m in (512, 1024, 1536, 3072)]
        return shapes + [(2048, 2048, 128, 64), (2048, 128, 2048, 64)]

    def probe_gemm(self):
        for m, n, k, batch in self.gemm_shapes():
            if batch == 1:
                a, b = self.values(m, k), self.values(n, k)
                call = lambda: F.linear(a, b)
            else:
                a, b = self.values(batch, m, k), self.values(batch, k, n)
                call = lambda: torch.bmm(a, b)
            self.measure("gemm", call, precision=self.precision, m=m, n=n, k=k, batch=batch)

    def probe_copy(self):
        """Sizes far beyond the caches; bytes read and written."""
        for size in (256 * MIB, 512 * MIB, GIB) if self.on_gpu else (4 * MIB, 16 * MIB):
            if 3 * size > self.memory:
                continue
            source, target = (torch.ones(size, dtype=torch.uint8, device=self.device) for _ in range(2))
            self.measure("copy", lambda: target.copy_(source), bytes=2 * size)

    def probe_launch(self):
        """stream: kernels a host issues one after another; synchronized: one, and the wait for it; graph: one of many in a CUDA graph,
        which is what a kernel costs the GPU itself."""
        one = torch.ones(1, device=self.device)
        self.measure("launch", lambda: one.add_(1), self.wall_span, name="stream")
        if not self.on_gpu:
            return

        def synchronized():
            one.add_(1)
            torch.cuda.synchronize()

        self.measure("launch", synchronized, self.wall_span, name="synchronized")
        kernels, graph = 200, torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph):
            for _ in range(kernels):
                one.add_(1)
        self.measure("launch", graph.replay, divide=kernels, name="graph")

    def probe_attention(self):
        if not hasattr(F, "scaled_dot_product_attention"):
            return self.skip("attention", "PyTorch " + torch.__version__ + " has no scaled_dot_product_attention")
        cases = [(h, s) for h in (128, 64, 96, 80) for s in (2048, 4096, 8192, 1024)] if self.on_gpu else [(32, 128), (64, 128)]
        heads, tokens = (32, 8192) if self.on_gpu else (2, 256)
        for head_size, sequence in cases:
            batch = tokens // sequence
            q, k, v, gradient = (self.values(batch, heads, sequence, head_size) for _ in range(4))
            inputs = [each.requires_grad_() for each in (q, k, v)]
            forward = lambda: F.scaled_dot_product_attention(q, k, v, is_causal=True)
            what = dict(precision=self.precision, batch=batch, heads=heads, sequence=sequence, head_size=head_size)
            self.measure("attention", forward, direction="forward", **what)
            result = forward()
            self.measure("attention", lambda: torch.autograd.grad(result, inputs, gradient, retain_graph=True), direction="backward", **what)

    def probe_norm(self):
        rows = 8192 if self.on_gpu else 256
        for hidden in (2048, 4096, 8192) if self.on_gpu else (256,):
            x, weight, bias = self.values(rows, hidden), self.values(hidden), self.values(hidden)
            self.measure("norm", lambda: F.layer_norm(x, (hidden,), weight, bias), rows=rows, hidden=hidden,
                         bytes=2 * rows * hidden * self.element)

    def probe_optimizer(self):
        """Adam on fp32 values: reads weight, gradient and two moments, writes all but the gradient."""
        parameters = 64 * MIB if self.on_gpu else MIB
        weight = torch.nn.Parameter(self.values(parameters, dtype=torch.float32))
        weight.grad = self.values(parameters, dtype=torch.float32)
        try:
            name, optimizer = "adam_fused", torch.optim.Adam([weight], fused=True)
            optimizer.step()
        except (TypeError, RuntimeError):  # an older PyTorch, or not for this device
            name, optimizer = "adam", torch.optim.Adam([weight])
            optimizer.step()
        self.measure("optimizer", optimizer.step, name=name, parameters=parameters, bytes=28 * parameters)

    def probe_host_copy(self):
        if not self.on_gpu:
            return
        size = 256 * MIB
        near, far = torch.ones(size, dtype=torch.uint8).pin_memory(), torch.ones(size, dtype=torch.uint8, device=self.device)
        self.measure("host_copy", lambda: far.copy_(near, non_blocking=True), direction="to_device", bytes=size)
        self.measure("host_copy", lambda: near.copy_(far, non_blocking=True), direction="to_host", bytes=size)

    def probe_codec(self):
        """Uncompressed bytes of fp32 values; one call and what it launches, one call after another."""
        sizes = (MIB, 4 * MIB, 16 * MIB, 64 * MIB) if self.on_gpu else (64 * KIB, 256 * KIB)
        side, tall = (4096, 16384) if self.on_gpu else (128, 256)
        for rows, rank in ((side, 4), (side, 16), (tall, 32)):
            matrix, q = self.values(rows, side, dtype=torch.float32), self.values(side, rank, dtype=torch.float32)
            p = matrix @ q
            what = dict(codec="powersgd", rows=rows, columns=side, rank=rank, bytes=4 * rows * side)
            self.measure("codec", lambda: orthogonalize(p.clone()), direction="orthogonalize", **what)
            self.measure("codec", lambda: powersgd_encode(matrix, q), direction="encode", **what)
            self.measure("codec", lambda: p @ q.T, direction="decode", **what)
        for size in sizes:
            x = self.values(size // 4, dtype=torch.float32)
            for codec, encode, decode, what in plain_codecs(x.numel()):
                encoded = encode(x)
                self.measure("codec", lambda: encode(x), codec=codec, direction="encode", bytes=size, **what)
                self.measure("codec", lambda: decode(encoded), codec=codec, direction="decode", bytes=size, **what)

    # Several GPUs.

    def probe_collective(self):
        if self.ranks == 1:
            return
        widths = [width for width in (2, 4, 8, 16) if width < self.local_ranks] + [self.local_ranks] * (self.local_ranks > 1)
        groups = []
        for width in widths:  # the first ranks of every node at the same time: those of rank 0 are measured
            for node in range(self.nodes):
                members = [node * self.local_ranks + i for i in range(width)]
                group = dist.new_group(members)
                if self.rank in members or node == 0:
                    mine = (group if self.rank in members else None, width, 1)
            groups.append(mine)
        if self.nodes > 1:
            groups.append((dist.group.WORLD, self.ranks, self.nodes))
        sizes = [8 * KIB, 64 * KIB] + [MIB << i for i in range(11)] if self.on_gpu else [8 * KIB] + [MIB << i for i in range(3)]
        for name in ("all_reduce", "all_gather", "reduce_scatter", "all_to_all"):
            for group, ranks, nodes in reversed(groups):
                for size in sizes:
                    if 4 * size > self.memory:
                        continue
                    if self.agree(time.monotonic() > self.deadline):
                        raise OutOfTime
                    try:
                        self.measure_collective(name, group, ranks, nodes, size)
                    except Unsupported as error:
                        self.skip(name, error)
                        break

    def agree(self, number):
        """Rank 0's number, on every rank."""
        tensor = torch.tensor([float(number)], device=self.device)
        dist.broadcast(tensor, 0)
        return tensor.item()

    def measure_collective(self, name, group, ranks, nodes, size):
        """`size` is that of the whole tensor, as nccl-tests counts it. Every rank makes the same number of calls."""
        per_rank = -(-size // (self.element * ranks))
        whole, part = self.values(per_rank * ranks), self.values(per_rank)
        target = torch.empty_like(whole)
        gather = getattr(dist, "all_gather_into_tensor", None) or dist._all_gather_base
        scatter = getattr(dist, "reduce_scatter_tensor", None) or dist._reduce_scatter_base
        calls_of = {"all_reduce": lambda: dist.all_reduce(whole, group=group), "all_gather": lambda: gather(target, part, group=group),
                    "reduce_scatter": lambda: scatter(part, whole, group=group),
                    "all_to_all": lambda: dist.all_to_all_single(target, whole, group=group)}
        call = calls_of[name] if group is not None else lambda: None
        error = None
        try:
            for _ in range(3):
                call()
            self.synchronize()
            first = self.span(call, 2)
        except (RuntimeError, ValueError) as problem:
            error, first = problem, 1.0
        calls = int(self.agree(0 if error else max(1, min(200, round(10e-3 / max(first, 1e-7))))))
        if calls == 0:
            raise Unsupported(error)
        if error is not None:  # the others wait for this rank
            sys.exit(f"probe: rank {self.rank} cannot run {name}: {error}")
        times = [self.span(call, calls) for _ in range(7)]
        self.add("collective", times, name=name, ranks=ranks, nodes=nodes, bytes=per_rank * ranks * self.element)

    # The file.

    def describe(self):
        properties = torch.cuda.get_device_properties(self.device) if self.on_gpu else None
        nccl = torch.cuda.nccl.version() if self.on_gpu and self.ranks > 1 else None
        if isinstance(nccl, tuple):
            nccl = ".".join(str(each) for each in nccl)
        return {"schema": "windtunnel/probe-v1", "device": "cuda" if self.on_gpu else "cpu",
                "gpu": properties.name if properties else None,
                "multiprocessors": properties.multi_processor_count if properties else None,
                "memory_bytes": properties.total_memory if properties else None,
                "driver": driver_version() if self.on_gpu else None, "torch": torch.__version__, "cuda": torch.version.cuda, "nccl": nccl and str(nccl),
                "python": platform.python_version(), "precision": self.precision, "ranks": self.ranks, "nodes": self.nodes,
                "budget_s": self.seconds, "elapsed_s": round(time.monotonic() - self.begin, 3), "skipped": self.skipped}

    def text(self):
        head = json.dumps(self.describe(), indent=2)[:-2]
        lines = ",\n".join("    " + json.dumps(each) for each in self.measurements)
        return head + ',\n  "measurements": [\n' + lines + "\n  ]\n}\n"


def driver_version():
    try:
        command = ["nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader"]
        return subprocess.run(command, capture_output=True, text=True, timeout=20).stdout.split("\n")[0].strip() or None
    except (OSError, subprocess.SubprocessError):
        return None


# Codecs in plain PyTorch. Top-k, int8 and PowerSGD are what training scripts run. What is zfp-like and mpc-like moves and computes what the
# codec does, in dozens of kernels where the codec has one: its rates are lower bounds.


def orthogonalize(p):
    """Gram-Schmidt column by column, as PyTorch's powerSGD_hook does it."""
    for i in range(p.shape[1]):
        column = p[:, i : i + 1]
        column /= torch.norm(column) + 1e-8
        if i + 1 < p.shape[1]:
            rest = p[:, i + 1 :]
            rest -= torch.sum(column * rest, dim=0) * column
    return p


def powersgd_encode(matrix, q):
    p = orthogonalize(matrix @ q)
    return p, matrix.T @ p


def topk_encode(x, count):
    places = torch.topk(x.abs(), count, sorted=False)[1]
    return x[places], places


def topk_decode(encoded, size):
    values, places = encoded
    return torch.zeros(size, device=values.device, dtype=values.dtype).scatter_(0, places, values)


def int8_encode(x):
    scale = x.abs().max() / 127
    return torch.round(x / scale).to(torch.int8), scale


def int8_decode(encoded):
    values, scale = encoded
    return values.to(torch.float32) * scale


def zfp_encode(x, bits):
    """Blocks of four values with one exponent: fixed point, zfp's lifted transform (Lindstrom 2014), the upper `bits` of each coefficient."""
    blocks = x.view(-1, 4)
    exponent = torch.frexp(blocks.abs().amax(dim=1, keepdim=True))[1]
    a, b, c, d = torch.ldexp(blocks, 28 - exponent).to(torch.int32).unbind(1)
    a = (a + d) >> 1
    d = d - a
    c = (c + b) >> 1
    b = b - c
    a = (a + c) >> 1
    c = c - a
    d = (d + b) >> 1
    b = b - d
    d = d + (b >> 1)
    b = b - (d >> 1)
    kept = torch.stack((a, b, c, d), 1) >> (32 - bits)
    return kept.to(torch.int8 if bits <= 8 else torch.int16 if bits <= 16 else torch.int32), exponent.to(torch.int16)


def zfp_decode(encoded, bits):
    kept, exponent = encoded
    a, b, c, d = (kept.to(torch.int32) << (32 - bits)).unbind(1)
    b = b + (d >> 1)
    d = d - (b >> 1)
    b = b + d
    d = (d << 1) - b
    c = c + a
    a = (a << 1) - c
    b = b + c
    c = (c << 1) - b
    d = d + a
    a = (a << 1) - d
    return torch.ldexp(torch.stack((a, b, c, d), 1).to(torch.float32), exponent.to(torch.int32) - 28).view(-1)


def transpose_bits(words):
    """Rows of 32 words of 32 bits, each transposed as a square of bits. Twice is nothing (Warren, Hacker's Delight, section 7-3)."""
    for step, mask in ((16, 0x0000FFFF), (8, 0x00FF00FF), (4, 0x0F0F0F0F), (2, 0x33333333), (1, 0x55555555)):
        pairs = words.view(-1, 2, step)
        low, high = pairs[:, 0], pairs[:, 1]
        swapped = ((low >> step) ^ high) & mask
        words = torch.stack((low ^ (swapped << step), high ^ swapped), 1).view(-1, 32)
    return words


def mpc_encode(x):
    """Differences to the value before, bits transposed, words of zeros left out (after Yang et al., MPC, CLUSTER 2015)."""
    words = x.view(torch.int32)
    words = transpose_bits(torch.cat((words[:1], words[1:] - words[:-1])).view(-1, 32)).view(-1)
    present = words != 0
    return words[present], present


def mpc_decode(encoded):
    values, present = encoded
    words = torch.zeros(present.shape, dtype=torch.int32, device=values.device).masked_scatter_(present, values)
    return torch.cumsum(transpose_bits(words.view(-1, 32)).view(-1), 0, dtype=torch.int32).view(torch.float32)


def plain_codecs(size):
    """(codec, encode, decode, its setting)"""
    count = max(1, size // 100)
    codecs = [("topk", lambda x: topk_encode(x, count), lambda e: topk_decode(e, size), {"density": count / size}),
              ("int8", int8_encode, int8_decode, {}), ("mpc_like", mpc_encode, mpc_decode, {})]
    for bits in (8, 16):
        codecs.append(("zfp_like", lambda x, bits=bits: zfp_encode(x, bits), lambda e, bits=bits: zfp_decode(e, bits), {"rate": bits}))
    return codecs


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("-o", "--out", default="probe.json", help="the file to write (default probe.json)")
    parser.add_argument("--seconds", type=float, default=240, help="how long it may take (default 240)")
    options = parser.parse_args()
    if not options.seconds > 0:
        parser.error("--seconds must be above 0")
    probe = Probe(options.seconds)
    if not probe.on_gpu and probe.rank == 0:
        print("probe: PyTorch finds no GPU: a reduced form runs on the processor, and says nothing of a GPU", file=sys.stderr)
    if probe.ranks > 1:
        dist.init_process_group("nccl" if probe.on_gpu else "gloo")
    torch.manual_seed(probe.rank)
    for part in PARTS:
        if probe.rank == 0:
            print(f"probe: {part}, {time.monotonic() - probe.begin:.0f} s", file=sys.stderr)
        probe.run_part(part)
    if probe.rank == 0:
        with open(options.out, "w") as file:
            file.write(probe.text())
        print(f"probe: wrote {options.out}: {len(probe.measurements)} measurements, {len(probe.skipped)} left out", file=sys.stderr)
    if probe.ranks > 1:
        dist.destroy_process_group()


if __name__ == "__main__":
    main()

#!/usr/bin/env python3
"""Writes made-up traces in the format of PyTorch's profiler, one for each of 64 ranks: rank00.json.gz, rank01.json.gz, …

    rank_traces.py FOLDER [--slow-rank 11] [--slow-link 3-5]

Tensor 8 (within a node) x pipeline 4 x data 2. Kernels scatter by 2 %, GPUs by 1 %, transfers by 3 %, the nodes' clocks by 0.3 ms.
"""

import argparse
import gzip
import json
import os
import random

TENSOR, STAGES, DATA = 8, 4, 2
GEMM, ALL_REDUCE, MESSAGE = "ampere_bf16_s16816gemm", "ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "ncclDevKernel_SendRecv"


class Job:
    def __init__(self, slow_rank, slow_link):
        self.slow_rank, self.slow_link = slow_rank, slow_link
        self.uses_slow_link = False
        self.random = random.Random(1)
        self.now = [0.0] * TENSOR * STAGES * DATA  # us
        self.events = [[] for _ in self.now]
        self.pace = [self.random.gauss(1, 0.01) for _ in self.now]
        self.clock = [1.7e9 + self.random.gauss(0, 300) for _ in range(STAGES * DATA)]

    def rank(self, stage, data, tensor):
        return (stage * DATA + data) * TENSOR + tensor

    def write(self, rank, category, name, thread, begin, end, args):
        self.events[rank].append({"ph": "X", "cat": category, "name": name, "pid": rank % TENSOR, "tid": thread,
                                  "ts": round(begin + self.clock[rank // TENSOR], 3), "dur": round(end - begin, 3), "args": args})

    def compute(self, rank, duration):
        begin = self.now[rank]
        self.now[rank] += duration * self.pace[rank] * self.random.gauss(1, 0.02) * (1.25 if rank == self.slow_rank else 1)
        self.write(rank, "kernel", GEMM, 7, begin, self.now[rank], {})

    def transfer(self, ranks, kernel, thread, megabytes, factor, args):
        nodes = {rank // TENSOR for rank in ranks}
        bandwidth = 230e3 if len(nodes) == 1 else 43e3  # bytes per us
        if self.slow_link and set(self.slow_link) <= nodes:
            bandwidth *= 0.21
            self.uses_slow_link = True
        size = megabytes * 1_000_000
        end = max(self.now[rank] for rank in ranks) + 15 + factor * size / bandwidth * self.random.gauss(1, 0.03)
        for rank in ranks:
            self.write(rank, "kernel", kernel, thread, self.now[rank], end,
                       {"In msg nelems": size // 2, "Out msg nelems": size // 2, "dtype": "BFloat16", "Group size": len(ranks)} | args(rank))
            self.now[rank] = end + 4

    def all_reduce(self, ranks, megabytes, group, number):
        self.transfer(ranks, ALL_REDUCE, number, megabytes, 2 * (len(ranks) - 1) / len(ranks), lambda rank: {
            "Collective name": "allreduce", "Process Group Name": str(number), "Process Group Description": group,
            "Process Group Ranks": str(ranks)})

    def message(self, source, destination):
        self.transfer([source, destination], MESSAGE, 28, 16, 1, lambda rank: {
            "Collective name": "send" if rank == source else "recv", "Process Group Name": "28", "Src Rank": source, "Dst Rank": destination,
            "Process Group Description": "PIPELINE_MODEL_PARALLEL_GROUP"})

    def run_pass(self, stage, source, duration):
        for data in range(DATA):
            ranks = [self.rank(stage, data, tensor) for tensor in range(TENSOR)]
            if 0 <= source < STAGES:
                for tensor, rank in enumerate(ranks):
                    self.message(self.rank(source, data, tensor), rank)
            for _ in range(4):  # layers
                for rank in ranks:
                    self.compute(rank, duration)
                self.all_reduce(ranks, 32, "TENSOR_MODEL_PARALLEL_GROUP", 20)

    def step(self, number):
        begins = list(self.now)
        for _ in range(2):  # microbatches
            for stage in range(STAGES):
                self.run_pass(stage, stage - 1, 1800)
        for _ in range(2):
            for stage in reversed(range(STAGES)):
                self.run_pass(stage, stage + 1, 3600)
        for stage in range(STAGES):
            for tensor in range(TENSOR):
                for _ in range(4):  # buckets
                    self.all_reduce([self.rank(stage, data, tensor) for data in range(DATA)], 50, "DATA_PARALLEL_GROUP", 24)
        for rank, begin in enumerate(begins):
            self.write(rank, "user_annotation", f"ProfilerStep#{number}", 1, begin, self.now[rank], {})


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder")
    parser.add_argument("--slow-rank", type=int, help="whose kernels take 1.25 times as long")
    parser.add_argument("--slow-link", type=lambda text: [int(node) for node in text.split("-")], help="two nodes; 21 %% of its bandwidth is left")
    options = parser.parse_args()
    job = Job(options.slow_rank, options.slow_link)
    for number in range(2):
        job.step(number)
    if options.slow_link and not job.uses_slow_link:
        parser.error("no ranks of these two nodes communicate: give two of the same or neighbouring stages, such as 3-5")
    os.makedirs(options.folder, exist_ok=True)
    for rank, events in enumerate(job.events):
        head = {"schemaVersion": 1, "distributedInfo": {"backend": "nccl", "rank": rank, "world_size": len(job.events)}}
        with gzip.open(f"{options.folder}/rank{rank:02}.json.gz", "wt") as file:
            json.dump(head | {"traceEvents": events}, file)


if __name__ == "__main__":
    main()

"""Schedules that a user might write, with the passes of each stage in order."""


def written_schedule(rng, stages, microbatches, chunks, chunk_path):
    """All forward passes first, or 1F1B; backward passes whole, or with their weight gradients behind them or at the end."""
    first = rng.choice(("forward", "1f1b")) if chunks == 1 else "forward"
    split = rng.choice(("whole", "behind", "at the end"))
    name = {"name": "written"} if rng.random() < 0.5 else {}
    return {"version": 1, **name, "stages": stages, "microbatches": microbatches, "chunks": chunks, "chunk_path": chunk_path,
            "orders": [order(stage, stages, microbatches, chunks, first, split) for stage in range(stages)]}


def order(stage, stages, microbatches, chunks, first, split):
    def name(letter, chunk, microbatch):
        return f"{letter}{microbatch}" + (f".{chunk}" if chunk else "")

    forward = [name("F", chunk, i) for chunk in range(chunks) for i in range(microbatches)]
    backward, late = [], []
    for chunk in reversed(range(chunks)):
        for i in range(microbatches):
            weights = [name("W", chunk, i)] if split != "whole" else []
            backward.append([name("B", chunk, i)] + (weights if split == "behind" else []))
            late += weights if split == "at the end" else []
    ahead = len(forward) if first == "forward" else min(stages - stage, len(forward))
    passes, rest = forward[:ahead], forward[ahead:]
    for each in backward:
        passes += each + rest[:1]
        rest = rest[1:]
    return passes + late

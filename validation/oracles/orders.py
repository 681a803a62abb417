"""Orders of passes that no Megatron-LM loop plays: of papers, and any legal one. A pass is (kind, microbatch, chunk), kind "F", "B" or "W"."""


def gpipe(stages, microbatches, stage):
    """All forward passes, then all backward passes in reverse (Huang et al. 2019, arXiv:1811.06965, figure 2c)."""
    return [("F", i, 0) for i in range(microbatches)] + [("B", i, 0) for i in reversed(range(microbatches))]


def zero_bubble_h1(stages, microbatches, stage):
    """1F1B whose weight gradients come `stage` microbatches after their input gradients (Qi et al. 2024, arXiv:2401.10241, figure 2)."""
    warmup = min(stages - stage - 1, microbatches)
    passes = [("F", i, 0) for i in range(warmup)]
    for i in range(microbatches):
        if i + warmup < microbatches:
            passes.append(("F", i + warmup, 0))
        passes.append(("B", i, 0))
        if i >= stage:
            passes.append(("W", i - stage, 0))
    return passes + [("W", i, 0) for i in range(max(0, microbatches - stage), microbatches)]


def needs(step, stages, stage, chunks):
    """What (kind, microbatch, part of the model) a pass waits for; parts are counted through all stages, then through the next chunks."""
    kind, microbatch, chunk = step
    part = chunk * stages + stage
    if kind == "F":
        return [("F", microbatch, part - 1)] if part else []
    if kind == "W":
        return [("B", microbatch, part)]
    return [("F", microbatch, part)] + ([("B", microbatch, part + 1)] if part + 1 < stages * chunks else [])


def drawn(random, stages, microbatches, chunks, split):
    """A legal order of every stage: passes are drawn from those that could run, of any stage, until none is left."""
    kinds = "FBW" if split else "FB"
    left = [[(kind, i, c) for kind in kinds for i in range(microbatches) for c in range(chunks)] for _ in range(stages)]
    orders, done = [[] for _ in range(stages)], set()
    eagerness = random.choice([0.1, 0.5, 0.9])  # of running a pass that frees activations
    while any(left):
        ready = [(s, step) for s in range(stages) for step in left[s] if all(need in done for need in needs(step, stages, s, chunks))]
        freeing = [each for each in ready if each[1][0] != "F"]
        # Microbatches mostly in order, as schedules are.
        pool = freeing if freeing and random.random() < eagerness else ready
        earliest = min(step[1] for _, step in pool)
        stage, step = random.choice([each for each in pool if each[1][1] <= earliest + random.choice([0, 0, 1])])
        left[stage].remove(step)
        orders[stage].append(step)
        done.add((step[0], step[1], step[2] * stages + stage))
    return orders

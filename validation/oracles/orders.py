"""Orders of passes that no Megatron-LM loop plays: of papers, of PyTorch, of DeepSeek, and any legal one, and the way of the model through the chunks.
A pass is (kind, microbatch, chunk), kind "F", "B" or "W"."""

PATHS = {"zero_bubble_v": "v", "dualpipe_v": "v", "dualpipe": "bidirectional"}


class Path:
    """Which part of the model, counted from the embedding, a chunk of a stage is: round the stages again and again, up and down them in a V, or from both
    ends: up with chunk 0 for even microbatches, down with chunk 1 for odd ones."""

    def __init__(self, stages, chunks, shape):
        self.places, self.bidirectional = [], shape == "bidirectional"
        if self.bidirectional:
            self.places = [(stage, 0) for stage in range(stages)]
            return
        for chunk in range(chunks):
            down = shape == "v" and chunk % 2 == 1
            self.places += [(stage, chunk) for stage in (reversed(range(stages)) if down else range(stages))]

    @classmethod
    def of(cls, parallel):
        schedule = parallel["schedule"]
        shape = schedule.get("chunk_path", "loop") if isinstance(schedule, dict) else PATHS.get(schedule, "loop")
        return cls(parallel["pipeline"], parallel["virtual_pipeline"], shape)

    def part(self, stage, chunk):
        return len(self.places) - 1 - stage if self.bidirectional and chunk else self.places.index((stage, chunk))

    def place(self, part, microbatch):
        """The stage and chunk of a part that a microbatch goes through."""
        return (len(self.places) - 1 - part, 1) if self.bidirectional and microbatch % 2 else self.places[part]

    def is_first(self, stage, chunk):
        return self.part(stage, chunk) == 0

    def is_last(self, stage, chunk):
        return self.part(stage, chunk) == len(self.places) - 1

    def holds(self, stage):
        """Whether a stage has the embedding, and whether it has the head."""
        ends = [end[0] for end in (self.places[0], self.places[-1])]
        return (stage in ends,) * 2 if self.bidirectional else tuple(stage == end for end in ends)

    def ends(self):
        """The stages of the embedding and of the head."""
        return self.places[0][0], self.places[-1][0]

    def rises(self, chunk, stages):
        return stages == 1 or self.part(0, chunk) < self.part(stages - 1, chunk)


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


def zero_bubble_v(stages, microbatches, stage):
    """ScheduleZBVZeroBubble._calculate_single_rank_operations, torch/distributed/pipelining/schedules.py, PyTorch at 1fd7abc, loop by loop: with at
    least 2 p - 1 microbatches, of which those that are not there are left out. Its I is B here."""
    n_micro = max(2 * stages - 1, microbatches)
    counts, passes = {}, []

    def add(*kinds):
        for kind, chunk in kinds:
            microbatch = counts[kind, chunk] = counts.get((kind, chunk), -1) + 1
            passes.append((kind, microbatch, chunk))

    def done(kind, chunk):
        return counts.get((kind, chunk), -1) + 1

    for _ in range(2 * (stages - stage) - 1):
        add(("F", 0))
    for _ in range(stage):
        add(("F", 1), ("F", 0))
    for _ in range(stages - stage):
        add(("F", 1), ("B", 1), ("W", 1))
    while done("F", 1) < done("F", 0) or done("F", 0) < n_micro:
        if done("F", 0) < n_micro:
            add(("F", 0))
        add(("B", 0), ("W", 0), ("F", 1), ("B", 1), ("W", 1))
    for _ in range(stage):
        add(("B", 0), ("B", 1))
    for _ in range(stages - stage):
        add(("B", 0), ("W", 0))
    while done("W", 1) < done("B", 1):
        add(("W", 1))
    while done("W", 0) < done("B", 0):
        add(("W", 0))
    return [each for each in passes if each[1] < microbatches]


def dualpipe_v(stages, microbatches, stage):
    """DualPipeV.step, dualpipe/dualpipev.py, github.com/deepseek-ai/DualPipe at 3da1bbe, step by step: blocks of passes that run at once."""
    return dualpipe_blocks(stages, stage, microbatches, lambda kind, phase, i: (kind, i, phase))


def dualpipe(stages, microbatches, stage):
    """DualPipe.step, dualpipe/dualpipe.py, the same commit. Ranks of the second half call the phases the other way round (its phase ^= is_in_second_half);
    phase 0 of the first half has the even microbatches here."""
    flip = stage >= stages // 2

    def name(kind, phase, i):
        chunk = phase ^ flip
        return kind, 2 * i + chunk, chunk

    return dualpipe_blocks(stages // 2, min(stage, stages - 1 - stage), microbatches // 2, name)


def dualpipe_blocks(ranks, rank, microbatches, name):
    blocks, count, weights = [], {}, []

    def following(kind, phase):
        count[kind, phase] = count.get((kind, phase), -1) + 1
        return name(kind, phase, count[kind, phase])

    def whole(phase):
        gradient = following("B", phase)
        return [gradient, ("W", *gradient[1:])]

    def forward(phase):
        blocks.append([following("F", phase)])

    def backward(phase, enable_zb=False):
        gradient, weight = whole(phase)
        blocks.append([gradient] if enable_zb else [gradient, weight])
        weights.extend([weight] if enable_zb else [])

    def weight():
        blocks.append([weights.pop(0)])

    def forward_backward(phase0, phase1):
        blocks.append([following("F", phase0)] + whole(phase1))

    for _ in range((ranks - rank - 1) * 2):  # step 1: nF0
        forward(0)
    for _ in range(rank + 1):  # step 2: nF0F1
        forward(0)
        forward(1)
    for _ in range(ranks - rank - 1):  # step 3: nB1W1F1
        backward(1, True)
        weight()
        forward(1)
    for i in range(microbatches - ranks * 2 + rank + 1):  # step 4: nF0B1F1B0
        if i == 0 and rank == ranks - 1:
            forward(0)
            backward(1)
        else:
            forward_backward(0, 1)
        forward_backward(1, 0)
    for _ in range(ranks - rank - 1):  # step 5: nB1F1B0
        backward(1)
        forward_backward(1, 0)
    enable_zb, step_6 = False, rank + 1  # step 6: nB1B0
    for i in range(step_6):
        if i == step_6 // 2 and rank % 2 == 1:
            enable_zb = True
        backward(1, enable_zb)
        if i == step_6 // 2 and rank % 2 == 0:
            enable_zb = True
        backward(0, enable_zb)
    for _ in range(ranks - rank - 1):  # step 7: nWB0
        weight()
        backward(0, True)
    for _ in range(rank + 1):  # step 8: nW
        weight()
    return blocks


def needs(step, path, stage):
    """What (kind, microbatch, part of the model) a pass waits for."""
    kind, microbatch, chunk = step
    part = path.part(stage, chunk)
    if kind == "F":
        return [("F", microbatch, part - 1)] if part else []
    if kind == "W":
        return [("B", microbatch, part)]
    return [("F", microbatch, part)] + ([("B", microbatch, part + 1)] if part + 1 < len(path.places) else [])


def drawn(random, stages, microbatches, chunks, shape, split):
    """A legal order of every stage: passes are drawn from those that could run, of any stage, until none is left."""
    kinds, path = "FBW" if split else "FB", Path(stages, chunks, shape)
    left = [[(kind, i, c) for kind in kinds for i in range(microbatches) for c in range(chunks)] for _ in range(stages)]
    orders, done = [[] for _ in range(stages)], set()
    eagerness = random.choice([0.1, 0.5, 0.9])  # of running a pass that frees activations
    while any(left):
        ready = [(s, step) for s in range(stages) for step in left[s] if all(need in done for need in needs(step, path, s))]
        freeing = [each for each in ready if each[1][0] != "F"]
        # Microbatches mostly in order, as schedules are.
        pool = freeing if freeing and random.random() < eagerness else ready
        earliest = min(step[1] for _, step in pool)
        stage, step = random.choice([each for each in pool if each[1][1] <= earliest + random.choice([0, 0, 1])])
        left[stage].remove(step)
        orders[stage].append(step)
        done.add((step[0], step[1], path.part(stage, step[2])))
    return orders

"""What the stages of a pipeline do, as programs for machine.py: Megatron-LM's loops and other orders of passes, with either kind of sends."""
import megatron
import orders
from machine import Machine, communicate, compute, receive, send
from passes import amount

MEGATRON = {"1f1b": megatron.forward_backward_pipelining_without_interleaving,
            "interleaved_1f1b": megatron.forward_backward_pipelining_with_interleaving}
ORDERS = {"gpipe": orders.gpipe, "zero_bubble_h1": orders.zero_bubble_h1, "zero_bubble_v": orders.zero_bubble_v}
BLOCKS = {"dualpipe": orders.dualpipe, "dualpipe_v": orders.dualpipe_v}  # of passes that run at once


def text_of(step, chunks):
    return f"{step[0]}{step[1]}" + (f".{step[2]}" if chunks > 1 else "")


def step_of(text):
    microbatch, _, chunk = text[1:].partition(".")
    return text[0], int(microbatch), int(chunk or 0)


class Immediately:
    """Wires on which a message takes no time."""

    def transfer(self, clock, source, target, size, done):
        clock.after(0, done)


class Schedule:
    """Orders of passes, and messages: what all replicas have in common."""

    def __init__(self, scenario, activation):
        parallel, training, software = scenario["parallel"], scenario["training"], scenario["software"]
        self.stages, self.chunks, self.name = parallel["pipeline"], parallel["virtual_pipeline"], parallel["schedule"]
        self.path = orders.Path.of(parallel)
        self.microbatches = training["global_batch"] // training["micro_batch"] // parallel["data"]
        self.eager = parallel["pipeline_send"] == "eager"
        scattered = {"F": (True, "activations"), "B": (True,)}
        self.message = {way: activation / (parallel["tensor"] if software["scatter_pipeline_messages"] in kinds or parallel["sequence_parallel"] else 1)
                        for way, kinds in scattered.items()}
        self.codecs = {"F": None, "B": None}
        self.blocks = self.all_blocks()
        self.orders = [[step for block in one for step in block] for one in self.blocks]
        self.last_forward = [max(i for i, step in enumerate(one) if step[0] == "F") for one in self.orders]
        self.split = any(step[0] == "W" for one in self.orders for step in one)
        self.codecs = {"F": scenario["compression"].get("pipeline_forward"), "B": scenario["compression"].get("pipeline_backward")}

    def has_loop(self):
        return isinstance(self.name, str) and self.name in MEGATRON

    def loop(self, worker):
        counts = [self.microbatches] + ([self.chunks] if self.name == "interleaved_1f1b" else [])
        return MEGATRON[self.name](CodingPointToPoint(self, worker), worker, *counts)

    def all_blocks(self):
        if isinstance(self.name, str) and self.name in BLOCKS:
            return [BLOCKS[self.name](self.stages, self.microbatches, stage) for stage in range(self.stages)]
        return [[[step] for step in one] for one in self.all_orders()]

    def all_orders(self):
        if isinstance(self.name, dict):
            return [[step_of(each) for each in one] for one in self.name["orders"]]
        if self.name in ORDERS:
            return [ORDERS[self.name](self.stages, self.microbatches, stage) for stage in range(self.stages)]
        # The order in Megatron-LM's loop: all that is left of it where messages leave by themselves.
        machine, workers = Machine(Immediately()), []
        for stage in range(self.stages):
            workers.append(Worker(self, stage, {(kind, chunk): 1 for kind in "FB" for chunk in range(self.chunks)}, machine))
            machine.play(stage, self.loop(workers[-1]))
        assert machine.run()
        return [[each[:3] for each in worker.log] for worker in workers]

    # Messages
    def is_encoded(self, tensor):
        kind, microbatch, part = tensor
        codec = self.codecs[kind]
        if not codec:
            return False
        if codec.get("messages", "all") == "all":
            return True
        stage, chunk = self.path.place(part, microbatch)
        return self.orders[stage].index((kind, microbatch, chunk)) > self.last_forward[stage]

    def coding_time(self, tensor, rate):
        return self.message[tensor[0]] / amount(self.codecs[tensor[0]][rate])

    def message_size(self, tensor):
        return self.message[tensor[0]] / (self.codecs[tensor[0]]["ratio"] if self.is_encoded(tensor) else 1)

    def needed(self, stage, step):
        """Tensors of other stages that a pass waits for, and (to whom, tensor) that it sends."""
        kind, microbatch, chunk = step
        if kind == "W":
            return [], []
        part = self.path.part(stage, chunk)
        stage_of = lambda other: self.path.place(other, microbatch)[0]
        origin, following = (part - 1, part + 1) if kind == "F" else (part + 1, part - 1)
        is_elsewhere = lambda other: 0 <= other < len(self.path.places) and stage_of(other) != stage
        return ([(kind, microbatch, origin)] if is_elsewhere(origin) else [],
                [(stage_of(following), (kind, microbatch, part))] if is_elsewhere(following) else [])

    def way(self, tensor):
        """The channel between two stages that a tensor takes: the one up or the one down the stages, round the ends."""
        rises = self.path.rises(self.path.place(tensor[2], tensor[1])[1], self.stages)
        return "up" if rises == (tensor[0] == "F") else "down"

    def received(self, stage, group):
        return [tensor for step in group for tensor in self.needed(stage, step)[0]]

    def sent(self, stage, group):
        return [each for step in group for each in self.needed(stage, step)[1]]


class CodingPointToPoint(megatron.PointToPoint):
    """Encodes what a call sends before it is posted, and decodes what it received behind it; an activation first."""

    def __init__(self, schedule, worker):
        super().__init__(worker.stage, schedule.stages, schedule.message_size)
        self.worker = worker

    def _communicate(self, send_next=None, send_prev=None, recv_prev=False, recv_next=False):
        yield from self.worker.code([send_next, send_prev], "encode_rate")
        received = yield from super()._communicate(send_next, send_prev, recv_prev, recv_next)
        yield from self.worker.code(received, "decode_rate")
        return received


class NoReduction:
    """What the passes of a stage do for the reduction of their gradients: nothing."""

    def pieces(self, step):
        """In how many pieces a pass is cut."""
        return 1

    def slowed(self, step, piece):
        """What a piece takes longer for what is reduced beside it."""
        return 0

    def after_piece(self, step, piece):
        return []

    def after_pass(self, step):
        return []


class Worker:
    """The passes of one stage, which take `times`[kind, chunk]; in a block with passes of both directions `times_at_once`[kind, chunk]."""

    def __init__(self, schedule, stage, times, machine, reduction=NoReduction(), times_at_once=None):
        self.times_at_once = times_at_once
        self.schedule, self.stage, self.times, self.machine, self.reduction = schedule, stage, times, machine, reduction
        self.forwards, self.log = [0] * schedule.chunks, []

    def program(self):
        if self.schedule.eager:
            return self.eager()
        return self.schedule.loop(self) if self.schedule.has_loop() else self.exchanges()

    def run(self, kind, microbatch, chunk, at_once=False):
        begin, step = self.machine.clock.now, (kind, microbatch, chunk)
        count = self.reduction.pieces(step)
        for piece in range(count):
            yield compute((self.times_at_once if at_once and self.times_at_once else self.times)[kind, chunk] / count)
            yield compute(self.reduction.slowed(step, piece))
            yield from self.reduction.after_piece(step, piece)
        self.log.append((kind, microbatch, chunk, begin, self.machine.clock.now))
        yield from self.reduction.after_pass(step)

    def code(self, tensors, rate):
        for tensor in tensors:
            if tensor and self.schedule.is_encoded(tensor):
                yield compute(self.schedule.coding_time(tensor, rate))

    # What Megatron-LM's loops call
    def forward(self, chunk, received):
        microbatch, part = self.forwards[chunk], chunk * self.schedule.stages + self.stage
        self.forwards[chunk] += 1
        assert received == (("F", microbatch, part - 1) if part else None), (received, microbatch, part)
        yield from self.run("F", microbatch, chunk)
        return "F", microbatch, part

    def backward(self, chunk, output, gradient):
        _, microbatch, part = output
        last = part == self.schedule.stages * self.schedule.chunks - 1
        assert gradient == (None if last else ("B", microbatch, part + 1)), (gradient, microbatch, part)
        yield from self.run("B", microbatch, chunk)
        return "B", microbatch, part

    def eager(self):
        """A pass waits for what it needs, and what it makes leaves by itself; a block of passes waits for all that they need."""
        schedule = self.schedule
        for block in schedule.blocks[self.stage]:
            for tensor in schedule.received(self.stage, block):
                yield receive(tensor)
                yield from self.code([tensor], "decode_rate")
            for step in block:
                yield from self.run(*step, at_once=block[0][0] == "F" and len(block) > 1)
            for to, tensor in schedule.sent(self.stage, block):
                yield from self.code([tensor], "encode_rate")
                yield send(to, schedule.way(tensor), tensor, schedule.message_size(tensor))

    def exchanges(self):
        """An order that has no loop of Megatron-LM's, with its exchanges (docs/schedules.md): what a pass sends and what the next one receives
        are one call where both go to the same neighbour (as send_forward_recv_backward and send_backward_recv_forward), else two."""
        schedule, groups = self.schedule, self.paired()
        for group, following in zip([[]] + groups, groups + [[]]):
            yield from self.code(schedule.received(self.stage, group), "decode_rate")
            for step in group:
                yield from self.run(*step)
            sends, receives = schedule.sent(self.stage, group), schedule.received(self.stage, following)
            yield from self.code([tensor for _, tensor in sends], "encode_rate")
            if self.one_call(group, following, sends, receives):
                yield self.call(sends, receives)
            else:
                yield self.call(sends, [])
                yield self.call([], receives)

    def paired(self):
        """With several chunks, a forward pass and the backward pass behind it share their exchange, as in Megatron-LM's interleaved loop; unless no
        forward pass comes behind a backward one (its all_warmup_microbatches)."""
        order, groups = self.schedule.orders[self.stage], []
        steady = self.schedule.chunks > 1 and "BF" in "".join(step[0] for step in order if step[0] != "W")
        for step in order:
            if steady and step[0] == "B" and groups and len(groups[-1]) == 1 and groups[-1][0][0] == "F":
                groups[-1].append(step)
            else:
                groups.append([step])
        return groups

    def one_call(self, group, following, sends, receives):
        if not sends or not receives:
            return True
        if self.schedule.chunks > 1:
            return not (group[-1][0] == "F" and following[0][0] == "B")
        to_next, from_next = sends[0][1][0] == "F", receives[0][0] == "B"
        return to_next == from_next

    def call(self, sends, receives):
        # Matched by what they carry: a drawn order may cross messages that Megatron-LM's loops never do.
        return communicate([(to, self.schedule.way(tensor), tensor, tensor, self.schedule.message_size(tensor)) for to, tensor in sends],
                           [(self.schedule.path.place(tensor[2], tensor[1])[0], self.schedule.way(tensor), tensor) for tensor in receives])


def pass_times(page, schedule, stage, layers_of_chunks):
    """{(kind, chunk): seconds} of a stage with so many layers in each chunk."""
    times = {}
    for chunk, layers in enumerate(layers_of_chunks):
        first, last = schedule.path.is_first(stage, chunk), schedule.path.is_last(stage, chunk)
        times["F", chunk] = page.forward(layers, first, last)
        times["B", chunk] = page.input_gradient(layers, first, last) if schedule.split else page.backward(layers, first, last)
        times["W", chunk] = page.weight_gradient(layers, last)
    return times


def times_at_once(page, schedule, stage, layers_of_chunks):
    """The same of passes that run beside one of the other direction through the other chunk. Their launches are counted together, and what that floor
    adds is the forward pass's."""
    times = {}
    if not schedule.split or schedule.chunks != 2:
        return times
    for chunk in range(schedule.chunks):
        parts = []
        for kind, of in (("F", chunk), ("I", 1 - chunk), ("W", 1 - chunk)):
            first, last = schedule.path.is_first(stage, of), schedule.path.is_last(stage, of)
            parts.append(page.parts(kind, layers_of_chunks[of], first, last))
        gpu = sum(part[0] for part in parts)
        times["F", chunk] = parts[0][0] + page.floored(gpu, sum(part[1] for part in parts)) - gpu
        times["B", 1 - chunk], times["W", 1 - chunk] = parts[1][0], parts[2][0]
    return times

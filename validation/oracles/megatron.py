"""Megatron-LM's pipeline loops, each as it is published, for one rank; told in our own words, call by call.

Source: megatron/schedules.py and megatron/p2p_communication.py of Megatron-LM v2.5 (commit e269e20, August 2021). The same calls in the same order
stand in both files until they move to megatron/core (commit 2514892, October 2022): what changed in between is names of tensors, shapes and memory.

A rank's `worker` computes: worker.forward(chunk, input) and worker.backward(chunk, output, gradient) are programs (machine.py) that return the
tensor which was made. Tensors are ("F" or "B", microbatch, part of the model), so that a worker notices when it is handed the wrong one.
"""
from machine import communicate


class PointToPoint:
    """megatron/p2p_communication.py of one rank. Each function is one call of _communicate(), which posts all its sends and receives with
    batch_isend_irecv() and waits for all of them."""

    def __init__(self, rank, size, message_size):
        self.rank, self.size, self.message_size = rank, size, message_size

    def is_first(self):
        return self.rank == 0

    def is_last(self):
        return self.rank == self.size - 1

    def _communicate(self, send_next=None, send_prev=None, recv_prev=False, recv_next=False):
        after, before = (self.rank + 1) % self.size, (self.rank - 1) % self.size
        sends, receives = [], []
        if send_prev is not None:
            sends.append((before, "backward", None, send_prev, self.message_size(send_prev)))
        if recv_prev:
            receives.append((before, "forward", None))
        if send_next is not None:
            sends.append((after, "forward", None, send_next, self.message_size(send_next)))
        if recv_next:
            receives.append((after, "backward", None))
        came = iter((yield communicate(sends, receives)))
        return (next(came) if recv_prev else None), (next(came) if recv_next else None)

    def recv_forward(self):
        if self.is_first():
            return None
        return (yield from self._communicate(recv_prev=True))[0]

    def recv_backward(self):
        if self.is_last():
            return None
        return (yield from self._communicate(recv_next=True))[1]

    def send_forward(self, output):
        if not self.is_last():
            yield from self._communicate(send_next=output)

    def send_backward(self, gradient):
        if not self.is_first():
            yield from self._communicate(send_prev=gradient)

    def send_forward_recv_backward(self, output):
        if self.is_last():
            return None
        return (yield from self._communicate(send_next=output, recv_next=True))[1]

    def send_backward_recv_forward(self, gradient):
        if self.is_first():
            return None
        return (yield from self._communicate(send_prev=gradient, recv_prev=True))[0]

    def send_forward_recv_forward(self, output, recv_prev):
        return (yield from self._communicate(send_next=output, recv_prev=recv_prev))[0]

    def send_backward_recv_backward(self, gradient, recv_next):
        return (yield from self._communicate(send_prev=gradient, recv_next=recv_next))[1]

    def send_forward_backward_recv_forward_backward(self, output, gradient, recv_prev, recv_next):
        return (yield from self._communicate(output, gradient, recv_prev, recv_next))


def forward_backward_pipelining_without_interleaving(p2p, worker, num_microbatches):
    """1F1B: megatron/schedules.py, v2.5."""
    warmup = min(p2p.size - p2p.rank - 1, num_microbatches)
    remaining = num_microbatches - warmup
    outputs = []

    for _ in range(warmup):
        received = yield from p2p.recv_forward()
        output = yield from worker.forward(0, received)
        yield from p2p.send_forward(output)
        outputs.append(output)

    if remaining > 0:
        received = yield from p2p.recv_forward()

    for i in range(remaining):
        last_iteration = i == remaining - 1
        output = yield from worker.forward(0, received)
        gradient = yield from p2p.send_forward_recv_backward(output)
        outputs.append(output)
        made = yield from worker.backward(0, outputs.pop(0), gradient)
        if last_iteration:
            yield from p2p.send_backward(made)
        else:
            received = yield from p2p.send_backward_recv_forward(made)

    for _ in range(warmup):
        gradient = yield from p2p.recv_backward()
        made = yield from worker.backward(0, outputs.pop(0), gradient)
        yield from p2p.send_backward(made)


def forward_backward_pipelining_with_interleaving(p2p, worker, num_microbatches, num_model_chunks):
    """Interleaved 1F1B: megatron/schedules.py, v2.5. Megatron-LM refuses it for two stages (megatron/arguments.py), where its two neighbours are one."""
    size, rank, chunks = p2p.size, p2p.rank, num_model_chunks
    total = num_microbatches * chunks
    all_warmup = num_microbatches == size
    warmup = total if all_warmup else min((size - rank - 1) * 2 + (chunks - 1) * size, total)
    remaining = total - warmup
    inputs, outputs, gradients = ([[] for _ in range(chunks)] for _ in range(3))

    def chunk_of(k, forward):
        chunk = k % (size * chunks) // size
        return chunk if forward else chunks - chunk - 1

    def begins_model(chunk):
        return p2p.is_first() and chunk == 0

    def ends_model(chunk):
        return p2p.is_last() and chunk == chunks - 1

    def forward_step_helper(k):
        chunk = chunk_of(k, True)
        if begins_model(chunk) and len(inputs[chunk]) == len(outputs[chunk]):
            inputs[chunk].append(None)
        output = yield from worker.forward(chunk, inputs[chunk][-1])
        outputs[chunk].append(output)
        return None if ends_model(chunk) else output

    def backward_step_helper(k):
        chunk = chunk_of(k, False)
        if ends_model(chunk) and not gradients[chunk]:
            gradients[chunk].append(None)
        inputs[chunk].pop(0)
        made = yield from worker.backward(chunk, outputs[chunk].pop(0), gradients[chunk].pop(0))
        return None if begins_model(chunk) else made

    inputs[0].append((yield from p2p.recv_forward()))
    for k in range(warmup):
        output = yield from forward_step_helper(k)
        following = chunk_of(k + 1, True)
        recv_prev = not (p2p.is_first() and following == 0) and k != total - 1
        if k == warmup - 1 and not all_warmup:
            received, gradient = yield from p2p.send_forward_backward_recv_forward_backward(
                output, None, recv_prev=recv_prev, recv_next=not p2p.is_last())
            gradients[chunks - 1].append(gradient)
        else:
            received = yield from p2p.send_forward_recv_forward(output, recv_prev)
        inputs[following].append(received)

    for k in range(remaining):
        forward_k = k + warmup
        output = yield from forward_step_helper(forward_k)
        made = yield from backward_step_helper(k)

        recv_prev = True
        if p2p.is_first():  # it is size - 1 passes ahead of the last stage
            following_forward = chunk_of(forward_k - (size - 1), True)
            recv_prev = following_forward != chunks - 1
            following_forward += 1
        else:
            following_forward = chunk_of(forward_k + 1, True)
        recv_next = True
        if p2p.is_last():  # it is size - 1 passes ahead of the first stage
            following_backward = chunk_of(k - (size - 1), False)
            recv_next = following_backward != 0
            following_backward -= 1
        else:
            following_backward = chunk_of(k + 1, False)
        if k == remaining - 1:
            recv_prev = False

        received, gradient = yield from p2p.send_forward_backward_recv_forward_backward(output, made, recv_prev, recv_next)
        if recv_prev:
            inputs[following_forward].append(received)
        if recv_next:
            gradients[following_backward].append(gradient)

    if all_warmup:
        gradients[chunks - 1].append((yield from p2p.recv_backward()))
    for k in range(remaining, total):
        made = yield from backward_step_helper(k)
        following = chunk_of(k + 1, False)
        recv_next = not (p2p.is_last() and following == chunks - 1) and k != total - 1
        gradients[following].append((yield from p2p.send_backward_recv_backward(made, recv_next)))

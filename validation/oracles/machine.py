"""Plays the programs of devices, which are generators, against a network.

A program yields operations; each is called with the machine, the device's number and what to call when it is done:

    compute(seconds)                 busy for so long
    send(to, way, tensor, size)      the message leaves by itself; does not wait
    receive(tensor)                  waits until the message has arrived
    communicate(sends, receives)     posted together; each message starts when both ends have posted it; waits for all of them,
                                     and the tensors that came are the value of the `yield`
    ring(name)                       enters a collective; waits until it has ended for all members
    fork(program)                    another stream of the device
    happened(event), wait(event)     between streams

`way` tells what goes to the next stage from what goes to the previous one, where both are the same device. Messages from one device to another, one way,
go one after the other, in the order in which they were ready.
"""
import collections
import heapq
import itertools


class Clock:
    """Actions in the order of their times. Times that only rounding tells apart are one: a difference between flows that should end together would
    else grow with every link that they share."""

    SAME = 1e-13  # of the time since the beginning

    def __init__(self):
        self.now, self.queue, self.order = 0.0, [], itertools.count()

    def after(self, delay, action):
        heapq.heappush(self.queue, (self.now + delay, next(self.order), action))

    def run(self):
        while self.queue:
            time, _, action = heapq.heappop(self.queue)
            if time > self.now * (1 + self.SAME):
                self.now = time
            action()


def compute(seconds):
    return lambda machine, device, done: machine.clock.after(seconds, done)


def send(to, way, tensor, size):
    def start(machine, device, done):
        machine.transfer((device, to, way), size, lambda: machine.arrive((to, tensor)))
        done()
    return start


def receive(tensor):
    return lambda machine, device, done: machine.on_arrival((device, tensor), done)


def wait(event):
    return lambda machine, device, done: machine.on_arrival((device, event), done)


def happened(event):
    def start(machine, device, done):
        machine.arrive((device, event))
        done()
    return start


def fork(program):
    def start(machine, device, done):
        machine.play(device, program)
        done()
    return start


def ring(name):
    return lambda machine, device, done: machine.rings.enter(name, done)


def communicate(sends, receives):
    """`sends`: (peer, way, mark, tensor, size); `receives`: (peer, way, mark). Messages with one mark are matched in the order they are posted."""
    def start(machine, device, done):
        left, came = [len(sends) + len(receives)], [None] * len(receives)

        def one_less():
            left[0] -= 1
            if left[0] == 0:
                done(came)

        def receiver(place):
            def arrived(tensor):
                came[place] = tensor
                one_less()
            return arrived

        for peer, way, mark, tensor, size in sends:
            machine.post((device, peer, way, mark), "send", (tensor, size, one_less))
        for place, (peer, way, mark) in enumerate(receives):
            machine.post((peer, device, way, mark), "receive", receiver(place))
        if not left[0]:
            done(came)
    return start


class Rings:
    """Collectives by name: `members` says how many enter each; `play(clock, name, done)` plays one that all have entered."""

    def __init__(self, clock, members, play):
        self.clock, self.members, self.play = clock, members, play
        self.entered = collections.defaultdict(list)

    def enter(self, name, done):
        self.entered[name].append(done)
        if len(self.entered[name]) == self.members[name]:
            everyone = self.entered.pop(name)
            self.play(self.clock, name, lambda: [each() for each in everyone])


class Machine:
    """The devices of one replica. `network.transfer(clock, source, target, size, done)` moves a message that has its channel to itself."""

    def __init__(self, network, clock=None, rings=None):
        self.network, self.clock, self.rings = network, clock or Clock(), rings
        self.channels = collections.defaultdict(collections.deque)
        self.posted = collections.defaultdict(lambda: {"send": collections.deque(), "receive": collections.deque()})
        self.arrived, self.waiting = set(), {}
        self.unfinished = 0

    def play(self, device, program):
        self.unfinished += 1

        def step(value=None):
            try:
                operation = program.send(value)
            except StopIteration:
                self.unfinished -= 1
            else:
                operation(self, device, step)
        step()

    def run(self):
        """Returns when nothing is left to happen, and says whether every program came to its end."""
        self.clock.run()
        return self.unfinished == 0

    def transfer(self, way, size, done):
        channel = self.channels[way]
        channel.append((size, done))
        if len(channel) == 1:
            self.next_transfer(way)

    def next_transfer(self, way):
        channel = self.channels[way]
        size, done = channel[0]

        def ended():
            channel.popleft()
            if channel:
                self.next_transfer(way)
            done()
        self.network.transfer(self.clock, way[0], way[1], size, ended)

    def post(self, match, side, what):
        """The first send and the first receive of a match that are left go together, as NCCL pairs them."""
        posted = self.posted[match]
        posted[side].append(what)
        while posted["send"] and posted["receive"]:
            tensor, size, sent = posted["send"].popleft()
            received = posted["receive"].popleft()

            def done(tensor=tensor, sent=sent, received=received):
                received(tensor)
                sent()
            self.transfer(match[:3], size, done)

    def arrive(self, key):
        self.arrived.add(key)
        for done in self.waiting.pop(key, []):
            done()

    def on_arrival(self, key, done):
        if key in self.arrived:
            done()
        else:
            self.waiting.setdefault(key, []).append(done)

#!/usr/bin/env python3
"""Tests of the oracles: each meets a result that is known, and notices when the program says something else.

  validation/oracles/self_test.py PROGRAM
"""
import collections
import pathlib
import random
import sys
import tempfile
import types
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, str(pathlib.Path(__file__).resolve().parent))
import closed_forms  # noqa: E402
import fluid  # noqa: E402
import pipeline  # noqa: E402
import search  # noqa: E402
from machine import Clock, Machine, Rings, communicate, compute, happened, wait  # noqa: E402
from network import Fluid, fair_rates  # noqa: E402
from passes import Page  # noqa: E402
from program import Program  # noqa: E402
from stages import Schedule, Worker  # noqa: E402


class Wires:
    """Every message takes `hop`."""

    def __init__(self, hop):
        self.hop = hop

    def transfer(self, clock, source, target, size, done):
        clock.after(self.hop, done)


def makespan(schedule, send, stages, microbatches, chunks=1, hop=0.0, forward=1.0, backward=2.0):
    """Of equal stages, each chunk an equal part."""
    scenario = {"parallel": {"pipeline": stages, "virtual_pipeline": chunks, "schedule": schedule, "data": 1, "tensor": 1, "pipeline_send": send,
                             "sequence_parallel": False},
                "training": {"global_batch": microbatches, "micro_batch": 1}, "software": {"scatter_pipeline_messages": False}, "compression": {}}
    plan, machine = Schedule(scenario, 1.0), Machine(Wires(hop))
    for stage in range(stages):
        times = {(kind, chunk): time / chunks for kind, time in (("F", forward), ("B", backward), ("W", backward)) for chunk in range(chunks)}
        machine.play(stage, Worker(plan, stage, times, machine).program())
    assert machine.run()
    return machine.clock.now


class KnownResults(unittest.TestCase):
    def test_interleaved_pipelines_have_the_published_bubble_with_both_kinds_of_sends(self):
        # Narayanan et al. 2021, 2.2.2: m (F + B) (1 + (p-1)/(v m)); p = 4, m = 8, v = 2, F + B = 6 ms a stage of two chunks: 57.0 ms.
        for send in ("eager", "blocking_pairs"):
            self.assertAlmostEqual(makespan("interleaved_1f1b", send, 4, 8, 2, forward=2.0, backward=4.0), 57.0, places=12)

    def test_one_f_one_b_takes_its_closed_form(self):
        # docs/model.md, section 7, with p = 4, m = 8, F + B = 3, c = 0.01.
        p, m, c = 4, 8, 0.01
        self.assertAlmostEqual(makespan("1f1b", "eager", p, m, hop=c), (m + p - 1) * 3 + c * (2 * (p - 1) * m / p + 2 * (p - 2)), places=12)
        self.assertAlmostEqual(makespan("1f1b", "blocking_pairs", p, m, hop=c), (m + p - 1) * 3 + c * (2 * m + 2 * p - 5), places=12)

    def test_gpipe_and_zero_bubble_have_their_bubbles(self):
        self.assertAlmostEqual(makespan("gpipe", "eager", 4, 8), (8 + 3) * 3, places=12)
        # Qi et al. 2024, 2.1: m (F + B + W) + (p-1)(F + B - W), with F = B = W = 1.
        self.assertAlmostEqual(makespan("zero_bubble_h1", "eager", 4, 8, forward=1, backward=1), 8 * 3 + 3, places=12)
        # The same, section 6, two chunks in a V: no stage idles once it has begun, and stage i begins i passes of a chunk late.
        self.assertAlmostEqual(makespan("zero_bubble_v", "eager", 4, 8, 2, forward=2, backward=2), 8 * 6 + 3, places=12)

        # DeepSeek-V3, arXiv:2412.19437, table 2: idle (p/2 - 1)(F&B + B - 3 W) = 3 + 2 - 3, with 1 a pass of a chunk and W among B and F&B.
        self.assertAlmostEqual(makespan("dualpipe", "eager", 4, 8, 2, forward=2, backward=2), 8 * 3 + 2, places=12)

    def test_sends_that_wait_for_each_other_never_end(self):
        def program(peer):
            yield communicate([(peer, "F", "first", "x", 1)], [])
            yield communicate([], [(peer, "F", "first")])
        machine = Machine(Wires(1.0))
        for device in (0, 1):
            machine.play(device, program(1 - device))
        self.assertFalse(machine.run())

    def test_flows_share_links_max_min_fairly(self):
        # Bertsekas & Gallager, section 6.5.2: a full link holds its flows back, and what they leave is for the others.
        self.assertEqual(fair_rates([("a", "b"), ("a",), ("b",)], {"a": 1.0, "b": 3.0}), [0.5, 0.5, 2.5])

    def test_a_flow_speeds_up_when_another_ends(self):
        # 1 and 2 bytes over 1 byte/s: the first ends at 2, then the second has the link alone until 3.
        clock, ends = Clock(), []
        flows = Fluid(clock, {"a": 1.0})
        for size in (1.0, 2.0):
            flows.start(("a",), size, lambda: ends.append(clock.now))
        clock.run()
        self.assertEqual(ends, [2.0, 3.0])

    def test_layers_that_gather_ahead_take_what_two_streams_take(self):
        # docs/model.md, section 6, where collectives take no multiprocessors: the layers' passes, and beside them a stream of gathers and scatters, one layer ahead.
        source, page = random.Random(1), Page.__new__(Page)
        page.software, page.device, page.parallel = {}, {"collective_multiprocessors": 0, "multiprocessors": 1}, {"zero_prefetch": 1}
        page.span = lambda f, collectives, kind: page.slowed(f, collectives)  # one way of tensor parallelism
        page.tail = lambda f, collectives, kind: 0
        for _ in range(50):
            layers, f, g, s = source.randint(1, 5), source.random(), source.random(), source.choice([0, source.random()])

            def passes():
                for layer in range(layers):
                    yield wait(("gathered", layer))
                    yield happened(("begins", layer))
                    yield compute(f)
                    yield happened(("ends", layer))

            def scatter(layer):
                yield wait(("ends", layer))
                yield compute(s)

            def collectives():
                for layer in range(layers):
                    if layer:
                        yield wait(("begins", layer - 1))
                    if layer > 1:
                        yield from scatter(layer - 2)
                    yield compute(g)
                    yield happened(("gathered", layer))
                yield wait(("begins", layers - 1))
                for layer in range(max(0, layers - 2), layers):
                    yield from scatter(layer)
            machine = Machine(Wires(0.0))
            machine.play(0, passes())
            machine.play(0, collectives())
            self.assertTrue(machine.run())
            self.assertAlmostEqual(layers * f + page.waits(layers, f, g, s, "B"), machine.clock.now, places=12)

    def test_layers_gathered_two_ahead_leave_the_stream_to_scatters_sooner(self):
        # By hand: three layers of 1 s, gathers and scatters of 0.9 s. Backward, one ahead: 0.9 + 1 + 1.8 + 1 + 0.9 s; two ahead: gathers end at 2.7 s, the
        # scatters of layers that end at 1.9, 2.9 and 3.9 s follow. Not ahead: 3 (1 + 1.8) s. The rest of the pass: 0.5 s and 2 s.
        for prefetch, forward, backward in ((0, 2.5 + 3 * 1.9, 2.5 + 3 * 2.8), (1, 2.5 + 3.9, 2.5 + 5.6), (2, 2.5 + 3.9, 2.5 + 5.4)):
            page = Page.__new__(Page)
            page.software, page.parallel = {"launch": {"sharpness": 1}}, {"zero_prefetch": prefetch}
            page.device = {"collective_multiprocessors": 0, "multiprocessors": 1}
            page.span = lambda f, collectives, kind, page=page: page.slowed(f, collectives)  # one way of tensor parallelism
            page.tail = lambda f, collectives, kind: 0
            self.assertAlmostEqual(3 + page.waits(3, 1.0, 0.9, 0.9, "B"), backward - 2.5, places=12)
            page.sharded = lambda kind, layers: (1.0, 0.9, 0.9 * (kind == "B"), 0.5, 0.25, 0.75)  # sharpness 1: launches last 0.75 s behind all else
            schedule = types.SimpleNamespace(chunks=1, split=False)
            job = types.SimpleNamespace(layers=lambda stage: 3, parallel=page.parallel, schedule=schedule)
            for kind, expected in (("F", forward), ("B", backward)):
                clock = Clock()
                rings = Rings(clock, collections.defaultdict(lambda: 1), lambda clock, name, done: clock.after(2.0 if name[2] == "edges" else 0.9, done))
                machine = Machine(Wires(0.0), clock, rings)
                machine.play(0, fluid.ShardedWorker(job, page, schedule, 0, {}, machine).run(kind, 0, 0))
                self.assertTrue(machine.run())
                self.assertAlmostEqual(clock.now, 0.25 + expected + 0.75, places=12)


class Liar(Program):
    """A program of which one figure is off by two parts in 1e9, or by two nanoseconds in its trace."""

    def __init__(self, path, folder, lie):
        super().__init__(path, folder)
        self.lie, self.lied = lie, False

    def bend(self, document, lie):
        *way, key = lie.split("/")
        for each in way:
            document = document[int(each)] if isinstance(document, list) else document[each]
        if key in document and document[key]:
            document[key] *= 1 + 2e-9
            self.lied = True

    def run(self, scenario, *options):
        report = super().run(scenario, *options)
        if self.lie.startswith("report/"):
            self.bend({"report": report}, self.lie)
        return report

    def traced(self, scenario):
        report, passes = super().traced(scenario)
        if self.lie == "trace" and passes:
            latest = max(passes, key=passes.get)
            passes[latest] = tuple(time + 2e-9 for time in passes[latest])
            self.lied = True
        return report, passes

    def rank(self, scenario, top):
        result = super().rank(scenario, top)
        if self.lie.startswith("rank/") and result["plans"]:
            self.bend({"rank": result}, self.lie)
        return result


class Lies(unittest.TestCase):
    """Each figure that an oracle compares: with it off by a little, the oracle says so; as it is, it says nothing."""
    program = None

    def told(self, oracle, lies, cases):
        unnoticed = []
        for lie in lies:
            lied = False
            for case in range(cases):
                source = random.Random(f"self test {case}")
                scenario = oracle.draw(source)
                with tempfile.TemporaryDirectory() as folder:
                    liar = Liar(self.program, folder, lie)
                    found = oracle.check(liar, scenario, source)
                self.assertEqual(bool(found.differences), liar.lied, f"{oracle.__name__} {case} {lie}: {found.differences[:1]}")
                lied |= liar.lied
                if lied:
                    break
            if not lied:
                unnoticed.append(lie)
        self.assertEqual(unnoticed, [])

    def test_of_pipelines(self):
        self.told(pipeline, ["report/iteration_time_s", "trace"], 20)

    def test_of_contention(self):
        self.told(fluid, ["report/iteration_time_s"], 2)

    def test_of_bytes_and_work_and_memory(self):
        traffic = ["pipeline_forward", "pipeline_backward", "data_gradients", "zero_gather", "zero_scatter", "tensor_activations", "embedding_sync"]
        memory = ["parameters", "activation_per_microbatch", "microbatches_in_flight", "weights", "optimizer", "allocated", "reserved", "context", "required"]
        rates = ["samples_per_s", "tokens_per_s", "model_tflops_per_gpu", "hardware_tflops_per_gpu", "mfu", "hfu"]
        self.told(closed_forms, [f"report/traffic_bytes/{each}" for each in traffic] + [f"report/memory/per_stage/0/{each}" for each in memory] +
                  [f"report/{each}" for each in rates] + ["report/messages/pipeline_backward/uncompressed"], 20)

    def test_of_searches(self):
        self.told(search, ["rank/plans/0/iteration_time_s", "report/iteration_time_s"], 20)


if __name__ == "__main__":
    Lies.program = pathlib.Path(sys.argv.pop(1)).resolve()
    unittest.main()

#!/usr/bin/env python3
"""Tests the generator of scenarios itself: that it draws all there is, and notices a program that breaks a promise.

  tools/scenario_generator_test.py
"""
import json
import pathlib
import sys
import tempfile
import unittest

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tools"), str(ROOT / "tools/generator")]
from left_out import LEFT_OUT, left_out  # noqa: E402
from promises import CHECKS_IN_PROCESS, IN_PROCESS, Broken, Promises, Refused, Runner  # noqa: E402
from scenario_generator import Generator  # noqa: E402
from shrink import shrink  # noqa: E402

DRAWS = 3000  # each key of the schema is drawn in some of so many scenarios


def keys_of(value, pointer=""):
    """Every key of a document as a pointer, N for a place in a list."""
    for key, each in value.items() if isinstance(value, dict) else ():
        yield f"{pointer}/{key}"
        yield from keys_of(each, f"{pointer}/{key}")
    for each in value if isinstance(value, list) else ():
        yield from keys_of(each, f"{pointer}/N")


class Drawing(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.generator = Generator(seed=1)
        cls.features, cls.drawn = [], set()
        draw = cls.generator.features.draw
        cls.generator.features.draw = lambda: cls.features.append(draw()) or cls.features[-1]
        for number in range(DRAWS):
            for document in cls.generator.draw(number):
                cls.drawn.update(keys_of(document))

    def test_every_key_of_the_schema_is_drawn_or_left_out_with_a_reason(self):
        missing = [key for key in self.generator.schema.keys if key not in self.drawn and not left_out(key)]
        self.assertEqual(missing, [])

    def test_every_key_that_is_left_out_is_one_of_the_schema(self):
        known = set(self.generator.schema.keys)
        known |= {key.rsplit("/", 1)[1] for key in known}
        self.assertEqual([key for key in LEFT_OUT if key not in known], [])

    def test_no_key_that_is_left_out_is_drawn(self):
        self.assertEqual([key for key in LEFT_OUT if key in self.drawn], [])

    def test_every_value_of_every_feature_is_drawn(self):
        for name, values in self.generator.features.values.items():
            drawn = {str(features[name]) for features in self.features}
            self.assertEqual([value for value in values if str(value) not in drawn], [], name)

    def test_the_same_seed_draws_the_same(self):
        one, other = Generator(seed=7), Generator(seed=7)
        self.assertEqual([one.draw(number) for number in (3, 4)], [other.draw(number) for number in (4, 3)][::-1])


class Shrinking(unittest.TestCase):
    def test_what_does_not_matter_goes(self):
        document = {"a": {"b": 1, "c": [1, {"d": 2, "e": 3}]}, "f": 4}
        small = shrink(document, lambda d: d.get("a", {}).get("c", [{}])[-1:] != [] and "d" in str(d))
        self.assertEqual(small, {"a": {"c": [{"d": 2}]}})


REPORT = {
    "name": "drawn", "iteration_time_s": 3.0, "iteration_time_interval_s": [2.5, 3.5], "breakdown_s": {"compute": 2.0, "other": 1.0},
    "stage_times_s": [{"stage": 0, "end": 3.0, "compute": 2.0, "other": 1.0}], "links": {"in_use": 0},
    "memory": {"capacity_bytes": 100, "max_bytes": 60, "fits": True, "worst_stage": 0, "per_stage": [
        {"weights": 10, "gradients": 10, "optimizer": 10, "activations": 10, "buffers": 10, "allocated": 50, "total": 60, "required": 60,
         "usable": 90, "tensors": [{"bytes": 30, "count": 3}, {"bytes": 20, "count": 1}]}]},
    "engine": {"wall_s": 1}}


class Promised(unittest.TestCase):
    """A program that prints what it is told to, in place of ours."""

    def setUp(self):
        self.folder = tempfile.TemporaryDirectory()
        self.addCleanup(self.folder.cleanup)
        self.path = pathlib.Path(self.folder.name)
        self.generator = Generator(seed=1)

    def broken(self, script, report=None, number=2, parallel=None):
        """What breaks in case `number` when `script` runs in place of the program; $report is a file with the report."""
        (self.path / "report.json").write_text(json.dumps(report or REPORT))
        program = self.path / "program"
        program.write_text(f"#!/bin/sh\nreport={self.path}/report.json\n{script}\n")
        program.chmod(0o755)
        document = {"version": 1, "platform": "selene-a100", "software": "nemo-2024", "model": {}, "training": {"global_batch": 1, "micro_batch": 1}, "parallel": parallel or {}}
        try:
            Promises(Runner(str(program), ROOT, self.path), self.generator.library).check(document, {}, number)
        except Broken as broken:
            return broken.what
        except Refused as refused:
            return f"refused: {refused}"
        return None

    def changed(self, **values):
        return self.broken("cat $report", {**REPORT, **values})

    def test_a_program_that_keeps_its_promises(self):
        self.assertIsNone(self.broken("cat $report"))

    def test_exit_codes(self):
        self.assertEqual(self.broken("echo 'a/b.cpp:12: oh' >&2; exit 4"), "run: exit code 4 b.cpp:12")
        self.assertEqual(self.broken("kill -SEGV $$"), "run: exit code -11")
        self.assertEqual(self.broken("exit 3"), "run: exit code 3")
        self.assertEqual(self.broken("exit 2"), "run: exit code 2 without a message")
        self.assertEqual(self.broken("echo 'f:1:1: error: tensor is too large at /parallel/tensor' >&2; exit 2"),
                         "refused: f:1:1: error: tensor is too large at /parallel/tensor")
        self.assertEqual(self.broken("echo 'f:1:1: error: tensor is too large' >&2; exit 2"), "run: exit code 2 without a message")
        self.assertEqual(self.broken("cat $report; exit 1"), "the exit code contradicts `fits`")

    def test_times(self):
        self.assertEqual(self.changed(breakdown_s={"compute": 2.0, "other": 1.1}), "the breakdown does not add up")
        self.assertEqual(self.changed(breakdown_s={"compute": 3.5, "other": -0.5}), "a line of the breakdown is negative")
        self.assertEqual(self.changed(iteration_time_interval_s=[3.1, 3.5]), "the interval does not hold the time")

    def test_numbers(self):
        self.assertEqual(self.broken("sed s/2.5/NaN/ $report"), "a number is not finite: /iteration_time_interval_s/N")
        self.assertEqual(self.broken("echo {"), "--json prints no JSON")

    def test_memory(self):
        self.assertEqual(self.changed(memory={**REPORT["memory"], "fits": False}), "`fits` contradicts the bytes")
        self.assertEqual(self.changed(memory={**REPORT["memory"], "max_bytes": 50}), "max_bytes is not the largest stage's total")
        self.assertEqual(self.broken("sed 's/: 30, \"count/: 31, \"count/' $report"), "a stage's tensors do not add up")
        self.assertEqual(self.broken("sed 's/: 30, \"count\": 3/: 30, \"count\": 0/' $report"), "a tensor holds nothing")

    def test_the_same_bytes_twice(self):
        self.assertEqual(self.broken("sed s/drawn/$$/ $report", number=1), "the same scenario gives other bytes")

    def test_faster_hardware(self):
        slow = json.dumps({**REPORT, "iteration_time_s": 3.1})
        self.assertEqual(self.broken(f"case $2 in faster.json) echo '{slow}';; *) cat $report;; esac", number=3), "slower with a faster links in a node")

    def test_jobs_of_replicas_that_are_cut_otherwise(self):
        script = """case $1 in job) case $(cat degrees.json) in *'"parallel": {"context": 4'*) echo '{"days": 2}';; *) echo '{"days": DAYS}';; esac;;
                    *) cat $report;; esac"""
        number = IN_PROCESS * (CHECKS_IN_PROCESS.index("check_degrees") + 1) - 1
        broken = lambda days: self.broken(script.replace("DAYS", days), number=number, parallel={"pipeline": 2, "context": 2})  # noqa: E731
        self.assertIsNone(broken("2"))
        self.assertEqual(broken("3"), "job: other days with context in place of pipeline")


if __name__ == "__main__":
    unittest.main()

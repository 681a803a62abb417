"""The module does what the program does, and what its pages say."""

import contextlib
import io
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
import unittest
from pathlib import Path

import windtunnel as wt

ROOT = Path(os.environ["WINDTUNNEL_ROOT"])
PROGRAM = os.environ["WINDTUNNEL"]
GPT_39B = ROOT / "scenarios" / "gpt-39b-512xa100.json"


def program(*arguments):
    done = subprocess.run([PROGRAM, *map(str, arguments)], capture_output=True, text=True, check=True, cwd=ROOT)
    return done.stdout


def without_wall(document):
    document["engine"].pop("wall_s")
    document.pop("version", None)
    return document


class Simulate(unittest.TestCase):
    def test_a_report_is_what_run_prints(self):
        for name in ("gpt-39b-512xa100", "gpt-2.5b-uneven-links", "optimus-cc-2.5b-cb-fe-sc"):
            printed = json.loads(program("run", name, "--json", "--quiet", "--engine", "native"))
            self.assertEqual(without_wall(wt.simulate(name).to_dict()), without_wall(printed))

    def test_values_are_set_as_on_the_command_line(self):
        values = {"/training/micro_batch": 2, "/platform/node_types/0/nic_rate": "50 Gbps"}
        printed = json.loads(program("run", GPT_39B, "--json", "--quiet", "--engine", "native", "--set", "/training/micro_batch=2",
                                     "--set", "/platform/node_types/0/nic_rate=50 Gbps"))
        self.assertEqual(wt.simulate(GPT_39B, set=values).iteration_time_s, printed["iteration_time_s"])

    def test_a_dict_is_a_scenario(self):
        as_file = json.loads(re.sub(r"^\s*//.*$", "", GPT_39B.read_text(), flags=re.M))
        self.assertEqual(wt.simulate(as_file).iteration_time_s, wt.simulate(GPT_39B).iteration_time_s)

    def test_a_scenario_is_changed_without_changing_the_first(self):
        base = wt.Scenario(GPT_39B)
        changed = base.with_(training={"micro_batch": 2}).with_({"/parallel/schedule": "gpipe"})
        self.assertEqual(changed.to_dict()["training"]["micro_batch"], 2)
        self.assertEqual(changed.to_dict()["parallel"]["schedule"], "gpipe")
        self.assertEqual(base.to_dict()["training"]["micro_batch"], 4)
        self.assertNotEqual(changed.simulate().iteration_time_s, base.simulate().iteration_time_s)

    def test_engines(self):
        native = wt.simulate(GPT_39B)
        simgrid = wt.simulate(GPT_39B, engine="simgrid")
        self.assertAlmostEqual(native.iteration_time_s / simgrid.iteration_time_s, 1, delta=1e-9)
        with self.assertRaisesRegex(wt.UnsupportedError, "once in a process"):
            wt.simulate(GPT_39B, engine="simgrid")
        with self.assertRaisesRegex(wt.InputError, "native, simgrid, heap"):
            wt.simulate(GPT_39B, engine="fast")

    def test_what_has_no_end_is_refused(self):
        endless = {}
        endless["model"] = endless
        in_list = []
        in_list.append(in_list)

        class Endless:
            def tolist(self):
                return [self]

        for value in (endless, {"parallel": in_list}, {"nodes": Endless()}):
            with self.assertRaisesRegex(wt.InputError, "nested deeper than 200 levels"):
                wt.simulate(value)
        with self.assertRaisesRegex(wt.InputError, "nested deeper than 200 levels"):
            wt.simulate(GPT_39B, set={"/parallel": in_list})

    def test_every_mistake_is_an_error_of_this_module(self):
        for scenario, options in (
            ({1: 2}, {}), ({"name": "\ud800"}, {}), ({"\ud800": 1}, {}), (GPT_39B, {"set": {1: 2}}), (GPT_39B, {"set": {"\ud800": 2}}),
            (GPT_39B, {"set": {"nodes": 2}}), (GPT_39B, {"set": {"": 2}}), (GPT_39B, {"set": {"/": 2}}), (GPT_39B, {"set": {"/extends": "x"}}),
            (GPT_39B, {"seed": -1}), (GPT_39B, {"seed": 2**64}), (GPT_39B, {"seed": 0.5}), (GPT_39B, {"engine": []})):
            with self.assertRaises(wt.InputError, msg=repr((scenario, options))):
                wt.simulate(scenario, **options)
        for options in ({"top": -1}, {"top": 0}, {"top": 2**40}, {"threads": -1}, {"threads": 10**9}, {"threads": "many"}):
            with self.assertRaises(wt.InputError, msg=repr(options)):
                wt.rank(GPT_39B, **options)
        with self.assertRaises(wt.WindtunnelError):
            wt.simulate(os.fsdecode(b"/no/such\xff/file.json"))

    def test_ctrl_c_ends_long_work_at_once(self):
        script = textwrap.dedent("""
            import sys, time, windtunnel as wt
            model = {"family": "gpt", "layers": 504, "hidden": 64, "heads": 1, "sequence": 64, "vocab": 64}
            long = {"version": 1, "model": model, "platform": "selene-a100", "training": {"global_batch": 30000, "micro_batch": 1},
                    "parallel": {"tensor": 1, "pipeline": 504, "data": 1, "schedule": "gpipe"}}
            for_ever = {"simulate": lambda: wt.simulate(long), "timeline": lambda: wt.simulate(long, {"/training/global_batch": 20000}, timeline=True),
                        "rank": lambda: wt.rank(long), "explain": lambda: wt.explain(long, {"/training/global_batch": 6000}), "validate": lambda: [wt.validate() for _ in range(1000)],
                        "read": lambda: [wt.simulate(long, {"/training/global_batch": 504, "/parallel/schedule": "1f1b"}) for _ in range(1000)],
                        "sweep": lambda: wt.sweep(long, {"/sweep/matrix": {"/training/global_batch": list(range(20000, 20100))}}),
                        "job": lambda: wt.job("job-llama3-405b-16384xh100", draws=10**6), "codec": lambda: wt.codec(synthetic="gradient", rows=8192, columns=8192),
                        "compare": lambda: wt.compare(long, wt.Scenario(long).with_({"/training/global_batch": 20000}))}
            print("begin", flush=True)
            try:
                for_ever[sys.argv[1]]()
            except KeyboardInterrupt:
                print("interrupted")
        """)
        for work in ("simulate", "timeline", "rank", "explain", "validate", "read", "sweep", "job", "codec", "compare"):
            with self.subTest(work), subprocess.Popen([sys.executable, "-c", script, work], stdout=subprocess.PIPE, text=True) as process:
                process.stdout.readline()
                time.sleep(1)
                begin = time.monotonic()
                process.send_signal(signal.SIGINT)
                self.assertEqual(process.stdout.read(), "interrupted\n")
                self.assertLess(time.monotonic() - begin, 10)  # of a machine with other work; some 40 without the checks

    def test_threads_give_the_same(self):
        scenario = wt.Scenario(GPT_39B)
        batches = [768, 1024, 1280, 1536] * 4
        alone = [scenario.simulate({"/training/global_batch": batch}).iteration_time_s for batch in batches]
        together = [None] * len(batches)

        def work(first):
            for i in range(first, len(batches), 4):
                together[i] = scenario.simulate({"/training/global_batch": batches[i]}).iteration_time_s

        threads = [threading.Thread(target=work, args=(i,)) for i in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(together, alone)

    def test_a_notebook_shows_the_summary(self):
        report = wt.simulate(GPT_39B)
        page = report._repr_html_()
        low, high = report.iteration_time_interval_s
        self.assertIn(f"{report.iteration_time_s:.2f} s per iteration (90 %: {low:.2f} s to {high:.2f} s)", page)
        self.assertIn("pipeline bubble", page)
        self.assertRegex(page, "stage 0</td><td>27.4 GiB</td><td>34.6 %")
        self.assertNotIn("<li>", page)
        self.assertIn("<li>the prediction interval is extrapolated", wt.simulate(GPT_39B, set={"/model/sequence": 1024})._repr_html_())

    def test_attributes_are_the_keys_of_the_document(self):
        report = wt.simulate(GPT_39B)
        self.assertEqual(report.memory["verdict"], "fits")
        self.assertIn("breakdown_s", dir(report))
        with self.assertRaisesRegex(AttributeError, "breakdown_s"):
            report.breakdown


class Errors(unittest.TestCase):
    def test_every_problem_comes_with_its_pointer(self):
        with self.assertRaises(wt.InputError) as raised:
            wt.simulate(GPT_39B, set={"/training/micro_batch": -1, "/parallel/tensr": 8})
        pointers = [problem["pointer"] for problem in raised.exception.problems]
        self.assertIn("/training/micro_batch", pointers)
        self.assertTrue(any("tensr" in problem["message"] for problem in raised.exception.problems))
        self.assertIsInstance(raised.exception, ValueError)

    def test_what_is_no_json_is_named(self):
        for value in (object(), {1, 2}, float("nan"), 2**70):
            with self.assertRaises(wt.InputError) as raised:
                wt.simulate(GPT_39B, set={"/training/micro_batch": value})
            self.assertEqual(raised.exception.problems[0]["pointer"], "/training/micro_batch")

    def test_a_file_that_is_not_there(self):
        with self.assertRaises(wt.EnvironmentError) as raised:
            wt.simulate("none.json")
        self.assertIsInstance(raised.exception, OSError)

    def test_a_misspelt_name(self):
        with self.assertRaisesRegex(wt.InputError, "did you mean 'gpt3-175b-512xa100'"):
            wt.simulate("gpt3-175b-512xa10")


class Searches(unittest.TestCase):
    def test_rank_is_what_the_program_prints(self):
        name = "rank-gpt-39b-512xa100"
        printed = json.loads(program("rank", name, "--json", "--quiet", "--top", "3"))
        for threads in (1, 2):
            self.assertEqual(wt.rank(name, top=3, threads=threads), printed)

    def test_rank_and_explain_search_placements_as_the_program_does(self):
        name, search = "pipette-placement-8.1b", {"tensor": [8], "pipeline": [4], "micro_batch": [4]}
        ranked = wt.rank(name, {"/search": search}, top=1)
        self.assertEqual(ranked, json.loads(program("rank", name, "--json", "--quiet", "--top", "1", "--set", f"/search={json.dumps(search)}")))
        self.assertEqual(len(ranked["plans"][0]["placement"]), 128)
        explained, printed = wt.explain(name), json.loads(program("explain", name, "--json", "--quiet"))
        for key in ("iteration_time_s", "critical_path_s", "command"):
            self.assertEqual(explained[key], printed[key])
        self.assertEqual([each["command"] for each in explained["what_ifs"]], [each["command"] for each in printed["what_ifs"]])

    def test_explain_has_the_path_and_the_what_ifs(self):
        explained = wt.explain("gpt-8.3b-128xa100")
        self.assertAlmostEqual(sum(explained["critical_path_s"].values()), explained["iteration_time_s"], places=9)
        self.assertGreater(len(explained["what_ifs"]), 10)
        self.assertTrue(explained["what_ifs"][0]["command"].startswith("windtunnel run gpt-8.3b-128xa100 --set "))
        of_no_file = wt.explain({"version": 1, "model": "gpt-8.3b", "platform": "selene-a100", "nodes": 1,
                                 "training": {"global_batch": 8, "micro_batch": 1}, "parallel": {"tensor": 8}})
        self.assertNotIn("command", of_no_file["what_ifs"][0])

    def test_sweep_gives_a_row_a_point(self):
        rows = wt.sweep("sweep-gpt-39b-cluster-size")
        with tempfile.TemporaryDirectory() as folder:
            program("sweep", "sweep-gpt-39b-cluster-size", "--out", folder, "--quiet")
            printed = [json.loads(line) for line in (Path(folder) / "results.jsonl").read_text().splitlines()]
        self.assertEqual(rows, printed)

    def test_a_sweep_takes_a_dict_values_and_a_baseline(self):
        points = [{"label": "as it is"}, {"label": "smaller", "/training/micro_batch": 2}]
        rows = wt.sweep({"extends": str(GPT_39B)}, set={"/sweep/points": points}, baseline="as it is")
        self.assertEqual([(row["point"], row["label"]) for row in rows], [(0, "as it is"), (1, "smaller")])
        self.assertEqual(rows[0]["speedup"], 1)
        self.assertAlmostEqual(rows[1]["speedup"], rows[1]["tokens_per_s"] / rows[0]["tokens_per_s"], places=12)
        self.assertEqual(rows[1]["iteration_time_s"], wt.simulate(GPT_39B, {"/training/micro_batch": 2}).iteration_time_s)
        with self.assertRaisesRegex(wt.InputError, "none of the 2 points"):
            wt.sweep({"extends": str(GPT_39B)}, set={"/sweep/points": points}, baseline="larger")

    def test_validate_scores_a_set(self):
        score = wt.validate("megatron-sc21-table1")
        self.assertLess(score["sets"][0]["mape"], 0.06)


class Documents(unittest.TestCase):
    def test_a_job_is_what_the_program_prints(self):
        for name in ("job-llama3-70b-2048xa100", "job-llama3-70b-clusters"):
            self.assertEqual(wt.job(name, draws=20), json.loads(program("job", name, "--draws", "20", "--json", "--quiet")))

    def test_a_comparison_is_what_the_program_prints(self):
        def same_but_for_time(python, *arguments):
            printed = json.loads(program("compare", *arguments, "--json", "--quiet"))
            for document in (python, printed):
                document["runs"] = [without_wall(run) for run in document["runs"]]
            self.assertEqual(python, printed)

        two = ("gpt-8.3b-128xa100", "gpt-8.3b-64xv100")
        same_but_for_time(wt.compare(*two, set={"/training/micro_batch": 2}), *two, "--set", "/training/micro_batch=2")
        same_but_for_time(wt.compare("optimus-cc-8.3b-cb", toggle="compression"), "optimus-cc-8.3b-cb", "--toggle", "compression")

    def test_a_comparison_takes_files_scenarios_dicts_and_reports(self):
        base = wt.Scenario(GPT_39B)
        compared = wt.compare(GPT_39B, base.with_({"/training/micro_batch": 2}), {"extends": str(GPT_39B), "name": "mine"}, base.simulate())
        self.assertEqual(compared["speedup"][2:], [1, 1])
        self.assertEqual(compared["labels"][2], "mine")
        self.assertNotEqual(compared["speedup"][1], 1)
        self.assertEqual(wt.compare(base, toggle="/training/recompute")["labels"], ["without /training/recompute", "with /training/recompute"])
        for mistake in (lambda: wt.compare(base), lambda: wt.compare(base, base, toggle="compression")):
            with self.assertRaisesRegex(wt.InputError, "compare takes"):
                mistake()
        with self.assertRaisesRegex(wt.InputError, "compresses nothing"):
            wt.compare(base, toggle="compression")

    def test_a_codec_is_what_the_program_measures(self):
        measured = wt.codec(synthetic="gradient", rows=64, columns=32, codecs="powersgd", rank=4, seed=3)
        printed = json.loads(program("codec", "--synthetic", "gradient", "--rows", "64", "--columns", "32", "--codec", "powersgd", "--rank", "4", "--seed", "3", "--json"))
        for document in (measured, printed):
            document.pop("wall"), document.pop("version"), document.pop("settings", None)
        self.assertEqual(measured["codecs"], printed["codecs"])
        self.assertEqual(measured["tensor"], printed["tensor"])

    def test_an_array_has_no_file(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("needs NumPy")
        self.assertEqual(wt.codec(numpy.ones((8, 8), numpy.float32), codecs="int8")["tensor"]["source"], "array")
        with self.assertRaises(wt.InputError) as caught:
            wt.codec(numpy.full((8, 8), numpy.nan), codecs="int8")
        self.assertRegex(str(caught.exception), "^array: error: number 0 .* is not a number")
        self.assertEqual(caught.exception.problems[0]["file"], "array")

    def test_an_importer_gives_its_file(self):
        samples = ROOT / "sim" / "importers" / "samples"
        with tempfile.TemporaryDirectory() as folder:
            out = Path(folder) / "topo.json"
            written = wt.import_file("topo", samples / "topo-a100.txt", out=out, base="selene-a100")
            document = json.loads(out.read_text())
        made = wt.import_file("topo", samples / "topo-a100.txt", base="selene-a100")
        self.assertEqual(made["document"], document)
        self.assertEqual(made["found"], written["found"])
        self.assertIn("found", wt.import_file("kineto", samples / "trace-1-step.json.gz"))
        with self.assertRaisesRegex(wt.InputError, "no importer"):
            wt.import_file("toppo", samples / "topo-a100.txt")
        with self.assertRaisesRegex(wt.InputError, "no option bases"):
            wt.import_file("topo", samples / "topo-a100.txt", bases="selene-a100")

    def test_lists_are_data_frames_or_lists_of_dicts(self):
        explained = wt.explain("gpt-8.3b-128xa100")
        try:
            import pandas
        except ImportError:
            self.assertEqual(explained.frame(), explained["what_ifs"])
            self.assertIn({"what": "compute", "value": explained["critical_path_s"]["compute"]}, explained.frame("critical_path_s"))
        else:
            self.assertIsInstance(explained.frame(), pandas.DataFrame)
            self.assertEqual(len(explained.frame()), len(explained["what_ifs"]))
            self.assertIn("breakdown_s.compute", explained.frame().columns)
            self.assertEqual(list(explained.frame("critical_path_s").columns), ["what", "value"])


class Arrays(unittest.TestCase):
    def setUp(self):
        try:
            import numpy
        except ImportError:
            self.skipTest("NumPy is not installed")
        self.numpy = numpy

    def test_columns_point_into_the_report(self):
        report = wt.simulate(GPT_39B)
        times = report.stage_times
        self.assertFalse(times["compute"].flags.owndata)
        self.assertFalse(times["compute"].flags.writeable)
        expected = [stage["compute"] for stage in report.stage_times_s]
        self.numpy.testing.assert_array_equal(times["compute"], expected)
        memory = report.stage_memory
        self.assertEqual(memory["total"].max(), report.memory_max_bytes)
        del report
        self.assertGreater(times["compute"].sum(), 0)

    def test_a_timeline_covers_the_iteration(self):
        report = wt.simulate("gpt-8.3b-128xa100", timeline=True)
        timeline = report.timeline
        self.assertAlmostEqual(timeline["end"].max(), report.iteration_time_s, places=6)
        self.assertTrue((timeline["begin"] <= timeline["end"]).all())
        self.assertGreater(len(self.numpy.unique(timeline["device"])), 1)
        self.assertEqual(len(wt.simulate("gpt-8.3b-128xa100").timeline["end"]), 0)

    def test_a_timeline_says_what_ran(self):
        report = wt.simulate("gpt-8.3b-128xa100", timeline=True)
        timeline, stages = report.timeline, len(report.memory["per_stage"])
        self.assertEqual(set(timeline["stage"]), set(range(stages)))
        on_one = timeline["device"] == timeline["device"][0]
        forward = on_one & (timeline["kind"] == "forward")
        microbatches = timeline["microbatch"][forward]
        self.assertEqual(sorted(microbatches), list(range(len(microbatches))))
        backward = timeline["microbatch"][on_one & (timeline["kind"] == "backward")]
        self.assertEqual(sorted(backward), sorted(microbatches))
        self.assertEqual(set(timeline["microbatch"][timeline["kind"] == "optimizer"]), {-1})
        self.assertEqual(set(timeline["stream"]), {"compute"})


class Pages(unittest.TestCase):
    """Each ```sh and ```python block prints the ```text block behind it ("…" stands for anything); with WINDTUNNEL_UPDATE_GOLDEN the page is
    written instead."""

    def check(self, page, language, printed_by):
        """Runs each block of a page of docs/ by printed_by(code) → text, or None where it cannot run here; returns how many there are."""
        path = ROOT / "docs" / page
        text = path.read_text()
        blocks = re.findall(rf"```{language}\n(.*?)```(?:\n+```text\n(.*?)```)?", text, flags=re.S)
        for code, expected in blocks:
            printed = printed_by(code)
            pattern = re.escape(expected.strip()).replace("…", ".*")
            if printed is None or not expected or re.fullmatch(pattern, printed.strip(), flags=re.S):
                continue
            self.assertTrue(os.environ.get("WINDTUNNEL_UPDATE_GOLDEN"), f"{page}: {code}prints\n{printed}not\n{expected}")
            self.assertNotIn("…", expected, f"{page}: write by hand what this prints:\n{code}{printed}")
            text = text.replace(f"{code}```\n```text\n{expected}```", f"{code}```\n```text\n{printed.strip()}\n```")
            path.write_text(text)
        return len(blocks)

    @unittest.skipIf("LD_PRELOAD" in os.environ, "a shell does not start with ThreadSanitizer's library")
    def test_commands_print_what_the_page_says(self):
        def printed_by(command):
            """With the module that is tested."""
            self.assertIn("PYTHONPATH=build/release/python ", command)
            command = command.replace("PYTHONPATH=build/release/python ", "")
            return subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True, cwd=ROOT).stdout

        self.assertEqual(self.check("python.md", "sh", printed_by), 1)

    def test_examples_print_what_the_page_says(self):
        names, before = {}, Path.cwd()

        def printed_by(code):
            if "import pandas" in code or "import matplotlib" in code or "import scipy" in code:
                try:
                    for line in re.findall(r"^(?:import|from) .*", code, flags=re.M):
                        exec(line, {})
                except ImportError:
                    return None
            with tempfile.TemporaryDirectory() as folder, contextlib.redirect_stdout(io.StringIO()) as out:
                exec(code.replace("plot.png", str(Path(folder) / "plot.png")), names)
            return out.getvalue()

        os.chdir(ROOT)
        try:
            self.assertGreater(sum(self.check(page, "python", printed_by) for page in ("python.md", "tasks.md")), 4)
        finally:
            os.chdir(before)


if __name__ == "__main__":
    unittest.main()

"""Runs the program under test, and reads what it says."""
import json
import os
import pathlib
import re
import subprocess

ROOT = pathlib.Path(__file__).resolve().parent.parent.parent


class Refused(Exception):
    """The program calls its input bad."""


class Program:
    def __init__(self, path, folder):
        self.path, self.folder = path, pathlib.Path(folder)

    def call(self, *arguments):
        done = subprocess.run([self.path, *map(str, arguments)], capture_output=True, text=True, cwd=self.folder,
                              env={**os.environ, "WINDTUNNEL_DATA": str(ROOT), "WINDTUNNEL_NO_PROGRESS": "1"})
        if done.returncode == 2:
            raise Refused(done.stderr)
        if done.returncode > 1:
            raise RuntimeError(f"exit {done.returncode}: {' '.join(map(str, arguments))}\n{done.stderr}")
        return done.stdout

    def write(self, scenario):
        path = self.folder / "scenario.json"
        path.write_text(json.dumps(scenario))
        return path

    def run(self, scenario, *options):
        """The report of one run."""
        return json.loads(self.call("run", self.write(scenario), "--json", "--quiet", *options))

    def traced(self, scenario):
        """The report, and {(stage, kind, microbatch, chunk): (begin, end)} in seconds of replica 0."""
        trace = self.folder / "trace.json"
        report = self.run(scenario, "--trace", trace)
        events = json.loads(trace.read_text())["traceEvents"]
        stages = {each["pid"]: int(re.search(r"dp0 pp(\d+) ", each["args"]["name"] + " ")[1]) for each in events
                  if each["name"] == "process_name" and "dp0 pp" in each["args"]["name"]}
        kinds = {"forward": "F", "backward": "B", "input_gradient": "B", "weight_gradient": "W"}
        passes = {}
        for each in events:
            kind = kinds.get("_".join(each["name"].split()[:-1]))
            if each.get("cat") == "gpu_user_annotation" and each["pid"] in stages and kind:
                place = each["args"]["microbatch"], each["args"]["chunk"]
                passes[(stages[each["pid"]], kind, *place)] = (each["ts"] * 1e-6, (each["ts"] + each["dur"]) * 1e-6)
        return report, passes

    def rank(self, scenario, top):
        return json.loads(self.call("rank", self.write(scenario), "--json", "--quiet", "--jobs", 1, "--top", top))

    def sweep(self, scenario, points):
        """{number: (point, row)} of the points, which are objects of pointer to value."""
        path = self.folder / "sweep.json"
        path.write_text(json.dumps(scenario | {"sweep": {"matrix": {key: [value] for key, value in points[0].items()}, "include": points[1:]}}))
        out = self.folder / "sweep"
        self.call("sweep", path, "--out", out, "--jobs", 1, "--quiet")
        rows = [json.loads(line) for line in (out / "results.jsonl").read_text().splitlines()]
        return {row["point"]: ({key: row[key] for key in points[0]}, row) for row in rows}

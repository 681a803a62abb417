"""How long a training run of a large language model takes on a GPU cluster, why, and whether it fits in memory.

    import windtunnel as wt
    report = wt.simulate("scenarios/gpt-39b-512xa100.json", set={"/training/micro_batch": 2})
    print(report.iteration_time_s, report.breakdown_s)

Scenarios are paths or dicts (docs/scenario-reference.md). Times are in seconds, amounts of memory and traffic in bytes. Everything runs on the
native engine unless ``engine`` says otherwise, releases the interpreter lock while it computes, and may be called from several threads.
"""

from __future__ import annotations

import contextlib
import difflib
import json
import os
import tempfile
from pathlib import Path

from . import _windtunnel
from .errors import EnvironmentError, InputError, InternalError, UnsupportedError, WindtunnelError
from .report import Document, Report

__version__ = _windtunnel.version
__all__ = [
    "Document", "EnvironmentError", "InputError", "InternalError", "Report", "Scenario", "UnsupportedError", "WindtunnelError", "codec", "compare",
    "explain", "import_file", "job", "library_root", "rank", "simulate", "sweep", "validate",
]

_ENGINES = ("native", "simgrid", "heap")
_libraries = {}


def library_root():
    """The folder of models/, platforms/, scenarios/ and validation/: $WINDTUNNEL_DATA, else around this module or installed next to it."""
    given = os.environ.get("WINDTUNNEL_DATA")
    if given:
        return Path(given)
    here = Path(__file__).resolve()
    for folder in here.parents:
        for root in (folder, folder / "share" / "windtunnel"):
            if (root / "models").is_dir() and (root / "platforms").is_dir():
                return root
    raise EnvironmentError("no folder with models/ and platforms/ around the module; set WINDTUNNEL_DATA to the folder that holds them")


def _library():
    root = str(library_root())
    if root not in _libraries:
        _libraries[root] = _windtunnel.Library(root)
    return _libraries[root]


def _checked(engine):
    if engine not in _ENGINES:
        raise InputError(f"engine is {engine!r} (write one of {', '.join(_ENGINES)})")
    return engine


def _whole(name, value, most=2**64 - 1, least=0):
    if isinstance(value, bool) or not hasattr(value, "__index__") or not least <= value <= most:
        raise InputError(f"{name} is {value!r} (write a whole number from {least} to {most})")
    return int(value)


def _threads(number):
    return _whole("threads", number, 4096)


def _path_of(name):
    """A path, or a name that ``windtunnel list scenarios`` prints."""
    path = Path(name)
    if not path.exists() and path.suffix not in (".json", ".gz") and len(path.parts) == 1:
        shipped = library_root() / "scenarios" / f"{path}.json"
        if shipped.exists():
            return shipped
        names = sorted(file.stem for file in shipped.parent.glob("*.json"))
        near = difflib.get_close_matches(path.name, names, n=1)
        raise InputError(f"there is no file {str(path)!r} and no built-in scenario of that name " +
                         (f"(did you mean {near[0]!r}?)" if near else "(windtunnel list scenarios shows them)"))
    return path


class Scenario:
    """A scenario whose files have been read once: what many simulations of it share.

    ``source`` is a path, the name of a shipped scenario, or a dict as in a scenario file, whose relative paths are relative to ``folder``.
    """

    def __init__(self, source, set=None, folder="."):
        library = _library()
        if isinstance(source, dict):
            self._handle = _windtunnel.scenario_of_dict(library, source, os.fsencode(folder))
        else:
            self._handle = _windtunnel.scenario_of_file(library, os.fsencode(_path_of(source)), os.fsencode(source))
        self._set = dict(set or {})
        self.name = str(source.get("name", "")) if isinstance(source, dict) else str(source)

    def with_(self, set=None, **parts):
        """Another scenario with values changed: ``with_({"/parallel/tensor": 4})``, or ``with_(parallel={"tensor": 4})``."""
        changed = dict(self._set)
        changed.update(set or {})
        for part, values in parts.items():
            if isinstance(values, dict):
                changed.update({f"/{part}/{key}": value for key, value in values.items()})
            else:
                changed[f"/{part}"] = values
        other = Scenario.__new__(Scenario)
        other._handle = self._handle
        other._set = changed
        other.name = self.name
        return other

    def to_dict(self):
        """Everything merged, with names and defaults filled in (``windtunnel show --resolved``)."""
        return json.loads(_windtunnel.resolved(self._handle, self._set, 0))

    def simulate(self, set=None, engine="native", timeline=False, seed=0):
        """See :func:`windtunnel.simulate`."""
        return Report(_windtunnel.simulate(self._handle, {**self._set, **(set or {})}, _checked(engine), bool(timeline), _whole("seed", seed)))


def _scenario(source):
    return source if isinstance(source, Scenario) else Scenario(source)


def simulate(scenario, set=None, engine="native", timeline=False, seed=0):
    """Simulates one training iteration.

    scenario: a path, the name of a shipped scenario, a dict, or a :class:`Scenario` (fastest for many calls).
    set: JSON pointers and values, ``{"/platform/node_types/0/nic_rate": "400 Gbps"}``.
    engine: "native", "simgrid" (once in a process) or "heap" (no contention).
    timeline: keep what happened when, for ``Report.timeline``.
    Raises InputError with every problem and its pointer.
    """
    return _scenario(scenario).simulate(set, engine, timeline, seed)


def _on(function, scenario, set, *arguments):
    """Calls a function of the module with a scenario and its values."""
    base = _scenario(scenario)
    return function(base._handle, {**base._set, **(set or {})}, *arguments)


def rank(scenario, set=None, top=10, threads=0, seed=0):
    """The best plans for the scenario's model and cluster, the fastest first: the document of ``windtunnel rank --json``.

    threads: simulations at the same time; 0: one a core. The result does not depend on it.
    """
    return Document(_on(_windtunnel.rank, scenario, set, _whole("top", top, 2**31 - 1, 1), _threads(threads), _whole("seed", seed)), "plans")


def explain(scenario, set=None, threads=0, seed=0):
    """The critical path of the iteration and what would change it: the document of ``windtunnel explain --json``.

    Without ``command`` where the scenario is a dict, which no command can read.
    ``explain(…).frame()`` has a row for each what-if, ``.frame("critical_path_s")`` one for each part of the path.
    """
    return Document(_on(_windtunnel.explain, scenario, set, _threads(threads), _whole("seed", seed)), "what_ifs")


def sweep(scenario, set=None, baseline=None, threads=0, seed=0):
    """Every point of a scenario's ``sweep`` block: a list of dicts, one a point, ready for ``pandas.DataFrame``.

    set: JSON pointers and values, of the block too: ``{"/sweep/matrix": {"/nodes": [8, 16]}}``.
    baseline: a label, a number or values of a point; rows then have the ``speedup`` over it.
    A point that cannot be simulated has ``ok`` False, and ``failure`` and ``error`` say why.
    """
    values = dict(set or {})
    if baseline is not None:
        values["/sweep/baseline"] = baseline
    return [json.loads(row) for row in _on(_windtunnel.sweep, scenario, values, _threads(threads), _whole("seed", seed))]


def job(scenario, set=None, draws=1000, threads=0, seed=0):
    """The whole training run, with its failures, checkpoints and money: the document of ``windtunnel job --json``.

    draws: how many times the run is simulated. Of a scenario with a sweep: every point of it.
    """
    return Document(_on(_windtunnel.job, scenario, set, _whole("draws", draws, 10**6, 1), _threads(threads), _whole("seed", seed)), "points")


def compare(*scenarios, set=None, toggle=None, break_even=False, seed=0):
    """Reports side by side, with what differs: the document of ``windtunnel compare --json``.

    scenarios: two or more, or reports (files or dicts of ``run --json``), or traces; with ``toggle`` one, which is compared without what stands
    at that pointer. ``set`` holds for all of them.
    break_even: also at which bandwidth they would be equally fast.
    """
    if len(scenarios) != 1 if toggle else len(scenarios) < 2:
        raise InputError(f"compare takes {'one scenario with toggle' if toggle else 'two scenarios or more'}, these are {len(scenarios)}")
    sides = [_side(scenario, f"scenario {place}", set or {}) for place, scenario in enumerate(scenarios, 1)]
    return Document(_windtunnel.compare(_library(), sides, toggle or "", bool(break_even), _whole("seed", seed)), "runs")


def _side(scenario, name, values):
    """A label with what the module compares, and the values set in it."""
    if isinstance(scenario, Report):
        scenario = scenario.to_dict()
    if isinstance(scenario, Scenario):
        return scenario.name or name, scenario._handle, {**scenario._set, **values}
    if not isinstance(scenario, dict):
        return str(scenario), os.fsencode(_path_of(scenario)), dict(values)
    if str(scenario.get("schema", "")).startswith("windtunnel/report"):
        return str(scenario.get("name", name)), scenario, {}
    return str(scenario.get("name", name)), Scenario(scenario)._handle, dict(values)


def codec(tensor=None, synthetic=None, rows=0, columns=0, codecs=(), feedback=0, seed=0, **settings):
    """What codecs do to a tensor, and how fast they are on this machine: the document of ``windtunnel codec --json``.

    tensor: the path of a .npy file, or a NumPy array; or ``synthetic="gradient"`` (or "activation") of ``rows`` × ``columns``, 1024 × 1024 by default.
    codecs: names; none: all. settings: of the codecs, ``rank=[4, 16]``.
    feedback: also sends so many messages with error feedback.
    """
    with contextlib.ExitStack() as stack:
        folder = None
        if tensor is not None and not isinstance(tensor, (str, os.PathLike)):
            import numpy

            folder = stack.enter_context(tempfile.TemporaryDirectory())
            array, tensor = tensor, os.path.join(folder, "array.npy")
            numpy.save(tensor, array)
        numbers = {key: [float(each) for each in (value if isinstance(value, (list, tuple)) else [value])] for key, value in settings.items()}
        try:
            result = Document(_windtunnel.codec(
                b"" if tensor is None else os.fsencode(tensor), synthetic or "", _whole("rows", rows, 2**31), _whole("columns", columns, 2**31),
                [codecs] if isinstance(codecs, str) else list(codecs), numbers, _whole("feedback", feedback, 2**31 - 1), _whole("seed", seed)), "codecs")
        except InputError as error:
            if folder is None:
                raise
            raise type(error)(str(error).replace(tensor, "array"), [{**each, "file": each["file"].replace(tensor, "array")} for each in error.problems]) from None
        if folder is not None:
            result["tensor"]["source"] = "array"
        return result


def import_file(kind, *inputs, out=None, **options):
    """Turns files of other tools into ours: the document of ``windtunnel import KIND INPUT… --json``.

    out: the file that it writes. Without one, a kind that makes a file gives it as ``document`` of the result.
    options: those of the command: ``base``, ``clean``, ``table``, ``unit``, ``rails``, ``sequence``, ``model``, ``gpus``, ``args``.
    """
    files = [os.fsencode(each) for each in inputs]
    given = {key: value if isinstance(value, int) else os.fsdecode(value) for key, value in options.items()}
    unknown = given.keys() - {"base", "clean", "table", "unit", "rails", "sequence", "model", "gpus", "args"}
    if unknown:
        raise InputError(f"import_file has no option {min(unknown)} (there are base, clean, table, unit, rails, sequence, model, gpus and args)")
    if out is not None or not _windtunnel.importers().get(kind):
        return Document(_windtunnel.import_file(_library(), kind, files, b"" if out is None else os.fsencode(out), given), "found")
    with tempfile.TemporaryDirectory() as folder:
        made = Path(folder) / f"{kind}.json"
        result = Document(_windtunnel.import_file(_library(), kind, files, os.fsencode(made), given), "found")
        result.pop("output", None)
        result["document"] = json.loads(made.read_text())
    return result


def validate(sets=(), set=None, threads=0):
    """Predicts published measurements and scores the predictions: the document of ``windtunnel validate --json``.

    sets: paths or names of measurement sets; none: all of validation/.
    """
    overrides = [(pointer, value if isinstance(value, str) else json.dumps(value)) for pointer, value in (set or {}).items()]
    if isinstance(sets, (str, os.PathLike)):
        sets = [sets]
    return Document(_windtunnel.validate(_library(), [os.fsencode(each) for each in sets], overrides, _threads(threads)), "points")

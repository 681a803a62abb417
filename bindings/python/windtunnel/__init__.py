"""How long a training run of a large language model takes on a GPU cluster, why, and whether it fits in memory.

    import windtunnel as wt
    report = wt.simulate("scenarios/gpt-39b-512xa100.json", set={"/training/micro_batch": 2})
    print(report.iteration_time_s, report.breakdown_s)

Scenarios are paths or dicts (docs/scenario-reference.md). Times are in seconds, amounts of memory and traffic in bytes. Everything runs on the
native engine unless ``engine`` says otherwise, releases the interpreter lock while it computes, and may be called from several threads.
"""

from __future__ import annotations

import json
import os
from pathlib import Path

from . import _windtunnel
from .errors import EnvironmentError, InputError, InternalError, UnsupportedError, WindtunnelError
from .report import Report

__version__ = _windtunnel.version
__all__ = [
    "EnvironmentError", "InputError", "InternalError", "Report", "Scenario", "UnsupportedError", "WindtunnelError", "explain", "library_root", "rank",
    "simulate", "sweep", "validate",
]

_ENGINES = ("native", "simgrid", "heap")
_libraries = {}


def library_root():
    """The folder of models/, platforms/, scenarios/ and validation/: $WINDTUNNEL_DATA, else around this module or installed beside it."""
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


def _whole(name, value, most=2**64 - 1):
    if isinstance(value, bool) or not hasattr(value, "__index__") or not 0 <= value <= most:
        raise InputError(f"{name} is {value!r} (write a whole number from 0 to {most})")
    return int(value)


def _threads(number):
    return _whole("threads", number, 4096)


def _path_of(name):
    """A path, or a name that ``windtunnel list scenarios`` prints."""
    path = Path(name)
    if not path.exists() and path.suffix != ".json" and len(path.parts) == 1:
        shipped = library_root() / "scenarios" / f"{path}.json"
        if shipped.exists():
            return shipped
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
            self._handle = _windtunnel.scenario_of_file(library, os.fsencode(_path_of(source)))
        self._set = dict(set or {})

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


def rank(scenario, set=None, top=10, threads=0, seed=0):
    """The best plans for the scenario's model and cluster, the fastest first: the document of ``windtunnel rank --json`` as a dict.

    threads: simulations at the same time; 0: one a core. The result does not depend on it.
    """
    base = _scenario(scenario)
    return json.loads(_windtunnel.rank(base._handle, {**base._set, **(set or {})}, _whole("top", top, 2**31 - 1), _threads(threads), _whole("seed", seed)))


def explain(scenario, set=None, threads=0, seed=0):
    """The critical path of the iteration and what would change it: the document of ``windtunnel explain --json`` as a dict."""
    base = _scenario(scenario)
    return json.loads(_windtunnel.explain(base._handle, {**base._set, **(set or {})}, _threads(threads), _whole("seed", seed)))


def sweep(scenario, threads=0, seed=0):
    """Every point of a scenario file's ``sweep`` block: a list of dicts, one a point, ready for ``pandas.DataFrame``.

    A point that cannot be simulated has ``ok`` False, and ``failure`` and ``error`` say why.
    """
    rows = _windtunnel.sweep(_library(), os.fsencode(_path_of(scenario)), _threads(threads), _whole("seed", seed))
    return [json.loads(row) for row in rows]


def validate(sets=(), set=None, threads=0):
    """Predicts published measurements and scores the predictions: the document of ``windtunnel validate --json`` as a dict.

    sets: paths or names of measurement sets; none: all of validation/.
    """
    overrides = [(pointer, value if isinstance(value, str) else json.dumps(value)) for pointer, value in (set or {}).items()]
    if isinstance(sets, (str, os.PathLike)):
        sets = [sets]
    return json.loads(_windtunnel.validate(_library(), [os.fsencode(each) for each in sets], overrides, _threads(threads)))

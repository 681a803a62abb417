"""What a simulation found."""

from __future__ import annotations

import html
import json


def _in_seconds(seconds):
    for factor, unit in ((1, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * factor >= 1:
            return f"{seconds * factor:.4g} {unit}"
    return f"{seconds * 1e9:.4g} ns"


_GIB = 2**30


def _bars(title, rows):
    """A table of (name, amount, share of the whole); shares that would not be seen are left out."""
    cells = "".join(
        f'<tr><td style="text-align:left">{html.escape(name)}</td><td>{amount}</td><td>{100 * share:.1f} %</td><td style="min-width:16em">'
        f'<div style="background:#2b6cb0;height:0.8em;width:{min(100 * share, 100):.1f}%"></div></td></tr>'
        for name, amount, share in rows if share >= 0.0005)
    return f'<table><caption style="text-align:left">{html.escape(title)}</caption>{cells}</table>'


class Document(dict):
    """A document of the program, as its ``--json`` prints it."""

    def __init__(self, text, table):
        super().__init__(json.loads(text))
        self._table = table

    def frame(self, key=None):
        """The list at ``key`` as a pandas data frame, keys of nested objects joined by dots; without pandas, as a list of dicts.

        An object of numbers becomes rows of ``what`` and ``value``. Without a key: what the document is about, such as the what-ifs of ``explain``;
        where that is one thing alone, one row of all of it.
        """
        rows = self.get(self._table, [dict(self)]) if key is None else self[key]
        if isinstance(rows, dict):
            rows = [{"what": what, "value": value} for what, value in rows.items()]
        elif not isinstance(rows, list):
            rows = [{"what": key, "value": rows}]
        try:
            import pandas
        except ImportError:
            return rows
        return pandas.json_normalize(rows)


class Report:
    """One simulated iteration. Every key of ``windtunnel run --json`` is an attribute as well: ``report.breakdown_s``."""

    def __init__(self, handle):
        self._handle = handle
        self._dict = None

    def to_dict(self):
        """The document of ``windtunnel run --json``."""
        if self._dict is None:
            self._dict = json.loads(self._handle.json())
        return self._dict

    @property
    def iteration_time_s(self):
        """Seconds of one iteration."""
        return self._handle.iteration_time_s

    @property
    def tokens_per_s(self):
        """Tokens a second, all GPUs together."""
        return self._handle.tokens_per_s

    @property
    def samples_per_s(self):
        """Samples a second, all GPUs together."""
        return self._handle.samples_per_s

    @property
    def mfu(self):
        """Model FLOPs over what the GPUs could do, 0 to 1."""
        return self._handle.mfu

    @property
    def hfu(self):
        """The same with recomputation."""
        return self._handle.hfu

    @property
    def fits(self):
        """Whether every stage fits in its GPUs' memory."""
        return self._handle.fits

    @property
    def memory_max_bytes(self):
        """What nvidia-smi would show on the fullest GPU, in bytes."""
        return self._handle.memory_max_bytes

    @property
    def stage_times(self):
        """Seconds of each line of the breakdown by stage, and `end`: a dict of read-only NumPy arrays that are no copies."""
        return self._handle.stage_times()

    @property
    def stage_memory(self):
        """Bytes by role and stage: a dict of read-only NumPy arrays that are no copies."""
        return self._handle.stage_memory()

    @property
    def timeline(self):
        """All that computed, in order of its end (``timeline=True``): a dict of NumPy arrays.

        ``begin`` and ``end`` in seconds and ``device`` are no copies. ``stage`` is the pipeline stage of the device, ``kind`` what ran
        ("forward", "backward", "optimizer"), ``microbatch`` for which one (-1: for none alone), ``chunk`` of which model chunk, ``stream`` on
        which stream.
        """
        return self._handle.timeline()

    def __getattr__(self, name):
        if name.startswith("_"):
            raise AttributeError(name)
        try:
            return self.to_dict()[name]
        except KeyError:
            raise AttributeError(f"a report has no {name}; there are {', '.join(self.to_dict())}") from None

    def __dir__(self):
        return sorted(set(super().__dir__()) | set(self.to_dict()))

    def __repr__(self):
        fit = "" if self.fits else ", does not fit in memory"
        return f"<windtunnel.Report {self.to_dict()['name']}: {_in_seconds(self.iteration_time_s)} per iteration{fit}>"

    def _repr_html_(self):
        """The summary of ``windtunnel run`` for a notebook: time, where it goes, the memory of each stage, and warnings."""
        report = self.to_dict()
        usual = " (90 %: {} to {})".format(*map(_in_seconds, self.iteration_time_interval_s)) if self.iteration_time_interval_s else ""
        lines = sorted(report["breakdown_s"].items(), key=lambda item: -item[1])
        times = [(line.replace("_", " "), _in_seconds(seconds), seconds / self.iteration_time_s) for line, seconds in lines]
        memory = report["memory"]
        usable = memory.get("usable_bytes", memory["capacity_bytes"])  # earlier builds did not write it
        stages = [
            (f"stage {stage['stage']}", f"{stage['total'] / _GIB:.1f} GiB", stage["total"] / usable)
            for stage in memory["per_stage"]
        ]
        verdict = "fits" if self.fits else "does not fit"
        warnings = "".join(f"<li>{html.escape(warning)}</li>" for warning in report["warnings"])
        return (
            f"<div><b>{html.escape(report['name'])}</b>: {_in_seconds(self.iteration_time_s)} per iteration{usual}, "
            f"{self.tokens_per_s:,.0f} tokens/s, {100 * self.mfu:.1f} % of peak, "
            f"{self.memory_max_bytes / _GIB:.1f} GiB on the fullest GPU ({verdict})"
            f"{_bars('Where the time goes, on the GPUs that finish last', times)}{_bars('Memory of a GPU', stages)}"
            + (f"<ul>{warnings}</ul>" if warnings else "") + "</div>")

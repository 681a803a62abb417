#!/usr/bin/env python3
"""Writes what documented commands print now into README.md and docs/*.md, where tools/check_docs.sh finds something else:

  tools/update_docs.py PROGRAM [FILE...]

Commands of a page run in one shell in a copy of the repository. What a sample leaves out ("…", in a line or as a line of its own) stays left
out. A sample whose lines no longer resemble what is printed, and a command that fails, are named and left as they are: exit code 1.
"""
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parent.parent
GAP = "…"
NUMBER = re.compile(r"[0-9][0-9.,]*")
BAR = re.compile("[█▏▎▍▌▋▊▉]+")
PROGRESS = re.compile(r"windtunnel: still [a-z]+ after .*|[0-9,]+ of [0-9,]+ points.* a second, .* left")  # on slow machines alone


class Sample:
    """A command of a page with the lines that it should print, and where these stand: lines [begin, end)."""

    def __init__(self, command, begin):
        self.command, self.begin, self.end = command, begin, begin


def samples_of(lines):
    samples, inside, continued = [], False, False
    for number, line in enumerate(lines):
        if not inside:
            inside = line == "```console"
        elif line == "```":
            inside = False
        elif continued or line.startswith("$ "):
            if continued:
                samples[-1].command += "\n" + line
                samples[-1].begin = samples[-1].end = number + 1
            else:
                samples.append(Sample(line[2:], number + 1))
            continued = line.endswith("\\")
        elif samples:
            samples[-1].end = number + 1
    return samples


def run(samples, program, scratch):
    """What each command prints, and its exit code; all run in one shell."""
    copy = scratch / "copy"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(ROOT, copy, ignore=lambda folder, names: [n for n in names if n in ("build", "out", ".git") and pathlib.Path(folder) == ROOT])
    page = scratch / "page"
    shutil.rmtree(page, ignore_errors=True)
    page.mkdir()
    for number, sample in enumerate(samples):
        (page / f"{number}.command").write_text(sample.command)
    script = ('_d=("$1" "$2" -1); while [[ $((++_d[2])) -lt ${_d[1]} ]]; do { eval "$(<"${_d[0]}/${_d[2]}.command")"; } '
              '>"${_d[0]}/${_d[2]}.actual" 2>&1 </dev/null; echo $? >"${_d[0]}/${_d[2]}.code"; done')
    environment = {**os.environ, "PATH": f"{program.parent}:{os.environ['PATH']}", "WINDTUNNEL_DATA": str(copy), "NO_COLOR": "1",
                   "COLUMNS": "80"}
    subprocess.run(["bash", "-c", script, "bash", str(page), str(len(samples))], cwd=copy, env=environment, check=False)
    return [([line for line in (page / f"{n}.actual").read_text().splitlines() if not PROGRESS.fullmatch(line)]
             if (page / f"{n}.code").exists() else None,
             (page / f"{n}.code").read_text().strip() if (page / f"{n}.code").exists() else "none") for n in range(len(samples))]


def shape(line):
    """The line without what changes when a prediction does."""
    return " ".join(BAR.sub("", NUMBER.sub("0", line)).replace("−", "+").split())


def fits(pattern, line):
    """The new form of a documented line: what is printed, with the same parts left out; nothing where it does not resemble it."""
    parts = pattern.split(GAP)
    if len(parts) == 1:
        return line if shape(pattern) == shape(line) else None
    loose = [r"\s*".join(re.sub("0", r"[0-9][0-9.,]*", re.escape(word)) for word in shape(part).split()) for part in parts]
    found = re.fullmatch("(.*?)".join(rf"(\s*{each}\s*)" for each in loose), line)
    return GAP.join(found.group(1 + 2 * i) for i in range(len(parts))).rstrip() if found else None


def renewed(expected, actual):
    """The lines of a sample in their new form, or nothing where they no longer resemble what is printed."""
    if not expected:
        return [] if not actual else None
    if expected[0].strip() == GAP:
        for skip in range(len(actual) + 1):
            rest = renewed(expected[1:], actual[skip:]) if len(expected) > 1 else []
            if rest is not None:
                return [expected[0], *rest]
        return None
    if not actual or (first := fits(expected[0], actual[0])) is None:
        return None
    rest = renewed(expected[1:], actual[1:])
    return None if rest is None else [first, *rest]


def update(page, program, scratch):
    """Whether everything on the page could be brought up to date."""
    lines = page.read_text().split("\n")
    samples, good = samples_of(lines), True
    for sample, (actual, code) in reversed(list(zip(samples, run(samples, program, scratch)))):
        expected = lines[sample.begin:sample.end]
        if code != "0":
            print(f"{page}:{sample.begin}: exit code {code}: {sample.command}")
            good = False
        elif expected:
            new = renewed(expected, actual)
            if new is None and not any(GAP in line for line in expected):
                new = actual
                print(f"{page}:{sample.begin}: look at: {sample.command}")
            if new is None:
                print(f"{page}:{sample.begin}: prints something else: {sample.command}\n" + "\n".join("    " + line for line in actual[:40]))
                good = False
            else:
                lines[sample.begin:sample.end] = new
    page.write_text("\n".join(lines))
    return good


def main():
    if len(sys.argv) < 2 or not pathlib.Path(sys.argv[1]).is_file():
        sys.exit(__doc__)
    program = pathlib.Path(sys.argv[1]).resolve()
    pages = [pathlib.Path(name) for name in sys.argv[2:]] or [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
    with tempfile.TemporaryDirectory() as folder:
        # The examples of docs/extending.md need what they add: tools/extending_test.py runs them.
        results = [update(page.resolve(), program, pathlib.Path(folder)) for page in pages if page.name != "extending.md"]
    sys.exit(0 if all(results) else 1)


if __name__ == "__main__":
    main()

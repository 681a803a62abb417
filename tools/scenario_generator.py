#!/usr/bin/env python3
"""Draws valid scenarios, so that every pair of features meets, and checks that the program keeps its promises on each:

  tools/scenario_generator.py PROGRAM [--cases N] [--seed S] [--keep FOLDER] [--first I]

No exit code but 0, 1 and, with a message, 2; a breakdown that adds up; an interval that holds the time; memory that agrees with its
verdict; the same bytes twice; nothing slower on faster hardware (tools/generator/promises.py has the tolerance and its reason); and no
other command that breaks on what `run` takes. Scenarios that break a promise are made smaller and kept in FOLDER (build/generator).
"""
import argparse
import json
import pathlib
import random
import sys
import tempfile

sys.dont_write_bytecode = True
ROOT = pathlib.Path(__file__).resolve().parent.parent
sys.path.insert(0, str(ROOT / "tools/generator"))
from document import DocumentDraw  # noqa: E402
from features import FeatureDraw, Library  # noqa: E402
from pairs import Pairs  # noqa: E402
from promises import Broken, Promises, Refused, Runner  # noqa: E402
from schema_values import Schema  # noqa: E402
from shrink import shrink  # noqa: E402

CANDIDATES = 12  # drawn sets of features, of which the one with most new pairs is played
MOST_REFUSED = 0.1  # more, and we draw scenarios that are not valid


class Generator:
    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.schema = Schema(json.loads((ROOT / "docs/scenario.schema.json").read_text()))
        self.library = Library(ROOT)
        self.features = FeatureDraw(self.schema, self.library, self.rng)
        self.documents = DocumentDraw(self.schema, self.library, self.rng)
        self.pairs = Pairs()

    def draw(self):
        """A scenario and the file that it extends."""
        features = self.pairs.choose([self.features.draw() for _ in range(CANDIDATES)])
        return self.documents.draw(features)


class Play:
    """Plays the drawn scenarios and keeps those that break a promise, the first of each kind made smaller."""

    def __init__(self, options, folder):
        self.generator = Generator(options.seed)
        self.keep = pathlib.Path(options.keep)
        self.promises = Promises(Runner(str(pathlib.Path(options.program).resolve()), ROOT, folder), self.generator.library)
        self.refused, self.broken = [], {}

    def play(self, first, cases):
        for number in range(first + cases):
            document, base = self.generator.draw()
            if number < first:
                continue
            try:
                self.promises.check(document, base, number)
            except Refused as refusal:
                self.refused.append(f"{number}: {refusal}")
            except Broken as broken:
                self.note(number, document, base, broken)

    def note(self, number, document, base, broken):
        print(f"case {number}: {broken}", file=sys.stderr)
        is_new = broken.what not in self.broken
        self.broken.setdefault(broken.what, []).append(number)
        if not is_new:
            return
        self.keep.mkdir(parents=True, exist_ok=True)
        small = shrink(document, lambda smaller: self.still(broken.what, smaller, base, number))
        for name, value in ((f"{number}-whole", document), (f"{number}-base", base), (f"{number}-small", small)):
            (self.keep / f"{name}.json").write_text(json.dumps(value, indent=1) + "\n")
        print(f"  kept: {self.keep}/{number}-small.json", file=sys.stderr)

    def still(self, what, document, base, number):
        try:
            self.promises.check(document, base, number)
        except Broken as broken:
            return broken.what == what
        except Refused:
            pass
        except KeyError:  # of a check that needs what was left out
            pass
        return False


def main():
    options = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    options.add_argument("program")
    options.add_argument("--cases", type=int, default=100)
    options.add_argument("--first", type=int, default=0, help="leave out the cases before this one, which are drawn all the same")
    options.add_argument("--seed", type=int, default=0)
    options.add_argument("--keep", default=str(ROOT / "build/generator"))
    options.add_argument("--refusals", action="store_true", help="print why scenarios were refused")
    options = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        play = Play(options, folder)
        play.play(options.first, options.cases)
    anomaly, kind = play.promises.largest_anomaly
    print(f"{options.cases} scenarios with {len(play.generator.pairs.seen):,} pairs of features: {len(play.refused)} refused, "
          f"{sum(map(len, play.broken.values()))} broken promises; longest on faster hardware: {anomaly:+.2%} ({kind})")
    if options.refusals:
        print("\n".join(play.refused))
    for what, numbers in sorted(play.broken.items()):
        print(f"  {what}: {len(numbers)} times, first in case {numbers[0]}")
    if len(play.refused) > MOST_REFUSED * options.cases + 2:
        sys.exit(f"more than {MOST_REFUSED:.0%} refused: not what a generator of valid scenarios draws (--refusals prints them)")
    sys.exit(1 if play.broken else 0)


if __name__ == "__main__":
    main()

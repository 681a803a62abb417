"""Pairwise coverage: of several drawn sets of features, the one with most pairs of values that were not drawn before."""
import itertools


class Pairs:
    def __init__(self):
        self.seen = set()

    @staticmethod
    def of(features):
        return set(itertools.combinations(sorted((name, str(value)) for name, value in features.items()), 2))

    def choose(self, candidates):
        best = max(candidates, key=lambda features: len(self.of(features) - self.seen))
        self.seen |= self.of(best)
        return best

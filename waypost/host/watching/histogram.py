"""How long things took, in few numbers: counts by fixed bounds, of which any share can be asked. Pure."""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import dataclass

BOUNDS = (0.0001, 0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0)
"""Seconds; what took longer than the last is counted behind it."""
WINDOW = 1000
"""Of so many, at least, and twice as many at most, is what ``Recent`` tells."""


@dataclass(frozen=True, slots=True)
class Histogram:
    """``counts``: by bound, those that took at most that long and longer than the bound before; one more at the end."""

    counts: tuple[int, ...] = (0,) * (len(BOUNDS) + 1)
    total: float = 0.0
    """Seconds of all together."""

    @property
    def count(self) -> int:
        """How many there were."""
        return sum(self.counts)

    def add(self, seconds: Iterable[float]) -> "Histogram":
        """With these; a time below 0 counts as 0."""
        counts, total = list(self.counts), self.total
        for each in seconds:
            counts[bisect_left(BOUNDS, each)] += 1
            total += max(0.0, each)
        return Histogram(tuple(counts), total)

    def __add__(self, other: "Histogram") -> "Histogram":
        counts = tuple(mine + theirs for mine, theirs in zip(self.counts, other.counts, strict=True))
        return Histogram(counts, self.total + other.total)

    def quantile(self, share: float) -> float | None:
        """What a share of them (0 to 1) took at most, in seconds: a straight line within its bounds; None of none."""
        wanted, below, lower = share * self.count, 0, 0.0
        if not wanted:
            return None
        for bound, count in zip(BOUNDS, self.counts, strict=False):
            if count and below + count >= wanted:
                return lower + (bound - lower) * (wanted - below) / count
            below, lower = below + count, bound
        return BOUNDS[-1]


NONE = Histogram()


@dataclass(frozen=True, slots=True)
class Recent:
    """The newest ``WINDOW`` to twice as many: what was slow last year says nothing of today."""

    newer: Histogram = NONE
    older: Histogram = NONE

    def add(self, seconds: Iterable[float]) -> "Recent":
        """With these."""
        newer = self.newer.add(seconds)
        return Recent(NONE, newer) if newer.count >= WINDOW else Recent(newer, self.older)

    def quantile(self, share: float) -> float | None:
        """As of ``Histogram``."""
        return (self.newer + self.older).quantile(share)

"""What there is in a repository, counted: how many runs wait on what, how much mail waits, and what is due next.

Part of ``substrate.messages``, by whose name it is imported. Counting costs the same whether a hundred runs are parked
or a hundred thousand, but for SQLite's own counting: some milliseconds.
"""

from dataclasses import dataclass
from typing import TypeAlias

from waypost.model.waiting import Kind

Kinds: TypeAlias = tuple[Kind, ...]
"""What one run waits on, by kind, each kind once."""


@dataclass(frozen=True, slots=True)
class ReadCensus:
    """Count what there is. ``now``: Unix milliseconds, by which a schedule's next tick is found. Value: ``Census``."""

    now: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Census:
    """``waiting``: live runs by what they wait on; a run that waits on two kinds is counted under both together.

    ``queued``: mails that no run has yet; ``rejected`` counts all there ever were; ``outbox``: mails on their way out.
    ``deadlines``: of runs, that are open; ``next``: the soonest of them or of schedules' ticks, in Unix milliseconds.
    """

    waiting: tuple[tuple[Kinds, int], ...]
    queued: int
    on_hold: int
    rejected: int
    outbox: int
    deadlines: int
    next: int | None

    @property
    def live(self) -> int:
        """Runs that have begun and haven't ended."""
        return sum(count for _, count in self.waiting)

    def waits(self) -> dict[Kind, int]:
        """How many live runs wait on each kind, most first; a run that waits on two is counted for each."""
        found: dict[Kind, int] = {}
        for kinds, count in self.waiting:
            for kind in kinds:
                found[kind] = found.get(kind, 0) + count
        return dict(sorted(found.items(), key=lambda each: (-each[1], each[0])))

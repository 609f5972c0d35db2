"""When buckets of consumed mail are dropped: looked for at the start and once in 24 hours of uptime (storage §5).

Each look allows at most a day's buckets, so a clock that jumps costs no more than that until somebody puts it right.
"""

from substrate.operations.buckets import drop, due, left_over, watermark
from substrate.operations.change import Change, Context, View
from waypost.model.limits import Limits
from waypost.model.times import Now

PAUSE = 86_400.0
"""Seconds of uptime between two looks."""


class Drops:
    """What is to be dropped in this repository, one commit after the other."""

    def __init__(self, address: str, limits: Limits) -> None:
        self._address, self._limits = address, limits
        self._may: int | None = None
        """So many buckets may still go; None where nothing is left of those that have gone, too."""
        self._again: float | None = None

    @property
    def waiting(self) -> bool:
        """Whether there is a commit to make."""
        return self._may is not None

    def look(self, view: View, now: Now) -> None:
        """See which buckets may go by now, if it is time for that."""
        if self._again is None or now.mono >= self._again:
            mark = watermark(view, self._address)
            count = due(mark, now.wall, self._limits.retention)
            self._may = count if count or left_over(view, mark, self._address) else None
            self._again = now.mono + PAUSE

    def next(self, view: View, context: Context) -> Change | None:
        """The next commit; None when there is none."""
        if self._may is None:
            return None
        change = drop(view, context, another=self._may > 0)
        self._may = None if change is None else self._may - bool(change.value)
        return change

    def give_up(self) -> None:
        """Leave what is left to the next look."""
        self._may = None

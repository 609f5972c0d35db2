"""How fast a child may write: 2,000 commits a second averaged over 10 s, then it is slowed and not killed (storage §4).

Its answers are held back, not its requests: it has no more than so many of them under way, so it writes no faster than
it is answered; and what it wrote is on its way to the disk without a pause. Pure: time is a value, in seconds of the
monotonic clock.
"""

from dataclasses import dataclass

from actors.logic.child.outbox import Item
from waypost.model.limits import Limits


@dataclass(frozen=True, slots=True)
class Late:
    """An answer that may leave at ``due``."""

    due: float
    item: Item


@dataclass(frozen=True, slots=True)
class Pace:
    """``until``: when all that was committed so far would be paid for, at the rate that is allowed.

    ``late``: answers that are held back, in order; their times never fall.
    """

    until: float = 0.0
    late: tuple[Late, ...] = ()


def charge(pace: Pace, items: tuple[Item, ...], now: float, limits: Limits) -> tuple[Pace, tuple[Item, ...]]:
    """Count one commit, and hold its answer back where the child is ahead by more than the average allows.

    Returns what may be said at once: ``items``, or nothing.
    """
    until = max(pace.until, now) + 1 / limits.commits
    due = until - limits.commits_over
    if not pace.late and due <= now:
        return Pace(until), items
    return Pace(until, (*pace.late, *(Late(due, item) for item in items))), ()


def release(pace: Pace, now: float) -> tuple[Pace, tuple[Item, ...]]:
    """What may be said by now."""
    count = sum(late.due <= now for late in pace.late)
    return Pace(pace.until, pace.late[count:]), tuple(late.item for late in pace.late[:count])

"""Whether a repository is at rest: whether anything is to be done by itself, and when something will be.

Pure over the index. Which queued mail could be taken up is dispatch's to say: it names the position up to which it has
judged, and what came after that has another one.
"""

import itertools

from substrate.indexing.index import Index
from substrate.rest import NAMED, Rest
from substrate.ticking import soonest
from waypost.model.errors import Invalid
from waypost.model.times import Now


def rest(index: Index, *, position: int, quiet: float, now: Now) -> Rest:
    """What is to be done of what this repository holds. Raises Damaged, DerivedFailed."""
    if busy := _busy(index):
        return Rest(position, quiet, busy, None)
    live = tuple(itertools.islice(index.runs.unended(0), NAMED))
    return Rest(position, quiet, "", next_deadline(index, now.wall), live, now)


def next_deadline(index: Index, now: int) -> int | None:
    """When something is due next, in Unix ms: a run's deadline, or a schedule's tick; None: never.

    What is overdue lies in the past. Schedules that can't be read have no tick: the scheduler says so.
    """
    timer = next((each.fire_at for each in index.runs.deadlines(None)), None)
    try:
        tick = soonest(index, now)
    except Invalid:
        tick = None
    return min((at for at in (timer, tick) if at is not None), default=None)


def _busy(index: Index) -> str:
    if index.outbox:
        return "mail is to go out"
    if index.finished:
        return "a run that has ended is to be sealed"
    return "a run executes" if index.runs.driven() else ""

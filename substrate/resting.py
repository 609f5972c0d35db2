"""Whether a repository is at rest: whether anything is to be done by itself, and when something will be.

Pure over the index. Which queued mail could be taken up is dispatch's to say: it names the position up to which it has
judged, and what came after that has another one.
"""

from substrate.index import Index
from substrate.rest import Rest


def rest(index: Index, *, position: int, quiet: float) -> Rest:
    """What is to be done of what this repository holds. Raises Damaged, DerivedFailed."""
    soonest = next(iter(index.runs.deadlines(None)), None)
    return Rest(position, quiet, _busy(index), None if soonest is None else soonest.fire_at)


def _busy(index: Index) -> str:
    if index.outbox:
        return "mail is to go out"
    if index.finished:
        return "a run that has ended is to be sealed"
    return "a run executes" if index.runs.driven() else ""

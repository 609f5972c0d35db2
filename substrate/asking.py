"""The approvals that are open: what runs ask of people, read from their states and from the events that asked.

Pure over a tree. A run's state names the event, so that no log is read for it; the event has what is to be shown.
"""

import itertools
from collections.abc import Callable, Iterable, Iterator

from msgspec import UNSET

from substrate import runlog
from substrate.messages import Approval, Approvals
from substrate.runlog import Known, Tree
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.ids import CallId, RunId


def approvals(tree: Tree, runs: Iterable[RunId], known: Callable[[RunId], Known], limit: int) -> Approvals:
    """The open approvals of the first ``limit`` of these runs, and whether there are more of them. Raises Damaged."""
    several = list(itertools.islice(runs, limit + 1))
    looked = several[:limit]
    found = tuple(each for run in looked for each in _asked(tree, run, known(run)))
    return Approvals(found, looked[-1] if len(several) > limit else None)


def _asked(tree: Tree, run: RunId, known: Known) -> Iterator[Approval]:
    ledger = fold.ledger(known.run)
    for call, wait in () if ledger is None else ledger.waits.items():
        if wait.park == "approval":
            yield Approval(
                run=run,
                call=call,
                at=wait.since,
                title=wait.title,
                who=wait.who,
                request=wait.request,
                deadline=wait.timeout_at,
                snapshot=_snapshot(tree, run, call, wait.seq),
            )


def _snapshot(tree: Tree, run: RunId, call: CallId, seq: int) -> bytes | None:
    for raw in runlog.events(tree, run, after=seq - 1):
        event = ev.decode(raw)
        if isinstance(event, ev.SignalAwaited) and event.call == call:
            return None if event.snapshot is UNSET else bytes(event.snapshot)
        break
    return None

"""The list of runs, newest first: read as far as it is asked, whether there are ten runs or a hundred thousand.

The row of runs comes from the tree alone; what is said of each comes from its card, where that holds for the tree, or
from its log.
"""

import heapq
import itertools
from collections.abc import Callable, Iterable, Iterator, Mapping

from substrate import layout, runlog
from substrate.errors import Damaged
from substrate.indexing import cards
from substrate.indexing.cards import Card, arrival_of, line_of
from substrate.messages import RunLine
from substrate.runlog import Rooted
from waypost.model import run as fold
from waypost.model.child_mail import spawner
from waypost.model.ids import RunId, run_ordinal
from waypost.model.queue import Entry
from waypost.model.waiting import waiting_on


def list_runs(
    tree: Rooted,
    queued: Mapping[RunId, Entry],
    subject: Callable[[int], str],
    line: Callable[[RunId], RunLine],
    *,
    limit: int,
    before: RunId | None = None,
) -> tuple[RunLine, ...]:
    """Runs that have begun, and those whose first mail is queued (``queued``); ``line`` tells of one that has begun.

    With ``before`` only those older than that one.
    """
    ids = heapq.merge(
        sorted(queued, key=run_ordinal, reverse=True),
        runlog.newest_first(tree, layout.RUNS),
        runlog.newest_first(tree, layout.SEALED),
        key=run_ordinal,
        reverse=True,
    )
    found: list[RunLine] = []
    older = ids if before is None else _older(ids, run_ordinal(before))
    for run in itertools.islice(_once(older), limit):
        entry = queued.get(run)
        if entry is not None and not runlog.is_there(tree, run):
            found.append(_waits(run, entry, subject(entry.arrival)))
        else:
            found.append(line(run))
    return tuple(found)


def told_line(tree: Rooted, run: RunId, card: Card | None, subject: Callable[[int], str]) -> RunLine:
    """What a list says of a run that has begun: from its card, if that holds, or from its log. Raises Damaged."""
    if card is not None:
        where = layout.sealed_dir(run) if isinstance(card.what, cards.Sealed) else layout.run_dir(run)
        if card.tree == tree.directory_id(where):  # a run that is sealed has no directory among the others
            return cards.line(card, subject)
    if not runlog.is_sealed(tree, run):
        known = runlog.load(tree, run)
        if not known.seq:
            raise Damaged(layout.run_dir(run), "a run without an event")
        return line_of(run, known, subject(arrival_of(known)))
    told = runlog.summary(tree, run)
    return RunLine(
        run=run,
        state=told.outcome,
        started=told.started,
        changed=told.changed,
        seq=told.seq,
        subject=subject(told.arrival),
        parent=told.parent,
    )


def _waits(run: RunId, entry: Entry, subject: str) -> RunLine:
    by = spawner(entry.id)
    return RunLine(
        run=run,
        state="queued",
        started=entry.received,
        changed=entry.received,
        seq=0,
        subject=subject,
        waiting=waiting_on(fold.Absent()),
        parent=by.run if by else "",
    )


def _older(runs: Iterable[RunId], ordinal: int) -> Iterator[RunId]:
    return itertools.dropwhile(lambda run: run_ordinal(run) >= ordinal, runs)


def _once(runs: Iterable[RunId]) -> Iterator[RunId]:
    """Each run of a sorted row once: it may be queued and have begun, or be on its way to where it is sealed."""
    return (run for run, _ in itertools.groupby(runs))

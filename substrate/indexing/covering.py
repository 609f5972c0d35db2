"""Bringing the derived index up to a tree: at the start, what changed since it was stamped, or all of it again.

What changed is found from the ids of directories (``changed_runs``). A run's card is only used where the log goes
on from it: the newest event that it knows must be there, with its hash. Where it isn't, the file is of another
history (a repository that was rolled back, another deployment's file), and all of it is built again.
"""

import heapq
import itertools
import logging
import os
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from substrate import layout, runlog
from substrate.errors import BadObject, Damaged, DerivedFailed
from substrate.indexing.cards import Card, card_of, known_of, sealed_card
from substrate.indexing.changed_runs import changed_runs
from substrate.indexing.derived import FORMAT, DerivedFile, Row, Stamp, remove
from substrate.operations.sealing import thread_of
from substrate.routing import key_of
from substrate.runlog import Rooted, Tree
from waypost.model import events as ev
from waypost.model.ids import RunId, run_ordinal

_log = logging.getLogger(__name__)
_MANY = 1000
_NEWS = 10_000
"""Runs between two lines about a long work."""


class OtherHistory(Exception):
    """What the file knows isn't what this repository's past was."""


def open_derived(path: Path | None, tree: Rooted, repository: str) -> DerivedFile:
    """The derived index of a tree, brought up to it. Where the disk allows none, it is kept in memory for this time.

    Raises Damaged for a run that can't be folded.
    """
    if path is not None:
        try:
            return _covering(path, tree, repository)
        except (DerivedFailed, OSError) as failure:
            _log.warning("%s: the index of runs is kept in memory for this time: %s", path, failure)
    return _built(None, tree, repository)


def stamp_of(tree: Rooted, repository: str) -> Stamp:
    """The stamp of an index that goes up to this tree."""
    return Stamp(FORMAT, repository, (tree.directory_id(layout.RUNS), tree.directory_id(layout.SEALED)))


def _covering(path: Path, tree: Rooted, repository: str) -> DerivedFile:
    found: DerivedFile | None = None
    try:
        found = DerivedFile(path)
        _catch_up(found, tree, repository)
    except (DerivedFailed, OtherHistory, Damaged, BadObject, OSError) as failure:
        # Damaged, too: it may be the file that is wrong; if it is a run, building will say so.
        if found is not None:
            found.close()
        if path.exists():
            _log.info("%s: the index of runs is built again: %s", path, failure)
        return _built(path, tree, repository)
    return found


def _catch_up(file: DerivedFile, tree: Rooted, repository: str) -> None:
    stamp, now = file.stamped(), stamp_of(tree, repository)
    if stamp is None or (stamp.format, stamp.repository) != (FORMAT, repository):
        raise OtherHistory("it has no stamp of this repository")
    if stamp == now:
        return
    changed: set[RunId] = set()
    for since in filter(None, (stamp.at, stamp.ahead)):
        for old, new in zip(since, now.at, strict=True):
            changed.update(changed_runs(tree.directory, old, new))
    rows = _told(file, tree, sorted(changed, key=run_ordinal), file.card)
    file.put(rows, now)


def _built(path: Path | None, tree: Rooted, repository: str) -> DerivedFile:
    """A new file with every run in it. It has no name before it is whole and on disk."""
    count = sum(1 for _ in _all(tree))
    if count > _MANY:
        _log.warning("%s: indexing %d runs; this is done once", path or "in memory", count)
    aside = None if path is None else path.with_name(path.name + ".new")
    if aside is not None:
        aside.unlink(missing_ok=True)
    file = DerivedFile(aside, fresh=aside is not None)
    try:
        file.put(_told(file, tree, _counted(path, _all(tree), count), lambda _run: None), stamp_of(tree, repository))
    except BaseException:
        file.close()
        if aside is not None:
            with suppress(OSError):
                aside.unlink(missing_ok=True)
        raise
    if path is None or aside is None:
        return file
    file.close()
    with aside.open("rb") as whole:
        os.fsync(whole.fileno())
    remove(path)
    aside.rename(path)
    return DerivedFile(path)


def _all(tree: Tree) -> Iterator[RunId]:
    """Every run, oldest first; none of them is kept in memory. One that is half sealed lies in both places."""
    roots = (runlog.oldest_first(tree, root) for root in (layout.RUNS, layout.SEALED))
    return (run for run, _ in itertools.groupby(heapq.merge(*roots, key=run_ordinal)))


def _counted(path: Path | None, runs: Iterable[RunId], count: int) -> Iterator[RunId]:
    for number, run in enumerate(runs):
        if number and number % _NEWS == 0:
            _log.warning("%s: %d of %d runs are indexed", path or "in memory", number, count)
        yield run


def _told(
    file: DerivedFile, tree: Rooted, runs: Iterable[RunId], before: Callable[[RunId], Card | None]
) -> Iterator[Row]:
    """The rows of these runs, oldest first; each may rest on those before it. Raises OtherHistory, Damaged."""
    for run in runs:
        sealed = runlog.is_sealed(tree, run)
        where = layout.sealed_dir(run) if sealed else layout.run_dir(run)
        known = before(run)
        card, keys, after = _card(tree, run, tree.directory_id(where), known, sealed=sealed)
        root = file.root_of(run) if after is None else _root(file, tree, run, after)
        yield Row(card, root or run, keys)


def _card(
    tree: Rooted, run: RunId, oid: str, old: Card | None, *, sealed: bool
) -> tuple[Card, tuple[str, ...], RunId | None]:
    """A run's card now, keys of messages that came after the old one, and which run it follows, if that is news."""
    known = None if old is None else known_of(old)
    if old is not None and known is None:
        if old.tree != oid or not sealed:
            raise OtherHistory(f"{run} is sealed otherwise")
        return old, (), None
    seq = 0 if known is None else known.seq
    more = runlog.events(tree, run, after=max(0, seq - 1))
    if known is not None and ev.digest(next(more, b"")) != known.prev:
        raise OtherHistory(f"{run} has another past")
    if sealed:
        thread = thread_of(run, more)
        told = runlog.summary(tree, run)
        subject = None if old is None else old.subject
        return sealed_card(run, oid, subject, told), thread.keys, thread.after
    noted: list[ev.AnyEvent] = []
    now = runlog.load_on(tree, run, known or runlog.ABSENT, more, lambda event: _keep(noted, event))
    if not now.seq:
        raise Damaged(layout.run_dir(run), "a run without an event")
    subject = None if old is None else old.subject  # who lists it may look: that would take a quarter of the time here
    keys = tuple(dict.fromkeys(filter(None, map(key_of, noted))))
    after = next((event.after or None for event in noted if isinstance(event, ev.RunStarted)), None)
    return card_of(run, oid, subject, now), keys, after


def _keep(noted: list[ev.AnyEvent], event: ev.AnyEvent) -> None:
    if key_of(event) is not None:
        noted.append(event)


def _root(file: DerivedFile, tree: Tree, run: RunId, after: RunId | None) -> RunId:
    """The first run of a thread: told by the file, or by the beginnings of logs, each older than the last."""
    while after is not None and run_ordinal(after) < run_ordinal(run):
        known = file.root_of(after)
        if known is not None:
            return known
        run, after = after, thread_of(after, _first(tree, after)).after
    return run


def _first(tree: Tree, run: RunId) -> list[bytes]:
    return list(runlog.page(tree, run, after=0, limit=1)[0])

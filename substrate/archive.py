"""Threads of sealed runs, in an SQLite file beside the repository, so that memory and opening don't grow with them.

Derived data (storage §3): nothing in it is a truth of its own. It may be deleted at any time, and is built again from
the sealed logs when it is missing, unreadable, or of another state of ``sealed/`` than the repository's. Only the
repository's writer opens it; readers need none. A row is written before the commit that seals its run, so what isn't
in memory is always here; a row that a crash left without its commit says nothing that the run's own log doesn't.
"""

import logging
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from substrate import layout, runlog
from substrate.errors import ArchiveFailed, Damaged
from substrate.operations.sealing import thread_of
from substrate.routing import Thread
from substrate.runlog import Tree
from waypost.model import events as ev
from waypost.model.errors import Invalid
from waypost.model.ids import RunId, run_ordinal

_log = logging.getLogger(__name__)
T = TypeVar("T")

FORMAT = "1"
"""Another number makes every older file be built again."""
_TABLES = """
create table if not exists run(ordinal integer primary key, id text not null, root text);
create index if not exists thread on run(root, ordinal) where root is not null;
create table if not exists mail(key blob primary key, run integer not null) without rowid;
create table if not exists stamp(one integer primary key check (one = 1), format text, sealed text);
"""
_MANY = 1000


class ArchiveFile:
    """The archive of one repository, open. Every method may raise ArchiveFailed; the file is gone then."""

    def __init__(self, path: Path | None) -> None:
        """Open or make it; None keeps it in memory."""
        self._path = path
        self._base = self._opened()

    @classmethod
    def open(cls, path: Path | None, tree: Tree, state: str) -> "ArchiveFile":
        """Open it, and bring it up to what is sealed in ``tree``; ``state`` is any text that changes with that.

        A file that can't be read is built again, and where the disk allows none, it is kept in memory for this time.
        Raises Damaged.
        """
        for where in (path, path):
            try:
                return cls(where).covering(tree, state)
            except (ArchiveFailed, OSError) as failure:
                _log.warning("%s", failure)
        return cls(None).covering(tree, state)

    # --- what it knows ---

    def run_of(self, key: str) -> RunId | None:
        """The sealed run that the message with this key belongs to."""
        return self._one("select id from mail join run on ordinal = run where key = ?", bytes.fromhex(key))

    def root_of(self, run: RunId) -> RunId | None:
        """The first run of the thread that this sealed run is in; None for one that isn't here."""
        return self._one("select coalesce(root, id) from run where ordinal = ? and id = ?", run_ordinal(run), run)

    def newest_of(self, root: RunId) -> RunId | None:
        """The newest sealed run of the thread that began with ``root``, itself excepted."""
        return self._one("select id from run where root = ? order by ordinal desc limit 1", root)

    # --- what changes it ---

    def add(self, thread: Thread, root: RunId) -> None:
        """Remember a run; doing it twice is fine. Of two runs with the same mail the newer one has it."""

        def act() -> None:
            with self._base:
                self._base.execute("begin")
                self._add(thread, root)

        self._do(act)

    def stamp(self, state: str) -> None:
        """Say that all runs of this state of ``sealed/`` are here."""
        self._do(lambda: self._base.execute("insert or replace into stamp values(1, ?, ?)", (FORMAT, state)))

    def close(self) -> None:
        """Let go of the file; doing it twice is fine."""
        self._base.close()

    # --- inside ---

    def covering(self, tree: Tree, state: str) -> "ArchiveFile":
        """The same, with all of what is sealed in the tree and nothing else. Raises ArchiveFailed, Damaged."""
        if self._stamped() != state:
            try:
                self._do(lambda: self._cover(tree))
                self.stamp(state)
            except BaseException:
                self.close()
                raise
        return self

    def _stamped(self) -> str | None:
        found = self._do(lambda: self._base.execute("select format, sealed from stamp").fetchone())
        if found is None:
            return None
        written, state = found
        if written != FORMAT:
            self.close()
            raise self._failed(f"its format is {written}, not {FORMAT}")
        return str(state)

    def _cover(self, tree: Tree) -> None:
        """Add the sealed runs that aren't here, oldest first: all of them or none. Of another history nothing stays.

        A run that a crash left unsealed may stay: it has ended, so what is said of it here will hold.
        """
        sealed = runlog.run_ids(tree, layout.SEALED)
        known = {RunId(run) for (run,) in self._base.execute("select id from run")}
        with self._base:
            self._base.execute("begin")
            if any(not tree.entries(layout.run_dir(run)) for run in known.difference(sealed)):
                self._base.execute("delete from run")
                self._base.execute("delete from mail")
                known.clear()
            missing = [run for run in sealed if run not in known]
            if len(missing) > _MANY:
                _log.warning("%s: indexing %d sealed runs; this is done once", self._path, len(missing))
            for run in missing:
                if runlog.is_sealed(tree, run):
                    thread = thread_of(run, runlog.events(tree, run))
                    self._add(thread, self._root(tree, thread))

    def _root(self, tree: Tree, thread: Thread) -> RunId:
        """The first run of a thread: told by the archive, or by the beginnings of logs, each older than the last."""
        run, after = thread.run, thread.after
        while after is not None and run_ordinal(after) < run_ordinal(run):
            known = self.root_of(after)
            if known is not None:
                return known
            run, after = after, _after(tree, after)
        return run

    def _add(self, thread: Thread, root: RunId) -> None:
        ordinal = run_ordinal(thread.run)
        self._base.execute(
            "insert or replace into run values(?, ?, ?)", (ordinal, thread.run, None if root == thread.run else root)
        )
        self._base.executemany(
            "insert into mail values(?, ?) on conflict(key) do update set run = excluded.run where excluded.run > run",
            [(bytes.fromhex(key), ordinal) for key in thread.keys],
        )

    def _one(self, query: str, *values: object) -> RunId | None:
        found = self._do(lambda: self._base.execute(query, values).fetchone())
        return None if found is None else RunId(found[0])

    def _opened(self) -> sqlite3.Connection:
        if self._path is not None:
            self._path.parent.mkdir(mode=0o700, exist_ok=True)
        base = sqlite3.connect(":memory:" if self._path is None else self._path, isolation_level=None)
        try:
            # A power cut may cost the newest rows, never the file's soundness; what is missing shows by the stamp.
            base.execute("pragma journal_mode=wal")
            base.execute("pragma synchronous=normal")
            base.executescript(_TABLES)
        except sqlite3.Error as failure:
            base.close()
            raise self._failed(str(failure)) from failure
        return base

    def _do(self, act: Callable[[], T]) -> T:
        try:
            return act()
        except sqlite3.Error as failure:
            self._base.close()
            raise self._failed(str(failure)) from failure

    def _failed(self, why: str) -> ArchiveFailed:
        if self._path is not None:
            for name in ("", "-wal", "-shm"):
                self._path.with_name(self._path.name + name).unlink(missing_ok=True)
        return ArchiveFailed(str(self._path), why)


def _after(tree: Tree, run: RunId) -> RunId | None:
    for raw in runlog.events(tree, run):
        try:
            event = ev.decode(raw)
        except Invalid as bad:
            raise Damaged(f"{run}, event 1", bad.message) from None
        return (event.after or None) if isinstance(event, ev.RunStarted) else None
    return None

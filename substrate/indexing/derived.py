"""What is known of runs without reading them, in an SQLite file beside the repository: derived data (storage §3).

So memory and opening don't grow with runs that nobody touches. Nothing in it is a truth of its own: it may be deleted
at any time, and each card in it says of which directory's id it speaks (``cards``). The file is stamped with the ids of
``runs/`` and ``sealed/`` up to which it goes; ``covering`` brings it up to a tree, or builds it again. Only the
repository's writer writes it, and only of what is durable; a reader opens it as it lies there and changes nothing.

In the file: for each run its card, its thread, whose child it is, and while it is live the kinds of what it waits on;
of each message the run that it belongs to (the key is SHA-256 of its id), each open deadline, and the stamp.
``ahead_*`` is set while cards of a newer state are being written; ``place`` is the file's inode: a copy has another
one. What was copied while a host wrote may be torn in ways that no page shows (a deadline without its run, a run
without its mail), so a copy is built again whenever it was made.
"""

import sqlite3
import weakref
from collections import Counter
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar
from urllib.parse import quote

from substrate.errors import DerivedFailed
from substrate.indexing import cards
from substrate.indexing.cards import Card
from substrate.runlog import Known
from waypost.model import run as fold
from waypost.model.deadlines import Deadline, deadlines
from waypost.model.ids import CallId, RunId, is_run_id, run_ordinal
from waypost.model.waiting import kinds_of

T = TypeVar("T")

FORMAT = "5"
"""Another number makes every older file be built again."""
DRIVEN, QUIET, OVER, SEALED = range(4)
"""Stages of a run: the code has something to do; it is parked or paused; it has ended; it is sealed."""
_CACHE_KIB = 4096
_CHECKPOINT_PAGES = 256
"""After which SQLite moves its log into the file: 1 MiB, some milliseconds."""
_TABLES = """
create table if not exists run(
    ordinal integer primary key, id text not null, stage integer not null, root text, card blob not null,
    waits text, parent text);
create index if not exists live on run(waits) where waits is not null;
create index if not exists thread on run(root, ordinal) where root is not null;
create index if not exists nobodys on run(ordinal) where parent is null;
create index if not exists unsettled on run(stage, ordinal) where stage in (0, 2);
create table if not exists mail(key blob primary key, run integer not null) without rowid;
create table if not exists deadline(
    at integer, run text, call text, timer text, primary key(at, run, call, timer)) without rowid;
create index if not exists of_run on deadline(run);
create table if not exists stamp(
    one integer primary key check (one = 1), format text, repository text,
    runs text, sealed text, ahead_runs text, ahead_sealed text, place integer);
"""
_PRIMARY = 0xFF
"""Of SQLite's extended codes, what says the kind of an error."""


@dataclass(frozen=True, slots=True)
class Stamp:
    """Up to where a file goes: ids of ``runs/`` and ``sealed/``; ``ahead``: of some runs it may know as much more."""

    format: str
    repository: str
    at: tuple[str, str]
    ahead: tuple[str, str] | None = None


@dataclass(frozen=True, slots=True)
class Row:
    """A run to be written: its card, the first run of its thread, and keys of messages that belong to it."""

    card: Card
    root: RunId
    keys: tuple[str, ...]


class DerivedFile:
    """The file of one repository, open. Every method may raise DerivedFailed."""

    def __init__(self, path: Path | None, *, fresh: bool = False) -> None:
        """Open or make it; None keeps it in memory. A ``fresh`` one is to be filled, synced and opened again."""
        self.path, self._fresh = path, fresh
        if path is not None:
            path.parent.mkdir(mode=0o700, exist_ok=True)
            if path.exists() and not path.is_file():
                raise DerivedFailed(str(path), "it is not a regular file")
        try:
            # What is in memory holds nothing that anybody could miss: it goes with its object, on whichever thread.
            thread = path is not None
            self._base = sqlite3.connect(_address(path), uri=True, isolation_level=None, check_same_thread=thread)
        except sqlite3.Error as failure:
            raise DerivedFailed(str(path), str(failure)) from failure
        if path is None:
            weakref.finalize(self, self._base.close)
        try:
            self._base.execute(f"pragma cache_size=-{_CACHE_KIB}")
            if fresh:
                self._base.execute("pragma journal_mode=off")
                self._base.execute("pragma synchronous=off")
            else:
                # A power cut may cost the newest rows, never the file's soundness; what is missing shows by the stamp.
                self._base.execute("pragma journal_mode=wal")
                self._base.execute("pragma synchronous=normal")
                self._base.execute(f"pragma wal_autocheckpoint={_CHECKPOINT_PAGES}")
            self._base.executescript(_TABLES)
            # Only opening waits for whoever looks into the file: later on an append would wait, too.
            self._base.execute("pragma busy_timeout=0")
            self._place = 0 if path is None else path.stat().st_ino
        except (sqlite3.Error, OSError) as failure:
            self._base.close()
            raise DerivedFailed(str(path), str(failure)) from failure

    def close(self) -> None:
        """Let go of the file; doing it twice is fine."""
        self._base.close()

    def discard(self) -> None:
        """Let go of it for good: it is built again by whoever opens it next, or done without if it can't be removed."""
        self._base.close()
        if self.path is not None:
            with suppress(OSError):
                remove(self.path)

    # --- what it knows -----------------------------------------------------------------------------------------------

    def card(self, run: RunId) -> Card | None:
        """The card of a run, if there is one that can be read; whether it still holds, its ``tree`` says."""
        found = self._do(
            lambda: self._base.execute(
                "select card from run where ordinal = ? and id = ?", (run_ordinal(run), run)
            ).fetchone()
        )
        return None if found is None or not isinstance(found[0], bytes) else cards.decode(found[0])

    def run_of(self, key: str) -> RunId | None:
        """The run that the message with this key belongs to."""
        return self._run("select id from mail join run on ordinal = run where key = ?", bytes.fromhex(key))

    def unsealed(self, key: str) -> RunId | None:
        """The same, if that run isn't sealed."""
        return self._run(
            "select id from mail join run on ordinal = run where key = ? and stage <> ?", bytes.fromhex(key), SEALED
        )

    def root_of(self, run: RunId) -> RunId | None:
        """The first run of the thread that this one is in; None for one that isn't here."""
        return self._run("select coalesce(root, id) from run where ordinal = ? and id = ?", run_ordinal(run), run)

    def newest_of(self, root: RunId) -> RunId | None:
        """The newest run of the thread that began with ``root``, itself excepted."""
        return self._run("select id from run where root = ? order by ordinal desc limit 1", root)

    def newest(self) -> RunId | None:
        """The newest run that is nobody's child."""
        return self._run("select id from run where parent is null order by ordinal desc limit 1")

    def all_in(self, stage: int) -> list[RunId]:
        """The runs in a stage (``DRIVEN`` or ``OVER``), oldest first."""
        # The condition of the index is said, too: without it SQLite doesn't use it, and reads the whole table.
        query = "select id from run where stage = ? and stage in (0, 2) order by ordinal"
        return self._do(lambda: [_run_id(run) for (run,) in self._base.execute(query, (stage,))])

    def unended(self, after: int, limit: int) -> list[RunId]:
        """The first runs with an ordinal above ``after`` that haven't ended, oldest first."""
        query = "select id from run where ordinal > ? and stage in (?, ?) order by ordinal limit ?"
        values = (after, DRIVEN, QUIET, limit)
        return self._do(lambda: [_run_id(run) for (run,) in self._base.execute(query, values)])

    def deadlines(self, after: Deadline | None, limit: int) -> list[Deadline]:
        """The first open deadlines behind ``after``, in the order of firing."""
        begin = (-1, "", "", "") if after is None else (after.fire_at, after.run, after.call, after.timer)
        query = (
            "select at, run, call, timer from deadline where (at, run, call, timer) > (?, ?, ?, ?)"
            " order by at, run, call, timer limit ?"
        )
        return self._do(
            lambda: [
                Deadline(int(at), _run_id(run), CallId(str(call)), str(timer))
                for at, run, call, timer in self._base.execute(query, (*begin, limit))
            ]
        )

    def waiting(self, but: Iterable[RunId]) -> Counter[str]:
        """How many live runs wait on what (the kinds in one word each, blanks between), without those in ``but``."""

        def count() -> Counter[str]:
            found = Counter[str](
                dict(self._base.execute("select waits, count(*) from run where waits is not null group by waits"))
            )
            for run in but:
                found.subtract(
                    self._base.execute("select waits from run where ordinal = ?", (run_ordinal(run),)).fetchone() or ()
                )
            return found

        return self._do(count)

    def open_deadlines(self, but: Iterable[RunId]) -> int:
        """How many deadlines of runs are open, without those of the runs in ``but``."""

        def count() -> int:
            (every,) = self._base.execute("select count(*) from deadline").fetchone()
            theirs = (
                self._base.execute("select count(*) from deadline where run = ?", (run,)).fetchone()[0] for run in but
            )
            return int(every - sum(theirs))

        return self._do(count)

    def stamped(self) -> Stamp | None:
        """Up to where it goes; None for a file that never was finished, and for a copy of another one."""
        found = self._do(
            lambda: self._base.execute(
                "select format, repository, runs, sealed, ahead_runs, ahead_sealed from stamp where place = ?",
                (self._place,),
            ).fetchone()
        )
        if found is None:
            return None
        written, repository, runs, sealed, ahead_runs, ahead_sealed = found
        ahead = None if ahead_runs is None else (str(ahead_runs), str(ahead_sealed))
        return Stamp(str(written), str(repository), (str(runs), str(sealed)), ahead)

    # --- what changes it ---------------------------------------------------------------------------------------------

    def put(self, rows: Iterable[Row], stamp: Stamp | None = None) -> None:
        """Write runs, and a new stamp behind them: all of it or nothing. Of two runs with a mail the newer has it."""

        def act() -> None:
            with self._base:
                self._base.execute("begin immediate")
                for row in rows:
                    self._put(row)
                if stamp is not None:
                    ahead = stamp.ahead or (None, None)
                    self._base.execute(
                        "insert or replace into stamp values(1, ?, ?, ?, ?, ?, ?, ?)",
                        (stamp.format, stamp.repository, *stamp.at, *ahead, self._place),
                    )

        self._do(act)

    def _put(self, row: Row) -> None:
        card, execute = row.card, self._base.execute
        known = cards.known_of(card)
        ordinal = run_ordinal(card.run)
        root = None if row.root == card.run else row.root
        execute(
            "insert or replace into run values(?, ?, ?, ?, ?, ?, ?)",
            (ordinal, card.run, _stage(known), root, cards.encode(card), _waits(known), cards.parent_of(card) or None),
        )
        if not self._fresh:
            execute("delete from deadline where run = ?", (card.run,))
        if known is not None:
            self._base.executemany(
                "insert into deadline values(?, ?, ?, ?)",
                [(each.fire_at, each.run, each.call, each.timer) for each in deadlines(known.run)],
            )
        self._base.executemany(
            "insert into mail values(?, ?) on conflict(key) do update set run = excluded.run where excluded.run > run",
            [(bytes.fromhex(key), ordinal) for key in row.keys],
        )

    # --- inside ------------------------------------------------------------------------------------------------------

    def _run(self, query: str, *values: object) -> RunId | None:
        def ask() -> RunId | None:
            found = self._base.execute(query, values).fetchone()
            return None if found is None else _run_id(found[0])

        return self._do(ask)

    def _do(self, act: Callable[[], T]) -> T:
        try:
            return act()
        except (sqlite3.Error, ValueError, TypeError) as failure:  # the latter two of what no writer of ours has put in
            code = getattr(failure, "sqlite_errorcode", 0) & _PRIMARY
            passing = code in (sqlite3.SQLITE_FULL, sqlite3.SQLITE_BUSY)
            if not passing:
                self.discard()
            raise DerivedFailed(str(self.path), str(failure), passing=passing) from failure


class CardsOfAFile:
    """The cards in a file that another process may be writing: it is read as it lies there, and nothing is touched.

    Not even a lock or a log is looked at, so what is read may be torn; a card proves itself by its hash and its tree.
    """

    def __init__(self, path: Path) -> None:
        self._base: sqlite3.Connection | None = None
        if not path.is_file():  # a pipe would hold us up
            return
        try:
            self._base = sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)
        except sqlite3.Error:
            return

    def card(self, run: RunId) -> Card | None:
        """The card of a run, as far as one can be read."""
        if self._base is None:
            return None
        try:
            found = self._base.execute("select card from run where ordinal = ?", (run_ordinal(run),)).fetchone()
        except sqlite3.Error:
            self.close()
            return None
        card = None if found is None or not isinstance(found[0], bytes) else cards.decode(found[0])
        return card if card is not None and card.run == run else None

    def close(self) -> None:
        """Let go of the file."""
        if self._base is not None:
            self._base.close()
            self._base = None


def _address(path: Path | None) -> str:
    """Where SQLite finds it. With ``unix-excl`` what it knows of its log is in this process alone.

    A file of that, mapped into memory, would end the host by SIGBUS when somebody cuts it off. Other processes may look
    into it as ``CardsOfAFile`` does.
    """
    return ":memory:" if path is None else f"file:{quote(str(path))}?vfs=unix-excl"


def _run_id(found: object) -> RunId:
    """What is to be a run's id. Raises ValueError for what is none: SQLite doesn't see each byte that has changed."""
    if not isinstance(found, str) or not is_run_id(found):
        raise ValueError("there is something in it that no host has written")
    return RunId(found)


def remove(path: Path) -> None:
    """Remove a file of this kind with all that SQLite lays beside it."""
    for name in ("", "-wal", "-shm"):
        path.with_name(path.name + name).unlink(missing_ok=True)


def _waits(known: Known | None) -> str | None:
    if known is None or isinstance(known.run, fold.Absent | fold.Ended):
        return None
    return " ".join(kinds_of(known.run))


def _stage(known: Known | None) -> int:
    if known is None:
        return SEALED
    if isinstance(known.run, fold.Ended):
        return OVER
    return DRIVEN if isinstance(known.run, fold.Driven) else QUIET

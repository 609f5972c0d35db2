"""One run, written anew: its beginning, its log and its other files as they were, its events in our words, its end.

What it promises: each of its events has exactly one of ours with the SHA-256 of its bytes, in the same order; and every
byte that lay in its directory lies with the run, under its hash. ``Foreign`` events say which is which.
"""

import hashlib
import itertools
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field

import msgspec

from substrate import layout
from substrate.messages import Appended, Recorded
from substrate.operations import Change
from substrate.operations.append import filed_events
from substrate.operations.grants import Grants, encode_grants
from substrate.reference import SYSTEM, arrivals, runs, words
from substrate.reference.desk import Desk
from substrate.reference.errors import Leaving
from substrate.reference.log import NewLog
from substrate.reference.rebuilt import rebuilt
from substrate.reference.records import Json, Told, clean
from substrate.reference.runs import RunFound
from substrate.reference.source import MIB, Source
from substrate.runlog import Known
from substrate.state import State
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.ids import Generation, RunId
from waypost.model.imported import Imported
from waypost.model.queue import Entry

PORTION = 4 * MIB
"""Bytes after which a commit, or a part of the old log, takes no more."""
MANY = 512
"""Events after which a commit takes no more."""
NO_HASH = "0" * 64
UNTOLD = "imported"
"""Why a mail is among the rejected that was consumed there, and caused no event that could be told."""


@dataclass(frozen=True, slots=True)
class Post:
    """A message of a run: its bytes where they are still there, and when it came and was consumed there, Unix ms.

    Without times it has those of its event.
    """

    raw: bytes | None = field(repr=False)
    received: int | None = None
    consumed: int | None = None


@dataclass(slots=True)
class Transcript:
    """The writing of one run."""

    desk: Desk
    source: Source
    found: RunFound
    commit: str
    version: str
    post: Callable[[str], Post | None]
    """What is known of the message with this id."""
    leaving: Leaving
    used: set[str] = field(default_factory=set)
    """Ids of the messages that it has taken in."""
    _names: words.Names = field(default_factory=words.Names)
    _committed: Known = field(default_factory=lambda: Known(fold.Absent()))
    _pending: list[Recorded] = field(default_factory=list)
    _values: dict[str, bytes] = field(default_factory=dict)
    _size: int = 0
    _at: int = 0

    def write(self) -> RunId:
        """Write all of it; the run's id here. Raises Unreadable, SubstrateError."""
        self._at = self.found.began
        told = runs.events(self.source, self.found)
        first = next(told)
        begins = first.type == "RunStarted"
        log = self._begin(first if begins else None)
        stored = self._keep(log)
        for each in told if begins else itertools.chain((first,), told):
            if isinstance(log.known.run, fold.Ended):
                where = f"{self.found.path} seq {each.seq}"
                self.leaving.add(where, "it comes after the run's end; it is kept in the old log only")
            else:
                self._say(log, each, stored)
        if not isinstance(log.known.run, fold.Ended):
            self._end(log)
        self._commit(log)
        return log.run

    # --- its beginning and its end ------------------------------------------------------------------------------------

    def _begin(self, told: Told | None) -> NewLog:
        desk = self.desk
        run, state = arrivals.next_run(desk.view, desk.context())
        at = self._time(told)
        entry, consumed = self._mail(run, state, told, None if told is None else told.inner("trigger", "payload"), at)
        grants = encode_grants(Grants(mail=()))
        definition = "" if told is None else told.text("definitionHash")
        started = ev.RunStarted(
            mail=entry.mailed,
            definition=hashlib.sha256(definition.encode()).hexdigest() if definition else NO_HASH,
            code=NO_HASH,
            python="",
            waypost=self.version,
            generation=Generation(desk.view.state.generation),
            grants=hashlib.sha256(grants).hexdigest(),
            origin=entry.key,
            imported=Imported(system=SYSTEM, run=words.line(clean(self.found.name)), commit=self.commit),
        )
        log = NewLog(run, Known(fold.Absent(), prev=ev.genesis(desk.context().repository, run, grants)), desk.limits)
        taken = self._take(log, (started,), at, told)
        assert taken, "every run may begin"
        self._commit(log, {layout.grants_path(run): grants}, entry, consumed)
        return log

    def _end(self, log: NewLog) -> None:
        """It was live there; nothing can go on with it here, and it says so."""
        ledger = fold.ledger(log.known.run)
        open_waits = () if ledger is None else ledger.waits
        waits = ", ".join(name for name, call in self._names.waits.items() if call in open_waits) or "no mail"
        waited = f"the run was live where it was imported from, and waited for {words.line(waits)}"
        error = ev.Fault(type="Imported", message=f"{waited}; its program can't go on here")
        taken = self._take(log, (ev.RunFailed(error=error),), self._at, None)
        assert taken, "every live run may fail"

    # --- what lay there -----------------------------------------------------------------------------------------------

    def _keep(self, log: NewLog) -> frozenset[str]:
        """Its log and its other files, byte for byte; the hashes of the values among them."""
        for number, part in enumerate(_parts(runs.events(self.source, self.found)), 1):
            self._keep_one(log, "log", f"its log, part {number}", part)
        stored: set[str] = set()
        for path, file in self.found.others:
            name = self._keep_one(log, "file", path, self.source.file(file.oid, runs.FILE))
            if path == f"blobs/{name}":
                stored.add(name)
            elif path.startswith("blobs/"):
                where = f"{self.found.path}/{path}"
                self.leaving.add(where, "its name isn't the SHA-256 of its bytes; it is kept as a file, and no value")
        return frozenset(stored)

    def _keep_one(self, log: NewLog, was: str, about: str, data: bytes) -> str:
        name = hashlib.sha256(data).hexdigest()
        self._hold({name: data})
        self._take(log, (ev.Foreign(was=was, about=words.line(clean(about)), blob=name),), self._at, None)
        self._commit_portion(log)
        return name

    # --- its events ---------------------------------------------------------------------------------------------------

    def _say(self, log: NewLog, told: Told, stored: frozenset[str]) -> None:
        """One of its events, in our words if there are any that may follow, else as a Foreign one."""
        at = self._time(told)
        ledger = fold.ledger(log.known.run)
        assert ledger is not None, "it is live as long as there is something to say"
        entry, consumed = None, 0
        if words.awaited(told, ledger, self._names) and runs.mail_of(told):
            self._commit(log)  # the mail comes after what was before it
            entry, consumed = self._mail(log.run, self.desk.view.state, told, told.fields.get("payload"), at)
        mailed = None if entry is None else entry.mailed
        said = words.said(told, ledger, self._names, at, mailed, stored, self.desk.limits)
        if said.events and self._take(log, said.events, at, told):
            self._hold(said.values)
        else:
            taken = self._take(log, (words.foreign(told),), at, told)
            assert taken, "a live imported run takes any such event"
            if entry is not None:
                self.desk.file(entry, UNTOLD, consumed)
                entry = None
        if entry is not None:
            self._commit(log, {}, entry, consumed)
        self._commit_portion(log)

    def _mail(self, run: RunId, state: State, told: Told | None, payload: Json, at: int) -> tuple[Entry, int]:
        """A claimed mail for an event that takes one in, and when that was consumed there, Unix ms.

        Its own bytes, if they are still there and the door would have them; else it is made again from the record.
        """
        name = "" if told is None else runs.mail_of(told)
        post = self.post(name) if name else None
        received, consumed = (None, None) if post is None else (post.received, post.consumed)
        received, consumed = (at if received is None else received), (at if consumed is None else consumed)
        where = self.found.path if told is None else f"{self.found.path} seq {told.seq}"
        for raw in self._forms(post, payload, where, name):
            entry = self.desk.take_in(raw, run, state, received, starts=self._committed.seq == 0)
            if entry is not None:
                break
        else:
            raise AssertionError("there is always another form")
        if name:
            self.used.add(name)
            if post is None or post.raw != raw:
                self.leaving.add(
                    where, f"the bytes of the mail {name} are gone, or can't be taken: made from the record"
                )
        return entry, consumed

    @staticmethod
    def _forms(post: Post | None, payload: Json, where: str, name: str) -> Iterator[bytes]:
        if post is not None and post.raw is not None:
            yield post.raw
        why = f"{clean(where)} of {SYSTEM}, imported"
        yield rebuilt(payload, why, message_id=name)
        # Its id is taken: as a message without one, whose bytes no other mail has.
        for number in itertools.count(1):
            yield rebuilt({"recorded": payload}, f"{why} ({number})")

    # --- commits ------------------------------------------------------------------------------------------------------

    def _time(self, told: Told | None) -> int:
        """An event's time, Unix ms; one without a time has that of the one before it."""
        self._at = (None if told is None else told.time()) or self._at
        return self._at

    def _hold(self, values: dict[str, bytes]) -> None:
        self._values |= values
        self._size += sum(map(len, values.values()))

    def _take(self, log: NewLog, events: tuple[ev.AnyEvent, ...], at: int, told: Told | None) -> bool:
        made = log.add(events, at, None if told is None else hashlib.sha256(told.raw).hexdigest())
        self._pending.extend(made or ())
        self._size += sum(len(each.raw) for each in made or ())
        return made is not None

    def _commit_portion(self, log: NewLog) -> None:
        if self._size >= PORTION or len(self._pending) >= MANY:
            self._commit(log)

    def _commit(
        self, log: NewLog, puts: dict[str, bytes] | None = None, entry: Entry | None = None, consumed: int = 0
    ) -> None:
        """Commit what is pending, with the consumption of a mail if there is one."""
        if not self._pending:
            return
        recorded, self._pending = self._pending, []
        state = log.known.run
        assert not isinstance(state, fold.Absent)
        values = {layout.blob_path(log.run, name): data for name, data in self._values.items()}
        self._values, self._size = {}, 0
        files, deletes, folded = filed_events(self.desk.view, log.run, self._committed, recorded)
        self._committed = log.known = msgspec.structs.replace(log.known, folded=folded)
        change = Change(
            author="hub",
            subject=f"import {len(recorded)} event{'s' if len(recorded) > 1 else ''} of {log.run}",
            puts={**(puts or {}), **values, **files},
            deletes=deletes,
            facts=(Appended(log.run, tuple(recorded), state),),
            known={log.run: log.known},
        )
        if entry is None:
            self.desk.carry(change)
        else:
            self.desk.consume(entry, consumed, change)


def _parts(told: Iterable[Told]) -> Iterator[bytes]:
    """A log's bytes, each event and a line feed, in portions of whole events."""
    part: list[bytes] = []
    size = 0
    for each in told:
        if part and size + len(each.raw) > PORTION:
            yield b"".join(part)
            part, size = [], 0
        part += (each.raw, b"\n")
        size += len(each.raw) + 1
    yield b"".join(part)

"""Child runs and their parents: what the one's log says, the other's says too, by the same commit (storage §4).

``kin`` judges a commit: a child run is spawned with its mail, begins as the child that its parent's log knows, and ends
with its parent told; what its parent no longer awaits is told to end. ``Kin`` says the same of a whole tree.
"""

import hashlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import UNSET

from substrate import layout
from substrate.errors import Damaged
from substrate.rules.commit import QUEUED, Before, Commit, Ground, Sorted
from substrate.rules.logs import CHILD, Log
from substrate.rules.table import Broken, broken
from substrate.runlog import ABSENT, Known
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.child_mail import Spawner, child_id, input_of, spawner
from waypost.model.errors import Invalid
from waypost.model.ids import RunId, idempotency_key, message_key
from waypost.model.queue import Entry, decode


def spawned(raw: bytes) -> Spawner | None:
    """The call whose child's mail an entry is of; None for any other entry, and for what is none."""
    # Nearly every entry is of another mail, and isn't decoded for that; escapes may hide the word.
    entry = _entry(raw) if b"child:" in raw or b"\\u" in raw else None
    return None if entry is None else _by(entry.id, base64=entry.base64)


def kin(before: Before, commit: Commit, made: Sorted, logs: Sequence[Log], ground: Ground) -> Iterator[Broken]:
    """What a commit breaks between child runs and their parents."""
    of = _Commit(before, commit, made, {log.run: log for log in logs}, ground)
    for log in logs:
        for event in log.events:
            yield from of.event(log, event)
    yield from of.mails()


@dataclass(slots=True)
class _Commit:
    before: Before
    commit: Commit
    made: Sorted
    logs: Mapping[RunId, Log]
    ground: Ground

    def event(self, log: Log, event: ev.AnyEvent) -> Iterator[Broken]:
        path = layout.event_path(log.run, event.seq)
        match event:
            case ev.ChildSpawned():
                yield from self._spawned(log.run, event, path)
            case ev.RunStarted():
                yield from self._started(log.run, event, path)
            case ev.ChildCompleted():
                yield from self._completed(log.run, event, path)
            case ev.ChildCancelRequested():
                yield from self._unawaited(log.run, event, path)
            case ev.CancelRequested(origin="parent"):
                yield from self._asked(log, path)
            case ev.RunCompleted() | ev.RunFailed() | ev.RunCancelled():
                yield from self._ended(log, event, path)
            case _:
                pass

    def mails(self) -> Iterator[Broken]:
        """A child's mail comes with its ChildSpawned, and one that is rejected is known to the parent."""
        for path, (place, raw) in self.made.entries.items():
            by = spawned(raw)
            entry = None if by is None else _entry(raw)
            if by is None or entry is None:
                continue
            new = place.kind in QUEUED and self.before.arrival_of(place.key or "") is None
            if new and not self._spawns(by, entry.run):
                yield broken("child", path, f"the mail of a child of {by.run}, and no ChildSpawned at {by.call}")
            if place.kind == "consumed" and entry.rejected is not UNSET and self._awaits(by, entry.run):
                yield broken("child", path, f"it is rejected, and {by.run} isn't told")

    # --- by kind -----------------------------------------------------------------------------------------------------

    def _spawned(self, run: RunId, event: ev.ChildSpawned, path: str) -> Iterator[Broken]:
        key = message_key(child_id(run, event.call).encode())
        found = (raw for place, raw in self.made.entries.values() if place.kind == "inbox" and place.key == key)
        entry = next(filter(None, map(_entry, found)), None)
        if entry is None or entry.run != event.child or not entry.starts or entry.arrival not in self.made.mails:
            yield broken("child", path, f"{event.child} was spawned, and its mail isn't in the commit")
            return
        try:
            data = input_of(self.made.mails[entry.arrival])
        except Invalid as bad:
            yield broken("child", layout.mail_path(entry.arrival), bad.message)
            return
        if hashlib.sha256(data).hexdigest() != event.arguments:
            yield broken("child", layout.mail_path(entry.arrival), f"its input isn't {event.arguments}")

    def _started(self, run: RunId, event: ev.RunStarted, path: str) -> Iterator[Broken]:
        by = _by(event.mail.id, base64=event.mail.base64)
        if by is None:
            if event.parent is not UNSET:
                yield broken("child", path, f"a child of {event.parent.run}, by a mail that no run has spawned")
            return
        known = fold.ledger(self._was(by.run).run)
        child = None if known is None else known.children.get(by.call)
        if known is None or child is None or child.child != run:
            yield broken("child", path, f"{by.run} has no child {run} at {by.call}")
            return
        above = known.started.parent
        depth = above.depth + 1 if above else 1
        if event.parent != ev.Parent(run=by.run, call=by.call, workflow=child.workflow, depth=depth):
            yield broken("child", path, f"its parent isn't what {by.run} says of it")
        if event.origin != idempotency_key(self.ground.repository, known.started.origin, by.call):
            yield broken("child", path, f"origin {event.origin} isn't that of {by.call} of {by.run}")
        if self.commit.author == CHILD and not _stillborn(self.logs[run]):
            yield broken("author", path, f"{CHILD} may not begin a run")

    def _completed(self, run: RunId, event: ev.ChildCompleted, path: str) -> Iterator[Broken]:
        known = fold.ledger(self._was(run).run)
        child = None if known is None else known.children.get(event.call)
        if child is None:
            yield broken("child", path, "spawned and ended by one commit")
            return
        log = self.logs.get(child.child)
        ending = next((each for each in log.events if isinstance(each, ev.TERMINAL)), None) if log else None
        if ending is None:
            key = message_key(child_id(run, event.call).encode())
            rejected = any(
                place.kind == "consumed" and place.key == key and (found := _entry(raw)) and found.rejected is not UNSET
                for place, raw in self.made.entries.values()
            )
            if not rejected or event.outcome == "completed":
                yield broken("child", path, f"{child.child} is said to have {event.outcome}, and doesn't end here")
            return
        wrong = _differs(event, ending)
        if wrong:
            yield broken("child", path, f"{wrong} of {child.child} isn't that of its end")

    def _unawaited(self, run: RunId, event: ev.ChildCancelRequested, path: str) -> Iterator[Broken]:
        known = fold.ledger(self._was(run).run)
        child = None if known is None else known.children.get(event.call)
        if child is not None and self._goes_on(Spawner(run, event.call), child.child):
            yield broken("child", path, f"{child.child} isn't awaited any more, and wasn't told to end")

    def _asked(self, log: Log, path: str) -> Iterator[Broken]:
        parent = fold.parent_of(log.known.run)
        above = None if parent is None else self.logs.get(parent.run)
        if parent is None or above is None or not any(_lets_go(event, parent) for event in above.events):
            yield broken("child", path, "cancelled by its parent, which neither ends here nor lets go of it")

    def _ended(self, log: Log, event: ev.AnyEvent, path: str) -> Iterator[Broken]:
        parent = fold.parent_of(log.known.run)
        if parent is not None and self._awaits(Spawner(parent.run, parent.call), log.run):
            yield broken("child", path, f"it has ended, and its parent {parent.run} isn't told")
        if isinstance(event, ev.RunCancelled) and self.commit.author == CHILD and event.code == "not-run":
            asked = any(isinstance(each, ev.CancelRequested) for each in log.events)
            if not asked:
                yield broken("author", path, f"{CHILD} may not write RunCancelled with code not-run")
        assert isinstance(log.known.run, fold.Ended), "nothing but the fate of its mail follows"
        for call, child in log.known.run.children.items():
            if self._goes_on(Spawner(log.run, call), child.child):
                yield broken("child", path, f"it has ended, and its child {child.child} wasn't told to end")

    # --- what is -----------------------------------------------------------------------------------------------------

    def _was(self, run: RunId) -> Known:
        try:
            return self.before.known(run)
        except Damaged:  # told by whoever reads it; no other run is refused for it
            return ABSENT

    def _is(self, run: RunId) -> Known:
        log = self.logs.get(run)
        return self._was(run) if log is None else log.known

    def _awaits(self, by: Spawner, child: RunId) -> bool:
        known = fold.ledger(self._is(by.run).run)
        found = None if known is None else known.children.get(by.call)
        return found is not None and found.child == child

    def _goes_on(self, by: Spawner, child: RunId) -> bool:
        """Whether a child goes on, or is still to begin, and nobody has asked for its end."""
        match self._is(child).run:
            case fold.Ended():
                return False
            case fold.Absent():
                key = message_key(child_id(*by).encode())
                gone = any(place.key == key for place in self.made.gone_entries.values())
                return self.before.arrival_of(key) is not None and not gone
            case live:
                return live.ledger.cancel is None

    def _spawns(self, by: Spawner, child: RunId) -> bool:
        log = self.logs.get(by.run)
        return log is not None and any(
            isinstance(each, ev.ChildSpawned) and (each.call, each.child) == (by.call, child) for each in log.events
        )


def _entry(raw: bytes) -> Entry | None:
    try:
        return decode(raw)
    except (Invalid, ValueError):  # said by the rule about records
        return None


def _by(identity: str, *, base64: bool) -> Spawner | None:
    return None if base64 else spawner(identity)


def _stillborn(log: Log) -> bool:
    asked = any(isinstance(each, ev.CancelRequested) and each.origin == "parent" for each in log.events)
    return asked and isinstance(log.events[-1], ev.RunCancelled)


def _lets_go(event: ev.AnyEvent, parent: ev.Parent) -> bool:
    if isinstance(event, ev.ChildCancelRequested):
        return event.call == parent.call
    return isinstance(event, ev.TERMINAL)


def _differs(event: ev.ChildCompleted, ending: ev.AnyEvent) -> str:
    """What the parent is told otherwise than the child has ended; empty where nothing is."""
    match ending:
        case ev.RunCompleted():
            same = event.result is not UNSET and _name(event.result) == _name(ending.result)
            return "" if event.outcome == "completed" and same else "the result"
        case ev.RunFailed():
            same = event.error is not UNSET and event.error.type == ending.error.type
            return "" if event.outcome == "failed" and same else "the error"
        case _:
            return "" if event.outcome == "cancelled" else "the outcome"


def _name(value: ev.Value) -> str:
    """A value by its hash, whether it is in the event or in a file of its own."""
    return value.blob if value.blob is not UNSET else message_key(bytes(value.inline or b""))


@dataclass(slots=True)
class Kin:
    """Of a whole tree: who awaits whom, as the parents have it, and as the children do."""

    awaited: dict[Spawner, RunId] = field(default_factory=dict)
    """Open children of the runs that go on."""
    let_go: set[RunId] = field(default_factory=set)
    """Those of them whose end was asked for, as their parents have it."""
    live: dict[RunId, tuple[Spawner, bool]] = field(default_factory=dict)
    """Children that have begun and not ended: whose, and whether their end was asked for."""
    queued: dict[Spawner, tuple[RunId, str]] = field(default_factory=dict)
    """Children that haven't begun, and where their entries lie."""

    def run(self, known: Known) -> None:
        """A run as its log has it."""
        ledger = fold.ledger(known.run)
        if ledger is None:
            return
        for call, each in ledger.children.items():
            self.awaited[Spawner(ledger.run, call)] = each.child
            if each.cancelling:
                self.let_go.add(each.child)
        parent = ledger.started.parent
        if parent:
            self.live[ledger.run] = Spawner(parent.run, parent.call), ledger.cancel is not None

    def agree(self, unread: set[RunId]) -> Iterator[Broken]:
        """What the ones say and the others don't; nothing is held against a run of ``unread``."""
        for by, child in self.awaited.items():
            begun = child in self.live and self.live[child][0] == by
            if not begun and self.queued.get(by, ("", ""))[0] != child and child not in unread:
                yield broken(
                    "child", layout.run_dir(by.run), f"{by.call} awaits {child}, which neither is queued nor goes on"
                )
        for child, (by, cancelled) in self.live.items():
            awaited = self.awaited.get(by) == child and child not in self.let_go
            if not (awaited or cancelled) and by.run not in unread:
                yield broken(
                    "child", layout.run_dir(child), f"a child of {by.run}, which doesn't await it, and goes on"
                )
        for by, (child, path) in self.queued.items():
            if (self.awaited.get(by) != child or child in self.let_go) and by.run not in unread:
                yield broken("child", path, f"the mail of {child} is queued, and {by.run} doesn't await it")

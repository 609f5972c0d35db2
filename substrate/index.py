"""What the writer keeps in memory about a repository, built from its tree and moved by each commit.

Nothing here is a truth of its own: ``Index(tree)`` folds what is committed, ``apply`` takes in what a commit changed,
and a test compares the two. In memory are: every run that hasn't ended; of those that have and aren't sealed yet, a
line and the newest folds (``limits.folds``); 32 bytes of every message id of all these; the queue, the outbox, and the
blobs that no event has named yet. Sealed runs are read when they are asked for.
"""

import functools
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, assert_never

from substrate import layout, runlog
from substrate.errors import Damaged
from substrate.messages import (
    Appended,
    Claimed,
    Consumed,
    GenerationBegun,
    Held,
    OutboxAdded,
    OutboxRemoved,
    Queued,
    RunLine,
)
from substrate.operations import Change, Hold, Item
from substrate.operations.sealing import may_be_sealed
from substrate.routing import Archive, Standing, Thread, Threads, mailed_key
from substrate.runlog import ABSENT, Known, Tree
from substrate.state import State, decode_state
from waypost.model import events as ev
from waypost.model import mail
from waypost.model import run as fold
from waypost.model.errors import Invalid
from waypost.model.ids import RunId, message_key
from waypost.model.limits import Limits
from waypost.model.queue import Entry, decode, decode_outgoing
from waypost.model.waiting import waiting_on

T = TypeVar("T")
_SUBJECTS = 1024
_PACKED = 4096
"""Directories of closed buckets whose keys are remembered: 2 KiB each as a rule, 8 KiB at most."""


@dataclass(frozen=True, slots=True)
class Past:
    """What is kept of an ended run that isn't sealed: its line in a list, and the arrival of its first mail."""

    line: RunLine
    arrival: int


class Index:
    """The view that decisions are made on: the tree as it is, and the folds of it."""

    def __init__(self, tree: Tree, address: str, limits: Limits, archive: Archive | None = None) -> None:
        """Fold what is live in the tree; ``archive`` knows the threads of what is sealed, for who routes mail.

        Raises Damaged where it can't be folded, naming the file.
        """
        self._tree, self.address, self._limits = tree, address, limits
        self.read, self.entries = tree.read, tree.entries  # no hop on the way of every append
        self.threads = Threads(archive)
        self.queue: dict[int, Item] = {}
        self.on_hold: dict[int, Entry] = {}
        self.outbox: dict[int, OutboxAdded] = {}
        self.live: dict[RunId, Known] = {}
        """Runs that have begun and not ended."""
        self.ended: dict[RunId, Past] = {}
        """Runs that have ended and aren't sealed."""
        self.finished: dict[RunId, None] = {}
        """Those of them that may be sealed, in the order in which they came to that."""
        self._recent: OrderedDict[RunId, Known] = OrderedDict()
        self._keys: dict[str, int] = {}
        self._waiting: dict[RunId, dict[int, None]] = {}
        self._held: dict[tuple[RunId, str], bytes] = {}
        self.held_bytes = 0
        self._subject = functools.lru_cache(maxsize=_SUBJECTS)(
            lambda arrival: mail.scan(tree.read(layout.mail_path(arrival)) or b"").subject
        )
        self.summary = functools.lru_cache(maxsize=_SUBJECTS)(functools.partial(runlog.summary, tree))
        """A sealed run as a list shows it. Raises Damaged."""
        self.packed = functools.lru_cache(maxsize=_PACKED)(
            lambda directory: b"".join(bytes.fromhex(name.removesuffix(".json")) for name in tree.entries(directory))
        )
        self.state = self._load_state()
        self._load_runs()
        self._load_queue()
        self._load_outbox()

    # --- the view ----------------------------------------------------------------------------------------------------

    def known(self, run: RunId) -> Known:
        """A run's state; a run that ended long ago is read from its log. ``ABSENT`` when it has none."""
        found = self.live.get(run)
        if found is not None:
            return found
        found = self._recent.get(run)
        if found is None:
            if self.standing(run) == "absent":
                return ABSENT
            found = runlog.load(self._tree, run)
            self._remember(run, found)
        return found

    def standing(self, run: RunId) -> Standing:
        """Whether the run is absent, live or ended."""
        if run in self.live:
            return "live"
        return "ended" if run in self.ended or runlog.is_sealed(self._tree, run) else "absent"

    def arrival_of(self, key: str) -> int | None:
        """The arrival of the unconsumed mail with this key."""
        return self._keys.get(key)

    def queued_for(self, run: RunId) -> tuple[int, ...]:
        """Arrivals of the unconsumed mails of a run, oldest first."""
        return tuple(self._waiting.get(run, ()))

    def held(self, run: RunId, sha256: str) -> bytes | None:
        """A blob that was put and that no event has named yet."""
        return self._held.get((run, sha256))

    def live_runs(self) -> tuple[fold.Live, ...]:
        """The states of all runs that haven't ended, oldest first."""
        found = (known.run for known in self.live.values())
        return tuple(run for run in found if isinstance(run, fold.Driven | fold.Parked | fold.Paused))

    def subject(self, arrival: int) -> str:
        """The subject of a mail, for lists."""
        queued = self.queue.get(arrival)
        return self._subject(arrival) if queued is None else queued.queued.gist.subject

    # --- what changes it ---------------------------------------------------------------------------------------------

    def hold(self, blob: Hold) -> None:
        """Keep a blob until an event names it, or its run or the generation ends."""
        self._held[blob.run, blob.sha256] = blob.data
        self.held_bytes += len(blob.data)

    def apply(self, change: Change) -> None:
        """Take in a commit."""
        if change.state is not None:
            self.state = change.state
        for key in change.used:
            self._let_go(key)
        for fact in change.facts:
            if isinstance(fact, Appended):
                self._run(fact.run, change.known[fact.run], fact)
            else:
                self._moved(fact)
        if change.sealed is not None:
            self._sealed(change.sealed)

    def _sealed(self, thread: Thread) -> None:
        del self.ended[thread.run], self.finished[thread.run]
        self._recent.pop(thread.run, None)
        self.threads.archived(thread)

    def _let_go(self, held: tuple[RunId, str]) -> None:
        self.held_bytes -= len(self._held.pop(held))

    def _moved(self, fact: Queued | Claimed | Consumed | Held | OutboxAdded | OutboxRemoved | GenerationBegun) -> None:
        match fact:
            case Queued():
                self._queued(Item(fact))
            case Claimed():
                queued = self.queue[fact.arrival].queued
                self.queue[fact.arrival] = Item(Queued(queued.entry, queued.gist, fact.attempt), claimed=True)
            case Consumed():
                entry = self._leaves(fact.arrival)
                if fact.run is None and entry is not None:
                    self.threads.forget(entry.key)
            case Held():
                self._leaves(fact.entry.arrival)
                self._is_held(fact.entry)
            case OutboxAdded():
                self.outbox[fact.outgoing.ordinal] = fact
            case OutboxRemoved():
                del self.outbox[fact.ordinal]
            case GenerationBegun():
                self._held.clear()
                self.held_bytes = 0
            case _:
                assert_never(fact)

    def _run(self, run: RunId, known: Known, fact: Appended) -> None:
        for recorded in fact.events:
            self._note(run, recorded.event)
        if isinstance(known.run, fold.Ended):
            self.live.pop(run, None)
            for held in [key for key in self._held if key[0] == run]:
                self._let_go(held)
            self._has_ended(run, known, known.run)
        else:
            self.live[run] = known

    def _has_ended(self, run: RunId, known: Known, end: fold.Ended) -> None:
        self.ended[run] = Past(line_of(run, known), end.started.mail.arrival)
        if may_be_sealed(end):
            self.finished[run] = None
        self._remember(run, known)

    def _note(self, run: RunId, event: ev.AnyEvent) -> None:
        match event:
            case ev.RunStarted():
                self.threads.appears(run, follows=event.after or None)
                self.threads.belongs(mailed_key(event.mail), run)
            case ev.SignalReceived() if event.mail:
                self.threads.belongs(mailed_key(event.mail), run)
            case ev.MailQueued():
                self.threads.belongs(message_key(event.message_id.encode()), run)
            case _:
                pass

    def _queued(self, item: Item) -> None:
        entry = item.queued.entry
        before = self.queue.get(entry.arrival)
        if before is not None:
            self._no_longer_waits(before.queued.entry)
        released = self.on_hold.pop(entry.arrival, None)
        self.queue[entry.arrival] = item
        self._keys[entry.key] = entry.arrival
        waiting = self._waiting.setdefault(entry.run, {})
        waiting[entry.arrival] = None
        if before is not None or released is not None:  # it stood further ahead
            self._waiting[entry.run] = dict.fromkeys(sorted(waiting))
        if released is not None:
            self.queue = dict(sorted(self.queue.items()))
        self.threads.belongs(entry.key, entry.run)
        if entry.starts:
            self.threads.appears(entry.run, follows=entry.old or None)

    def _no_longer_waits(self, entry: Entry) -> None:
        waiting = self._waiting[entry.run]
        del waiting[entry.arrival]
        if not waiting:
            del self._waiting[entry.run]

    def _leaves(self, arrival: int) -> Entry | None:
        """Take a mail out of queue or hold; what was told of its thread stays. None for one that is new."""
        item = self.queue.pop(arrival, None)
        if item is None:
            entry = self.on_hold.pop(arrival, None)
        else:
            entry = item.queued.entry
            self._no_longer_waits(entry)
        if entry is not None:
            del self._keys[entry.key]
        return entry

    def _is_held(self, entry: Entry) -> None:
        """A mail on hold belongs to no thread: whoever answers it starts a run of their own."""
        self.on_hold[entry.arrival] = entry
        self._keys[entry.key] = entry.arrival
        self.threads.forget(entry.key)

    def _remember(self, run: RunId, known: Known) -> None:
        self._recent[run] = known
        self._recent.move_to_end(run)
        while len(self._recent) > self._limits.folds:
            self._recent.popitem(last=False)

    # --- opening -----------------------------------------------------------------------------------------------------

    def _load_state(self) -> State:
        raw = self._tree.read(layout.STATE)
        if raw is None:
            raise Damaged(layout.STATE, "the file is missing")
        return _decoded(layout.STATE, decode_state, raw)

    def _load_runs(self) -> None:
        newest = next(runlog.sealed_newest_first(self._tree), None)
        if newest is not None:
            self.threads.appears(newest, follows=None)
        for run in runlog.run_ids(self._tree):
            known = runlog.load(self._tree, run, functools.partial(self._note, run))
            match known.run:
                case fold.Absent():
                    raise Damaged(layout.run_dir(run), "a run without an event")
                case fold.Ended():
                    self._has_ended(run, known, known.run)
                case fold.Driven() | fold.Parked() | fold.Paused():
                    self.live[run] = known
                case _:
                    assert_never(known.run)

    def _load_queue(self) -> None:
        items: list[Item] = []
        for state in ("inbox", "processing"):
            for directory, name in runlog.leaves(self._tree, layout.queue_dir(self.address, state)):
                path = f"{directory}/{name}"
                entry = _decoded(path, decode, self._tree.read(path) or b"")
                raw = self._tree.read(layout.mail_path(entry.arrival))
                if raw is None:
                    raise Damaged(layout.mail_path(entry.arrival), f"the mail of {path} is missing")
                claim = layout.place_of(path).attempt
                attempt = entry.attempt if claim is None else claim
                items.append(Item(Queued(entry, mail.scan(raw), attempt), claimed=claim is not None))
        for item in sorted(items, key=lambda each: each.queued.entry.arrival):
            self._queued(item)
        for directory, name in runlog.leaves(self._tree, layout.queue_dir(self.address, "hold")):
            path = f"{directory}/{name}"
            self._is_held(_decoded(path, decode, self._tree.read(path) or b""))

    def _load_outbox(self) -> None:
        for directory, name in runlog.leaves(self._tree, layout.OUTBOX):
            path = f"{directory}/{name}"
            outgoing = _decoded(path, decode_outgoing, self._tree.read(path) or b"")
            if outgoing.about:
                self.outbox[outgoing.ordinal] = OutboxAdded(outgoing, outgoing.message.encode())
                continue
            message = runlog.find_blob(self._tree, outgoing.run, outgoing.sha256)
            if message is None:
                raise Damaged(layout.blob_path(outgoing.run, outgoing.sha256), f"the message of {path} is missing")
            self.outbox[outgoing.ordinal] = OutboxAdded(outgoing, message)


def line_of(run: RunId, known: Known) -> RunLine:
    """A run that has begun, as a list shows it, without its subject."""
    match known.run:
        case fold.Absent():
            raise AssertionError("it has not begun")
        case fold.Ended():
            state, started = known.run.outcome, known.run.started
        case fold.Driven():
            state, started = "running", known.run.ledger.started
        case fold.Parked():
            state, started = "parked", known.run.ledger.started
        case fold.Paused():
            state, started = "paused", known.run.ledger.started
        case _:
            assert_never(known.run)
    return RunLine(
        run=run,
        state=state,
        started=started.at,
        changed=known.changed,
        seq=known.seq,
        waiting=waiting_on(known.run),
    )


def _decoded(path: str, decoder: Callable[[bytes], T], raw: bytes) -> T:
    try:
        return decoder(raw)
    except Invalid as bad:
        raise Damaged(path, bad.message) from None

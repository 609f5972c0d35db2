"""What the writer keeps in memory about a repository: what has been touched lately, moved by each commit.

Nothing here is a truth of its own. A run that nobody touches is not in memory: its card is in the derived index
(``derived``), and where that doesn't hold for the run's directory, its log is folded. In memory are the runs touched
since the index was last written, the folds of ``limits.folds`` others, 32 bytes of each message id that isn't in the
index yet, the queue, the outbox, and the blobs that no event has named yet. ``settle`` moves into the index, in small
portions, what was touched and is durable. A test compares all of it with a fresh fold of the tree.
"""

import dataclasses
import functools
import re
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar, assert_never

import msgspec
from msgspec import UNSET

from substrate import layout, runlog
from substrate.errors import Damaged
from substrate.indexing.covering import open_derived
from substrate.indexing.derived import DerivedFile
from substrate.indexing.runs import Runs
from substrate.indexing.standby import Standby
from substrate.messages import (
    Appended,
    Claimed,
    Consumed,
    GenerationBegun,
    GrantsChanged,
    Held,
    OutboxAdded,
    OutboxRemoved,
    Queued,
    ScheduleMoved,
)
from substrate.operations import Change, Hold, Item
from substrate.operations.granting import in_force
from substrate.operations.sealing import may_be_sealed
from substrate.routing import Threads, key_of
from substrate.runlog import Known, Rooted
from substrate.state import State, decode_state
from substrate.stream import Moved
from waypost.model import events as ev
from waypost.model import mail
from waypost.model import run as fold
from waypost.model.child_mail import spawner
from waypost.model.errors import Invalid
from waypost.model.ids import RunId
from waypost.model.limits import Limits
from waypost.model.queue import Entry, decode, decode_outgoing

T = TypeVar("T")
_SUBJECTS = 1024
_PORTION = 64
"""Runs that are written into the derived index at once: some 3 ms."""
_PACKED = 4096
"""Directories of closed buckets whose keys are remembered: 2 KiB each as a rule, 8 KiB at most."""
_KEYS = re.compile(rb"100644 ([0-9a-f]{64})\.json\0")
"""In a directory as git has it; an id between two of them is too short to look like one."""


class Index:
    """The view that decisions are made on: the tree as it is, and the folds of it."""

    def __init__(self, tree: Rooted, address: str, limits: Limits, derived: DerivedFile) -> None:
        """Look at what waits and what has ended; ``derived`` goes up to this tree (``covering``).

        Raises Damaged where something can't be read, naming the file.
        """
        self._tree, self.address = tree, address
        # No hop on the way of every append.
        self.read, self.entries, self.several = tree.read, tree.entries, tree.several
        self.directory_id, self.directory = tree.directory_id, tree.directory
        self._derived = Standby(derived, tree)
        self.threads = Threads(self._derived)
        self.queue: dict[int, Item] = {}
        self.on_hold: dict[int, Entry] = {}
        self.outbox: dict[int, OutboxAdded] = {}
        self.granted = in_force(tree)
        self.finished: dict[RunId, None] = {}
        """Runs that have ended and may be sealed, in the order in which they came to that."""
        self.runs = Runs(tree, self._derived, self.threads, self.subject, limits.folds)
        self.known, self.standing, self.driven = self.runs.known, self.runs.standing, self.runs.driven
        self._keys: dict[str, int] = {}
        self._waiting: dict[RunId, dict[int, None]] = {}
        self._held: dict[tuple[RunId, str], bytes] = {}
        self.held_bytes = 0
        self._subject = functools.lru_cache(maxsize=_SUBJECTS)(
            lambda arrival: mail.subject(tree.read(layout.mail_path(arrival)) or b"")
        )
        self.packed = functools.lru_cache(maxsize=_PACKED)(self._keys_in)
        self.state = self._load_state()
        self._load_runs()
        self._load_queue()
        self._load_outbox()
        self._derived.opened()

    @classmethod
    def open(cls, path: Path | None, tree: Rooted, address: str, limits: Limits, repository: str) -> "Index":
        """The index of a repository's tree, with its derived file. Raises Damaged."""
        return cls(tree, address, limits, open_derived(path, tree, repository))

    def close(self, *, keep: bool = True) -> None:
        """Let go of the derived file; one that isn't kept is built anew by whoever opens the repository next."""
        if keep:
            self._derived.close()
        else:
            self._derived.discard()

    # --- the view ----------------------------------------------------------------------------------------------------

    def arrival_of(self, key: str) -> int | None:
        """The arrival of the unconsumed mail with this key."""
        return self._keys.get(key)

    def queued_for(self, run: RunId) -> tuple[int, ...]:
        """Arrivals of the unconsumed mails of a run, oldest first."""
        return tuple(self._waiting.get(run, ()))

    def held(self, run: RunId, sha256: str) -> bytes | None:
        """A blob that was put and that no event has named yet."""
        return self._held.get((run, sha256))

    def told(self, queued: Queued) -> Queued:
        """A mail as it is published: with the state of its run, if that is live."""
        run = self.known(queued.entry.run).run
        return queued if isinstance(run, fold.Absent | fold.Ended) else dataclasses.replace(queued, live=run)

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
        """Move all of it by one commit."""
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

    def _sealed(self, run: RunId) -> None:
        del self.finished[run]
        self.runs.touch(run, msgspec.structs.replace(self.known(run), folded=0))

    def _let_go(self, held: tuple[RunId, str]) -> None:
        self.held_bytes -= len(self._held.pop(held))

    def _moved(self, fact: Moved) -> None:  # noqa: C901 - one arm per kind of fact
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
            case GrantsChanged():
                self.granted = fact.now
            case GenerationBegun():
                self._held.clear()
                self.held_bytes = 0
            case ScheduleMoved():
                pass  # it is read from its file
            case _:
                assert_never(fact)

    def _run(self, run: RunId, known: Known, fact: Appended) -> None:
        for recorded in fact.events:
            self._note(run, recorded.event)
        self.runs.touch(run, known)
        if isinstance(known.run, fold.Ended):
            for held in [key for key in self._held if key[0] == run]:
                self._let_go(held)
            if may_be_sealed(known.run):
                self.finished[run] = None

    def _note(self, run: RunId, event: ev.AnyEvent) -> None:
        key = key_of(event)
        if key is None:
            return
        self.runs.name(run, key)
        if isinstance(event, ev.RunStarted):
            self.threads.appears(run, follows=event.after or None, child=event.parent is not UNSET)
        self.threads.belongs(key, run)

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
            self.threads.appears(entry.run, follows=entry.old or None, child=spawner(entry.id) is not None)

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

    def _keys_in(self, directory: str) -> bytes:
        """The keys of a closed bucket's directory, 32 bytes each: a mail is looked up in one of each bucket.

        Taken from the bytes of the tree. To look at it name by name takes ten times as long, and whoever does that
        keeps it in memory instead of what is written and read again and again.
        """
        oid = self._tree.directory_id(directory)
        try:
            raw = self._tree.directory(bytes.fromhex(oid)) if oid else b""
        except Damaged:  # as a rule it isn't sealed yet; if it can't be read, this says so
            return b"".join(bytes.fromhex(name.removesuffix(".json")) for name in self.entries(directory))
        return bytes.fromhex(b"".join(_KEYS.findall(raw)).decode())

    # --- opening -----------------------------------------------------------------------------------------------------

    def _load_state(self) -> State:
        raw = self._tree.read(layout.STATE)
        if raw is None:
            raise Damaged(layout.STATE, "the file is missing")
        return _decoded(layout.STATE, decode_state, raw)

    def _load_runs(self) -> None:
        newest = self.runs.newest()
        if newest is not None:
            self.threads.appears(newest, follows=None)
        for run in self.runs.over():
            known = self.known(run).run
            if isinstance(known, fold.Ended) and may_be_sealed(known):
                self.finished[run] = None

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


def _decoded(path: str, decoder: Callable[[bytes], T], raw: bytes) -> T:
    try:
        return decoder(raw)
    except Invalid as bad:
        raise Damaged(path, bad.message) from None

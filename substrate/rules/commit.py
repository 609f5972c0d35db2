"""A commit to be judged, sorted by what its files are.

``sort`` reads names only: which run, which mail, which kind. A directory that goes is each file in it.
"""

import functools
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Protocol

import msgspec

from substrate import layout
from substrate.errors import BadPath
from substrate.layout import Place
from substrate.messages import Appended, Recorded
from substrate.operations.change import Change, Extension
from substrate.rules.table import Broken, broken
from substrate.runlog import Known, Tree
from substrate.state import State
from waypost.model.ids import RunId
from waypost.model.limits import Limits

_DIRECTORIES = 1024
"""How many directories are remembered to be, or not to be, a run's tail."""
_DIGITS = 10

QUEUED = frozenset({"inbox", "processing", "hold"})
"""The places of a mail that isn't consumed."""


class Ground(msgspec.Struct, frozen=True, kw_only=True):
    """What holds for a whole repository."""

    repository: str
    address: str
    limits: Limits


class Commit(msgspec.Struct, frozen=True, kw_only=True):
    """What is to be written. ``author`` is the principal's name; a delete that ends with ``/`` is a directory.

    ``recorded``: events whose bytes have just been made, in order; where bytes are the very same object as theirs,
    they aren't decoded again. ``extension``: where it is of these events, they aren't followed again either.
    """

    author: str
    puts: Mapping[str, bytes]
    deletes: Collection[str] = ()
    recorded: tuple[Recorded, ...] = ()
    extension: Extension | None = None


def proposed(change: Change) -> Commit:
    """What an operation has decided, as the rules see it."""
    facts = change.facts
    recorded = facts[0].events if len(facts) == 1 and isinstance(facts[0], Appended) else ()
    return Commit(
        author=change.author,
        puts=change.puts,
        deletes=change.deletes,
        recorded=recorded,
        extension=change.extension,
    )


class Before(Tree, Protocol):
    """The repository as it is before the commit: its files, and what its owner keeps in memory about them."""

    @property
    def state(self) -> State:
        """Generation and ordinals."""
        ...

    def known(self, run: RunId) -> Known:
        """A run's state, ``ABSENT`` when it has no log. Raises Damaged."""
        ...

    def arrival_of(self, key: str) -> int | None:
        """The arrival of the unconsumed mail with this key."""
        ...

    def packed(self, directory: str) -> bytes:
        """The keys in a directory of a closed bucket, 32 bytes each."""
        ...


@dataclass(slots=True)
class OfRun:
    """What a commit does to one run's files. By seq, first seq or hash; ``gone`` are paths."""

    events: dict[int, bytes] = field(default_factory=dict)
    segments: dict[int, bytes] = field(default_factory=dict)
    blobs: dict[str, bytes] = field(default_factory=dict)
    grants: bytes | None = None
    sealed_log: bytes | None = None
    sealed_grants: bytes | None = None
    sealed_blobs: dict[str, bytes] = field(default_factory=dict)
    gone: dict[str, Place] = field(default_factory=dict)


@dataclass(slots=True)
class Sorted:
    """A commit's files by what they are; ``found``: names that are none."""

    runs: dict[RunId, OfRun] = field(default_factory=dict)
    entries: dict[str, tuple[Place, bytes]] = field(default_factory=dict)
    gone_entries: dict[str, Place] = field(default_factory=dict)
    mails: dict[int, bytes] = field(default_factory=dict)
    outbox: dict[str, tuple[Place, bytes]] = field(default_factory=dict)
    gone_outbox: dict[str, Place] = field(default_factory=dict)
    single: dict[str, bytes] = field(default_factory=dict)
    """``format``, ``state``, ``watermark``, ``epoch`` and ``deployed``, by kind."""
    others: dict[str, Place] = field(default_factory=dict)
    gone_others: dict[str, Place] = field(default_factory=dict)
    found: list[Broken] = field(default_factory=list)

    def of(self, run: RunId | None) -> OfRun:
        """What it does to this run."""
        assert run is not None
        part = self.runs.get(run)
        if part is None:
            part = self.runs[run] = OfRun()
        return part


@functools.lru_cache(maxsize=_DIRECTORIES)
def tail_of(directory: str) -> RunId | None:
    """The run whose tail lies in this directory; None for any other."""
    try:
        return layout.place_of(f"{directory}/0000000001.json").run if directory.endswith("/events") else None
    except BadPath:
        return None


def seq_in(name: str) -> int | None:
    """The seq in an event's file name; None where it is no such name."""
    digits = name[:-5]
    if len(digits) == _DIGITS and name[-5:] == ".json" and digits.isascii() and digits.isdecimal():
        return int(digits)
    try:
        return layout.parse_number(digits) if name.endswith(".json") else None
    except BadPath:
        return None


def sort(before: Tree, commit: Commit) -> Sorted:
    """Sort a commit's files by their names."""
    made = Sorted()
    for path, data in commit.puts.items():
        above, _, name = path.rpartition("/")
        run = tail_of(above)
        seq = None if run is None else seq_in(name)
        if seq is not None:
            made.of(run).events[seq] = data
            continue
        try:
            _put(made, path, layout.place_of(path), data)
        except BadPath as bad:
            made.found.append(broken("path", path, bad.why))
    for path in commit.deletes:
        for file in files(before, path[:-1]) if path.endswith("/") else (path,):
            if file in commit.puts:
                continue
            above, _, name = file.rpartition("/")
            run = tail_of(above)
            seq = None if run is None else seq_in(name)
            if seq is not None:
                made.of(run).gone[file] = Place("event", run=run, number=seq)
                continue
            try:
                _gone(made, file, layout.place_of(file))
            except BadPath as bad:
                made.found.append(broken("path", file, bad.why))
    return made


def files(tree: Tree, path: str) -> Iterator[str]:
    """Every file below a directory, by full path."""
    for name in tree.entries(path):
        below = f"{path}/{name}" if path else name
        if tree.entries(below):
            yield from files(tree, below)
        else:
            yield below


def _put(made: Sorted, path: str, place: Place, data: bytes) -> None:  # noqa: C901 - a table
    # No event comes here: ``tail_of`` and ``seq_in`` know each of them, as a property test sees to.
    match place.kind:
        case "segment":
            made.of(place.run).segments[place.number or 0] = data
        case "blob":
            made.of(place.run).blobs[place.key or ""] = data
        case "grants":
            made.of(place.run).grants = data
        case "sealed-log":
            made.of(place.run).sealed_log = data
        case "sealed-grants":
            made.of(place.run).sealed_grants = data
        case "sealed-blob":
            made.of(place.run).sealed_blobs[place.key or ""] = data
        case "inbox" | "processing" | "hold" | "consumed":
            made.entries[path] = place, data
        case "mail":
            made.mails[place.number or 0] = data
        case "outbox":
            made.outbox[path] = place, data
        case "format" | "state" | "watermark" | "epoch" | "deployed":
            made.single[place.kind] = data
        case _:
            made.others[path] = place


def _gone(made: Sorted, path: str, place: Place) -> None:
    match place.kind:
        case "inbox" | "processing" | "hold" | "consumed":
            made.gone_entries[path] = place
        case "outbox":
            made.gone_outbox[path] = place
        case _ if place.run is not None:
            made.of(place.run).gone[path] = place
        case _:
            made.gone_others[path] = place

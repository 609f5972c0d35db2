"""The reference system's claim-check queue: what waits in it, what was consumed, and the messages in its history.

A consumed entry has no message any more, but the commits that once put it into the inbox have: they are looked through
once, newest first, for as long as a message is missing and the history isn't too long.
"""

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass, field
from urllib.parse import quote, unquote

from substrate.reference.errors import Leaving, Unreadable
from substrate.reference.records import Envelope, read_envelope, read_watermark
from substrate.reference.source import MIB, Entry, Source

ENVELOPE = 48 * MIB
"""Bytes of an entry: a mail of 32 MiB in base64."""
ENTRIES = 500_000
"""Entries of one queue at most."""
LOOKED_AT = 5_000_000
"""Lines of trees that are looked at in the history for messages that are missing."""
COMMITS = 200_000

_QUEUED_NAME = re.compile(r"(0|[1-9][0-9]*)-(.+)\.json\Z", re.DOTALL)
_PLACES = ("inbox", "processing", "consumed")
_UNCHANGED = "-_.!~*'()"


@dataclass(frozen=True, slots=True)
class Queued:
    """An entry as it is remembered: without its message, which is read again when it is its turn."""

    path: str
    place: str
    entry: Envelope = field(repr=False)
    has_message: bool
    file: Entry = field(repr=False)


@dataclass(frozen=True, slots=True)
class QueueFound:
    """An address's queue: ``waiting`` in the order in which it would have been taken, ``consumed`` by time."""

    address: str
    watermark: int = 0
    waiting: tuple[Queued, ...] = ()
    consumed: tuple[Queued, ...] = ()


def addresses(source: Source, root: bytes, leaving: Leaving) -> dict[str, Entry]:
    """The addresses that have a queue, by their text."""
    found: dict[str, Entry] = {}
    for entry in source.entries(root):
        address = unquote(entry.name, errors="replace")
        if entry.kind != "directory" or quote(address, safe=_UNCHANGED) != entry.name:
            leaving.add(f"events:addresses/{entry.name}", "it is no address as a name of a directory has it")
        else:
            found[address] = entry
    return found


def look(source: Source, address: str, entry: Entry, leaving: Leaving) -> QueueFound:
    """An address's queue; what can't be read of it goes into ``leaving``."""
    root = f"events:addresses/{entry.name}"
    watermark = 0
    found: list[Queued] = []
    for below in source.entries(entry.oid):
        path = f"{root}/{below.name}"
        try:
            if below.name == "watermark.json" and below.kind == "file":
                watermark = read_watermark(path, source.file(below.oid, MIB))
            elif below.name in _PLACES and below.kind == "directory":
                found.extend(_queued(source, address, path, below, leaving))
            else:
                leaving.add(path, "no queue has such a file")
        except Unreadable as bad:
            leaving.add(path, bad.message)
        if len(found) > ENTRIES:
            raise Unreadable(root, f"it has more than {ENTRIES} entries")
    consumed = [each for each in found if each.place == "consumed"]
    known = {each.entry.id for each in consumed}
    waiting: dict[str, Queued] = {}
    for each in sorted(found, key=lambda one: (one.entry.received, one.entry.id, one.place)):
        if each.place != "consumed":
            if each.entry.id in known or each.entry.id in waiting:
                leaving.add(each.path, "the same message id has an entry at another place")
            else:
                waiting[each.entry.id] = each
    consumed.sort(key=lambda one: (one.entry.consumed or 0, one.entry.id))
    return QueueFound(address, watermark, tuple(waiting.values()), tuple(consumed))


def _queued(source: Source, address: str, root: str, directory: Entry, leaving: Leaving) -> Iterator[Queued]:
    for file in source.entries(directory.oid):
        path = f"{root}/{file.name}"
        try:
            yield _read(source, address, path, directory.name, file)
        except Unreadable as bad:
            leaving.add(path, bad.why)


def _read(source: Source, address: str, path: str, place: str, file: Entry) -> Queued:
    if file.kind != "file":
        raise Unreadable(path, "it is no plain file")
    consumed = place == "consumed"
    entry = read_envelope(path, source.file(file.oid, ENVELOPE), consumed=consumed)
    named = f"{entry.id}.json" if consumed else f"{entry.received}-{entry.id}.json"
    if named != file.name or entry.address != address:
        raise Unreadable(path, "the entry isn't what its name says")
    bare = Envelope(entry.id, entry.received, address, None, entry.consumed, entry.run, entry.rejected)
    return Queued(path, place, bare, bool(entry.raw), file)


def message_of(source: Source, file: bytes) -> bytes | None:
    """The message in an entry's file; None where it has none. Raises Unreadable."""
    return read_envelope(f"file {file.hex()}", source.file(file, ENVELOPE), consumed=False).raw


def in_history(source: Source, tip: bytes, segment: str, wanted: Collection[str]) -> dict[str, bytes]:
    """The entries that once held the messages with these ids, as file ids; what isn't found has no message left."""
    missing = set(wanted)
    found: dict[str, bytes] = {}
    seen: set[bytes] = set()
    looked = commits = 0
    oid: bytes | None = tip
    while oid is not None and missing and looked < LOOKED_AT and commits < COMMITS:
        try:
            commit = source.commit(oid)
            for directory in _inboxes(source, commit.tree, segment, seen):
                for file in source.entries(directory):
                    looked += 1
                    match = _QUEUED_NAME.match(file.name)
                    if match is not None and match[2] in missing and file.kind == "file":
                        missing.discard(match[2])
                        found[match[2]] = file.oid
        except Unreadable:
            break  # a history that ends early: what was found before it is as good as ever
        oid, commits = commit.parent, commits + 1
    return found


def _inboxes(source: Source, root: bytes, segment: str, seen: set[bytes]) -> Iterator[bytes]:
    """Inbox and processing of an address in one commit, unless they were looked at as they are."""
    at = root
    for name in ("addresses", segment):
        below = {each.name: each.oid for each in source.entries(at)}
        if name not in below or below[name] in seen:
            return
        at = below[name]
    seen.add(at)
    for each in source.entries(at):
        if each.name in _PLACES[:2] and each.kind == "directory" and each.oid not in seen:
            seen.add(each.oid)
            yield each.oid

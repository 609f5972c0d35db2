"""A mail's life by the rules (storage §5): one place, moves that keep what it is, consumed with its effect.

``MOVES`` is the table of moves: from where to where, and which fields of the entry may change on the way. What isn't in
it isn't a move; what an entry is (arrival, id, address, hashes, sender) is in no row.
"""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from msgspec import UNSET

from substrate import layout
from substrate.errors import Damaged
from substrate.layout import Place
from substrate.operations.buckets import watermark
from substrate.rules.commit import QUEUED, Before, Ground, Sorted
from substrate.rules.counts import read_watermark
from substrate.rules.runs import crowded, has
from substrate.rules.table import Broken, broken
from substrate.state import State
from waypost.model import events as ev
from waypost.model.errors import Invalid
from waypost.model.ids import RunId
from waypost.model.queue import Entry, decode

_ROUTE = frozenset({"run", "starts", "old"})
MOVES: Mapping[tuple[str, str], frozenset[str]] = {
    ("inbox", "inbox"): _ROUTE | {"told"},
    ("inbox", "processing"): frozenset(),
    ("inbox", "consumed"): frozenset({"consumed"}),
    ("processing", "inbox"): _ROUTE | {"attempt"},
    ("processing", "hold"): frozenset({"attempt", "held", "why"}),
    ("processing", "consumed"): _ROUTE | {"consumed", "rejected"},
    ("hold", "inbox"): _ROUTE | {"attempt", "held", "why"},
    ("hold", "consumed"): frozenset({"consumed", "rejected"}),
}
"""(from, to): the fields that may change. A claim changes none: it is the same bytes under a name with its attempt.

What is consumed without a claim begins a run that ends by the same commit, as cancelled: nobody is to take it up.
"""


@dataclass(frozen=True, slots=True)
class Caused:
    """An event that a mail has caused: in which run."""

    run: RunId
    event: ev.RunStarted | ev.SignalReceived
    cancelled: bool = False
    """Whether the run ends so by the same commit."""


@dataclass(frozen=True, slots=True)
class _Put:
    path: str
    place: Place
    entry: Entry
    raw: bytes


def mail(before: Before, made: Sorted, after: State, caused: list[Caused], ground: Ground) -> Iterator[Broken]:
    """Every rule of the queue over what a commit does to it."""
    puts: list[_Put] = []
    for path, (place, raw) in made.entries.items():
        try:
            puts.append(_Put(path, place, decode(raw), raw))
        except (Invalid, ValueError) as bad:
            yield broken("record", path, bad)
    for put in puts:
        yield from names(put.path, put.place, put.entry, ground)
    yield from _moves(before, made, puts, after, ground)
    yield from _effects(made, puts, caused)
    yield from _buckets(before, made, puts, after, ground)


def names(path: str, place: Place, entry: Entry, ground: Ground) -> Iterator[Broken]:
    """What an entry says of itself is what its name and its place say."""
    if place.kind != "consumed" and entry.arrival != place.number:
        yield broken("name", path, f"the entry says arrival {entry.arrival}")
    if _key(entry) != place.key:
        yield broken("name", path, f"the entry's id has the key {_key(entry)}")
    if entry.address != ground.address or place.address != layout.address_key(ground.address):
        yield broken("name", path, f"the entry is for {entry.address}, this is the queue of {ground.address}")
    if (place.kind == "consumed") != (entry.consumed is not UNSET):
        yield broken("name", path, f"consumed: {entry.consumed or 'not said'}, in {place.kind}")
    if place.kind == "hold" and (entry.held is UNSET or entry.why is UNSET):
        yield broken("name", path, "an entry on hold says when and why")
    if place.kind in {"inbox", "processing"} and (entry.held is not UNSET or entry.why is not UNSET):
        yield broken("name", path, f"held {entry.held}, in {place.kind}")
    if place.kind != "consumed" and entry.rejected is not UNSET:
        yield broken("name", path, f"rejected {entry.rejected}, in {place.kind}")


def consumed_path(before: Before, key: str, ground: Ground) -> str | None:
    """Where an entry with this key lies among those that are consumed and not dropped."""
    wanted = bytes.fromhex(key)
    for bucket in range(before.state.bucket, watermark(before, ground.address).first - 1, -1):
        path = layout.consumed_path(ground.address, bucket, key)
        if bucket < before.state.bucket and wanted not in before.packed(path.rpartition("/")[0]):
            continue
        if has(before, path):
            return path
    return None


def _moves(before: Before, made: Sorted, puts: list[_Put], after: State, ground: Ground) -> Iterator[Broken]:
    leaving = {
        (place.number, place.key): (path, place) for path, place in made.gone_entries.items() if place.kind in QUEUED
    }
    placed: dict[str, str] = {}
    for put in puts:
        key = put.place.key or ""
        if key in placed:
            yield broken("one-place", put.path, f"the same message is put to {placed[key]}")
        placed[key] = put.path
        old = leaving.pop((put.entry.arrival, key), None)
        if old is not None:
            yield from _move(before, old[0], old[1], put)
        elif (there := before.read(put.path)) is not None:
            if there != put.raw:
                yield from _move(before, put.path, put.place, put)
        else:
            yield from _new(before, made, put, after, ground)
    for path, place in leaving.values():
        yield broken("lost", path, f"mail {place.number} left {place.kind}, and is nowhere else")


def _move(before: Before, old: str, origin: Place, put: _Put) -> Iterator[Broken]:
    raw = before.read(old)
    allowed = MOVES.get((origin.kind, put.place.kind))
    if allowed is None or raw is None:
        yield broken("move", put.path, f"mail {put.entry.arrival} went from {origin.kind} to {put.place.kind}")
        return
    try:
        entry = decode(raw)
    except Invalid as bad:
        yield broken("record", old, bad.message)
        return
    if not allowed and raw != put.raw:
        yield broken("move", put.path, f"the entry's bytes changed between {origin.kind} and {put.place.kind}")
        return
    for name in entry.__struct_fields__:
        was, now = getattr(entry, name), getattr(put.entry, name)
        if was != now and name not in allowed:
            yield broken("move", put.path, f"{name} was {was!r} and is {now!r}")
    yield from _attempt(entry, origin, put)


def _attempt(entry: Entry, origin: Place, put: _Put) -> Iterator[Broken]:
    """Claims are counted: one more with each claim; back in the inbox, it counts or it doesn't."""
    if put.place.kind == "processing" and put.place.attempt != entry.attempt + 1:
        yield broken("move", put.path, f"attempt {put.place.attempt} follows {entry.attempt}")
    claimed = origin.attempt
    if claimed is not None and put.place.kind == "inbox" and put.entry.attempt not in {claimed, claimed - 1}:
        yield broken("move", put.path, f"attempt {put.entry.attempt} after claim {claimed}")
    if origin.kind == "hold" and put.place.kind == "inbox" and put.entry.attempt:
        yield broken("move", put.path, f"attempt {put.entry.attempt} of a mail that was let in")


def _new(before: Before, made: Sorted, put: _Put, after: State, ground: Ground) -> Iterator[Broken]:
    entry, key = put.entry, put.place.key or ""
    other = before.arrival_of(key)
    there = f"mail {other}" if other is not None else consumed_path(before, key, ground)
    if there is not None:
        yield broken("one-place", put.path, f"its message id is taken by {there}")
        return
    if put.place.kind not in {"inbox", "hold"}:
        yield broken("move", put.path, f"mail {entry.arrival} came from nowhere to {put.place.kind}")
        return
    if not before.state.arrival <= entry.arrival < after.arrival:
        yield broken("ordinals", put.path, f"arrival {entry.arrival}, and {before.state.arrival} is next")
    if entry.attempt or entry.told is not UNSET:
        yield broken("move", put.path, f"a new mail with attempt {entry.attempt}")
    raw = made.mails.get(entry.arrival)
    if raw is None:
        yield broken("mail", layout.mail_path(entry.arrival), f"{put.path} is new, and its mail is not in the commit")
    elif hashlib.sha256(raw).hexdigest() != entry.sha256:
        yield broken("mail", layout.mail_path(entry.arrival), f"its bytes aren't those of {entry.sha256}")


def _effects(made: Sorted, puts: list[_Put], caused: list[Caused]) -> Iterator[Broken]:
    """A consumed mail and its event name each other; a rejected one has none."""
    consumed = {put.entry.arrival: put for put in puts if put.place.kind == "consumed"}
    unclaimed = {place.number for place in made.gone_entries.values() if place.kind == "inbox"}
    for each in caused:
        mailed = each.event.mail
        assert mailed is not UNSET
        put = consumed.pop(mailed.arrival, None)
        if put is None or put.entry.rejected is not UNSET:
            where = layout.mail_path(mailed.arrival) if mailed.arrival >= 0 else ""
            yield broken(
                "effect", where, f"{each.run} was given mail {mailed.arrival}, and it wasn't consumed for that"
            )
            continue
        entry = put.entry
        if entry.arrival in unclaimed and not (isinstance(each.event, ev.RunStarted) and each.cancelled):
            yield broken("move", put.path, f"mail {entry.arrival} was consumed without a claim")
        if entry.mailed != mailed or entry.run != each.run:
            yield broken("effect", put.path, f"consumed for {entry.run}, and the event is {each.run}'s of another mail")
        if isinstance(each.event, ev.RunStarted) and not _is_of(each.event, entry):
            yield broken("effect", put.path, f"origin {each.event.origin} of a run that this mail started")
    for put in consumed.values():
        if put.entry.rejected is UNSET:
            yield broken("effect", put.path, f"mail {put.entry.arrival} was consumed and caused no event")


def _is_of(event: ev.RunStarted, entry: Entry) -> bool:
    """Whether a run began with this entry; of a child's run the origin is its parent's call (``children``)."""
    return (event.origin == entry.key or event.parent is not UNSET) and event.after == entry.old


def _buckets(before: Before, made: Sorted, puts: list[_Put], after: State, ground: Ground) -> Iterator[Broken]:
    count = 0
    for put in puts:
        if put.place.kind != "consumed":
            continue
        if put.place.number != after.bucket:
            yield broken("bucket", put.path, f"filed in bucket {put.place.number}, open is {after.bucket}")
        elif not has(before, put.path):
            count += 1
        elif before.read(put.path) != put.raw:
            yield broken("write-once", put.path, "a consumed entry was changed")
    yield from crowded(before, (put.path for put in puts if put.place.kind == "consumed"))
    expected = count + (before.state.bucket_entries if after.bucket == before.state.bucket else 0)
    if after.bucket_entries != expected:
        yield broken("bucket", layout.STATE, f"bucket_entries is {after.bucket_entries}, {expected} lie there")
    gone = [(path, place) for path, place in made.gone_entries.items() if place.kind == "consumed"]
    if gone:
        first = _first_after(before, made, ground)
        for path, place in gone:
            if (place.number or 0) >= first:
                yield broken("bucket", path, f"taken out of bucket {place.number}, dropped are those before {first}")


def _first_after(before: Before, made: Sorted, ground: Ground) -> int:
    raw = made.single.get("watermark")
    try:
        return watermark(before, ground.address).first if raw is None else read_watermark(raw).first
    except (Invalid, Damaged):
        return 0  # said by the rule about records


def _key(entry: Entry) -> str:
    try:
        return entry.key
    except ValueError:  # base64 that is none
        return ""

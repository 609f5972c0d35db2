"""A whole tree by itself: what the rules say of files that are just there, without a commit that put them.

For the newest commit alone (``fsck --tip``), and for the oldest, where a history (or an epoch of it) begins. One run is
in memory at a time; of the queue, the keys of mails that aren't consumed.
"""

import hashlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TypeVar

from msgspec import UNSET

from substrate import layout
from substrate.errors import BadPath
from substrate.layout import Place
from substrate.operations.buckets import Watermark
from substrate.rules.children import Kin
from substrate.rules.code import whole_code
from substrate.rules.commit import QUEUED, Ground
from substrate.rules.counts import WITHOUT_EPOCH, holds, read_watermark
from substrate.rules.grants import readable
from substrate.rules.outbox import sound
from substrate.rules.queue import names
from substrate.rules.runs import BOUND, has
from substrate.rules.schedules import whole_schedules
from substrate.rules.table import Broken, broken
from substrate.rules.whole_runs import Counts, Outcome, whole_run
from substrate.runlog import Tree, is_sealed
from substrate.signing.epoch import decode_epoch
from substrate.state import Format, State, decode_format, decode_state
from waypost.model.child_mail import spawner
from waypost.model.errors import Invalid
from waypost.model.ids import CallId, RunId
from waypost.model.limits import DEFAULT, Limits
from waypost.model.queue import decode, decode_outgoing

T = TypeVar("T")
_UNKNOWN = Format(format=1, repository="?", epoch=1, deployment="", address="")


@dataclass(slots=True)
class _Seen:
    """What is remembered from file to file."""

    ground: Ground
    state: State
    mark: Watermark
    keys: dict[str, str] = field(default_factory=dict)
    """Keys of mails that aren't consumed, with their paths."""
    outbox: dict[int, tuple[RunId, CallId]] = field(default_factory=dict)
    """Outgoing mail of runs: by ordinal, whose."""
    unsent: dict[int, tuple[RunId, CallId]] = field(default_factory=dict)
    """The same as the runs have it."""
    unread: set[RunId] = field(default_factory=set)
    """Runs that couldn't be followed to their end: the rest is not held against them."""
    waiting: dict[int, str] = field(default_factory=dict)
    """Mails that aren't consumed, by arrival, with their paths."""
    kin: Kin = field(default_factory=Kin)
    filed: int = 0
    """Entries in the open bucket."""


def whole(tree: Tree, counts: Counts, limits: Limits = DEFAULT) -> Iterator[Broken]:
    """Every rule that a tree can be held against by itself. Raises Damaged where an object can't be read."""
    found: list[Broken] = []
    known = _single(tree, layout.FORMAT, decode_format, _UNKNOWN, found)
    ground = Ground(repository=known.repository, address=known.address, limits=limits)
    state = _single(tree, layout.STATE, decode_state, State(), found)
    mark = watermark_of(tree, ground, found)
    seen = _Seen(ground, state, mark)
    yield from found
    if mark.first + len(mark.closed) > state.bucket:
        closed = mark.first + len(mark.closed)
        yield broken("watermark", layout.watermark_path(ground.address), f"{closed} are closed, open is {state.bucket}")
    yield from _epoch(tree, known, state)
    yield from whole_code(tree)
    yield from whole_schedules(tree)
    last: tuple[str, RunId] | None = None
    for path, count in _walk(tree, ""):
        if count > BOUND and not path.startswith(f"{layout.CODE}/"):
            yield broken("bounded", path or "the root", f"{count} entries")
        if count:
            continue
        counts.files += 1
        try:
            place = layout.place_of(path)
        except BadPath as bad:
            yield broken("path", path, bad.why)
            continue
        if place.run is None:
            yield from _file(tree, path, place, seen)
        elif last != (root := (path.partition("/")[0], place.run)):
            last = root
            yield from _run(tree, root[0], place.run, seen, counts)
    yield from _agree(seen)
    yield from seen.kin.agree(seen.unread)
    if seen.filed != state.bucket_entries:
        words = f"bucket_entries is {state.bucket_entries}, {seen.filed} lie there"
        yield broken("bucket", layout.STATE, words)


def watermark_of(tree: Tree, ground: Ground, found: list[Broken]) -> Watermark:
    """The watermark; of an address that closed no bucket yet, the first."""
    path = layout.watermark_path(ground.address)
    raw = tree.read(path)
    try:
        return Watermark() if raw is None else read_watermark(raw)
    except Invalid as bad:
        found.append(broken("record", path, bad.message))
        return Watermark()


def _single(tree: Tree, path: str, decoder: Callable[[bytes], T], default: T, found: list[Broken]) -> T:
    raw = tree.read(path)
    if raw is None:
        found.append(broken("missing", path, "it isn't there"))
        return default
    try:
        return decoder(raw)
    except Invalid as bad:
        found.append(broken("record", path, bad.message))
        return default


def _epoch(tree: Tree, known: Format, state: State) -> Iterator[Broken]:
    """Every epoch but the first is recorded; what else holds is an import, or an operator's drain."""
    yield from holds(state)
    raw = tree.read(layout.EPOCH)
    if raw is None:
        if known.epoch > 1 or state.held not in WITHOUT_EPOCH:
            yield broken("missing", layout.EPOCH, f"epoch {known.epoch}, held for {state.held or 'nothing'}")
        return
    try:
        epoch = decode_epoch(raw).epoch
    except Invalid as bad:
        yield broken("record", layout.EPOCH, bad.message)
        return
    if epoch != known.epoch:
        yield broken("format", layout.EPOCH, f"epoch {epoch}, and this is epoch {known.epoch}")


def _walk(tree: Tree, path: str) -> Iterator[tuple[str, int]]:
    """Every directory with how many entries it has, and every file with 0."""
    entries = tree.entries(path)
    yield path, len(entries)
    for name in entries:
        yield from _walk(tree, f"{path}/{name}" if path else name)


def _run(tree: Tree, root: str, run: RunId, seen: _Seen, counts: Counts) -> Iterator[Broken]:
    """A run where it lives; one that is sealed, or has values that have gone ahead, is met a second time."""
    live = bool(tree.entries(layout.run_dir(run)))
    if root == layout.SEALED and live:
        return
    if root == layout.SEALED and not has(tree, layout.sealed_log_path(run)):
        yield broken("missing", layout.sealed_log_path(run), "a sealed run without its log")
        return
    out = Outcome()
    yield from whole_run(tree, run, seen.state, seen.ground, out)
    seen.unsent.update((ordinal, (run, call)) for ordinal, call in out.unsent.items())
    if out.known is None:
        seen.unread.add(run)
    else:
        seen.kin.run(out.known)
    for arrival in out.mails:
        if arrival in seen.waiting:
            yield broken("effect", seen.waiting[arrival], f"{run} was given mail {arrival}, and it isn't consumed")
    counts.runs += 1
    counts.events += out.events


def _file(tree: Tree, path: str, place: Place, seen: _Seen) -> Iterator[Broken]:
    match place.kind:
        case "inbox" | "processing" | "hold" | "consumed":
            yield from _entry(tree, path, place, seen)
        case "outbox":
            try:
                entry = decode_outgoing(tree.read(path) or b"")
            except Invalid as bad:
                yield broken("record", path, bad.message)
                return
            yield from sound(path, place, entry)
            if entry.ordinal >= seen.state.outbox:
                yield broken("ordinals", path, f"{seen.state.outbox} is the next outgoing mail")
            if not entry.about:
                seen.outbox[entry.ordinal] = entry.run, entry.call
        case "step-grants":
            yield from readable(path, tree.read(path) or b"")
        case "mail" if (place.number or 0) >= seen.state.arrival:
            yield broken("ordinals", path, f"{seen.state.arrival} is the next arrival")
        case "watermark" if place.address != layout.address_key(seen.ground.address):
            yield broken("name", path, f"this is the queue of {seen.ground.address}")
        case _:
            pass


def _entry(  # noqa: C901 - one rule after the other
    tree: Tree, path: str, place: Place, seen: _Seen
) -> Iterator[Broken]:
    bucket = place.number or 0
    if place.kind == "consumed" and bucket < seen.mark.first:
        return  # dropped: nothing looks into it, and its files are about to go
    try:
        entry = decode(tree.read(path) or b"")
    except (Invalid, ValueError) as bad:
        yield broken("record", path, bad)
        return
    yield from names(path, place, entry, seen.ground)
    if entry.arrival >= seen.state.arrival:
        yield broken("ordinals", path, f"{seen.state.arrival} is the next arrival")
    raw_path, key = layout.mail_path(entry.arrival), place.key or ""
    if not has(tree, raw_path):
        yield broken("mail", raw_path, f"the mail of {path} isn't there")
    elif place.kind in QUEUED and hashlib.sha256(tree.read(raw_path) or b"").hexdigest() != entry.sha256:
        yield broken("mail", raw_path, f"its bytes aren't those that {path} names")
    upper = bucket if place.kind == "consumed" else seen.state.bucket + 1
    other = seen.keys.get(key) or _consumed(tree, range(seen.mark.first, upper), key, seen)
    if other is not None:
        yield broken("one-place", path, f"the same message is at {other}")
    if place.kind in QUEUED:
        seen.keys[key] = seen.waiting[entry.arrival] = path
        by = spawner(entry.id)
        if by is not None and not entry.base64:
            seen.kin.queued[by] = entry.run, path
        return
    seen.filed += bucket == seen.state.bucket
    if bucket > seen.state.bucket:
        yield broken("bucket", path, f"filed in bucket {bucket}, open is {seen.state.bucket}")
    if entry.rejected is UNSET and not (is_sealed(tree, entry.run) or tree.entries(layout.run_dir(entry.run))):
        yield broken("effect", path, f"consumed for {entry.run}, which isn't there")


def _consumed(tree: Tree, buckets: range, key: str, seen: _Seen) -> str | None:
    paths = (layout.consumed_path(seen.ground.address, bucket, key) for bucket in buckets)
    return next((path for path in paths if has(tree, path)), None)


def _agree(seen: _Seen) -> Iterator[Broken]:
    """The outbox has what the runs wait for, and nothing else."""
    for ordinal, (run, call) in seen.outbox.items():
        if run not in seen.unread and seen.unsent.get(ordinal) != (run, call):
            yield broken("outbox", layout.OUTBOX, f"outgoing mail {ordinal}: {call} of {run} doesn't wait for it")
    for ordinal, (run, _) in seen.unsent.items():
        if ordinal not in seen.outbox:
            yield broken("outbox", layout.run_dir(run), f"outgoing mail {ordinal} is in no outbox, and has no fate")

"""A run's other files: its grants, its values, and the act of sealing it.

A value is hashed again whenever it is written. Of a sealed log each event is held against the chain that the run had,
from its newest event backwards to the genesis: so it is that log, byte for byte, and nothing has to be read for it.
"""

import hashlib
from collections.abc import Iterable, Iterator

from substrate import layout
from substrate.operations.sealing import may_be_sealed
from substrate.rules.commit import Before, Ground, OfRun, files
from substrate.rules.logs import Log, genesis_of
from substrate.rules.table import Broken, broken
from substrate.runlog import Known, Tree, is_sealed
from substrate.signing.chain import Proven, chained
from waypost.model import events as ev
from waypost.model.ids import RunId

BOUND = 256
"""Entries of a directory."""


def beside_log(before: Before, log: Log, part: OfRun, ground: Ground) -> Iterator[Broken]:
    """Grants and values of a run that isn't being sealed."""
    yield from _grants(before, log, part)
    names = dict.fromkeys(named(log.events))
    for sha256 in names:
        path = layout.blob_path(log.run, sha256)
        if sha256 not in part.blobs and not has(before, path):
            yield broken("named", path, "an event names this value, and it isn't there")
    for sha256, data in part.blobs.items():
        path = layout.blob_path(log.run, sha256)
        yield from value(path, sha256, data, ground)
        if sha256 not in names and not has(before, path):
            yield broken("unnamed", path, "no event of this commit names it")
    yield from crowded(before, (layout.blob_path(log.run, sha256) for sha256 in part.blobs))
    for path, place in part.gone.items():
        if place.kind in {"blob", "grants"}:
            yield broken("write-once", path, "it was taken away")
    if (part.events or part.segments or part.blobs or part.grants) and is_sealed(before, log.run):
        yield broken("sealed", layout.run_dir(log.run), "something was written to a run that is sealed")


def named(events: Iterable[ev.AnyEvent]) -> Iterator[str]:
    """The values that these events name."""
    for event in events:
        if isinstance(event, ev.MailQueued):
            yield event.sha256
        else:
            yield from ev.blobs((event,))


def value(path: str, sha256: str, data: bytes, ground: Ground) -> Iterator[Broken]:
    """A value has the hash that it is named by, and isn't too big."""
    if len(data) > ground.limits.value:
        yield broken("value-size", path, f"{len(data)} bytes")
    found = hashlib.sha256(data).hexdigest()
    if found != sha256:
        yield broken("hash", path, f"its bytes have the hash {found}")


def has(tree: Tree, path: str) -> bool:
    """Whether a file is there; it isn't read."""
    above, _, name = path.rpartition("/")
    return name in tree.entries(above)


def crowded(before: Tree, paths: Iterable[str]) -> Iterator[Broken]:
    """The directories of these files stay within their bound."""
    new: dict[str, int] = {}
    for path in paths:
        above, _, name = path.rpartition("/")
        new[above] = new.get(above, 0) + (name not in before.entries(above))
    for above, count in new.items():
        entries = len(before.entries(above)) + count
        if count and entries > BOUND:
            yield broken("bounded", above, f"{entries} entries")


def sealing(before: Before, run: RunId, part: OfRun, ground: Ground) -> Iterator[Broken]:
    """A commit that seals a run, or moves values of it ahead. Raises Damaged where the run can't be read before it."""
    if is_sealed(before, run):
        yield from _unchanged(before, run, part)
        return
    known = before.known(run)
    if not may_be_sealed(known.run):
        yield broken("seal", layout.sealed_dir(run), "the run has not ended, or mail of it is in the outbox")
    if part.events or part.segments or part.blobs or part.grants is not None:
        yield broken("seal", layout.run_dir(run), "the commit that seals a run writes to it, too")
    for sha256, data in part.sealed_blobs.items():
        yield from value(layout.sealed_blob_path(run, sha256), sha256, data, ground)
    yield from crowded(before, (layout.sealed_blob_path(run, sha256) for sha256 in part.sealed_blobs))
    for path, place in part.gone.items():
        yield from _moved(part, path, place.kind, place.key)
    if part.sealed_log is not None:
        yield from _whole(before, known, run, part, ground)


def _grants(before: Before, log: Log, part: OfRun) -> Iterator[Broken]:
    path = layout.grants_path(log.run)
    begun = log.events[0] if log.events and isinstance(log.events[0], ev.RunStarted) else None
    if part.grants is None:
        if begun is not None:
            yield broken("named", path, "the run begins without its grants")
        return
    old = before.read(path)
    if old is not None and old != part.grants:
        yield broken("write-once", path, "the grants of a run were changed")
    if begun is not None:
        found = hashlib.sha256(part.grants).hexdigest()
        if found != begun.grants:
            yield broken("hash", path, f"RunStarted names {begun.grants}, these bytes have {found}")
    elif old is None:
        yield broken("unnamed", path, "grants without the RunStarted that names them")


def _moved(part: OfRun, path: str, kind: str, key: str | None) -> Iterator[Broken]:
    """What leaves a live run goes to its sealed form, in the same commit; its log, with the whole of it."""
    if kind == "blob":
        if key not in part.sealed_blobs:
            yield broken("seal", path, "the value left the run and is not in its sealed form")
    elif kind not in {"event", "segment", "grants"}:
        yield broken("sealed", path, "a part of a sealed run was taken away")
    elif part.sealed_log is None:
        yield broken("append-only", path, "it left the run, and the sealed log isn't there")


def _whole(before: Before, known: Known, run: RunId, part: OfRun, ground: Ground) -> Iterator[Broken]:
    grants = before.read(layout.grants_path(run))
    yield from _log(known, run, part.sealed_log or b"", genesis_of(run, grants, ground))
    if part.sealed_grants is None or part.sealed_grants != grants:
        yield broken("seal", layout.sealed_grants_path(run), "they aren't the run's grants")
    left = next((each for each in files(before, layout.run_dir(run)) if each not in part.gone), None)
    if left is not None:
        yield broken("seal", left, "the run is sealed, and this file of it was left behind")


def _log(known: Known, run: RunId, log: bytes, genesis: str) -> Iterator[Broken]:
    path = layout.sealed_log_path(run)
    if isinstance(log, Proven):
        chain = log.chain
        if (chain.genesis, chain.newest, chain.count) != (genesis, known.prev, known.seq):
            yield broken("seal", path, "it isn't the log of this run")
        return
    lines = log.split(b"\n")
    if lines.pop() or len(lines) != known.seq:
        yield broken("seal", path, f"{len(lines)} lines, the run has {known.seq} events")
        return
    wrong = chained(lines, known.prev, genesis)
    if wrong:
        yield broken("seal", path, f"event {wrong} isn't as it was recorded")


def _unchanged(before: Before, run: RunId, part: OfRun) -> Iterator[Broken]:
    puts = {layout.sealed_blob_path(run, sha256): data for sha256, data in part.sealed_blobs.items()}
    if part.sealed_log is not None:
        puts[layout.sealed_log_path(run)] = part.sealed_log
    if part.sealed_grants is not None:
        puts[layout.sealed_grants_path(run)] = part.sealed_grants
    for path, data in puts.items():
        if before.read(path) != data:
            yield broken("sealed", path, "it was changed, or added to a sealed run")
    for path in part.gone:
        yield broken("sealed", path, "a part of a sealed run was taken away")

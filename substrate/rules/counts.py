"""The single files: what counts up never goes back (``state/deployment.json``), what is fixed stays (``format.json``).

Ordinals are given one by one, and by as many as the commit takes; a watermark rises and keeps what it recorded.
"""

from collections.abc import Iterator

import msgspec
from msgspec import UNSET

from substrate import layout
from substrate.operations.buckets import Watermark, watermark
from substrate.rules.commit import Before, Ground, Sorted
from substrate.rules.table import Broken, broken
from substrate.signing.epoch import decode_epoch
from substrate.state import State, decode_format, decode_state
from waypost.model.errors import Invalid

_RISING = ("generation", "run", "arrival", "outbox", "bucket", "rejected")
WITHOUT_EPOCH = frozenset({"", "import", "drain"})
"""Why a deployment is held where no epoch begins: it came to be by an import, or an operator has it rest."""
_watermarks = msgspec.json.Decoder(Watermark)


def state_after(before: Before, made: Sorted, found: list[Broken]) -> State:
    """The counts after a commit; those before it where they can't be read."""
    raw = made.single.get("state")
    if raw is None:
        return before.state
    try:
        return decode_state(raw)
    except Invalid as bad:
        found.append(broken("record", layout.STATE, bad.message))
        return before.state


def counted(before: Before, made: Sorted, after: State) -> Iterator[Broken]:
    """Counts rise, and by as many as the commit takes of them."""
    was = before.state
    for name in _RISING:
        old, new = getattr(was, name), getattr(after, name)
        if new < old:
            yield broken("ordinals", layout.STATE, f"{name} was {old} and is {new}")
    if after.generation > was.generation + 1:
        yield broken("generation", layout.STATE, f"{after.generation} follows {was.generation}")
    yield from _latched(was, after)
    yield from _drained(was, after)
    mails, sent = len(made.mails), len(made.outbox)
    if after.arrival - was.arrival != mails:
        yield broken("ordinals", layout.STATE, f"arrival was {was.arrival}, {mails} came, and it is {after.arrival}")
    if after.outbox - was.outbox != sent:
        yield broken("ordinals", layout.STATE, f"outbox was {was.outbox}, {sent} were queued, and it is {after.outbox}")


def _drained(was: State, after: State) -> Iterator[Broken]:
    """It stays as it was asked for; what its clock has counted only rises, and counts where every run is to end."""
    if after.drain and after.drain.spent and after.drain.to != "end":
        yield broken("drain", layout.STATE, f"drained to {after.drain.to}, and {after.drain.spent} ms are counted")
    if not was.drain or not after.drain:
        return
    if msgspec.structs.replace(after.drain, spent=was.drain.spent) != was.drain:
        yield broken("drain", layout.STATE, f"drained since {was.drain.at}, and now it says {after.drain.at}")
    if (after.drain.spent or 0) < (was.drain.spent or 0):
        yield broken("drain", layout.STATE, f"{was.drain.spent} ms were counted, and now {after.drain.spent or 0}")


def _latched(was: State, after: State) -> Iterator[Broken]:
    """No child is to come while it is latched, so no generation begins, not in the commit that lifts it either."""
    if was.latch and after.latch and was.latch != after.latch:
        yield broken("latch", layout.STATE, f"latched at {was.latch.at}, and now it says {after.latch.at}")
    if (was.latch or after.latch) and after.generation != was.generation:
        yield broken("latch", layout.STATE, f"generation {after.generation} begins, and it is latched")


def read_watermark(raw: bytes) -> Watermark:
    """``watermark.json``, strictly. Raises Invalid."""
    try:
        return _watermarks.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError) as bad:
        raise Invalid(f"not a watermark.json: {bad}") from None


def marked(before: Before, made: Sorted, after: State, ground: Ground) -> Iterator[Broken]:
    """The watermark rises, below the open bucket; when a bucket was closed stays as it was recorded."""
    raw = made.single.get("watermark")
    if raw is None:
        return
    path = layout.watermark_path(ground.address)
    try:
        new = read_watermark(raw)
    except Invalid as bad:
        yield broken("record", path, bad.message)
        return
    old = watermark(before, ground.address)
    if new.first < old.first:
        yield broken("watermark", path, f"first was {old.first} and is {new.first}")
    elif new.closed[: len(old.closed) - (new.first - old.first)] != old.closed[new.first - old.first :]:
        yield broken("watermark", path, "when a bucket was closed was changed")
    if new.first + len(new.closed) > after.bucket:
        yield broken("watermark", path, f"{new.first + len(new.closed)} buckets are closed, open is {after.bucket}")


def holds(state: State) -> Iterator[Broken]:
    """Nobody says since when it is held where it isn't; and what is held has been drained, or needs no drain."""
    if state.held_at is not UNSET and not state.held:
        yield broken("format", layout.STATE, f"held since {state.held_at}, and it isn't held")
    if state.drain and state.held:
        yield broken("drain", layout.STATE, f"drained since {state.drain.at}, and held after {state.held}")


def _since(was: State, after: State, *, begun: bool) -> Iterator[Broken]:
    """Since when it is held stays as it was recorded, and goes with it; ``begun``: an epoch begins here."""
    yield from holds(after)
    if was.held and after.held and was.held_at != after.held_at and not begun:
        yield broken("format", layout.STATE, f"held since {was.held_at or 'nobody knows'}, and now {after.held_at}")


def formatted(before: Before, made: Sorted, after: State) -> Iterator[Broken]:
    """``format.json`` says for ever what a repository is; the epoch rises, with the record of it, and then holds."""
    raw, told = made.single.get("format"), made.single.get("epoch")
    yield from _since(before.state, after, begun=told is not None)
    if after.held not in {*WITHOUT_EPOCH, before.state.held} and told is None:
        yield broken("format", layout.STATE, f"held for {after.held}, and no epoch begins")
    if raw is None and told is None:
        return
    try:
        old, new = decode_format(before.read(layout.FORMAT) or b""), decode_format(raw or b"")
    except Invalid as bad:
        yield broken("record", layout.FORMAT, bad.message)
        return
    if new.epoch <= old.epoch or msgspec.structs.replace(new, epoch=old.epoch) != old:
        yield broken("format", layout.FORMAT, (raw or b"").decode("utf-8", "replace"))
    try:
        epoch = decode_epoch(told or b"")
    except Invalid as bad:
        yield broken("record", layout.EPOCH, bad.message)
        return
    if epoch.epoch != new.epoch or epoch.why != after.held:
        yield broken("format", layout.EPOCH, f"epoch {epoch.epoch} by {epoch.why}, held for {after.held or 'nothing'}")

"""Consumed entries lie in buckets, in the order of consumption; a bucket closes, and is dropped whole (storage §5).

A bucket closes after a day, at 16,384 entries, or when one of its directories is full; ``watermark.json`` says since
when each is closed, and which are dropped. What is in a closed bucket was consumed before it closed: so an id is
refused for the whole horizon, whatever the clock did meanwhile. Pure, over counts and times that were recorded.
"""

import functools
from collections import Counter
from collections.abc import Collection
from itertools import takewhile
from typing import Annotated

import msgspec

from substrate import layout
from substrate.errors import Damaged
from substrate.operations.change import Change, Context, View
from substrate.runlog import Tree
from substrate.state import State
from substrate.state import encode as encode_state
from waypost.model.times import unstamp

BUCKET_ENTRIES = 16_384
DIRECTORY_ENTRIES = 256
"""Of one of a bucket's directories: ids can be chosen so that they all lie in one."""
BUCKET_AGE = 86_400_000
"""Milliseconds after which a bucket of consumed entries takes no more."""

PORTION = 16
"""Directories of a dropped bucket that one commit removes, of 256: about a thousand entries."""


class Watermark(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """``watermark.json``: what is known of the buckets that take no more."""

    first: Annotated[int, msgspec.Meta(ge=0)] = 0
    """The oldest bucket that is there; all before it are dropped."""
    closed: tuple[str, ...] = ()
    """When it and those after it were closed, ISO 8601 UTC; the one after the last of them is open."""


_watermarks = msgspec.json.Decoder(Watermark)


def watermark(tree: Tree, address: str) -> Watermark:
    """The watermark of an address; of one that closed no bucket yet, the first. Raises Damaged."""
    raw = tree.read(layout.watermark_path(address))
    return Watermark() if raw is None else _decoded(address, raw)


def filed(view: View, state: State, key: str, context: Context) -> State:
    """The state with this key's entry in its bucket: in the open one, or in the next when that is closed."""
    return filed_together(view, state, (key,), context)


def filed_together(view: View, state: State, keys: Collection[str], context: Context) -> State:
    """The same of entries that are consumed by one commit: all of them are in the bucket that is open after it."""
    at, count = context.at, len(keys)
    if not state.bucket_opened:
        return msgspec.structs.replace(state, bucket_entries=count, bucket_opened=at)
    more = Counter(layout.consumed_path(context.address, state.bucket, key).rpartition("/")[0] for key in keys)
    crowded = any(len(view.entries(each)) + new > DIRECTORY_ENTRIES for each, new in more.items())
    # A clock that went back closes nothing: the bucket just lives longer.
    aged = context.now.wall - unstamp(state.bucket_opened) >= BUCKET_AGE
    if crowded or aged or state.bucket_entries + count > BUCKET_ENTRIES:
        return msgspec.structs.replace(state, bucket=state.bucket + 1, bucket_entries=count, bucket_opened=at)
    return msgspec.structs.replace(state, bucket_entries=state.bucket_entries + count)


def rejecting(view: View, key: str, context: Context) -> State:
    """The state with room for one more consumed entry, which is counted as rejected."""
    state = filed(view, view.state, key, context)
    return msgspec.structs.replace(state, rejected=state.rejected + 1)


def files_after(view: View, state: State, context: Context) -> dict[str, bytes]:
    """The files that say so: the counts, and the watermark where a bucket was closed on the way."""
    if state.bucket == view.state.bucket:
        return state_file(state)
    before = watermark(view, context.address)
    # As many as it takes: buckets of before there was a watermark count as closed from now on.
    missing = state.bucket - before.first - len(before.closed)
    after = msgspec.structs.replace(before, closed=(*before.closed, *[context.at] * missing))
    return {**state_file(state), layout.watermark_path(context.address): msgspec.json.encode(after)}


def state_file(state: State) -> dict[str, bytes]:
    """``state/deployment.json`` with these counts."""
    return {layout.STATE: encode_state(state)}


def consumed_at(view: View, key: str, context: Context) -> bytes | None:
    """The consumed entry with this key, wherever it was filed; the newest first."""
    wanted = bytes.fromhex(key)
    for bucket in range(view.state.bucket, watermark(view, context.address).first - 1, -1):
        path = layout.consumed_path(context.address, bucket, key)
        if bucket < view.state.bucket and wanted not in view.packed(path.rpartition("/")[0]):
            continue
        raw = view.read(path)
        if raw is not None:
            return raw
    return None


def due(mark: Watermark, now: int, retention: float) -> int:
    """How many of the oldest buckets may go at ``now`` (Unix ms), ``retention`` seconds after they were closed.

    At most a day's of them, so that a clock that jumps costs no more: those closed within a day of the first.
    """
    closed = [unstamp(at) for at in mark.closed]
    latest = min(now - int(retention * 1000), closed[0] + BUCKET_AGE - 1) if closed else 0
    return sum(1 for _ in takewhile(lambda at: at <= latest, closed))


def left_over(view: View, mark: Watermark, address: str) -> tuple[str, ...]:
    """The directories that are still there of the bucket that was dropped last."""
    return view.entries(layout.bucket_dir(address, mark.first - 1)) if mark.first else ()


def drop(view: View, context: Context, *, another: bool) -> Change | None:
    """The next commit of dropping; None when there is nothing to do. Its value is whether it drops ``another`` bucket.

    A bucket is dropped whole, by the commit that raises the watermark: nothing looks into it any more. Its files go
    a portion in each commit, the first ones in this, so that no append waits for all of them.
    """
    mark = watermark(view, context.address)
    if left_over(view, mark, context.address):
        return _cleared(view, mark.first - 1, {}, context)
    if not another:
        return None
    after = Watermark(first=mark.first + 1, closed=mark.closed[1:])
    return _cleared(view, mark.first, {layout.watermark_path(context.address): msgspec.json.encode(after)}, context)


def _cleared(view: View, bucket: int, puts: dict[str, bytes], context: Context) -> Change:
    directory = layout.bucket_dir(context.address, bucket)
    return Change(
        author="supervisor",
        subject=f"{'drop' if puts else 'clear away'} bucket {bucket} of consumed mail",
        puts=puts,
        deletes=tuple(f"{directory}/{name}/" for name in view.entries(directory)[:PORTION]),
        value=bool(puts),
    )


@functools.lru_cache(maxsize=64)
def _decoded(address: str, raw: bytes) -> Watermark:
    try:
        return _watermarks.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError) as bad:
        raise Damaged(layout.watermark_path(address), f"not a watermark.json: {bad}") from None

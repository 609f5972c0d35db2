"""Consumed entries lie in buckets, in the order of consumption; a bucket closes, and is dropped whole (storage §5).

Pure: which bucket takes the next entry follows from the counts in ``state/deployment.json`` and the tree.
"""

import msgspec

from substrate import layout
from substrate.operations.change import Context, View
from substrate.state import State
from substrate.state import encode as encode_state
from waypost.model.times import unstamp

BUCKET_ENTRIES = 16_384
BUCKET_AGE = 86_400_000
"""Milliseconds after which a bucket of consumed entries takes no more."""


def bucket_for(state: State, context: Context) -> State:
    """The state with room for one more consumed entry in its bucket: the open one, or the next when that is closed."""
    at = context.at
    if not state.bucket_opened:
        return msgspec.structs.replace(state, bucket_entries=1, bucket_opened=at)
    full = state.bucket_entries >= BUCKET_ENTRIES
    # A clock that went back closes nothing: the bucket just lives longer.
    if full or context.now.wall - unstamp(state.bucket_opened) >= BUCKET_AGE:
        return msgspec.structs.replace(state, bucket=state.bucket + 1, bucket_entries=1, bucket_opened=at)
    return msgspec.structs.replace(state, bucket_entries=state.bucket_entries + 1)


def rejecting(state: State, context: Context) -> State:
    """The state with room for one more consumed entry, which is counted as rejected."""
    return msgspec.structs.replace(bucket_for(state, context), rejected=state.rejected + 1)


def consumed_at(view: View, key: str, context: Context) -> bytes | None:
    """The consumed entry with this key, wherever it was filed; the newest first."""
    for bucket in range(view.state.bucket, -1, -1):
        raw = view.read(layout.consumed_path(context.address, bucket, key))
        if raw is not None:
            return raw
    return None


def state_file(state: State) -> dict[str, bytes]:
    """``state/deployment.json`` with these counts."""
    return {layout.STATE: encode_state(state)}

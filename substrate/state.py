"""The two small files that describe a repository: ``format.json`` and ``state/deployment.json`` (storage §1).

Records and their one encoding: nothing is opened here. ``format.json`` changes only where an epoch begins (``epoch``);
``state/deployment.json`` holds what must go up by one and never back, generation and ordinals, whether the deployment
is held and since when (``held_at``), whether it is latched: ``"latch":{"reason":"crash-looping","at":…,"detail":…}``,
and whether it is being drained: ``"drain":{"to":"rest" or "end","at":…,"by":…,"spent":…}``. All are absent as a rule.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, UnsetType

from waypost.model.errors import Invalid

VERSION = 1
"""The newest format that this code reads and writes."""

DETAIL = 1000
"""Characters of a latch's detail."""
Count = Annotated[int, msgspec.Meta(ge=0)]
Moment = Annotated[str, msgspec.Meta(pattern="^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}[.][0-9]{3}Z$")]


class Format(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What a repository is, for ever."""

    format: Count
    repository: Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
    """Random; every chain and every idempotency key in the repository begins with it."""
    epoch: Annotated[int, msgspec.Meta(ge=1)]
    deployment: str
    address: str


class Latch(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """No child is started any more, by no host, until an operator resets the deployment."""

    reason: Literal["crash-looping"] = "crash-looping"
    at: str
    """ISO 8601 UTC."""
    detail: Annotated[str, msgspec.Meta(max_length=DETAIL)]
    """For people: how often, and how the last child ended. Nothing that a child wrote."""


class Drain(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """An operator has it come to rest; every host goes on with that until it is held, or an operator lets it go on."""

    to: Literal["rest", "end"]
    """``rest``: until nothing executes. ``end``: until every run has ended; no new one begins."""
    at: Moment
    """Since when, in ISO 8601 UTC."""
    by: Annotated[str, msgspec.Meta(max_length=DETAIL)]
    spent: Annotated[int, msgspec.Meta(ge=1)] | UnsetType = UNSET
    """Milliseconds in which steps executed that it may cut short, as far as that was noted; for ``end`` only."""


class State(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What counts up. Each ordinal is the next one to be given."""

    generation: Count = 0
    """Of the newest child incarnation; 0 before the first."""
    run: Count = 1
    arrival: Count = 1
    outbox: Count = 1
    bucket: Count = 0
    """Ordinal of the bucket that consumed entries go to now."""
    bucket_entries: Count = 0
    bucket_opened: str = ""
    """ISO 8601 UTC; empty while no bucket was ever used."""
    rejected: Count = 0
    """Mails that were ever rejected after they had been accepted."""
    held: Literal["", "accept-rollback", "restore", "import", "drain"] = ""
    """Why nothing may leave and no child may run until an operator says so; empty as a rule."""
    held_at: Moment | UnsetType = UNSET
    """Since when, in ISO 8601 UTC; absent where it isn't held, and where that began before this was written down."""
    latch: Latch | UnsetType = UNSET
    """Absent where it isn't latched, so that what was written before there were latches reads as it did."""
    drain: Drain | UnsetType = UNSET
    """Absent where it isn't being drained; the same."""


_formats = msgspec.json.Decoder(Format)
_states = msgspec.json.Decoder(State)


def encode(record: Format | State) -> bytes:
    """One line of JSON, keys in the order of the record."""
    return msgspec.json.encode(record)


def decode_format(raw: bytes) -> Format:
    """Read ``format.json``, strictly. Raises Invalid."""
    try:
        return _formats.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError) as bad:
        raise Invalid(f"not a format.json: {bad}") from None


def decode_state(raw: bytes) -> State:
    """Read ``state/deployment.json``, strictly. Raises Invalid."""
    try:
        return _states.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError) as bad:
        raise Invalid(f"not a state/deployment.json: {bad}") from None

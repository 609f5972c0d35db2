"""The records of what a repository had reached, and of an epoch that was begun on purpose (storage §3, completeness).

``state/epoch.json``, a format for ever: one line of JSON with the fields of ``Epoch``. It is written by the first
commit of an epoch, which also raises ``epoch`` in ``format.json`` by at least one and holds the deployment
(``held`` in ``state/deployment.json``). Flush numbers and hashes go on from the head that the epoch begins after.
"""

from typing import Annotated, Literal, TypeAlias

import msgspec

from waypost.model.errors import Invalid

Why: TypeAlias = Literal["accept-rollback", "restore"]
Ordinal = Annotated[int, msgspec.Meta(ge=1)]
_HEX = "^[0-9a-f]{%d}$"


class Noted(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A head, and the epoch and repository that it belongs to."""

    repository: Annotated[str, msgspec.Meta(min_length=1, max_length=128)]
    epoch: Ordinal
    flush: Ordinal
    hash: Annotated[str, msgspec.Meta(pattern=_HEX % 64)]
    head: Annotated[str, msgspec.Meta(pattern=_HEX % 40)]

    def __str__(self) -> str:
        """For people."""
        return f"flush {self.flush} {self.head[:12]}"


class Epoch(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """How an epoch began: ``after`` is the head that it goes on from, ``lost`` the one that was noted and isn't there.

    ``at`` is ISO 8601 UTC.
    """

    epoch: Annotated[int, msgspec.Meta(ge=2)]
    why: Why
    at: str
    after: Noted
    lost: Noted | None = None
    unsigned: Annotated[str, msgspec.Meta(pattern="^([0-9a-f]{40})?$")] = ""
    """A commit that somebody else had put on top, and that was set aside."""


_notes = msgspec.json.Decoder(Noted)
_epochs = msgspec.json.Decoder(Epoch)


def encode(record: Noted | Epoch) -> bytes:
    """One line of JSON, keys in the order of the record."""
    return msgspec.json.encode(record)


def decode_noted(raw: bytes) -> Noted:
    """Read a noted head, strictly. Raises Invalid."""
    try:
        return _notes.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError) as bad:
        raise Invalid(f"not a noted head: {bad}") from None


def decode_epoch(raw: bytes) -> Epoch:
    """Read ``state/epoch.json``, strictly. Raises Invalid."""
    try:
        return _epochs.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError) as bad:
        raise Invalid(f"not a state/epoch.json: {bad}") from None

"""What events are made of: their base; values, mails, faults and decisions; the bounds of their fields.

Part of ``waypost.model.events``, by whose name it is imported.
"""

from typing import Annotated, Literal

import msgspec
from msgspec import UNSET, UnsetType

from waypost.model.ids import CallId

Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
Call = Annotated[CallId, msgspec.Meta(max_length=512)]
Text = Annotated[str, msgspec.Meta(max_length=262_144)]
Line = Annotated[str, msgspec.Meta(max_length=1000)]
LATEST = 253_402_300_799_999
"""Unix ms of the last millisecond of the year 9999: no date can be written beyond it."""
Milliseconds = Annotated[int, msgspec.Meta(ge=0, le=LATEST)]
Seconds = Annotated[float, msgspec.Meta(ge=0)]
Origin = Literal["self", "parent", "supervisor-drain", "supervisor-operator", "hub-admin"]
"""Who asks for a run's end: its own code, the run that it is a child of, a drain at its limit, the host's own user, an
administrator."""

SNAPSHOT = 128 * 1024
"""Bytes of an approval's snapshot, as JSON."""


class Value(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A JSON value: in the event itself, or by name when it is over the inline limit. Exactly one of the two is set."""

    inline: msgspec.Raw | UnsetType = UNSET
    blob: Sha256 | UnsetType = UNSET


class Mailed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """The mail behind an event: its place, its id, its author's address and the SHA-256 of its raw bytes."""

    arrival: int
    id: str
    sha256: Sha256
    sender: str = ""
    base64: bool = False
    """Whether ``id`` is base64 of bytes that are no UTF-8."""


class Fault(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """What was raised: the type's name, its message, the traceback as text; ``args`` where the type is rebuilt."""

    type: Line
    message: Text
    traceback: Text = ""
    args: msgspec.Raw | UnsetType = UNSET
    step: Line = ""
    call: str = ""


class Decision(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """A person's answer to an approval. ``by`` is an address (not authenticated) or the operator's user name."""

    approved: bool
    by: Line
    text: Text = ""
    via: Literal["mail", "cli"]


class Event(
    msgspec.Struct,
    frozen=True,
    forbid_unknown_fields=True,
    omit_defaults=True,
    kw_only=True,
    tag_field="type",
    tag=True,
):
    """What every event has. ``at`` is ISO 8601 UTC with milliseconds, ``prev`` the SHA-256 of the event before."""

    seq: int = 0
    at: str = ""
    prev: str = ""
    original: Sha256 | UnsetType = UNSET
    """Of an imported event: SHA-256 of its bytes where it came from. Nothing else sets it."""

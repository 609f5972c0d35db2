"""The first message of all, `Ready`, and what every message is made of.

Apart from `ipc.messages`: a child says this one before it has loaded the others.
"""

from typing import Annotated

import msgspec
from msgspec import UNSET, UnsetType

Hex64 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]
Text = Annotated[str, msgspec.Meta(max_length=262_144)]
Count = Annotated[int, msgspec.Meta(ge=0, le=2**53)]
Key = Annotated[bytes, msgspec.Meta(min_length=32, max_length=32)]


class Message(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, tag_field="t"):
    """Base of everything that crosses the border."""


class Ready(Message, frozen=True, kw_only=True, omit_defaults=True, tag="ready"):
    """First frame of a child: its public key (which verifies this very frame) and what code it loaded.

    ``error`` instead of a code hash: the workflow file doesn't load; runs are paused as ``code-missing``.
    """

    key: Key
    pid: Count
    code: Hex64 | UnsetType = UNSET
    error: Text | UnsetType = UNSET

"""The event channel, from child to host only: the shared envelope under HMAC-SHA256 (RFC 2104, design §8).

Cheap enough for progress at any rate. A receiver that has seen one violation gives nothing more.
"""

import hmac
from collections.abc import Callable
from typing import TypeVar

from ipc import sealed
from ipc.sealed import Bounds, Direction, Lane
from ipc.secret import Secret
from waypost.model.limits import DEFAULT

MessageT = TypeVar("MessageT")

TAG = 32
"""Bytes of a MAC."""


class Sender(sealed.Sender):
    """The child's end. Wiping ``key`` ends the channel."""

    def __init__(
        self, key: Secret, channel_id: bytes, *, frame: int = DEFAULT.frame, nesting: int = DEFAULT.nesting
    ) -> None:
        lane = Lane("events", Direction.UP, channel_id)
        super().__init__(lane, lambda signed: _mac(key, signed), Bounds(frame, nesting))


class Receiver(sealed.Receiver[MessageT]):
    """The host's end."""

    def __init__(
        self,
        key: Secret,
        channel_id: bytes,
        *,
        parse: Callable[[object], MessageT],
        frame: int = DEFAULT.frame,
        nesting: int = DEFAULT.nesting,
    ) -> None:
        lane = Lane("events", Direction.UP, channel_id)
        super().__init__(lane, parse=parse, bounds=Bounds(frame, nesting), tag_size=TAG)
        self._key = key

    def _verifier(self, seq: int, body: bytes) -> Callable[[bytes, bytes], bool]:  # noqa: ARG002 - the key is known
        return lambda signed, tag: hmac.compare_digest(_mac(self._key, signed), tag)


def _mac(key: Secret, signed: bytes) -> bytes:
    return hmac.digest(key.reveal(), signed, "sha256")

"""The event channel, from child to host only: the shared envelope under HMAC-SHA256 (RFC 2104, design §8).

Cheap enough for progress at any rate. A receiver that has seen one violation gives nothing more.
"""

import hmac
from collections.abc import Callable
from typing import Generic, TypeVar, assert_never

import msgspec

from ipc import sealed
from ipc.errors import PeerError
from ipc.sealed import Bounds, Direction, Ended, Lane
from ipc.secret import Secret
from waypost.model.limits import DEFAULT

MessageT = TypeVar("MessageT")

TAG = 32
"""Bytes of a MAC."""


class _Open(msgspec.Struct, frozen=True):
    seq: int
    """Of the last frame; 0 before the first."""


class Sender:
    """The child's end: turns messages into frames. wiping ``key`` ends the channel."""

    def __init__(
        self,
        key: Secret,
        channel_id: bytes,
        *,
        frame: int = DEFAULT.frame,
        nesting: int = DEFAULT.nesting,
    ) -> None:
        self._key = key
        self._lane = Lane("events", Direction.UP, channel_id)
        self._bounds = Bounds(frame, nesting)
        self._seq = 0

    def seal(self, payload: object) -> bytes:
        """Make the next frame, length included. A refused payload uses up no number.

        Raises FrameTooLarge, NotEncodable, ChannelEnded; SecretWiped.
        """
        frame = sealed.seal(
            self._lane, self._seq + 1, payload, tag=lambda signed: _mac(self._key, signed), bounds=self._bounds
        )
        self._seq += 1
        return frame


class Receiver(Generic[MessageT]):
    """The host's end: turns frame bodies into messages; ``parse`` makes a message of a plain payload."""

    def __init__(
        self,
        key: Secret,
        channel_id: bytes,
        *,
        parse: Callable[[object], MessageT],
        frame: int = DEFAULT.frame,
        nesting: int = DEFAULT.nesting,
    ) -> None:
        self._key = key
        self._lane = Lane("events", Direction.UP, channel_id)
        self._parse = parse
        self._bounds = Bounds(frame, nesting)
        self._state: _Open | Ended = _Open(0)

    def open(self, body: bytes) -> MessageT:
        """Check a frame's body and give its message. Raises a PeerError, after that ChannelEnded."""
        match self._state:
            case Ended() as end:
                raise sealed.ended(self._lane, end)
            case _Open(last):
                try:
                    message = self._message(last + 1, body)
                except PeerError as failure:
                    self._state = Ended(failure.code)
                    raise
                self._state = _Open(last + 1)
                return message
            case _:
                assert_never(self._state)

    def begun(self, size: int, beginning: bytes) -> None:
        """Check the beginning of a body that isn't whole yet. Raises Malformed, after that ChannelEnded."""
        match self._state:
            case Ended() as end:
                raise sealed.ended(self._lane, end)
            case _Open(last):
                try:
                    sealed.check_begun(self._lane, last + 1, size, beginning, tag_size=TAG)
                except PeerError as failure:
                    self._state = Ended(failure.code)
                    raise
            case _:
                assert_never(self._state)

    def _message(self, seq: int, body: bytes) -> MessageT:
        payload = sealed.unseal(
            self._lane,
            seq,
            body,
            verify=lambda signed, tag: hmac.compare_digest(_mac(self._key, signed), tag),
            tag_size=TAG,
            bounds=self._bounds,
        )
        return sealed.parsed(self._lane, seq, payload, self._parse)


def _mac(key: Secret, signed: bytes) -> bytes:
    return hmac.digest(key.reveal(), signed, "sha256")

"""The control channel: Ed25519 both ways, one key pair for each direction of each spawn (RFC 8032, design §8).

The child's public key isn't known when it starts: it comes in `ready`, must verify that very frame, and is pinned
for the life of the channel. A receiver that has seen one violation gives nothing more.
"""

from collections.abc import Callable
from typing import Generic, TypeVar, assert_never

import msgspec

from ipc import sealed, signing
from ipc.errors import BadKey, Malformed, NotReady, PeerError
from ipc.ready import Ready
from ipc.sealed import Bounds, Direction, Ended, Lane
from waypost import ed25519
from waypost.ed25519 import PrivateKey
from waypost.model.limits import DEFAULT

MessageT = TypeVar("MessageT")

FIRST_FRAME = 4 * 262_144 + 4096
"""Bytes of the one envelope that is decoded before it is verified: a `Ready` with the longest error text fits."""


class _Awaiting(msgspec.Struct, frozen=True):
    """Nothing has come yet and no key is known."""


class _Open(msgspec.Struct, frozen=True):
    key: bytes
    seq: int
    """Of the last frame; 0 before the first."""


class Sender:
    """One end's outgoing half: turns messages into signed frames, numbered in the order of the calls."""

    def __init__(
        self,
        private_key: PrivateKey,
        channel_id: bytes,
        direction: Direction,
        *,
        frame: int = DEFAULT.frame,
        nesting: int = DEFAULT.nesting,
    ) -> None:
        self._key = private_key
        self._lane = Lane("control", direction, channel_id)
        self._bounds = Bounds(frame, nesting)
        self._seq = 0

    def seal(self, payload: object) -> bytes:
        """Make the next frame, length included. A refused payload uses up no number.

        Raises FrameTooLarge, NotEncodable, ChannelEnded.
        """
        frame = sealed.seal(self._lane, self._seq + 1, payload, tag=self._key.sign, bounds=self._bounds)
        self._seq += 1
        return frame


class Receiver(Generic[MessageT]):
    """One end's incoming half: turns frame bodies into verified messages.

    ``public_key``: the sender's 32 bytes; None where the first frame brings it (the host's side). ``parse`` makes a
    message of a plain payload (`ipc.parse`). Raises BadKey for a key that must not be trusted.
    """

    def __init__(
        self,
        public_key: bytes | None,
        channel_id: bytes,
        direction: Direction,
        *,
        parse: Callable[[object], MessageT],
        frame: int = DEFAULT.frame,
        nesting: int = DEFAULT.nesting,
    ) -> None:
        self._lane = Lane("control", direction, channel_id)
        self._parse = parse
        self._bounds = Bounds(frame, nesting)
        self._state: _Awaiting | _Open | Ended = _Awaiting() if public_key is None else _Open(self._key(public_key), 0)

    def open(self, body: bytes) -> MessageT:
        """Check a frame's body and give its message. Raises a PeerError, after that ChannelEnded."""
        if isinstance(self._state, Ended):
            raise sealed.ended(self._lane, self._state)
        try:
            message, self._state = self._next(self._state, body)
        except PeerError as failure:
            self._state = Ended(failure.code)
            raise
        return message

    def begun(self, size: int, beginning: bytes) -> None:
        """Check the beginning of a body that isn't whole yet. Raises Malformed, after that ChannelEnded."""
        if isinstance(self._state, Ended):
            raise sealed.ended(self._lane, self._state)
        seq = self._state.seq + 1 if isinstance(self._state, _Open) else 1
        try:
            sealed.check_begun(self._lane, seq, size, beginning, tag_size=ed25519.SIGNATURE)
        except PeerError as failure:
            self._state = Ended(failure.code)
            raise

    def _next(self, state: _Awaiting | _Open, body: bytes) -> tuple[MessageT, _Open]:
        match state:
            case _Awaiting():
                return self._take(_Open(self._introduced(body), 0), body)
            case _Open():
                return self._take(state, body)
            case _:
                assert_never(state)

    def _take(self, state: _Open, body: bytes) -> tuple[MessageT, _Open]:
        seq = state.seq + 1
        payload = sealed.unseal(
            self._lane,
            seq,
            body,
            verify=lambda signed, tag: ed25519.verifies(state.key, signed, tag),
            tag_size=ed25519.SIGNATURE,
            bounds=self._bounds,
        )
        return sealed.parsed(self._lane, seq, payload, self._parse), _Open(state.key, seq)

    def _introduced(self, body: bytes) -> bytes:
        """Look into the first frame for the key that it will be verified with; nothing else is believed yet."""
        if len(body) > FIRST_FRAME:
            raise Malformed(self._lane.label, 1, f"{len(body)} bytes are too many for a first frame")
        envelope, _ = sealed.split(self._lane, 1, body, tag_size=ed25519.SIGNATURE)
        payload = sealed.fields(self._lane, 1, envelope, bounds=self._bounds)[-1]
        try:
            ready = msgspec.convert(payload, Ready)
        except msgspec.ValidationError:
            raise NotReady(self._lane.label, 1) from None
        return self._key(ready.key)

    def _key(self, raw: bytes) -> bytes:
        fault = signing.key_fault(raw)
        if fault is not None:
            raise BadKey(self._lane.label, 1, fault)
        return raw

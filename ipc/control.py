"""The control channel: Ed25519 both ways, one key pair for each direction of each spawn (RFC 8032, design §8).

The child's public key isn't known when it starts: it comes in `ready`, must verify that very frame, and is pinned
for the life of the channel. A receiver that has seen one violation gives nothing more.
"""

from collections.abc import Callable
from typing import TypeVar

import msgspec

from ipc import sealed, signing
from ipc.errors import BadKey, Malformed, NotReady
from ipc.ready import Ready
from ipc.sealed import Bounds, Direction, Lane
from waypost import ed25519
from waypost.ed25519 import PrivateKey
from waypost.model.limits import DEFAULT

MessageT = TypeVar("MessageT")

FIRST_FRAME = 4 * 262_144 + 4096
"""Bytes of the one envelope that is decoded before it is verified: a `Ready` with the longest error text fits."""


class Sender(sealed.Sender):
    """One end's outgoing half: frames signed with this spawn's private key."""

    def __init__(
        self,
        private_key: PrivateKey,
        channel_id: bytes,
        direction: Direction,
        *,
        frame: int = DEFAULT.frame,
        nesting: int = DEFAULT.nesting,
    ) -> None:
        super().__init__(Lane("control", direction, channel_id), private_key.sign, Bounds(frame, nesting))


class Receiver(sealed.Receiver[MessageT]):
    """One end's incoming half.

    ``public_key``: the sender's 32 bytes; None where the first frame brings it (the host's side). Raises BadKey for a
    key that must not be trusted.
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
        bounds = Bounds(frame, nesting)
        super().__init__(Lane("control", direction, channel_id), parse=parse, bounds=bounds, tag_size=ed25519.SIGNATURE)
        self._pinned = None if public_key is None else self._trusted(public_key)

    def _verifier(self, seq: int, body: bytes) -> Callable[[bytes, bytes], bool]:
        key = self._pinned = self._introduced(seq, body) if self._pinned is None else self._pinned
        return lambda signed, tag: ed25519.verifies(key, signed, tag)

    def _introduced(self, seq: int, body: bytes) -> bytes:
        """Look into the first frame for the key that it will be verified with; nothing else is believed yet."""
        if len(body) > FIRST_FRAME:
            raise Malformed(self._lane.label, seq, f"{len(body)} bytes are too many for a first frame")
        envelope, _ = sealed.split(self._lane, seq, body, tag_size=ed25519.SIGNATURE)
        payload = sealed.fields(self._lane, seq, envelope, bounds=self._bounds)[-1]
        try:
            ready = msgspec.convert(payload, Ready)
        except msgspec.ValidationError:
            raise NotReady(self._lane.label, seq) from None
        return self._trusted(ready.key)

    def _trusted(self, raw: bytes) -> bytes:
        fault = signing.key_fault(raw)
        if fault is not None:
            raise BadKey(self._lane.label, 1, fault)
        return raw

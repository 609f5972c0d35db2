"""The sealed envelope that both channels share: how it is laid out, and the order in which it is checked.

Frame body: CBOR ``[envelope bytes, tag]``. Envelope: CBOR ``[version, direction, channelId, seq, payload]``.
What is authenticated is a prefix for channel and direction, then the envelope bytes exactly as they travel.
Nothing inside an envelope is decoded before its tag has been verified (design §8).
"""

import hmac
from abc import ABC, abstractmethod
from collections.abc import Callable
from enum import StrEnum
from typing import Generic, TypeVar, assert_never

import msgspec

from ipc import cbor
from ipc.errors import (
    BadCbor,
    BadMessage,
    BadTag,
    ChannelEnded,
    FrameTooLarge,
    Malformed,
    PeerError,
    WrongChannel,
    WrongDirection,
    WrongSequence,
    WrongVersion,
)
from ipc.frames import encode_frame

MessageT = TypeVar("MessageT")
T = TypeVar("T")

VERSION = 1
CHANNEL_ID = 16
"""Bytes of a channel id."""
LAST_SEQ = 2**63 - 1
"""The highest sequence number that is ever sent; the channel ends there and never wraps."""

_FIELDS = 5
_ARRAY_OF_TWO, _ARRAY_OF_FIVE = b"\x82", b"\x85"
_BYTES = 0x40
_HEADER_WIDTH = {b"\x58": 2, b"\x59": 3, b"\x5a": 5}
"""Of a CBOR byte string's header, by its first byte; any other has no length bytes."""


class Direction(StrEnum):
    """Which way a message travels; the value is what the envelope says."""

    UP = "up"
    """From child to host."""
    DOWN = "down"
    """From host to child."""


class Lane(msgspec.Struct, frozen=True):
    """One direction of one channel of one spawn. ``name`` is ``control`` or ``events``."""

    name: str
    direction: Direction
    channel_id: bytes

    def __post_init__(self) -> None:
        if len(self.channel_id) != CHANNEL_ID:
            raise ValueError(f"a channel id has {CHANNEL_ID} bytes, not {len(self.channel_id)}")

    @property
    def label(self) -> str:
        """The lane's name in errors."""
        return f"{self.name} {self.direction}"

    @property
    def prefix(self) -> bytes:
        """The domain prefix: a tag made for one lane means nothing on another."""
        return f"waypost ipc {VERSION} {self.label}\0".encode()


class Bounds(msgspec.Struct, frozen=True):
    """What one frame may weigh: ``frame`` bytes of body, arrays and maps ``nesting`` deep (the envelope is one)."""

    frame: int
    nesting: int


class Open(msgspec.Struct, frozen=True):
    """The state of a lane that goes on; ``seq``: of the last frame, 0 before the first."""

    seq: int


class Ended(msgspec.Struct, frozen=True):
    """The state of a lane after its end; ``reason`` is a violation's code, or what closed it."""

    reason: str


class Sender:
    """One end's outgoing half: turns messages into frames, numbered in the order of the calls. ``tag`` signs them."""

    def __init__(self, lane: Lane, tag: Callable[[bytes], bytes], bounds: Bounds) -> None:
        self._lane, self._tag, self._bounds = lane, tag, bounds
        self._seq = 0

    def seal(self, payload: object) -> bytes:
        """Make the next frame, length included. A refused payload uses up no number.

        Raises FrameTooLarge, NotEncodable, ChannelEnded; SecretWiped.
        """
        frame = seal(self._lane, self._seq + 1, payload, tag=self._tag, bounds=self._bounds)
        self._seq += 1
        return frame


class Receiver(ABC, Generic[MessageT]):
    """One end's incoming half: turns frame bodies into verified messages; after one violation it gives nothing more.

    ``parse`` makes a message of a plain payload (`ipc.parse`). A subclass says by what a frame is verified.
    """

    def __init__(self, lane: Lane, *, parse: Callable[[object], MessageT], bounds: Bounds, tag_size: int) -> None:
        self._lane, self._parse, self._bounds, self._tag_size = lane, parse, bounds, tag_size
        self._state: Open | Ended = Open(0)

    def open(self, body: bytes) -> MessageT:
        """Check a frame's body and give its message. Raises a PeerError, after that ChannelEnded."""
        return self._checked(lambda seq: self._message(seq, body), taken=1)

    def begun(self, size: int, beginning: bytes) -> None:
        """Check the beginning of a body that isn't whole yet. Raises Malformed, after that ChannelEnded."""
        self._checked(lambda seq: check_begun(self._lane, seq, size, beginning, tag_size=self._tag_size), taken=0)

    def _checked(self, check: Callable[[int], T], *, taken: int) -> T:
        match self._state:
            case Open(seq):
                pass
            case Ended(reason):
                raise ChannelEnded(self._lane.label, reason)
            case _:
                assert_never(self._state)
        try:
            found = check(seq + 1)
        except PeerError as failure:
            self._state = Ended(failure.code)
            raise
        self._state = Open(seq + taken)
        return found

    def _message(self, seq: int, body: bytes) -> MessageT:
        verify = self._verifier(seq, body)
        payload = unseal(self._lane, seq, body, verify=verify, tag_size=self._tag_size, bounds=self._bounds)
        try:
            return self._parse(payload)
        except msgspec.ValidationError as failure:
            raise BadMessage(self._lane.label, seq, str(failure)) from None

    @abstractmethod
    def _verifier(self, seq: int, body: bytes) -> Callable[[bytes, bytes], bool]:
        """What the tag of this frame must satisfy: it is given what is authenticated, and the tag."""
        ...


def seal(lane: Lane, seq: int, payload: object, *, tag: Callable[[bytes], bytes], bounds: Bounds) -> bytes:
    """Make one frame, length included. ``tag`` signs prefix plus envelope.

    Raises FrameTooLarge and NotEncodable; ChannelEnded past the last sequence number.
    """
    if seq > LAST_SEQ:
        raise ChannelEnded(lane.label, "its sequence numbers are used up")
    envelope = cbor.encode([VERSION, lane.direction, lane.channel_id, seq, payload], nesting=bounds.nesting)
    if len(envelope) > bounds.frame:  # before the signature is paid for
        raise FrameTooLarge(lane.label, len(envelope), bounds.frame)
    return encode_frame(_joined(envelope, tag(lane.prefix + envelope)), channel=lane.label, limit=bounds.frame)


def split(lane: Lane, seq: int, body: bytes, *, tag_size: int) -> tuple[bytes, bytes]:
    """Take a frame's body apart into envelope and tag, by arithmetic alone. Raises Malformed."""
    header = _HEADER_WIDTH.get(body[1:2], 1)
    envelope = body[1 + header : len(body) - len(_byte_string(bytes(tag_size)))]
    tag = body[len(body) - tag_size :]
    # Put together again and compared, like everything on this wire: whatever was misread shows here.
    if body != _joined(envelope, tag):
        raise Malformed(lane.label, seq, "it isn't [envelope bytes, tag]")
    return envelope, tag


def check_begun(lane: Lane, seq: int, size: int, beginning: bytes, *, tag_size: int) -> None:
    """Look at the first bytes of a body that has ``size`` ones and isn't there yet. Raises Malformed.

    Half a message that was followed by another would be waited for until so many others had come.
    """
    rest = size - len(_ARRAY_OF_TWO) - len(_byte_string(bytes(tag_size)))
    sizes = (rest - width for width in (1, *_HEADER_WIDTH.values()))
    header = next((_byte_header(each) for each in sizes if each > 0 and len(_byte_header(each)) == rest - each), None)
    first = cbor.encode([VERSION, lane.direction, lane.channel_id], nesting=2)[1:]  # without the array's own header
    known = b"" if header is None else _ARRAY_OF_TWO + header + _ARRAY_OF_FIVE + first
    if not known.startswith(beginning[: len(known)]) or not known:
        raise Malformed(lane.label, seq, "half a message came, and then something that isn't its other half")


def unseal(
    lane: Lane, seq: int, body: bytes, *, verify: Callable[[bytes, bytes], bool], tag_size: int, bounds: Bounds
) -> object:
    """Check one frame's body as the one numbered ``seq`` and give its payload.

    The order: shape of the frame, tag, then of the envelope: CBOR, version, direction, channel id, sequence number.
    ``verify`` is given prefix plus envelope, and the tag. Raises a PeerError for the first check that fails.
    """
    if len(body) > bounds.frame:
        raise Malformed(lane.label, seq, f"{len(body)} bytes are over the limit of {bounds.frame}")
    envelope, tag = split(lane, seq, body, tag_size=tag_size)
    if not verify(lane.prefix + envelope, tag):
        raise BadTag(lane.label, seq)
    version, direction, channel_id, claimed, payload = fields(lane, seq, envelope, bounds=bounds)
    if type(version) is not int or version != VERSION:
        raise WrongVersion(lane.label, seq, f"its version is {version!r}, this side speaks {VERSION}")
    if direction != lane.direction.value:
        raise WrongDirection(lane.label, seq, f"it says it travels {direction!r}")
    if not isinstance(channel_id, bytes) or not hmac.compare_digest(channel_id, lane.channel_id):
        raise WrongChannel(lane.label, seq)
    # `type`, not isinstance: True is an int in Python and would pass for frame 1.
    if type(claimed) is not int or claimed != seq:
        raise WrongSequence(lane.label, seq, claimed if type(claimed) is int else None)
    return payload


def fields(lane: Lane, seq: int, envelope: bytes, *, bounds: Bounds) -> list[object]:
    """Decode an envelope into its five fields, unchecked. Raises Malformed."""
    try:
        decoded = cbor.decode(envelope, nesting=bounds.nesting)
    except BadCbor as failure:
        raise Malformed(lane.label, seq, failure.reason) from None
    if not isinstance(decoded, list) or len(decoded) != _FIELDS:
        raise Malformed(lane.label, seq, f"an envelope is an array of {_FIELDS}")
    return decoded


def _joined(envelope: bytes, tag: bytes) -> bytes:
    return _ARRAY_OF_TWO + _byte_string(envelope) + _byte_string(tag)


def _byte_header(size: int) -> bytes:
    """The shortest CBOR header of a byte string."""
    if size < 24:  # noqa: PLR2004 - RFC 8949 §3: up to 23 the length is in the first byte
        return bytes((_BYTES | size,))
    for code, width in ((24, 1), (25, 2), (26, 4)):
        if size < 1 << 8 * width:
            return bytes((_BYTES | code,)) + size.to_bytes(width, "big")
    raise AssertionError("frames are smaller than 4 GiB")


def _byte_string(data: bytes) -> bytes:
    return _byte_header(len(data)) + data

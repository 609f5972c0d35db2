"""Bytes in, frame bodies out: a 4-byte big-endian length, then that many bytes (design §8).

No descriptor is read here. A length over the limit is refused before a byte of that frame is kept, and a reader
that has refused once gives nothing more.
"""

from collections.abc import Iterator

from ipc.errors import ChannelEnded, FrameTooLarge, Oversized, Truncated
from waypost.model.limits import DEFAULT

HEADER = 4
_BEGINNING = 64
"""Bytes of a frame that tell, before the others are there, that it is none."""


def encode_frame(body: bytes, *, channel: str = "frame", limit: int = DEFAULT.frame) -> bytes:
    """Put the length before a body. Raises FrameTooLarge; ``limit`` counts the body's bytes."""
    if len(body) > limit:
        raise FrameTooLarge(channel, len(body), limit)
    return len(body).to_bytes(HEADER, "big") + body


class FrameReader:
    """Collects what arrives and hands on each frame's body as soon as it is whole.

    ``channel`` names the stream in errors; ``limit`` is the largest body in bytes.
    """

    def __init__(self, channel: str, *, limit: int = DEFAULT.frame) -> None:
        self._channel = channel
        self._limit = limit
        self._buffer = bytearray()
        self._ended: Oversized | None = None

    @property
    def pending(self) -> int:
        """Bytes kept of a frame that isn't whole yet."""
        return len(self._buffer)

    @property
    def begun(self) -> tuple[int, bytes] | None:
        """Of a frame that isn't whole yet: the size of its body, and what is there of that; None before its length."""
        if len(self._buffer) < HEADER:
            return None
        return int.from_bytes(self._buffer[:HEADER], "big"), bytes(self._buffer[HEADER : HEADER + _BEGINNING])

    def feed(self, data: bytes) -> Iterator[bytes]:
        """Take what arrived; iterate over the bodies that are whole now.

        All of ``data`` is taken whether or not the result is iterated over. Where a refused frame follows good ones,
        the good ones come first, then Oversized is raised. Raises ChannelEnded when fed again after that.
        """
        if self._ended is not None:
            raise ChannelEnded(self._channel, self._ended.code)
        self._buffer += data
        bodies: list[bytes] = []
        start = 0
        while len(self._buffer) - start >= HEADER:
            size = int.from_bytes(self._buffer[start : start + HEADER], "big")
            if size > self._limit:
                self._ended = Oversized(self._channel, size, self._limit)
                self._buffer.clear()
                return _then(bodies, self._ended)
            end = start + HEADER + size
            if len(self._buffer) < end:
                break
            bodies.append(bytes(memoryview(self._buffer)[start + HEADER : end]))
            start = end
        # One cut for all frames: many small ones in one read would otherwise move the rest each time.
        del self._buffer[:start]
        return iter(bodies)

    def finish(self) -> None:
        """Say that the stream has ended. Raises Truncated if that was inside a frame."""
        if self._buffer:
            pending = len(self._buffer)
            self._buffer.clear()
            raise Truncated(self._channel, pending)


def _then(bodies: list[bytes], failure: Oversized) -> Iterator[bytes]:
    yield from bodies
    raise failure

"""What a host gives a child that only tries its code on runs that are under way, and what that answers.

On standard input one ``Recorded`` after another, as MessagePack, each behind its length (4 bytes, big-endian); on
standard output a line of JSON for each, a ``Tried``, in the same order.
"""

from collections.abc import Iterator
from typing import BinaryIO

import msgspec

from waypost.model.ids import RunId

_LENGTH = 4


class Recorded(msgspec.Struct, frozen=True, kw_only=True):
    """A run as it is: its stored events, and the mails and values that they name, by SHA-256 (hex)."""

    run: RunId
    repository: str
    events: tuple[bytes, ...]
    blobs: dict[str, bytes]


class Tried(msgspec.Struct, frozen=True, kw_only=True):
    """What would become of it: with a ``code`` it would be paused, as ``RunPaused`` has it; ``detail`` says why."""

    run: RunId
    code: str = ""
    detail: str = ""


def write(recorded: Recorded) -> bytes:
    """One record, behind its length."""
    raw = msgspec.msgpack.encode(recorded)
    return len(raw).to_bytes(_LENGTH, "big") + raw


def read(stream: BinaryIO) -> Iterator[Recorded]:
    """The records of a stream, to its end."""
    while head := stream.read(_LENGTH):
        yield msgspec.msgpack.decode(stream.read(int.from_bytes(head, "big")), type=Recorded)

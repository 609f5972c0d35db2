"""The numbered, hashed head of a flush: a format for ever (storage §2).

The message of a flush's last commit ends with the line ``Flush: <n> <hash>``. The hash is SHA-256 over

- the previous head's hash, as the 64 hex digits of its own trailer; for flush 1 the repository id, as ``format.json``
  spells it;
- then per commit in order, and per path in the order of its bytes: ``+`` path NUL length NUL bytes for a file that the
  commit adds or changes, ``-`` path NUL for one that it removes. The length is decimal. A file that a commit leaves as
  it was takes no part, and a directory that goes is each file in it: so the hash follows from the trees alone.

Pure: whoever has a clone computes the same, and the proof doesn't rest on SHA-1.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping

import msgspec

Changes = Mapping[str, bytes | None]
"""What one commit did: the bytes a path now has, or None for a path that went."""

_TRAILER = re.compile(rb"(?:\A|.*\n)Flush: ([1-9][0-9]{0,17}) ([0-9a-f]{64})\n\Z", re.DOTALL)


class Trailer(msgspec.Struct, frozen=True):
    """A head's last line: the number of its flush and the hash, 64 hex digits."""

    number: int
    hash: str


class FlushHash:
    """The hash of one flush, fed commit by commit."""

    __slots__ = ("_hash",)

    def __init__(self, previous: str) -> None:
        self._hash = hashlib.sha256(previous.encode())

    def commit(self, changes: Changes) -> None:
        """Take in the next commit."""
        # Sorted as text, which for UTF-8 is the order of its bytes.
        for path in sorted(changes) if len(changes) > 1 else changes:
            data = changes[path]
            if data is None:
                self._hash.update(b"-%s\0" % path.encode())
            else:
                self._hash.update(f"+{path}\0{len(data)}\0".encode())
                self._hash.update(data)

    def hexdigest(self) -> str:
        """The hash of what was taken in so far."""
        return self._hash.hexdigest()


def flush_hash(previous: str, commits: Iterable[Changes]) -> str:
    """The hash of a whole flush, 64 hex digits; ``previous`` is the last head's hash, or the repository id."""
    total = FlushHash(previous)
    for changes in commits:
        total.commit(changes)
    return total.hexdigest()


def head_message(subject: bytes, trailer: Trailer) -> bytes:
    """The message of a head: its one line, an empty line, the trailer."""
    return subject + f"\n\nFlush: {trailer.number} {trailer.hash}\n".encode()


def parse_trailer(message: bytes) -> Trailer | None:
    """The trailer of a head's message; None for any other message."""
    match = _TRAILER.match(message)
    return Trailer(int(match[1]), match[2].decode()) if match else None

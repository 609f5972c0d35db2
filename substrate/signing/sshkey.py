"""Private keys as OpenSSH keeps them in a file: the unencrypted openssh-key-v1 form, Ed25519 alone (PROTOCOL.key).

Pure. What is written here ``ssh-keygen`` reads, and the other way round. No error quotes what it was given.
"""

import base64
import binascii
import struct

from substrate.errors import BadObject
from waypost.ed25519 import PUBLIC_KEY, SEED, PrivateKey

_BEGIN = b"-----BEGIN OPENSSH PRIVATE KEY-----"
_END = b"-----END OPENSSH PRIVATE KEY-----"
_MAGIC = b"openssh-key-v1\0"
_KIND = b"ssh-ed25519"
_LINE = 70
_BLOCK = 8
"""The private part is filled up to a multiple of this, with 1, 2, 3, …."""
_ONE = struct.pack(">I", 1)


def write(key: PrivateKey, check: bytes) -> bytes:
    """The text of a key's file. ``check``: 4 random bytes that the format holds twice."""
    public = _string(_KIND) + _string(key.public)
    private = check + check + public + _string(key.seed + key.public) + _string(b"")
    private += bytes(range(1, 1 + -len(private) % _BLOCK))
    raw = _MAGIC + _string(b"none") + _string(b"none") + _string(b"") + _ONE + _string(public) + _string(private)
    text = base64.b64encode(raw)
    lines = [text[at : at + _LINE] for at in range(0, len(text), _LINE)]
    return b"\n".join([_BEGIN, *lines, _END, b""])


def read(text: bytes) -> PrivateKey:
    """The key in such a text. Raises BadObject, which says whether it is another kind of key or no readable one."""
    reader = _Reader(_unarmoured(text))
    if reader.take(len(_MAGIC)) != _MAGIC or (reader.string(), reader.string(), reader.string()) != (
        b"none",
        b"none",
        b"",
    ):
        raise _unreadable()
    if reader.take(len(_ONE)) != _ONE:
        raise _unreadable()
    outer, private = reader.string(), _Reader(reader.string())
    reader.end()
    check = private.take(4)
    if private.take(4) != check:
        raise _unreadable()
    if private.string() != _KIND:
        raise BadObject("not an Ed25519 key")
    public, secret = private.string(), private.string()
    private.string()  # a comment
    filled = private.rest()
    if len(secret) != SEED + PUBLIC_KEY or len(filled) >= _BLOCK or filled != bytes(range(1, 1 + len(filled))):
        raise _unreadable()
    key = PrivateKey(secret[:SEED])
    if not key.public == public == secret[SEED:] or outer != _string(_KIND) + _string(public):
        raise _unreadable()
    return key


class _Reader:
    """Takes bytes one part after another; never past their end."""

    def __init__(self, raw: bytes) -> None:
        self._raw = raw
        self._at = 0

    def take(self, size: int) -> bytes:
        part = self._raw[self._at : self._at + size]
        if len(part) != size:
            raise _unreadable()
        self._at += size
        return part

    def string(self) -> bytes:
        return self.take(int.from_bytes(self.take(4), "big"))

    def rest(self) -> bytes:
        return self._raw[self._at :]

    def end(self) -> None:
        if self.rest():
            raise _unreadable()


def _unarmoured(text: bytes) -> bytes:
    lines = text.strip().splitlines()
    if len(lines) < 3 or lines[0] != _BEGIN or lines[-1] != _END:  # noqa: PLR2004 - and at least one between them
        raise _unreadable()
    try:
        return base64.b64decode(b"".join(lines[1:-1]), validate=True)
    except binascii.Error:
        raise _unreadable() from None


def _unreadable() -> BadObject:
    return BadObject("not an unencrypted OpenSSH private key")


def _string(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data

"""Who may sign, from flush to flush: the row of keys that a history names itself (storage §3, completeness).

``state/signer.json``, a format for ever: one line of JSON with the fields of ``Signer``. A flush that changes it is
the last one of the key ``before``; from the next one on only ``key`` may sign. So each key is named by the one before
it, and a key that nobody named is never followed. Whoever trusts one key of the row trusts what it signed and, by the
chain of hashes, all that came before; and what came after by the keys that it named.

A repository that was restored without its key goes on under another host's, which nobody has named: there a new row
begins, and a key of the old one says nothing about it. Pure but for the check of signatures.
"""

import functools
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Protocol

import msgspec

from substrate.errors import BadObject
from substrate.signing import sshsig
from substrate.signing.keys import PublicKey
from waypost.model.errors import Invalid


class Signer(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The next key, and the one that names it, both as ``.pub`` files spell them. ``at`` is ISO 8601 UTC."""

    key: str
    before: str
    at: str


_signers = msgspec.json.Decoder(Signer)


def encode(record: Signer) -> bytes:
    """One line of JSON, keys in the order of the record."""
    return msgspec.json.encode(record)


def decode(raw: bytes) -> Signer:
    """Read ``state/signer.json``, strictly. Raises Invalid."""
    try:
        record = _signers.decode(raw)
        sshsig.parse_public_line(record.key)
        sshsig.parse_public_line(record.before)
    except (msgspec.MsgspecError, UnicodeDecodeError, BadObject, ValueError) as bad:
        raise Invalid(f"not a state/signer.json: {bad}") from None
    return record


@dataclass(frozen=True, slots=True)
class Signed:
    """A head's signature: whose it says it is (32 bytes), and whether it is that key's over the commit."""

    public: bytes
    good: bool

    @property
    def fingerprint(self) -> str:
        """``SHA256:`` and 43 characters."""
        return sshsig.fingerprint(self.public)


def signature_of(payload: bytes, armoured: bytes | None) -> Signed | None:
    """What a commit's signature comes to; None where there is none, or nothing that can be one."""
    if armoured is None:
        return None
    try:
        public = sshsig.parse(armoured).public
        return Signed(public, _key(public).verifies(payload, armoured))
    except (BadObject, ValueError):
        return None


@functools.lru_cache(maxsize=16)
def _key(public: bytes) -> PublicKey:
    return PublicKey(public)


class Verifier(Protocol):
    """Whoever can tell a signature that counts: a ``PublicKey``, or ``Either`` of several."""

    def verifies(self, payload: bytes, armoured: bytes) -> bool:
        """Whether the signature (a ``gpgsig`` header's text) over the payload counts."""
        ...


class Either:
    """Several keys, each as good as the other."""

    def __init__(self, *keys: PublicKey) -> None:
        self._keys = keys

    def verifies(self, payload: bytes, armoured: bytes) -> bool:
        """Whether the signature is one of theirs over the payload."""
        return any(key.verifies(payload, armoured) for key in self._keys)


class Row:
    """Follows the keys of a history, flush by flush from its first."""

    def __init__(self) -> None:
        self.keys: list[bytes] = []
        """Of the present row, in order: each has signed at least one head, and named the next."""
        self.earlier: set[bytes] = set()
        """Of rows that a restore ended."""
        self._next: bytes | None = None

    @property
    def last(self) -> bytes | None:
        """The key that may sign now."""
        return self._next or (self.keys[-1] if self.keys else None)

    def head(self, number: int, signed: Signed | None, named: bytes | None, *, restored: bool) -> Iterator[str]:
        """Take in the head of a flush, in which ``state/signer.json`` was ``named`` anew, and a restore began.

        What is wrong with it, in words.
        """
        may = self.last
        if signed is None or not signed.good:
            by = "" if may is None else f" by {sshsig.fingerprint(may)}"
            yield f"the head of flush {number} is not signed{by}"
            return
        if may is None:
            self.keys.append(signed.public)
        elif signed.public != may:
            if not restored:
                by = f"{sshsig.fingerprint(may)}, but by {signed.fingerprint}"
                yield f"the head of flush {number} is not signed by {by}"
                return
            self.earlier.update(self.keys)
            self.keys, self._next = [signed.public], None
        elif self._next is not None:
            self.keys.append(self._next)
            self._next = None
        if named is not None:
            yield from self._named(number, named)

    def _named(self, number: int, raw: bytes) -> Iterator[str]:
        try:
            record = decode(raw)
        except Invalid as bad:
            yield f"flush {number} names the next key in a way that can't be read: {bad.message}"
            return
        if sshsig.parse_public_line(record.before) != self.keys[-1]:
            yield f"flush {number} names a next key in the name of one that didn't sign it"
            return
        self._next = sshsig.parse_public_line(record.key)

    def knows(self, public: bytes) -> bool:
        """Whether this key has signed, in any row."""
        return public in self.keys or public in self.earlier

"""The host's signing key: made once, kept at 0600, never replaced, never shown.

What this promises: the private half leaves the file only into memory, no repr or message holds it, and of two
processes that make a key at the same moment both end up with the same one.
"""

import os
import secrets
import stat
from pathlib import Path
from typing import Self

from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey
from nacl.bindings import crypto_sign, crypto_sign_BYTES, crypto_sign_seed_keypair

from substrate import sshsig
from substrate.disk import Disk
from substrate.errors import BadKey, BadObject

_FILE_LIMIT = 16_384


class PublicKey:
    """The half that anyone may have: it checks what the host signed."""

    __slots__ = ("_key", "raw")

    def __init__(self, raw: bytes) -> None:
        self.raw = raw
        self._key = Ed25519PublicKey.from_public_bytes(raw)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a ``.pub`` file as OpenSSH writes it. Raises BadKey, FileNotFoundError."""
        try:
            with Path(path).open(encoding="ascii", errors="replace") as file:
                return cls(sshsig.parse_public_line(file.read(_FILE_LIMIT)))
        except BadObject as bad:
            raise BadKey(str(path), bad.message) from None

    @property
    def fingerprint(self) -> str:
        """``SHA256:`` and 43 characters."""
        return sshsig.fingerprint(self.raw)

    def line(self) -> str:
        """The key as a ``.pub`` or allowed-signers file has it."""
        return sshsig.public_line(self.raw)

    def verifies(self, payload: bytes, armoured: bytes) -> bool:
        """Whether the signature (a ``gpgsig`` header's text) is this key's over the payload."""
        try:
            found = sshsig.parse(armoured)
            self._key.verify(found.signature, sshsig.to_sign(payload))
        except (BadObject, InvalidSignature):
            return False
        return found.public == self.raw

    def __repr__(self) -> str:
        return f"PublicKey({self.fingerprint})"


class SigningKey:
    """An Ed25519 key pair that signs flush heads.

    libsodium signs, because a flush waits for it: in little more than half of the time that OpenSSL takes, with the
    same result (RFC 8032: a signature follows from key and message).
    """

    __slots__ = ("_secret", "public")

    def __init__(self, private: Ed25519PrivateKey) -> None:
        raw, self._secret = crypto_sign_seed_keypair(private.private_bytes_raw())
        self.public = PublicKey(raw)

    @classmethod
    def generate(cls) -> Self:
        """A new key, in memory only."""
        return cls(Ed25519PrivateKey.generate())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a key file (OpenSSH format). Raises BadKey when it is open to others or no Ed25519 key."""
        name = str(path)
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            mode = os.fstat(file.fileno()).st_mode
            if stat.S_IMODE(mode) & 0o077:
                raise BadKey(name, f"the key is open to others (mode {stat.S_IMODE(mode):04o}); chmod 600 it")
            text = file.read(_FILE_LIMIT)
        try:
            key = serialization.load_ssh_private_key(text, password=None)
        except (ValueError, TypeError, UnsupportedAlgorithm):
            # The cause is dropped on purpose: a parser's message may quote what it was given.
            raise BadKey(name, "not an unencrypted OpenSSH private key") from None
        if not isinstance(key, Ed25519PrivateKey):
            raise BadKey(name, "not an Ed25519 key")
        return cls(key)

    @classmethod
    def load_or_create(cls, path: str | Path, disk: Disk | None = None) -> Self:
        """The key at ``path``, made there (with ``<path>.pub`` beside it) when there is none.

        Made aside and linked into place, so that no half-written key exists under the name and none is ever replaced.
        Raises BadKey and OSError.
        """
        writer, name = disk or Disk(), str(path)
        try:
            made = cls.load(name)
        except FileNotFoundError:
            made = cls._create(writer, name)
        public = f"{name}.pub"
        if not Path(public).exists():
            aside = f"{public}.{secrets.token_hex(8)}.new"
            writer.write_file(aside, f"{made.public.line()} waypost host\n".encode())
            writer.rename(aside, public)
            writer.sync_directory(str(Path(name).parent))
        return made

    @classmethod
    def _create(cls, disk: Disk, name: str) -> Self:
        private, aside = Ed25519PrivateKey.generate(), f"{name}.{secrets.token_hex(8)}.new"
        disk.write_file(aside, _pem(private), 0o600)
        made = cls(private)
        try:
            disk.link(aside, name)
        except FileExistsError:
            made = cls.load(name)
        disk.unlink(aside)
        disk.sync_directory(str(Path(name).parent))
        return made

    @property
    def fingerprint(self) -> str:
        """``SHA256:`` and 43 characters, of the public half."""
        return self.public.fingerprint

    def sign(self, payload: bytes) -> bytes:
        """The armoured signature over a commit's payload, for its ``gpgsig`` header."""
        signed = crypto_sign(sshsig.to_sign(payload), self._secret)
        return sshsig.armour(sshsig.Signature(self.public.raw, signed[:crypto_sign_BYTES]))

    def __repr__(self) -> str:
        return f"SigningKey({self.fingerprint})"

    def __reduce__(self) -> str:
        raise TypeError("a signing key is never pickled")


def _pem(private: Ed25519PrivateKey) -> bytes:
    return private.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.OpenSSH, serialization.NoEncryption()
    )

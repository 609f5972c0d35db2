"""The host's signing key: made once, kept at 0600, never replaced, never shown.

What this promises: the private half leaves the file only into memory, no repr or message holds it, and of two
processes that make a key at the same moment both end up with the same one.
"""

import os
import secrets
import shlex
import stat
from pathlib import Path
from typing import Self

from substrate.errors import BadKey, BadObject
from substrate.files.disk import Disk
from substrate.signing import sshkey, sshsig
from waypost.ed25519 import PrivateKey, verifies

_FILE_LIMIT = 16_384
_OTHER = "it is not a regular file"
"""Whoever opens a pipe waits for who writes into it, and is deaf meanwhile."""


class PublicKey:
    """The half that anyone may have: it checks what the host signed."""

    __slots__ = ("raw",)

    def __init__(self, raw: bytes) -> None:
        self.raw = raw

    @classmethod
    def load(cls, path: str | Path, *, pipe: bool = False) -> Self:
        """Read a ``.pub`` file as OpenSSH writes it, or with ``pipe`` anything that can be read.

        Raises BadKey, FileNotFoundError.
        """
        try:
            if not pipe and not stat.S_ISREG(Path(path).stat().st_mode):
                raise BadKey(str(path), _OTHER)
            with Path(path).open(encoding="ascii", errors="replace") as file:
                return cls(sshsig.parse_public_line(file.read(_FILE_LIMIT)))
        except BadObject as bad:
            raise BadKey(
                str(path), bad.message, hint="it is one line, as `ssh-keygen -y -f PRIVATE-KEY` prints it"
            ) from None

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
        except BadObject:
            return False
        return found.public == self.raw and verifies(self.raw, sshsig.to_sign(payload), found.signature)

    def __repr__(self) -> str:
        return f"PublicKey({self.fingerprint})"


class SigningKey:
    """An Ed25519 key pair that signs flush heads."""

    __slots__ = ("_private", "public")

    def __init__(self, private: PrivateKey) -> None:
        self._private = private
        self.public = PublicKey(private.public)

    @classmethod
    def generate(cls) -> Self:
        """A new key, in memory only."""
        return cls(PrivateKey.generate())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a key file (OpenSSH format). Raises BadKey when it is open to others or no Ed25519 key."""
        name = str(path)
        descriptor = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        mode = os.fstat(descriptor).st_mode
        if not stat.S_ISREG(mode):
            os.close(descriptor)
            raise BadKey(name, _OTHER)
        with os.fdopen(descriptor, "rb") as file:
            if stat.S_IMODE(mode) & 0o077:
                raise BadKey(
                    name,
                    f"the key is open to others (mode {stat.S_IMODE(mode):04o})",
                    hint=f"`chmod 600 {shlex.quote(name)}`; and if others may have read it: `waypost rotate-key`",
                )
            text = file.read(_FILE_LIMIT)
        try:
            return cls(sshkey.read(text))
        except BadObject as bad:
            raise BadKey(name, bad.message) from None

    @classmethod
    def load_or_create(cls, path: str | Path, disk: Disk | None = None) -> Self:
        """The key at ``path``, made there (with ``<path>.pub`` beside it) when there is none.

        Made aside and linked into place, so that no half-written key exists under the name and none is ever replaced.
        Raises BadKey and OSError.
        """
        writer, name = disk or Disk(), str(path)
        public = f"{name}.pub"
        there = Path(public).exists()
        try:
            made = cls.load(name)
        except FileNotFoundError:
            if there:
                raise BadKey(
                    name,
                    "it is gone, and its public half is there",
                    hint=f"put the key back from your backup; if it has signed nothing, `rm {shlex.quote(public)}`",
                ) from None
            made = cls._create(writer, name)
        if there:
            if PublicKey.load(public).raw != made.public.raw:
                raise BadKey(
                    public,
                    f"it is not the public half of {name}",
                    hint=f"if {name} is the right one, `rm {shlex.quote(public)}`: it is made again; if not, put that "
                    "back from your backup",
                )
        else:
            aside = f"{public}.{secrets.token_hex(8)}.new"
            writer.write_file(aside, f"{made.public.line()} waypost host\n".encode())
            writer.rename(aside, public)
            writer.sync_directory(str(Path(name).parent))
        return made

    @classmethod
    def _create(cls, disk: Disk, name: str) -> Self:
        private, aside = PrivateKey.generate(), f"{name}.{secrets.token_hex(8)}.new"
        disk.write_file(aside, sshkey.write(private, secrets.token_bytes(4)), 0o600)
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
        return sshsig.armour(sshsig.Signature(self.public.raw, self._private.sign(sshsig.to_sign(payload))))

    def __repr__(self) -> str:
        return f"SigningKey({self.fingerprint})"

    def __reduce__(self) -> str:
        raise TypeError("a signing key is never pickled")

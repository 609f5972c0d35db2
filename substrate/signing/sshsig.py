"""SSH signatures as git stores them: the SSHSIG format over Ed25519 (OpenSSH, PROTOCOL.sshsig).

Pure: formats only, no key is held here. Namespace ``git``, hash ``sha512``; what is made here ``git verify-commit``
accepts with ``gpg.format=ssh``.
"""

import base64
import binascii
import functools
import hashlib
import struct

import msgspec

from substrate.errors import BadObject

_BEGIN = b"-----BEGIN SSH SIGNATURE-----\n"
_END = b"\n-----END SSH SIGNATURE-----"
_KIND = b"ssh-ed25519"
_LINES = struct.Struct("70s70s70s22s").unpack
"""The base64 of a signature, as long for every Ed25519 key, in lines of 70."""
_KEY_BYTES = 32
_SIGNATURE_BYTES = 64


def _string(data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + data


_ABOUT = _string(b"git") + _string(b"") + _string(b"sha512")
_SIGNED = b"SSHSIG" + _ABOUT + struct.pack(">I", hashlib.sha512().digest_size)


class Signature(msgspec.Struct, frozen=True):
    """A signature, taken out of its armour: the raw public key (32 bytes) that it claims, and the 64 bytes."""

    public: bytes
    signature: bytes


def public_blob(public: bytes) -> bytes:
    """An Ed25519 public key as OpenSSH carries it."""
    return _string(_KIND) + _string(public)


def public_line(public: bytes) -> str:
    """The key as ``.pub`` files and allowed-signers files spell it: ``ssh-ed25519 AAAA…``."""
    return f"{_KIND.decode()} {base64.b64encode(public_blob(public)).decode()}"


def parse_public_line(line: str) -> bytes:
    """The raw key in a ``.pub`` line. Raises BadObject."""
    fields = line.split()
    try:
        blob = base64.b64decode(fields[1], validate=True)
    except (IndexError, binascii.Error):
        blob = b""
    public = blob[-_KEY_BYTES:]
    if blob != public_blob(public) or fields[0] != _KIND.decode():
        raise BadObject("not an Ed25519 public key of the form 'ssh-ed25519 AAAA…'")
    return public


def fingerprint(public: bytes) -> str:
    """What ``ssh-keygen -l`` shows: ``SHA256:`` and 43 characters."""
    return "SHA256:" + base64.b64encode(hashlib.sha256(public_blob(public)).digest()).rstrip(b"=").decode()


def to_sign(payload: bytes) -> bytes:
    """The bytes that the key signs for a commit's payload."""
    return _SIGNED + hashlib.sha512(payload).digest()


@functools.lru_cache(maxsize=64)
def _before(public: bytes) -> bytes:
    """All of a signature's bytes but its last 64, which alone differ from one signature of a key to the next."""
    size = len(_string(_KIND)) + 4 + _SIGNATURE_BYTES
    head = b"SSHSIG\0\0\0\x01" + _string(public_blob(public)) + _ABOUT + struct.pack(">I", size)
    return head + _string(_KIND) + struct.pack(">I", _SIGNATURE_BYTES)


def armour(signature: Signature) -> bytes:
    """The text that stands in a commit's ``gpgsig`` header."""
    text = binascii.b2a_base64(_before(signature.public) + signature.signature, newline=False)
    return _BEGIN + b"\n".join(_LINES(text)) + _END


def parse(text: bytes) -> Signature:
    """Take a signature out of its armour; anything but what ``armour`` makes is refused with BadObject."""
    body = text.rstrip(b"\n")
    if not body.startswith(_BEGIN) or not body.endswith(_END):
        raise BadObject("not an SSH signature")
    try:
        raw = base64.b64decode(body[len(_BEGIN) : -len(_END)].replace(b"\n", b""), validate=True)
    except binascii.Error:
        raise BadObject("an SSH signature that isn't base64") from None
    key_at = raw.find(_KIND) + len(_KIND) + 4
    made = Signature(raw[key_at : key_at + _KEY_BYTES], raw[-_SIGNATURE_BYTES:])
    if len(made.public) != _KEY_BYTES or armour(made) != body:
        raise BadObject("an SSH signature of another kind than Ed25519, namespace git, sha512")
    return made

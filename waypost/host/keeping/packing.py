"""The file that a backup is: a POSIX tar archive, as strict to read as it is plain to look into (``tar -tvf``).

A format for ever. Regular files only, ustar headers only, names of our own choosing only, in this order:

    manifest.json        one line of JSON, the fields of ``Manifest``; the size and SHA-256 of every other member
    receipt.json         the host's signed word on the flush that the backup reaches (``substrate.signing.receipt``)
    repository.bundle    a git bundle of the branch ``log``
    spool/<n>.eml        mail that was sent while no host ran, n of ten digits from 1
    keys/host.ed25519    the host's private keys: only where they were asked for
    keys/mail.key

What this promises: whatever an archive says, nothing is read that its manifest doesn't name, no member is larger than
it says, none has a name that leads anywhere, and nothing of it is kept in memory but the manifest.
"""

import hashlib
import io
import re
import tarfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import IO, Annotated, BinaryIO, Literal

import msgspec

from waypost.host.keeping_errors import BadBackup
from waypost.model.limits import DEFAULT

MANIFEST = "manifest.json"
RECEIPT = "receipt.json"
BUNDLE = "repository.bundle"
SIGNING_KEY = "keys/host.ed25519"
MAIL_KEY = "keys/mail.key"
SMALL = 64 * 1024
"""Bytes of a receipt or a key."""
_MANIFEST = 16 * 1024 * 1024
_FILES = 100_000
_BLOCK = 512
_PIECE = 1024 * 1024
_LARGEST = 8 * 1024**3 - 1
"""What an ustar header can say."""
_SPOOL = re.compile(r"spool/[0-9]{10}\.eml\Z")
_OCTAL = re.compile(rb"[0-7]{1,12}[\0 ]*\Z")

Size = Annotated[int, msgspec.Meta(ge=0, le=_LARGEST)]
Sha256 = Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{64}$")]


class Member(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A file in the archive."""

    name: str
    size: Size
    sha256: Sha256


class Manifest(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """What the backup is of, and up to which flush it speaks. ``signer`` is a public key; ``at`` ISO 8601 UTC."""

    backup: Literal[1] = 1
    waypost: str
    at: str
    deployment: str
    address: str
    repository: str
    epoch: int
    flush: int
    hash: Sha256
    head: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]{40}$")]
    signer: str
    keys: bool
    files: Annotated[tuple[Member, ...], msgspec.Meta(max_length=_FILES)]


_manifests = msgspec.json.Decoder(Manifest)


@dataclass(frozen=True, slots=True)
class Packed:
    """A member of an archive, and where it begins in the file from which it is to be taken."""

    member: Member
    at: int


def measured(name: str, file: IO[bytes], at: int) -> Packed:
    """Look at what is to go in, from ``at`` to the file's end. Raises BadBackup when it is too large, OSError."""
    digest, size = hashlib.sha256(), 0
    file.seek(at)
    while piece := file.read(_PIECE):
        digest.update(piece)
        size += len(piece)
    if size > _LARGEST:
        raise BadBackup(name, f"{size} bytes are more than a backup's member may have")
    return Packed(Member(name=name, size=size, sha256=digest.hexdigest()), at)


def write(file: BinaryIO, manifest: Manifest, packed: Sequence[Packed], source: IO[bytes]) -> None:
    """Write an archive; ``manifest.files`` are the members of ``packed``, in order; all lie in ``source``.

    Raises OSError.
    """
    raw = msgspec.json.encode(manifest) + b"\n"
    with tarfile.open(fileobj=file, mode="w", format=tarfile.USTAR_FORMAT) as archive:
        archive.addfile(_header(MANIFEST, len(raw)), io.BytesIO(raw))
        for each in packed:
            source.seek(each.at)
            archive.addfile(_header(each.member.name, each.member.size), source)


def read(file: BinaryIO, name: str, keep: Callable[[Member], BinaryIO]) -> Iterator[Manifest | Member]:
    """Read an archive: first its manifest, then each member, once it was copied whole into what ``keep`` opened.

    ``name`` is what an error calls it. Raises BadBackup, OSError.
    """
    found, size = _head(file, name)
    if found != MANIFEST or size > _MANIFEST:
        raise BadBackup(name, "it doesn't begin with a manifest")
    raw = _exactly(file, size, name)
    _skip(file, size, name)
    try:
        manifest = _manifests.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError) as bad:
        raise BadBackup(name, f"its manifest can't be read: {bad}") from None
    _check(manifest, name)
    yield manifest
    for member in manifest.files:
        if _head(file, name) != (member.name, member.size):
            raise BadBackup(name, f"{member.name} isn't where its manifest says, or is of another size")
        with keep(member) as into:
            _copy(file, into, member, name)
        _skip(file, member.size, name)
        yield member
    if file.read(_BLOCK).strip(b"\0"):
        raise BadBackup(name, "it goes on behind what its manifest names")


def _check(manifest: Manifest, name: str) -> None:
    names = [member.name for member in manifest.files]
    keys = [SIGNING_KEY, MAIL_KEY] if manifest.keys else []
    spooled = names[2 : len(names) - len(keys)]
    if names != [RECEIPT, BUNDLE, *spooled, *keys] or not all(map(_SPOOL.match, spooled)):
        raise BadBackup(name, "its manifest names other files than a backup has")
    if len(set(names)) != len(names):
        raise BadBackup(name, "its manifest names a file twice")
    if any(member.size > DEFAULT.mail for member in manifest.files if member.name in spooled):
        raise BadBackup(name, "a mail in it is larger than any that a host takes")
    if any(member.size > SMALL for member in manifest.files if member.name in {RECEIPT, *keys}):
        raise BadBackup(name, "a receipt or a key in it is too large to be one")


def _header(name: str, size: int) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.size, header.mode = size, 0o600
    return header


def _head(file: BinaryIO, name: str) -> tuple[str, int]:
    """A member's name and size: of a plain file in ustar form, or the archive is refused."""
    block = file.read(_BLOCK)
    if len(block) != _BLOCK or block[257:263] != b"ustar\0" or block[156:157] not in {b"0", b"\0"}:
        raise BadBackup(name, "it holds something that is no plain file, or it ends too early")
    stated = _octal(block[148:156], name)
    if stated != sum(block[:148]) + sum(block[156:]) + 8 * ord(" ") or block[345:500].strip(b"\0"):
        raise BadBackup(name, "a header in it is damaged")
    return block[:100].rstrip(b"\0").decode("ascii", "replace"), _octal(block[124:136], name)


def _octal(field: bytes, name: str) -> int:
    if not _OCTAL.match(field):
        raise BadBackup(name, "a header in it is damaged")
    return int(field.rstrip(b"\0 "), 8)


def _copy(file: BinaryIO, into: BinaryIO, member: Member, name: str) -> None:
    digest, left = hashlib.sha256(), member.size
    while left:
        piece = file.read(min(left, _PIECE))
        if not piece:
            raise BadBackup(name, f"it ends in the middle of {member.name}")
        digest.update(piece)
        into.write(piece)
        left -= len(piece)
    if digest.hexdigest() != member.sha256:
        raise BadBackup(name, f"{member.name} isn't what was written: its SHA-256 is another one")


def _exactly(file: BinaryIO, size: int, name: str) -> bytes:
    raw = file.read(size)
    if len(raw) != size:
        raise BadBackup(name, "it ends too early")
    return raw


def _skip(file: BinaryIO, size: int, name: str) -> None:
    _exactly(file, -size % _BLOCK, name)

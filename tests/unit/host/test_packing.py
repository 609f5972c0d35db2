"""The file that a backup is: what goes in comes out, and of a hostile archive nothing does."""

import hashlib
import io
import os
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import msgspec
import pytest

from waypost.host.keeping import packing
from waypost.host.keeping.packing import BUNDLE, MAIL_KEY, RECEIPT, SIGNING_KEY, Manifest, Member, measured
from waypost.host.keeping_errors import BadBackup

FILES = {RECEIPT: b"{}", BUNDLE: b"bundle" * 1000, "spool/0000000001.eml": b"mail"}
KEYS = {SIGNING_KEY: b"key", MAIL_KEY: b"mail key"}


def manifest(files: dict[str, bytes], **changes: object) -> Manifest:
    made = Manifest(
        waypost="0",
        at="now",
        deployment="test",
        address="test@example.com",
        repository="r",
        epoch=1,
        flush=2,
        hash="0" * 64,
        head="0" * 40,
        signer="ssh-ed25519 AAAA",
        keys=SIGNING_KEY in files,
        files=tuple(
            Member(name=name, size=len(raw), sha256=hashlib.sha256(raw).hexdigest()) for name, raw in files.items()
        ),
    )
    return msgspec.structs.replace(made, **changes)


def archive(said: Manifest, members: list[tuple[tarfile.TarInfo, bytes]], form: int = tarfile.USTAR_FORMAT) -> bytes:
    """An archive as anybody can make it: this manifest, then these members."""
    raw, into = msgspec.json.encode(said), io.BytesIO()
    with tarfile.open(fileobj=into, mode="w", format=form) as tar:
        tar.addfile(plain("manifest.json", raw), io.BytesIO(raw))
        for header, content in members:
            tar.addfile(header, io.BytesIO(content))
    return into.getvalue()


def plain(name: str, raw: bytes) -> tarfile.TarInfo:
    header = tarfile.TarInfo(name)
    header.size = len(raw)
    return header


def members(files: dict[str, bytes]) -> list[tuple[tarfile.TarInfo, bytes]]:
    return [(plain(name, raw), raw) for name, raw in files.items()]


def unpacked(raw: bytes, folder: Path) -> dict[str, bytes]:
    """Read it as a restore does."""
    names: list[str] = []

    def keep(member: Member) -> BinaryIO:
        names.append(member.name)
        return (folder / str(len(names))).open("wb")

    list(packing.read(io.BytesIO(raw), "it", keep))
    return {name: (folder / str(number)).read_bytes() for number, name in enumerate(names, 1)}


@pytest.mark.parametrize("files", [FILES, FILES | KEYS, {RECEIPT: b"", BUNDLE: b""}], ids=["plain", "keys", "empty"])
def test_what_goes_in_comes_out_and_stock_tar_can_look_at_it(tmp_path: Path, files: dict[str, bytes]) -> None:
    """It must be readable in twenty years, without us."""
    packed, source = [], io.BytesIO(b"something before")
    for name, raw in files.items():
        at = source.seek(0, os.SEEK_END)
        source.write(raw)
        packed.append(measured(name, source, at))
    into = io.BytesIO()
    packing.write(into, manifest(files), packed, source)
    assert unpacked(into.getvalue(), tmp_path) == files
    into.seek(0)
    with tarfile.open(fileobj=into) as tar:
        assert tar.getnames() == ["manifest.json", *files]


def linked(kind: bytes) -> Callable[[], bytes]:
    def made() -> bytes:
        header = tarfile.TarInfo(BUNDLE)
        header.type, header.linkname = kind, "/etc/passwd"
        files = {**FILES, BUNDLE: b""}
        return archive(manifest(files), [(plain(RECEIPT, b"{}"), b"{}"), (header, b"")])

    return made


def renamed(name: str) -> Callable[[], bytes]:
    def made() -> bytes:
        files = {RECEIPT: b"{}", BUNDLE: b"b", name: b"evil"}
        return archive(manifest(files), members(files), tarfile.GNU_FORMAT)

    return made


def only_inside(name: str) -> bytes:
    """The manifest is right, and the archive has another name in its place."""
    return archive(manifest(FILES), [*members(FILES)[:2], (plain(name, b"mail"), b"mail")])


def flipped(at: int) -> bytes:
    """A bit of the bundle's header is another one."""
    raw = bytearray(archive(manifest(FILES), members(FILES)))
    raw[raw.rindex(b"repository.bundle\0") + at] ^= 1
    return bytes(raw)


def sized(field: bytes) -> bytes:
    """The first member's header states another size, with a right checksum."""
    raw = bytearray(archive(manifest(FILES), members(FILES)))
    raw[124:136] = field
    raw[148:156] = b" " * 8
    raw[148:156] = b"%06o\0 " % sum(raw[:512])
    return bytes(raw)


HOSTILE: dict[str, Callable[[], bytes]] = {
    "nothing": lambda: b"",
    "no archive": lambda: os.urandom(2000),
    "zeros": lambda: b"\0" * 10240,
    "no manifest": lambda: archive(manifest(FILES), members(FILES))[1024 + 512 :],
    "symbolic link": linked(tarfile.SYMTYPE),
    "hard link": linked(tarfile.LNKTYPE),
    "device": linked(tarfile.CHRTYPE),
    "pipe": linked(tarfile.FIFOTYPE),
    "directory": linked(tarfile.DIRTYPE),
    "path upwards": renamed("spool/../../../etc/cron.d/x"),
    "absolute path": renamed("/etc/cron.d/x"),
    "key that wasn't said": renamed(SIGNING_KEY),
    "long name": renamed("spool/" + "0" * 200 + ".eml"),
    "other name than said": lambda: only_inside("spool/../../x"),
    "second manifest": renamed("manifest.json"),
    "twice": lambda: archive(_twice(manifest(FILES)), [*members(FILES), members(FILES)[-1]]),
    "without a receipt": lambda: archive(manifest({BUNDLE: b"b"}), members({BUNDLE: b"b"})),
    "pax headers": lambda: archive(
        manifest(FILES), [(_pax(RECEIPT, b"{}"), b"{}"), *members(FILES)[1:]], tarfile.PAX_FORMAT
    ),
    "other content": lambda: archive(manifest(FILES), members({**FILES, "spool/0000000001.eml": b"liam"})),
    "larger than said": lambda: archive(manifest(FILES), members({**FILES, BUNDLE: b"bundle" * 1001})),
    "more behind it": lambda: archive(manifest(FILES), [*members(FILES), (plain("more", b""), b"")]),
    "cut": lambda: archive(manifest(FILES), members(FILES))[:4096],
    "a flipped bit in a header": lambda: flipped(140),
    "a size of 2^63": lambda: sized(b"\x80\0\0\0" + b"\xff" * 8),
    "a size below zero": lambda: sized(b"-00000000001"),
    "a manifest of 8 GiB": lambda: sized(b"77777777777\0"),
    "a key of a megabyte": lambda: archive(
        manifest(FILES | {SIGNING_KEY: b"k" * 1_000_000, MAIL_KEY: b""}), members(FILES | KEYS)
    ),
    "nonsense in its manifest": lambda: archive(manifest(FILES, hash="x"), members(FILES)),
    "a later format": lambda: archive(manifest(FILES, backup=2), members(FILES)),
}


def _twice(said: Manifest) -> Manifest:
    return msgspec.structs.replace(said, files=(*said.files, said.files[-1]))


def _pax(name: str, raw: bytes) -> tarfile.TarInfo:
    header = plain(name, raw)
    header.pax_headers = {"path": "/etc/cron.d/x"}
    return header


@pytest.mark.parametrize("made", HOSTILE.values(), ids=HOSTILE)
def test_an_archive_that_isn_t_what_we_write_is_refused(tmp_path: Path, made: Callable[[], bytes]) -> None:
    """Whoever hands over a backup chooses each byte of it."""
    with pytest.raises(BadBackup):
        unpacked(made(), tmp_path)
    assert {path.parent for path in tmp_path.rglob("*")} <= {tmp_path}


def test_every_truncation_is_refused(tmp_path: Path) -> None:
    """A copy that broke off, at any block and in the middle of one."""
    whole = archive(manifest(FILES), members(FILES))
    end = whole.rstrip(b"\0")
    for cut in range(0, len(end) - 600, 257):
        with pytest.raises(BadBackup):
            unpacked(whole[:cut], tmp_path)

"""Bringing a deployment in: from a backup's file, or from a git remote or clone. The other half of ``backup``.

What this promises: nothing that is here is written over; everything is verified before it gets its name, which it gets
last, in one step; the deployment is held until an operator says otherwise, so nothing runs or leaves before that; and
a restore that was killed leaves nothing that a host would start, and can be run again.
"""

import re
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from substrate.checking.looking import look
from substrate.checking.verify import Expected, Report, by_receipt, verify
from substrate.files import plain
from substrate.files.disk import Disk
from substrate.files.folder import Folder
from substrate.signing import receipt as receipts
from substrate.signing.epoch import Noted
from substrate.signing.keys import PublicKey, SigningKey
from substrate.signing.signers import Either
from substrate.state import Format
from substrate.storage.heads import Heads, holds
from substrate.storage.opening import inspect
from substrate.storage.store import Store
from substrate.upkeep.rollback import begin_epoch
from waypost.host.alone import alone, now
from waypost.host.datadir.directory import DataDir, lay_out, mail_key, prepare, refuse_unfinished
from waypost.host.datadir.files import named, place, sync_directory
from waypost.host.datadir.signing import signing_key
from waypost.host.keeping import packing
from waypost.host.keeping.git import fetch, largest
from waypost.host.keeping.packing import Manifest, Member
from waypost.host.keeping_errors import AlreadyThere, BadBackup, NotSound
from waypost.host.mail import spool
from waypost.host.reading import offline
from waypost.model.ids import deployment

_LARGEST = 1024**3
"""Bytes of an object that is read whole: far more than any value, mail or log that a host has written."""
_MAIL_KEY = re.compile(rb"[0-9a-f]{64}\n\Z")


@dataclass(frozen=True, slots=True, kw_only=True)
class Restored:
    """What was brought in. ``signer`` is whose the history was, ``signs`` who signs from now on (fingerprints).

    ``now`` is the head of the epoch that begins with it, ``upto`` the flush that it goes on from, ``mails`` how many
    were put into the spool.
    """

    deployment: str
    address: str
    data: Path
    upto: int
    now: Noted
    signer: str
    signs: str
    pinned: bool
    mails: int


@dataclass(frozen=True, slots=True)
class _Source:
    """A repository that lies aside, whole, and what came with it."""

    repository: Path
    manifest: Manifest | None = None
    expected: tuple[Expected, ...] = ()
    mails: tuple[Path, ...] = ()
    keys: dict[str, Path] | None = None


def restore(
    where: Path,
    *,
    file: Path | None = None,
    source: str | None = None,
    key: PublicKey | None = None,
    disk: Disk | None = None,
    allow_network: bool = False,
) -> Restored:
    """Bring in the backup ``file``, or the branch ``log`` of the git ``source``, below the data directory ``where``.

    ``key`` is one that must have signed the history. Raises AlreadyThere, BadBackup, NotSound, GitFailed, NoGit,
    DataDirectory, HostRuns, SubstrateError, OSError.
    """
    data = prepare(where, allow_network=allow_network)
    writer = disk or Disk()
    with named(data.path), alone(data):
        lay_out(data)
        refuse_unfinished(data)
        with _aside(data) as aside:
            found = _unpacked(file, aside) if file is not None else _Source(aside / "repo.git")
            writer.point("fetch", str(found.repository))
            Folder(str(found.repository)).make(writer)
            fetch(found.repository, str(aside / "bundle") if file is not None else source or "")
            if (size := largest(found.repository)) > _LARGEST:
                raise BadBackup(source or str(file), f"an object of {size} bytes is in it: none of ours is so large")
            return _install(data, found, source or str(file), key, writer)


def _unpacked(file: Path, aside: Path) -> _Source:
    """Read a backup's file into a folder of our own, under names of our own."""
    files: dict[str, Path] = {packing.RECEIPT: aside / "receipt", packing.BUNDLE: aside / "bundle"}
    mails: list[Path] = []

    def keep(member: Member) -> BinaryIO:
        path = files.get(member.name)
        if path is None:
            path = files[member.name] = aside / f"{len(files)}.member"
            if member.name.startswith("spool/"):
                mails.append(path)
        path.touch(0o600)
        return path.open("wb")

    with file.open("rb") as opened:
        manifest, *_ = packing.read(opened, str(file), keep)
    assert isinstance(manifest, Manifest)
    receipt = receipts.load(files[packing.RECEIPT])
    if (receipt.repository, receipt.epoch, receipt.flush, receipt.hash) != (
        manifest.repository,
        manifest.epoch,
        manifest.flush,
        manifest.hash,
    ):
        raise BadBackup(str(file), "its manifest and its receipt speak of different flushes")
    return _Source(aside / "repo.git", manifest, (by_receipt(receipt),), tuple(mails), files)


def _install(data: DataDir, found: _Source, said: str, key: PublicKey | None, disk: Disk) -> Restored:
    report = verify(found.repository, key, found.expected)
    if not report.sound:
        raise NotSound(said, tuple(map(str, report.faults)), hint="nothing was restored")
    known = _known(found, report)
    name = deployment(known.deployment)
    _refuse_taken(data, name, known.address)
    ours = _keys(data, found, disk)
    heads = Heads(data.head(name), disk)
    at = _begin(found.repository, ours, heads, disk)
    for mail in found.mails:
        spool.leave(data.spool(name), mail.read_bytes())
    for folder in sorted({file.parent for file in found.repository.rglob("*")}):
        sync_directory(folder)
    disk.rename(str(found.repository), str(data.repo(name)))
    disk.sync_directory(str(data.repos))
    heads.note(at)
    return Restored(
        deployment=name,
        address=known.address,
        data=data.path,
        upto=report.last_flush,
        now=at,
        signer=report.signers[-1],
        signs=ours.fingerprint,
        pinned=key is not None,
        mails=len(found.mails),
    )


def _known(found: _Source, report: Report) -> Format:
    known = Format(
        format=1, repository=report.repository, epoch=report.epoch, deployment=report.deployment, address=report.address
    )
    manifest = found.manifest
    if manifest is not None and (manifest.deployment, manifest.address) != (known.deployment, known.address):
        raise BadBackup(manifest.deployment, f"its repository is of {known.deployment} at {known.address}")
    return known


def _refuse_taken(data: DataDir, name: str, address: str) -> None:
    """Nothing that is here is written over, and an address stays one deployment's. Raises AlreadyThere."""
    if data.repo(name).exists():
        raise AlreadyThere("deployment", name, str(data.path))
    known, _ = offline.addresses(data)
    if address in known:
        raise AlreadyThere("address", address, str(data.path))


def _keys(data: DataDir, found: _Source, disk: Disk) -> SigningKey:
    """The key that signs here: what is here already, else what came along, else a new one."""
    files = found.keys or {}
    if packing.SIGNING_KEY in files:
        SigningKey.load(files[packing.SIGNING_KEY])
        if not _MAIL_KEY.match(files[packing.MAIL_KEY].read_bytes()):
            raise BadBackup(packing.MAIL_KEY, "it is no key")
        place(data.signing_key, files[packing.SIGNING_KEY].read_bytes())
        if not data.mail_key.exists():
            place(data.mail_key, files[packing.MAIL_KEY].read_bytes())
    mail_key(data)
    return signing_key(data, disk)


def _begin(repository: Path, ours: SigningKey, heads: Heads, disk: Disk) -> Noted:
    """The first commit of the new epoch, signed by the key of this place; what it says is missing was noted here."""
    folder = Folder(str(repository))
    theirs = look(repository).signer
    whose = Either(ours.public, theirs) if theirs is not None else ours.public
    noted = heads.read()
    found = inspect(folder, whose, plain.read)
    lost = None if noted is None or holds(found, noted) else noted
    store = Store.open(repository, key=ours, disk=disk, trusted=whose)
    try:
        reached = begin_epoch(store, "restore", lost=lost, at=now())
        store.close()
    finally:
        store.abandon()
    return reached


@contextmanager
def _aside(data: DataDir) -> Iterator[Path]:
    """A folder on the same file system, empty: what a killed restore left in it has gone with ``lay_out``."""
    aside = data.restoring
    aside.mkdir(0o700)
    try:
        yield aside
    finally:
        shutil.rmtree(aside, ignore_errors=True)

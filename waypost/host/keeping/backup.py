"""Taking a deployment along: one file with all of it, beside a live host or without one (``packing`` has the format).

What this promises: it speaks up to a flush that was sealed before, and says which; a repository that isn't sound is
refused in words instead of being carried on; the file appears under its name when it is whole and durable, and never
takes the place of another. What it is made of has no name before, so a killed backup leaves nothing (``nameless``).
"""

import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from substrate.checking.verify import by_note, verify
from substrate.files.disk import Disk
from substrate.files.folder import Folder
from substrate.packs.objects import Kind, parse_commit
from substrate.signing import receipt as receipts
from substrate.signing.keys import SigningKey
from substrate.storage.flush import parse_trailer
from substrate.storage.heads import Heads, read_note
from substrate.storage.readview import open_readonly
from substrate.storage.store import Store
from waypost import __version__
from waypost.host.alone import alone, now
from waypost.host.datadir.directory import DataDir, mail_key, refuse_unfinished
from waypost.host.datadir.files import named
from waypost.host.datadir.nameless import publish, scratch
from waypost.host.datadir.signing import key_of
from waypost.host.errors import NoHost, NotNow
from waypost.host.keeping import packing
from waypost.host.keeping.git import bundle
from waypost.host.keeping.packing import Manifest, Packed, measured
from waypost.host.keeping_errors import BadBackup, InTheWayOfBackup, NoSuchDeployment, NotSound
from waypost.host.mail import spool
from waypost.model.limits import DEFAULT
from waypost.model.times import stamp


@dataclass(frozen=True, slots=True)
class Made:
    """A backup: where it lies, what it holds, its size in bytes.

    ``mails`` from the spool are in it; ``left_out`` are files there that are no mails that a host would take.
    """

    path: Path
    manifest: Manifest
    size: int
    mails: int
    left_out: int


def backup(data: DataDir, name: str, file: Path, *, with_keys: bool, sealed: Callable[[str], bool]) -> Made:
    """Write the backup of a deployment to ``file``.

    ``sealed`` has a live host bring all of it onto the branch; it answers False where the host doesn't run this one,
    and raises NoHost where none runs. Raises NoSuchDeployment, InTheWayOfBackup, NotSound, NotNow, GitFailed, NoGit,
    SubstrateError, OSError; then no file is there.
    """
    refuse_unfinished(data)
    if name not in data.deployments():
        raise NoSuchDeployment(name, data.deployments())
    if file.exists() or file.is_symlink():
        raise InTheWayOfBackup(str(file))
    key = key_of(data)
    with named(file), scratch(file.absolute().parent) as aside:
        # Before the seal: a mail that a host takes in meanwhile is then in both, and is recognised; never in neither.
        waiting = spool.waiting(data.spool(name), name)
        mails: list[Packed] = []
        for mail in waiting:
            raw = spool.read(mail, DEFAULT.mail + 1)
            if raw is not None and len(raw) <= DEFAULT.mail:
                mails.append(_aside(aside, raw, f"spool/{len(mails) + 1:010d}.eml"))
        _seal(data, name, key, sealed)
        noted = read_note(data.head(name))
        report = verify(data.repo(name), key.public, () if noted is None else (by_note(noted),))
        if not report.sound:
            raise NotSound(
                name, tuple(map(str, report.faults)), hint="nothing was written; `waypost verify` lists what is wrong"
            )
        manifest, packed = _pack(data, name, key, aside, mails, with_keys=with_keys)
        try:
            publish(file, lambda into: packing.write(into, manifest, packed, aside))
        except FileExistsError:
            raise InTheWayOfBackup(str(file)) from None
    return Made(file, manifest, file.stat().st_size, len(mails), len(waiting) - len(mails))


def _seal(data: DataDir, name: str, key: SigningKey, sealed: Callable[[str], bool]) -> None:
    repository = data.repo(name)
    try:
        if not sealed(name) and Folder(str(repository)).journal_numbers():
            raise NotNow(f"the running host doesn't run {name}, which wasn't ended in order; stop the host first")
    except NoHost:
        if not Folder(str(repository)).journal_numbers():
            return  # all of it is on the branch; it may lie on a full disk, or on one that nobody can write to
        with alone(data):
            Store.open(repository, key=key, heads=Heads(data.head(name), Disk())).close()


def _pack(
    data: DataDir, name: str, key: SigningKey, aside: IO[bytes], mails: list[Packed], *, with_keys: bool
) -> tuple[Manifest, list[Packed]]:
    begins = aside.seek(0, os.SEEK_END)
    # The branch may have moved on: what the bundle says of itself is what the backup speaks of.
    head = bundle(data.repo(name), aside)
    bundled = measured(packing.BUNDLE, aside, begins)
    view = open_readonly(data.repo(name), key.public)
    trailer = parse_trailer(parse_commit(view.object(Kind.COMMIT, bytes.fromhex(head))).message)
    if trailer is None:
        raise BadBackup(packing.BUNDLE, f"the branch stands at {head}, which is the head of no flush")
    at = stamp(now())
    claim = receipts.Claim(
        deployment=name,
        repository=view.repository_id,
        epoch=view.format.epoch,
        flush=trailer.number,
        hash=trailer.hash,
        at=at,
    )
    receipt = _aside(aside, receipts.encode(receipts.issue(claim, key)) + b"\n", packing.RECEIPT)
    packed = [receipt, bundled, *mails]
    if with_keys:
        mail_key(data)
        keys = ((packing.SIGNING_KEY, data.signing_key), (packing.MAIL_KEY, data.mail_key))
        packed += [_aside(aside, path.read_bytes(), member) for member, path in keys]
    manifest = Manifest(
        waypost=__version__,
        at=at,
        deployment=name,
        address=view.format.address,
        repository=view.repository_id,
        epoch=view.format.epoch,
        flush=trailer.number,
        hash=trailer.hash,
        head=head,
        signer=key.public.line(),
        keys=with_keys,
        files=tuple(each.member for each in packed),
    )
    return manifest, packed


def _aside(aside: IO[bytes], raw: bytes, name: str) -> Packed:
    at = aside.seek(0, os.SEEK_END)
    aside.write(raw)
    return measured(name, aside, at)

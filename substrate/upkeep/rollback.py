"""Beginning an epoch on purpose: after a history that went back, or in a restored one (storage §3, completeness).

What this promises: the first commit of the epoch says what it goes on from and what is missing, and holds the
deployment in the same breath; it is made under the host's lock, may be killed anywhere and be run again; nothing that
was set aside is deleted.
"""

import logging
import re
from dataclasses import dataclass
from pathlib import Path

import msgspec
from msgspec import UNSET

from substrate import layout
from substrate.errors import BadObject, BranchLocked, NothingSigned, NothingToAccept
from substrate.files import plain
from substrate.files.disk import Disk
from substrate.files.folder import Folder
from substrate.packs.objects import Kind, parse_commit
from substrate.packs.sealed import SealedObjects
from substrate.signing.epoch import Epoch, Noted, Why, decode_epoch, encode
from substrate.signing.keys import PublicKey, SigningKey
from substrate.state import decode_state
from substrate.state import encode as encode_file
from substrate.storage.heads import Heads, holds
from substrate.storage.opening import inspect, read_format
from substrate.storage.scan import head_of
from substrate.storage.seal import clear_leftovers, move_ref
from substrate.storage.store import Store
from waypost.model.limits import DEFAULT, Limits
from waypost.model.times import stamp

_log = logging.getLogger(__name__)
_PARENT = re.compile(rb"tree [0-9a-f]{40}\nparent ([0-9a-f]{40})\n")
_AUTHOR = "hub <hub@deployment.waypost>"


@dataclass(frozen=True, slots=True, kw_only=True)
class Accepted:
    """What was accepted. ``now`` is the head of the new epoch's first commit; None where the repository is gone.

    ``lost`` is the head that was noted and isn't there, ``unsigned`` the commit (40 hex digits) that was set aside.
    """

    now: Noted | None
    lost: Noted | None
    unsigned: str = ""


def accept(
    path: Path, key: SigningKey, note: Path, *, at: int, disk: Disk | None = None, limits: Limits = DEFAULT
) -> Accepted:
    """Go on from what is there, in a new epoch, held; ``note`` is the file of ``heads``, ``at`` Unix ms.

    Raises NothingToAccept where nothing is missing, NothingSigned, and as ``Store.open``.
    """
    writer = disk or Disk()
    heads = Heads(note, writer)
    noted = heads.read()
    if not path.exists():
        if noted is None:
            raise NothingToAccept(str(path))
        # Kept under another name: what was known of it may still be needed.
        writer.rename(str(note), str(note.with_suffix(f".gone-{at}")))
        writer.sync_directory(str(note.parent))
        return Accepted(now=None, lost=noted)
    folder = Folder(str(path))
    folder.check()
    unsigned = _set_aside(folder, key.public, writer)
    found = inspect(folder, key.public, plain.read)
    lost = None if noted is None or holds(found, noted) else noted
    if lost is None and not unsigned:
        raise NothingToAccept(str(path))
    store = Store.open(path, key=key, disk=writer, limits=limits)
    try:
        now = _known(store, lost) or begin_epoch(store, "accept-rollback", lost=lost, unsigned=unsigned, at=at)
        # Durable in the journal, so that the note may speak of it; the branch follows.
        heads.note(now)
        store.close()
    finally:
        store.abandon()
    return Accepted(now=now, lost=lost, unsigned=unsigned)


def begin_epoch(store: Store, why: Why, *, lost: Noted | None, at: int, unsigned: str = "") -> Noted:
    """Make the first commit of a new epoch, which holds the deployment; durable when this returns its head."""
    after = store.reached
    known = read_format(store.path, store.read(layout.FORMAT) or b"")
    before = lost.epoch if lost is not None and lost.repository == known.repository else 0
    number = max(known.epoch, before) + 1
    record = Epoch(epoch=number, why=why, at=stamp(at), after=after, lost=lost, unsigned=unsigned)
    state = decode_state(store.read(layout.STATE) or b"")
    # A drain that wasn't over is: nothing executes, and an operator says when it goes on.
    state = msgspec.structs.replace(state, held=why, held_at=stamp(at), drain=UNSET)
    store.commit(
        author=_AUTHOR,
        subject=f"begin epoch {number} after flush {after.flush} of epoch {after.epoch}: {why}",
        puts={
            layout.FORMAT: encode_file(msgspec.structs.replace(known, epoch=number)),
            layout.EPOCH: encode(record),
            layout.STATE: encode_file(state),
        },
        at=at,
    )
    store.flush()
    return store.reached


def _known(store: Store, lost: Noted | None) -> Noted | None:
    """The head of an epoch that an earlier, killed attempt began for this very loss."""
    raw = store.read(layout.EPOCH)
    return store.reached if raw is not None and lost is not None and decode_epoch(raw).lost == lost else None


def _set_aside(folder: Folder, key: PublicKey, disk: Disk) -> str:
    """Move the branch back to the newest commit that the host has signed; what stood on top of it, 40 hex digits.

    That stays reachable, as ``refs/unsigned/<commit>``. Empty where the host has signed all of it.
    """
    ref = folder.read_ref()
    if ref is None:
        raise NothingSigned(folder.path, "it has no branch 'log'")
    objects, oid = SealedObjects(folder.objects), bytes.fromhex(ref)
    while not _signed(raw := objects.read(Kind.COMMIT, oid), oid, key):
        parent = _PARENT.match(raw)
        if parent is None:
            raise NothingSigned(folder.path, f"none of its commits is signed by {key.fingerprint}")
        oid = bytes.fromhex(parent[1].decode())
    if oid.hex() == ref:
        return ""
    clear_leftovers(disk, folder)
    aside = f"{folder.path}/refs/unsigned"
    disk.make_directory(aside)
    disk.write_file(f"{aside}/{ref}", f"{ref}\n".encode())
    disk.sync_directory(aside)
    disk.sync_directory(f"{folder.path}/refs")
    if not move_ref(disk, folder, ref, oid.hex()):
        raise BranchLocked(f"{folder.ref}.lock")
    _log.warning("%s: %s was set aside; the branch is at %s again", folder.path, ref, oid.hex())
    return ref


def _signed(raw: bytes, oid: bytes, key: PublicKey) -> bool:
    try:
        return head_of(oid, parse_commit(raw), key.verifies) is not None
    except BadObject:  # a merge, for one: nothing that we ever wrote
        return False

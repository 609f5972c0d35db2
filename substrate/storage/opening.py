"""Opening a repository: look at everything first, decide, and only then bring it in order (storage §3).

The looking half (``inspect``) changes nothing and serves readers, too. The acting half (``recover``) runs under the
host's lock; it may be killed anywhere and be run again.
"""

import errno
import functools
import logging
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import msgspec

from substrate import layout, state
from substrate.errors import BadObject, Damaged, NewerFormat, NotARepository, UnsignedBranch
from substrate.files import plain
from substrate.files.disk import Disk
from substrate.files.folder import REF, Folder
from substrate.packs import pack
from substrate.packs.objects import Kind, parse_commit, parse_tree
from substrate.packs.sealed import SealedObjects
from substrate.signing.signers import Verifier
from substrate.storage.flush import parse_trailer
from substrate.storage.journal import copy, finish
from substrate.storage.merge import finish_merges
from substrate.storage.recovery import Drop, Keep, Plan, decide
from substrate.storage.scan import Head, Scan, head_of, scan
from substrate.storage.seal import clear_leftovers, move_ref, name_pack, publish
from waypost.model.errors import Invalid

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Inspected:
    """A repository as it lies there: its packs, the head that its branch names, and what its journals add to it."""

    format: state.Format
    objects: SealedObjects
    tip: Head
    plan: Plan
    journals: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Recovered:
    """A repository in order: all that counts is in packs. ``held``: journals whose names wait for the ref to move."""

    format: state.Format
    objects: SealedObjects
    head: Head
    ref: str
    held: tuple[str, ...]
    next_journal: int


class Remembers(Protocol):
    """What is known outside of a repository of how far it had got: ``heads.Heads``."""

    def check(self, folder: Folder, key: Verifier, found: Inspected) -> None:
        """Refuse, by raising, what doesn't hold what is known."""
        ...

    def found(self, found: Inspected) -> None:
        """Know from now on how far it reaches; when this returns, that is durable."""
        ...


def inspect(folder: Folder, key: Verifier, read: Callable[[str], bytes], *, keep: bool = False) -> Inspected:
    """Find out what counts, changing nothing; ``read`` gives a journal's bytes, ``keep`` keeps its objects.

    Raises NotARepository, NewerFormat, Damaged, ForeignJournal, Unsigned.
    """
    folder.check()
    journals = folder.journal_numbers()
    raws = [(folder.journal(number), read(folder.journal(number))) for number in journals]
    objects = SealedObjects(folder.objects)
    # The ref is read after the journals: if it moves in between, they are history, not a gap.
    tip = _tip(folder, objects, key)
    known = _read_format(folder, objects, tip)
    scans = [scan(file, raw, key.verifies, keep=keep) for file, raw in raws]
    plan = decide(tip, scans, functools.partial(in_history, objects, tip))
    _refuse_changed_packs(plan)
    return Inspected(known, objects, tip, plan, journals)


def recover(folder: Folder, key: Verifier, disk: Disk, heads: Remembers | None = None) -> Recovered:
    """Bring a repository in order after whatever ended its last host. Raises as ``inspect``, and OSError.

    ``heads`` is asked before anything is changed, and told when what was found is durable, before the branch moves.
    """
    folder.check_owner()
    found = inspect(folder, key, plain.read)
    if heads is not None:
        heads.check(folder, key, found)
    if clear_leftovers(disk, folder):
        _log.info("%s: removed the lock that a killed host left on %s", folder.path, REF)
    kept = _sort_out(disk, folder, found.plan)
    if heads is not None:
        heads.found(found)
    ref, head, held = found.tip.oid.hex(), found.plan.head, tuple(step.scan.file for step in kept)
    if held and move_ref(disk, folder, ref, head.oid.hex()):
        for path in held:
            disk.unlink(path)
        ref, held = head.oid.hex(), ()
    if finish_merges(disk, folder):
        _log.info("%s: finished the merge of packs that a killed host had begun", folder.path)
        found.objects.reopen()
    return Recovered(found.format, found.objects, head, ref, held, max(found.journals, default=0) + 1)


def _sort_out(disk: Disk, folder: Folder, plan: Plan) -> list[Keep]:
    """Delete the journals in which nothing counts, and bring what counts in the others into packs: these."""
    for torn in plan.torn:
        _log.warning("%s: cut a torn tail behind byte %d; nothing in it was acknowledged", torn.file, torn.end)
    kept = [step for step in plan.steps if isinstance(step, Keep)]
    for other in plan.steps:
        if isinstance(other, Drop):
            disk.unlink(other.scan.file)
    for step in kept:
        _publish(disk, folder, step)
    return kept


def in_history(objects: SealedObjects, tip: Head, head: Head) -> bool:
    """Whether a head is the tip or one of its ancestors: walks back from the tip as far as its number says."""
    oid: bytes | None = tip.oid
    while oid is not None and oid != head.oid:
        commit = parse_commit(objects.read(Kind.COMMIT, oid))
        trailer = parse_trailer(commit.message)
        if trailer is not None and trailer.number < head.number:
            return False
        oid = commit.parent
    return oid is not None


def _tip(folder: Folder, objects: SealedObjects, key: Verifier) -> Head:
    ref = folder.read_ref()
    if ref is None:
        raise Damaged(folder.ref, "the branch is missing; this is never taken for a new, empty repository")
    raw = objects.read(Kind.COMMIT, bytes.fromhex(ref))
    try:
        head = head_of(bytes.fromhex(ref), parse_commit(raw), key.verifies)
    except BadObject:  # A merge, for one: nothing that we ever wrote.
        head = None
    if head is None:
        raise UnsignedBranch(folder.path, folder.ref, ref)
    return head


def _read_format(folder: Folder, objects: SealedObjects, tip: Head) -> state.Format:
    tree = parse_commit(objects.read(Kind.COMMIT, tip.oid)).tree
    entries = {entry.key: entry.oid for entry in parse_tree(objects.tree(tree))}
    oid = entries.get(layout.FORMAT.encode())
    if oid is None:
        raise NotARepository(folder.path, f"its branch holds no {layout.FORMAT}")
    return read_format(folder.path, objects.read(Kind.BLOB, oid))


class _Version(msgspec.Struct, frozen=True):
    """All that may be asked of a format that we don't know yet."""

    format: int


def read_format(path: str, raw: bytes) -> state.Format:
    """Read ``format.json``. Raises NewerFormat, NotARepository."""
    try:
        version = msgspec.json.decode(raw, type=_Version).format
        if version > state.VERSION:
            raise NewerFormat(path, version, state.VERSION)
        return state.decode_format(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, Invalid) as bad:
        raise NotARepository(path, f"{layout.FORMAT}: {bad}") from None


def _refuse_changed_packs(plan: Plan) -> None:
    """A journal that has its second name already is finished: if it can't be read as such, it isn't ours to cut."""
    for step in plan.steps:
        if isinstance(step, Keep) and step.scan.sha is None and _names(step.scan) > 1:
            raise Damaged(step.scan.file, "a finished pack has changed", offset=step.scan.end)


def _names(found: Scan) -> int:
    try:
        return Path(found.file).stat().st_nlink
    except FileNotFoundError:
        return 0


def _publish(disk: Disk, folder: Folder, step: Keep) -> None:
    """Bring what counts of a journal into a pack: by a copy, because a sync of the journal itself may have failed."""
    end, index, file = step.last.end, step.scan.entries[: step.last.entries], step.scan.file
    if step.scan.sha is not None and Path(folder.pack(step.scan.sha, "idx")).exists():
        publish(disk, folder, file, step.scan.sha, index)
        return
    aside = f"{folder.aside}/recovered.pack"
    try:
        sha = copy(disk, file, aside, end, step.last.entries)
    except OSError as full:
        if full.errno not in (errno.ENOSPC, errno.EDQUOT):
            raise
        _log.warning("%s: no space for a copy of %s; it is sealed where it is", folder.path, file)
        disk.unlink(aside)
        publish(disk, folder, file, _finish(disk, step), index)
        return
    name_pack(disk, folder, aside, sha, lambda: pack.index_file(index, bytes.fromhex(sha)))


def _finish(disk: Disk, step: Keep) -> str:
    descriptor = disk.reopen(step.scan.file)
    try:
        return finish(disk, step.scan.file, descriptor, step.last.end, step.last.entries)
    finally:
        disk.close_file(descriptor)

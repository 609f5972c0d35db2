"""The order of a merge: nothing old goes before all of the new is durable (storage §3).

The new pack is written aside and durable; its ``.keep``, which names the packs that it replaces; pack and index get
their names, the directory synced; who reads opens the packs anew; only then the old ones' indexes go, then the packs,
then the ``.keep`` files; an index over all packs, of another program's making, goes before the first of them. Killed
before the new index has its name, a merge leaves a file aside; killed after it, a list by which the next start finishes
the work.
"""

import errno
import logging
import os
import re
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

from substrate.errors import BadObject
from substrate.files.disk import Disk
from substrate.files.folder import Folder
from substrate.packs import pack
from substrate.packs.concatenate import Concatenation, Steps
from substrate.packs.merging import Pack, choose
from substrate.packs.packindex import PackIndex
from substrate.storage.seal import name_pack
from waypost.model.limits import Limits

_log = logging.getLogger(__name__)
_FULL = (errno.ENOSPC, errno.EDQUOT)
_REPLACES = "replaces "
"""Begins a line of a merged pack's ``.keep``; the name (40 hex digits) of a pack follows. A format for ever."""
_NAME = re.compile(r"[0-9a-f]{40}")
_OF_ALL = "multi-pack-index"
_SUFFIXES = ("idx", "pack", "keep")
"""Of a pack's files, in the order in which they go."""


class Merger:
    """The merge of one repository's packs, a step at a time. ``reopen`` is called when packs are about to go.

    A merge never breaks the store: what fails is given up and logged, and nothing old has gone before.
    """

    def __init__(self, disk: Disk, folder: Folder, limits: Limits, reopen: Callable[[], None]) -> None:
        self._disk, self._folder, self._limits, self._reopen = disk, folder, limits, reopen
        self._known: dict[str, Pack] = {}
        self._steps: Steps | None = None
        self._off: str | None = None

    @property
    def under_way(self) -> bool:
        """Whether a step is to be made."""
        return self._steps is not None

    def look(self) -> None:
        """See whether packs should be merged; to be asked after a seal."""
        if self._steps is not None or self._off is not None:
            return
        try:
            self._known = {each.sha: each for each in kept_packs(self._folder, self._known)}
        except OSError as failure:
            self._give_up(failure, off=True)
            return
        chosen = choose(self._known.values(), self._limits)
        if chosen:
            self._steps = merge(self._disk, self._folder, chosen, self._reopen)

    def step(self) -> None:
        """Make the next step; a merge that has ended is followed by a look for another."""
        if self._steps is None:
            return
        try:
            next(self._steps)
        except StopIteration:
            self._steps = None
            self.look()
        except OSError as failure:
            self._give_up(failure, off=failure.errno not in _FULL)
        except BadObject as failure:
            self._give_up(failure, off=True)

    def stop(self) -> None:
        """Leave a merge that is under way, and its file. Raises OSError."""
        if self._steps is not None:
            self.let_go()
            self._disk.unlink(aside(self._folder))

    def let_go(self) -> None:
        """Close what is open, and leave the files as they are."""
        if self._steps is not None:
            self._steps.close()
            self._steps = None

    def _give_up(self, failure: Exception, *, off: bool) -> None:
        self._steps = None
        if off:
            self._off = str(failure)
            _log.error("%s: packs aren't merged any more until the next start: %s", self._folder.path, failure)
        else:
            _log.warning("%s: no space to merge packs: %s", self._folder.path, failure)
        with suppress(OSError):
            self._disk.unlink(aside(self._folder))


def aside(folder: Folder) -> str:
    """Where a new pack is written."""
    return f"{folder.aside}/merge.pack"


def kept_packs(folder: Folder, known: dict[str, Pack]) -> list[Pack]:
    """The whole packs that are ours: with ``.keep`` and index. ``known`` saves looking into one again."""
    with os.scandir(folder.packs) as listing:
        names = {entry.name for entry in listing}
    found = []
    for name in sorted(names):
        sha = name.removeprefix("pack-").removesuffix(".pack")
        if all(f"pack-{sha}.{suffix}" in names for suffix in _SUFFIXES):
            with suppress(FileNotFoundError):  # another program's work, between the listing and now
                found.append(known.get(sha) or _pack(folder, sha))
    return found


def _pack(folder: Folder, sha: str) -> Pack:
    with Path(folder.pack(sha, "pack")).open("rb") as file:
        head = file.read(pack.HEADER)
        return Pack(sha, int.from_bytes(head[8:]), os.fstat(file.fileno()).st_size)


def merge(disk: Disk, folder: Folder, chosen: Sequence[Pack], reopen: Callable[[], None]) -> Steps:
    """Merge packs into one; each yield ends a step of a few milliseconds.

    Raises OSError, and BadObject for a pack that isn't as it was written; then none of the old ones has gone, unless
    it was the going that failed: the next start finishes that.
    """
    disk.unlink(aside(folder))
    # The heaviest first: it is copied as it is, and what is doubled is left out of the light ones.
    sources = [each.sha for each in sorted(chosen, key=lambda each: (-each.size, each.sha))]
    new = Concatenation(disk, folder, aside(folder), sources)
    yield from new.steps()
    index = yield from new.index.make(new.made)
    # Where the others held nothing of their own, the new pack is the heaviest one again.
    old = [sha for sha in sources if sha != new.made.hex()]
    keep = "".join(f"{_REPLACES}{sha}\n" for sha in old).encode()
    name_pack(disk, folder, aside(folder), new.made.hex(), lambda: index, keep=keep)
    yield
    _forget_index_of_all(disk, folder)
    reopen()
    yield
    yield from _retire(disk, folder, old)


def _forget_index_of_all(disk: Disk, folder: Folder) -> None:
    """Remove an index over several packs that another program's git has made, as git does when one of these packs goes.

    With one that names a pack which isn't there, ``git fsck`` fails. Raises OSError.
    """
    with os.scandir(folder.packs) as listing:
        names = sorted(entry.name for entry in listing if entry.name.startswith(_OF_ALL))
    for name in names:
        if not name.endswith(".lock"):  # whoever holds that is at work on the next one
            disk.unlink(f"{folder.packs}/{name}" + (f"/{_OF_ALL}-chain" if name == f"{_OF_ALL}.d" else ""))


def _retire(disk: Disk, folder: Folder, old: Sequence[str]) -> Steps:
    """Remove packs whose objects are all in another one."""
    for suffix in _SUFFIXES:
        for sha in old:
            disk.unlink(folder.pack(sha, suffix))
        yield
    _forget_index_of_all(disk, folder)  # one that was made meanwhile, of what was still there
    disk.sync_directory(folder.packs)


def finish_merges(disk: Disk, folder: Folder) -> bool:
    """Bring what a killed merge left to its end, at a start; whether there was anything. Raises OSError.

    Of a new pack that is whole the old ones go; of one that isn't, it goes, as long as all the old ones are there.
    """
    with os.scandir(folder.packs) as listing:
        names = {entry.name for entry in listing}
    gone: list[str] = []
    for name in sorted(names):
        sha = name.removeprefix("pack-").removesuffix(".keep")
        replaced = _replaced(folder, sha) if name == f"pack-{sha}.keep" else []
        left = [old for old in replaced if any(f"pack-{old}.{suffix}" in names for suffix in _SUFFIXES)]
        if left and _whole(folder, sha):
            gone += left
        elif left == replaced and not _named(names, sha) and all(_whole(folder, old) for old in left):
            gone += [sha] * bool(left)
    if gone:
        disk.sync_directory(folder.packs)
        _forget_index_of_all(disk, folder)
        for _ in _retire(disk, folder, gone):
            pass
    return bool(gone)


def _replaced(folder: Folder, sha: str) -> list[str]:
    """The packs that a merged pack's ``.keep`` names; none in a file of another's making."""
    try:
        lines = Path(folder.pack(sha, "keep")).read_text("ascii").splitlines()
    except (FileNotFoundError, ValueError):
        return []
    named = [line.removeprefix(_REPLACES) for line in lines if line.startswith(_REPLACES)]
    return [name for name in named if name != sha and _NAME.fullmatch(name)]


def _named(names: set[str], sha: str) -> bool:
    """Whether both were given their names: of a pack that lacks either, nothing old has gone yet."""
    return f"pack-{sha}.idx" in names and f"pack-{sha}.pack" in names


def _whole(folder: Folder, sha: str) -> bool:
    """Whether pack and index are there and belong together."""
    try:
        with Path(folder.pack(sha, "pack")).open("rb") as made:
            made.seek(-pack.TRAILER, os.SEEK_END)
            trailer = made.read()
        return PackIndex(Path(folder.pack(sha, "idx")).read_bytes()).pack == trailer == bytes.fromhex(sha)
    except (OSError, ValueError, BadObject):
        return False

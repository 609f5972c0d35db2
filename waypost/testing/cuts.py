"""A disk that knows what a power cut would leave at any moment: of contents, and of names, no more than was synced.

Stricter than any file system that people use: without a sync of the file, each sector may be the old or the new one;
without a sync of the directory, each name may be there, be gone, or still be the old one, in any combination. What
holds here holds where an order is kept. ``disks.power_cut`` cuts the journals of a host in another process; this one
cuts everything, at each point of one in the same process.
"""

import errno
import itertools
import os
import random
from pathlib import Path

from waypost.testing.disks import DyingDisk

_SECTOR = 512
_NEVER = 1 << 60


class CutDisk(DyingDisk):
    """Dies at point ``at``; what ``leave`` makes then is what the power left of the folder ``root``.

    ``lapse``: the point at which a sync of a file fails once, with EIO. Later syncs of that file succeed and prove
    nothing, as on a real system: nothing of it counts as durable any more. Directories are those that are there now.
    """

    def __init__(self, root: str | Path, *, at: int = _NEVER, half: bool = False, lapse: int = 0) -> None:
        super().__init__(at, half=half)
        self._lapse = lapse
        self.syncs: list[int] = []
        """The points at which a file was synced."""
        self._root = Path(root)
        self._numbers = itertools.count()
        self._synced: dict[int, bytes] = {}
        """By a file's number, its bytes at its last sync."""
        self._lapsed: set[int] = set()
        self._named: dict[str, int] = {}
        """The file's number for each name that is there for good."""
        known: dict[int, int] = {}
        for file in sorted(self._root.rglob("*")):
            if file.is_file():
                number = known.setdefault(file.stat().st_ino, len(known))
                self._named[str(file)] = number
                self._synced[number] = file.read_bytes()
        self._numbers = itertools.count(len(known))
        self._live = dict(self._named)

    # --- what is done ---

    def open_file(self, path: str, flags: int) -> int:
        """Open; a file that is made is a new one."""
        descriptor = super().open_file(path, flags)
        if flags & os.O_CREAT:
            self._live[path] = next(self._numbers)
        return descriptor

    def write_file(self, path: str, data: bytes, mode: int = 0o644) -> None:
        """Write and sync a file; over an old one it is that one still."""
        if path not in self._live:
            self._live[path] = next(self._numbers)
        super().write_file(path, data, mode)
        self._settle(path)

    def sync_data(self, descriptor: int, path: str, size: int) -> None:
        """Sync."""
        super().sync_data(descriptor, path, size)
        self._settle(path)

    def sync(self, descriptor: int, path: str, size: int) -> None:
        """Sync."""
        super().sync(descriptor, path, size)
        self._settle(path)

    def point(self, operation: str, path: str) -> None:
        """Pass a point, die there, or let a sync fail."""
        super().point(operation, path)
        if operation not in {"sync", "sync-file"}:
            return
        self.syncs.append(self.points)
        if self.points == self._lapse:
            self._lapsed.add(self._live[path])
            raise OSError(errno.EIO, os.strerror(errno.EIO), path)

    def link(self, source: str, target: str) -> None:
        """Link."""
        super().link(source, target)
        self._live[target] = self._live[source]

    def rename(self, source: str, target: str) -> None:
        """Rename."""
        super().rename(source, target)
        self._live[target] = self._live.pop(source)

    def unlink(self, path: str) -> None:
        """Unlink."""
        super().unlink(path)
        self._live.pop(path, None)

    def sync_directory(self, path: str) -> None:
        """From now on these names are there for good, and no others."""
        super().sync_directory(path)
        within = f"{path}/"
        old = {name: number for name, number in self._named.items() if name.rpartition("/")[0] + "/" != within}
        new = {name: number for name, number in self._live.items() if name.rpartition("/")[0] + "/" == within}
        self._named = old | new

    def _settle(self, path: str) -> None:
        number = self._live[path]
        if number not in self._lapsed:
            self._synced[number] = Path(path).read_bytes()

    # --- what is left ---

    def leave(self, target: str | Path, chance: random.Random | None = None) -> None:
        """Make ``target`` what is left: nothing that wasn't synced; or, of each such thing, what ``chance`` says."""
        live = {name: number for name, number in self._live.items() if Path(name).exists()}
        now = {number: Path(name).read_bytes() for name, number in live.items()}
        for folder in (self._root, *sorted(path for path in self._root.rglob("*") if path.is_dir())):
            (Path(target) / folder.relative_to(self._root)).mkdir()
        made: dict[int, Path] = {}
        for name in sorted(self._named | live):
            both = (self._named.get(name), live.get(name))
            number = both[0] if chance is None else chance.choice(both)
            if number is None:
                continue
            file = Path(target) / Path(name).relative_to(self._root)
            if number in made:
                os.link(made[number], file)
                continue
            made[number] = file
            old = self._synced.get(number, b"")
            file.write_bytes(old if chance is None else _mixed(old, now.get(number, old), chance))


def _mixed(old: bytes, new: bytes, chance: random.Random) -> bytes:
    if old == new:
        return old
    size = len(chance.choice((old, new)))
    old, new = old.ljust(size, b"\0"), new.ljust(size, b"\0")
    share = chance.choice((0.0, 0.5, 1.0))
    sectors = range(0, size, _SECTOR)
    return b"".join(
        (new if chance.random() < share else old)[at : at + _SECTOR]
        if old[at : at + _SECTOR] != new[at : at + _SECTOR]
        else old[at : at + _SECTOR]
        for at in sectors
    )[:size]

"""The seal: a finished journal becomes a pack that git sees, and the branch moves (storage §3).

In this order: the finished file is durable; ``.keep``, directory synced; the pack's name; its index, synced aside and
renamed last; directory synced; the ref, by compare-and-swap under git's own lock; only then the journal's name goes.
Every step finds the work of an earlier, killed attempt and goes on.
"""

from collections.abc import Callable, Iterable
from pathlib import Path

from substrate.errors import SecondWriter
from substrate.files.disk import Disk
from substrate.files.folder import Folder
from substrate.packs import pack


def publish(disk: Disk, folder: Folder, journal: str, sha: str, index: Iterable[pack.Indexed]) -> None:
    """Give a finished journal its name as a pack, and its index. Raises OSError."""
    if not Path(folder.pack(sha, "keep")).exists():
        disk.write_file(folder.pack(sha, "keep"), b"")
    disk.sync_directory(folder.packs)
    if not Path(folder.pack(sha, "pack")).exists():
        disk.link(journal, folder.pack(sha, "pack"))
    if not Path(folder.pack(sha, "idx")).exists():
        _name_index(disk, folder, sha, pack.index_file(index, bytes.fromhex(sha)))
    disk.sync_directory(folder.packs)


def name_pack(
    disk: Disk, folder: Folder, aside: str, sha: str, index: Callable[[], bytes], *, keep: bytes | None = None
) -> None:
    """Give a whole pack that lies aside, durable, its name and its index. ``keep`` is written into its ``.keep``.

    A pack of that name that has no index, or an index whose pack a power cut has taken, was never to be relied on: what
    lies aside takes its place. Raises OSError.
    """
    if keep is not None or not Path(folder.pack(sha, "keep")).exists():
        disk.write_file(folder.pack(sha, "keep"), keep or b"")
    disk.sync_directory(folder.packs)
    if all(Path(folder.pack(sha, suffix)).exists() for suffix in ("pack", "idx")):
        disk.unlink(aside)
    else:
        disk.rename(aside, folder.pack(sha, "pack"))
        _name_index(disk, folder, sha, index())
    disk.sync_directory(folder.packs)


def _name_index(disk: Disk, folder: Folder, sha: str, index: bytes) -> None:
    aside = f"{folder.aside}/pack-{sha}.idx"
    disk.write_file(aside, index, 0o444)
    disk.rename(aside, folder.pack(sha, "idx"))


def move_ref(disk: Disk, folder: Folder, old: str | None, new: str) -> bool:
    """Move the branch from ``old`` to ``new``; False while another program holds its lock.

    Raises SecondWriter when the branch stands anywhere else, OSError.
    """
    aside, lock = f"{folder.aside}/ref.new", f"{folder.ref}.lock"
    disk.unlink(aside)
    disk.write_file(aside, f"{new}\n".encode())
    disk.sync_directory(folder.aside)  # so that no power cut leaves the lock without the name by which it is ours
    try:
        # A link, not an open: so the lock has its content from the first moment, and shares its inode with ``aside``,
        # by which the next start knows a lock that we left behind from one that somebody holds.
        disk.link(aside, lock)
    except FileExistsError:
        return False
    found = folder.read_ref()
    if found not in (old, new):
        disk.unlink(lock)
        raise SecondWriter(folder.path, str(old), str(found))
    disk.rename(lock, folder.ref)
    disk.sync_directory(folder.heads)
    disk.unlink(aside)
    return True


def clear_leftovers(disk: Disk, folder: Folder) -> bool:
    """Remove what a killed seal left: files aside, and the ref's lock where it is ours. Whether there was such a lock.

    A lock that another program holds isn't touched.
    """
    lock, ours = Path(f"{folder.ref}.lock"), Path(f"{folder.aside}/ref.new")
    stale = lock.exists() and ours.exists() and lock.samefile(ours)
    if stale:
        disk.unlink(str(lock))
        disk.sync_directory(folder.heads)
    for file in Path(folder.aside).iterdir():
        if file.name == "ref.new" or file.suffix in (".idx", ".pack"):
            disk.unlink(str(file))
    return stale

"""Trees of code as folders: what a child is started on. Named by their hash, read-only, made anew if they aren't whole.

Nothing is lost with one of them: the repository has it. So none is synced, and a name is given by one rename, to a
folder that is whole; what a death leaves behind has no such name and goes at the next start.
"""

import hashlib
import shutil
import stat
import tempfile
from collections.abc import Collection
from pathlib import Path

from waypost.host.code.precompile import precompile
from waypost.host.described import TREE
from waypost.model.code import Files, tree_hash
from waypost.tree_on_disk import read

COMPILED = "compiled"
"""Beside the tree, in its folder."""
_ASIDE = ".new-"
_FILE, _FOLDER, _OPEN = 0o444, 0o555, 0o700


def materialise(code: Path, files: Files) -> Path:
    """The folder of this tree below ``code``, with the tree in it; what has its name and isn't it is replaced.

    Raises OSError.
    """
    tree = tree_hash(files)
    folder = code / tree
    if is_whole(folder):
        return folder
    if not code.is_dir():  # nor a link to one
        code.unlink(missing_ok=True)
        code.mkdir(mode=_OPEN)
    aside = Path(tempfile.mkdtemp(prefix=_ASIDE, dir=code))
    try:
        write(aside / TREE, files)
        if folder.exists():
            gone = Path(tempfile.mkdtemp(prefix=_ASIDE, dir=code))
            folder.chmod(_OPEN)  # one that is read-only can't be moved from folder to folder
            folder.rename(gone / "old")
            clear(gone)
        aside.rename(folder)
        folder.chmod(_FOLDER)
    finally:
        clear(aside)
    return folder


def is_whole(folder: Path) -> bool:
    """Whether the tree in a folder is the one that the folder's name says, and open to whoever a child becomes.

    It isn't in a copy that was made for its owner's eyes alone, and not if its maker died before its last line.
    """
    files = read(str(folder / TREE))
    return files is not None and tree_hash(files) == folder.name and _is_open(folder)


def _is_open(folder: Path) -> bool:
    modes = (each.stat().st_mode for each in (folder, folder / TREE, *(folder / TREE).rglob("*")))
    return all(mode & needed == needed for mode in modes for needed in (_FOLDER if stat.S_ISDIR(mode) else _FILE,))


def compiled(folder: Path, files: Files) -> str:
    """Put beside the tree what Python makes of its modules; the hash of that, empty where it isn't worth it.

    Made anew by each host, so that it is never older than the tree, or than this Python. Raises OSError.
    """
    raw = precompile(files, str(folder / TREE))
    if not raw:
        return ""
    folder.chmod(_OPEN)
    aside = folder / f"{COMPILED}.new"
    aside.write_bytes(raw)
    aside.rename(folder / COMPILED)
    folder.chmod(_FOLDER)
    return hashlib.sha256(raw).hexdigest()


def sweep(code: Path, used: Collection[str]) -> None:
    """Remove every tree but these, and what a death left. Raises OSError."""
    for folder in code.iterdir() if code.is_dir() else ():
        if folder.name not in used:
            clear(folder)


def write(folder: Path, files: Files) -> None:
    """Make a folder of a tree, and make it read-only. Raises OSError."""
    folder.mkdir(mode=_OPEN)
    folders = {folder}
    for path, data in files.items():
        place = folder / path
        if place.parent not in folders:
            place.parent.mkdir(mode=_OPEN, parents=True, exist_ok=True)
            folders.update(above for above in place.parents if above.is_relative_to(folder))
        place.write_bytes(data)
        place.chmod(_FILE)
    for each in sorted(folders, reverse=True):
        each.chmod(_FOLDER)


def clear(folder: Path) -> None:
    """Remove a folder with all that is in it, read-only or not. Raises OSError."""
    if folder.is_symlink() or folder.is_file():
        folder.unlink()
        return
    if not folder.exists():
        return
    folder.chmod(_OPEN)
    for each in folder.rglob("*"):
        if each.is_dir() and not each.is_symlink():
            each.chmod(_OPEN)
    shutil.rmtree(folder)

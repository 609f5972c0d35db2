"""Trees of code as folders: what a child is started on. Named by their hash, read-only, made anew if they aren't whole.

Nothing is lost with one of them: the repository has it. So none is synced, and a name is given by one rename, to a
folder that is whole; what a death leaves behind has no such name and goes at the next start.
"""

import shutil
import tempfile
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from pathlib import Path

from waypost.model.code import Files, tree_hash
from waypost.tree_on_disk import read

_ASIDE = ".new-"
_FILE, _FOLDER, _OPEN = 0o444, 0o555, 0o700


@contextmanager
def staged(files: Files) -> Iterator[Path]:
    """A tree in a folder of its own for the length of a block. Raises OSError."""
    with tempfile.TemporaryDirectory(prefix="waypost-") as place:
        folder = Path(place) / "code"
        try:
            write(folder, files)
            yield folder
        finally:
            clear(folder)


def materialise(code: Path, files: Files) -> Path:
    """The folder of this tree below ``code``; what is there under its name and isn't it is replaced. Raises OSError."""
    tree = tree_hash(files)
    folder = code / tree
    if is_whole(folder):
        return folder
    code.mkdir(mode=_OPEN, exist_ok=True)
    aside = Path(tempfile.mkdtemp(prefix=_ASIDE, dir=code))
    try:
        write(aside / tree, files)
        if folder.exists():
            folder.chmod(_OPEN)
            folder.rename(aside / "old")
        (aside / tree).chmod(_OPEN)  # one that is read-only can't be moved from folder to folder
        (aside / tree).rename(folder)
        folder.chmod(_FOLDER)
    finally:
        clear(aside)
    return folder


def is_whole(folder: Path) -> bool:
    """Whether a folder is the tree that its name says."""
    files = read(str(folder))
    return files is not None and tree_hash(files) == folder.name


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

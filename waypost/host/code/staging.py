"""Folders for the length of a look: where a tree lies while a workflow is looked at, before it is deployed.

Promise: what a killed command leaves of them in the folder for temporary files is gone after the next look, or the next
start of a host, and so is what the code has started that bears the folder's name as its mark. Each is locked (flock(2))
by whoever uses it, and the kernel lets go of that with its process: what can be locked is nobody's.
"""

import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ipc import strays
from waypost.host.code.materialise import clear, write
from waypost.host.described import TREE
from waypost.model.code import Files

_NAMED = "waypost-look-"
_FRESH = 60.0
"""Seconds: an empty folder that is younger may be about to be locked."""


@contextmanager
def staged(files: Files) -> Iterator[Path]:
    """A tree in a folder of its own for the length of a block. Raises OSError."""
    end_looks()
    place = Path(tempfile.mkdtemp(prefix=_NAMED))
    with _locked(place):
        try:
            write(place / TREE, files)
            yield place / TREE
        finally:
            clear(place)  # while it is locked, so that nobody else does


def begins(tree: Path) -> str:
    """What the mark begins with of all that is started while this tree is looked at."""
    return f"{tree.parent.name}."


def end_looks() -> None:
    """End what killed looks have started, and remove their folders; what can't be removed stays for another time."""
    old = time.time() - _FRESH
    with suppress(OSError):
        for each in os.scandir(tempfile.gettempdir()):
            if each.name.startswith(_NAMED) and each.is_dir(follow_symlinks=False):
                with suppress(OSError):
                    about = each.stat(follow_symlinks=False)
                    if about.st_uid == os.geteuid() and (about.st_mtime < old or os.path.lexists(Path(each) / TREE)):
                        _end(Path(each) / TREE)


def _end(tree: Path) -> None:
    """A look that nobody has any more. Raises OSError, BlockingIOError where somebody does."""
    with _locked(tree.parent):
        strays.end(strays.Mark(begins(tree)))
        clear(tree.parent)


@contextmanager
def _locked(place: Path) -> Iterator[None]:
    """Hold a folder for the length of a block. Raises OSError, BlockingIOError where somebody else does."""
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)

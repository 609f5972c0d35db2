"""Folders for the length of a look: where a tree lies while a workflow is looked at, before it is deployed.

Promise: what a killed command leaves of them in the folder for temporary files is gone after the next look. Each is
locked (flock(2)) by whoever uses it, and the kernel lets go of that with its process: what can be locked is nobody's.
"""

import fcntl
import os
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from waypost.host.code.materialise import clear, write
from waypost.host.described import TREE
from waypost.model.code import Files

_NAMED = "waypost-look-"
_FRESH = 60.0
"""Seconds: a folder that is younger may be about to be locked."""


@contextmanager
def staged(files: Files) -> Iterator[Path]:
    """A tree in a folder of its own for the length of a block. Raises OSError."""
    _sweep(Path(tempfile.gettempdir()))
    place = Path(tempfile.mkdtemp(prefix=_NAMED))
    try:
        with _locked(place):
            write(place / TREE, files)
            yield place / TREE
    finally:
        clear(place)


def _sweep(where: Path) -> None:
    """Remove what nobody uses any more; what can't be removed stays for another time."""
    old = time.time() - _FRESH
    with suppress(OSError):
        for each in os.scandir(where):
            if each.name.startswith(_NAMED) and each.is_dir(follow_symlinks=False):
                with suppress(OSError):
                    about = each.stat(follow_symlinks=False)
                    if about.st_uid == os.geteuid() and about.st_mtime < old:
                        with _locked(Path(each)):
                            clear(Path(each))


@contextmanager
def _locked(place: Path) -> Iterator[None]:
    """Hold a folder for the length of a block. Raises OSError, BlockingIOError where somebody else does."""
    descriptor = os.open(place, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    finally:
        os.close(descriptor)

"""Reading files that must be regular ones: what else may lie under their names, a pipe above all, is never waited for.

Opening a pipe waits for whoever writes into it, for ever as a rule, and a device may never end. So what isn't a regular
file (or a link to one) is refused by name.
"""

import os
import stat
from contextlib import suppress
from pathlib import Path

from substrate.errors import Damaged

_OTHER = "it is not a regular file"


def opened(path: str | Path) -> int:
    """A descriptor on a file, to read it. Raises Damaged for what isn't a regular file, OSError."""
    descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise Damaged(str(path), _OTHER)


def read(path: str | Path, most: int = -1) -> bytes:
    """A file's bytes, no more than ``most``. Raises Damaged for what isn't a regular file, OSError."""
    with os.fdopen(opened(path), "rb") as file:
        return file.read(most)


def refuse_others(directory: str) -> None:
    """For what opens by itself what lies in a directory: see that it holds nothing but files, links and directories.

    A directory that isn't there holds nothing. Raises Damaged, OSError.
    """
    with suppress(FileNotFoundError), os.scandir(directory) as listing:
        for entry in listing:
            if entry.is_file(follow_symlinks=False) or entry.is_dir():
                continue
            with suppress(FileNotFoundError):  # it has gone meanwhile, or leads nowhere
                if not stat.S_ISREG(Path(entry.path).stat().st_mode):
                    raise Damaged(entry.path, _OTHER)

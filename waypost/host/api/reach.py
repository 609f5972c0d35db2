"""A Unix socket's path has at most 107 bytes (unix(7)); a longer one is reached through its directory's descriptor."""

import contextlib
import os
from collections.abc import Iterator
from pathlib import Path

PATH_LIMIT = 107


@contextlib.contextmanager
def reached(path: Path) -> Iterator[str]:
    """A name for the path that bind and connect take, good inside the block. Raises OSError."""
    if len(os.fsencode(path)) <= PATH_LIMIT:
        yield str(path)
        return
    folder = os.open(path.parent, os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        yield f"/proc/self/fd/{folder}/{path.name}"
    finally:
        os.close(folder)

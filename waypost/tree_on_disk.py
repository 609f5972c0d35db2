"""A materialised tree of code, read back: every file below a folder, and nothing that isn't one.

For the child, which refuses any other tree than the one that was deployed, and for the host, which makes it anew. What
can't be part of a tree makes the answer None: it is another tree, whatever it is.
"""

import os

from waypost.model.code import FILE, FILES, TOTAL

_FLAGS = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC


def read(folder: str) -> dict[str, bytes] | None:
    """The files below a folder by their paths in it; None where there is none, or something that is no tree's."""
    try:
        return _read(folder)
    except (OSError, UnicodeError):
        return None


def _read(folder: str) -> dict[str, bytes] | None:
    found: dict[str, bytes] = {}
    todo, total = [""], 0
    while todo:
        above = todo.pop()
        with os.scandir(f"{folder}/{above}") as entries:
            for entry in entries:
                path = above + entry.name
                if entry.is_dir(follow_symlinks=False):
                    todo.append(f"{path}/")
                    continue
                if len(found) >= FILES or not entry.is_file(follow_symlinks=False):
                    return None
                found[path] = _bytes(entry.path)
                total += len(found[path])
                if total > TOTAL:
                    return None
    return found


def _bytes(path: str) -> bytes:
    """A file's bytes; of one that is over a file's bound, enough to show that."""
    descriptor = os.open(path, _FLAGS)
    try:
        data = os.read(descriptor, FILE + 1)
        while more := os.read(descriptor, FILE + 1 - len(data)):
            data += more
        return data
    finally:
        os.close(descriptor)

"""The names below a folder that a pattern means, by one rule on every Python: ``glob`` has another in each.

``*``, ``?`` and ``[…]`` stand for what they do in a shell, within one name, and those that begin with a dot are names
like others. A part ``**`` stands for any number of folders, at the end for all that lies below; it follows no link.
A folder that can't be looked into, or that goes away meanwhile, is an error: fewer files would be found.
"""

import os
import stat
from collections.abc import Iterator
from fnmatch import fnmatchcase
from pathlib import Path

MAGIC = frozenset("*?[")
"""Without any of these a text means one name."""
_DEEP = "**"


def matching(root: Path, pattern: str, most: int) -> set[str]:
    """What isn't a folder, and links, by their paths from ``root``; no longer looked for once there are ``most``.

    Raises OSError, with the name of what can't be looked at.
    """
    parts = pattern.split("/")
    found: set[str] = set()
    todo, seen = [("", 0)], {("", 0)}
    while todo and len(found) < most:
        folder, at = todo.pop()
        last = at + 1 == len(parts)
        ways = [(folder, at + 1)] if parts[at] == _DEEP and not last else []
        for path, is_folder in _step(root, folder, parts[at]):
            if is_folder and (parts[at] == _DEEP or not last):
                ways.append((path, at if parts[at] == _DEEP else at + 1))
            elif last and not is_folder:
                found.add(path)
        todo += [way for way in ways if way not in seen]
        seen.update(ways)
    return found


def _step(root: Path, folder: str, part: str) -> Iterator[tuple[str, bool]]:
    """What one part of a pattern means in a folder, and whether it is a folder that one goes on in."""
    above = f"{folder}/" if folder else ""
    if not MAGIC.intersection(part):
        yield from _one(root, above + part)
        return
    with os.scandir(root / folder) as entries:
        names = {each.name: each.is_dir(follow_symlinks=False) for each in entries}
    for name, is_folder in names.items():
        if part == _DEEP:
            yield above + name, is_folder
        elif fnmatchcase(name, part):
            yield from _one(root, above + name)


def _one(root: Path, path: str) -> Iterator[tuple[str, bool]]:
    try:
        yield path, stat.S_ISDIR((root / path).stat().st_mode)
    except OSError as failure:
        if (root / path).is_symlink():  # it leads nowhere, or to itself, which whoever reads it says
            yield path, False
        elif not isinstance(failure, FileNotFoundError | NotADirectoryError):
            raise

"""The code that a child is made of, compiled where everybody who may read the source can read it.

Python keeps what it has compiled beside the source, under the umask of whoever imports it first, and a child's is 077.
A child of another user can't read that, and one in a namespace can't write its own: it would compile the same forty
files at each start, for half as long again as a start takes. Nothing depends on it: what can't be written stays away.
"""

import os
import stat
import sys
from collections.abc import Iterable, Iterator
from contextlib import suppress
from importlib.util import cache_from_source
from pathlib import Path

import ipc
import waypost

_FOLDERS = {ipc: (".",), waypost: (".", "authoring", "child", "model")}
_HEADER = 16
"""Bytes before the code: a magic number, flags, and the source's time and size, 4 bytes each (PEP 552)."""


def of_a_child() -> Iterator[Path]:
    """The sources that a child may load."""
    for package, folders in _FOLDERS.items():
        for folder in folders:
            for path in package.__path__:
                yield from sorted(Path(path, folder).glob("*.py"))


def compile_for_all(sources: Iterable[Path]) -> None:
    """Compile what isn't, or isn't by this source, and let everybody read it who may read the source.

    Where Python was told to write no such files, those that are there are opened all the same.
    """
    for source in sources:
        with suppress(OSError):  # of somebody else's, or on a read-only disk
            _compile(source)


def _compile(source: Path) -> None:
    compiled = Path(cache_from_source(str(source), optimization=""))
    written = source.stat()
    if not sys.dont_write_bytecode and not _is_by(compiled, written):
        import py_compile  # seldom needed

        py_compile.compile(str(source), str(compiled), optimize=0, quiet=2)
    mode = stat.S_IMODE(compiled.stat().st_mode)
    readable = mode | written.st_mode & 0o444
    if readable != mode:
        compiled.chmod(readable)


def _is_by(compiled: Path, source: os.stat_result) -> bool:
    """Whether Python would take this for the source's code."""
    try:
        with compiled.open("rb") as file:
            header = file.read(_HEADER)
    except OSError:
        return False
    told = (int(source.st_mtime) & 0xFFFFFFFF).to_bytes(4, "little") + (source.st_size & 0xFFFFFFFF).to_bytes(
        4, "little"
    )
    return header[8:] == told

"""Where a planted secret may have been left: everything that a host writes, and what its processes show of themselves.

Files are searched as they are, and the repositories object by object, as those are compressed.
"""

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path

import pygit2

from waypost.testing.killing import children_of


def forms(value: str) -> tuple[bytes, ...]:
    """As it may stand somewhere: itself, and as JSON writes it."""
    return tuple(dict.fromkeys((value.encode(), json.dumps(value)[1:-1].encode())))


def found_in(texts: Mapping[str, bytes], values: Iterable[str]) -> list[str]:
    """Where any of the values occurs, and which one, by its first letters."""
    return [
        f"{where}: {value[:6]}…"
        for where, text in texts.items()
        for value in values
        if any(form in text for form in forms(value))
    ]


def on_disk(data: Path) -> dict[str, bytes]:
    """All that is in a data directory: each file, and each object of each repository as it was before it was packed."""
    texts = {str(path.relative_to(data)): path.read_bytes() for path in sorted(data.rglob("*")) if path.is_file()}
    for repository in sorted((data / "repos").glob("*.git")):
        texts.update(_objects(repository))
    return texts


def _objects(repository: Path) -> Iterator[tuple[str, bytes]]:
    opened = pygit2.Repository(str(repository))
    for name in opened.odb:
        yield f"{repository.name}/{name}", opened.odb.read(name)[1]


def of_processes(*pids: int) -> dict[str, bytes]:
    """Environment and command line of these processes, and of all that they have started, as far as they show them."""
    texts: dict[str, bytes] = {}
    todo = list(pids)
    while todo:
        pid = todo.pop()
        todo += children_of(pid)
        for name in ("environ", "cmdline"):
            with suppress(OSError):
                texts[f"/proc/{pid}/{name}"] = Path(f"/proc/{pid}/{name}").read_bytes()
    return texts

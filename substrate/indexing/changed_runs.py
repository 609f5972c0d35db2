"""Which runs lie otherwise in one tree than in another: found from two directories' ids, without reading what is alike.

Pure over a loader of git's trees. Only what differs is opened, so the cost follows the difference, not the repository.
"""

from collections.abc import Callable, Iterator

from substrate.packs.objects import EMPTY_TREE, parse_tree
from waypost.model.ids import RunId

Load = Callable[[bytes], bytes]
"""The bytes of a tree by its id. Raises Damaged where it isn't there."""


def changed_runs(load: Load, old: str, new: str) -> Iterator[RunId]:
    """The runs below two radix directories (40 hex digits, empty for none) that aren't the same in both.

    Raises Damaged where a tree of either can't be read, BadObject for one that is no tree.
    """
    yield from _below(load, bytes.fromhex(old), bytes.fromhex(new))


def _below(load: Load, old: bytes, new: bytes) -> Iterator[RunId]:
    if old == new:
        return
    before, after = _entries(load, old), _entries(load, new)
    for name in sorted(before.keys() | after.keys()):
        was, now = before.get(name, b""), after.get(name, b"")
        if was == now:
            continue
        if name.startswith(b"run_"):
            yield RunId(name.removesuffix(b"/").decode())
        else:
            yield from _below(load, was, now)


def _entries(load: Load, oid: bytes) -> dict[bytes, bytes]:
    if not oid or oid == EMPTY_TREE:
        return {}
    return {entry.key: entry.line[-20:] for entry in parse_tree(load(oid))}

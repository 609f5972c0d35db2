"""What a commit really changes: the difference between the tree before and after it, and the tree after it.

``difference`` is pure over the visible tree, ``applied`` makes it so. The flush hash is made of what changes and not of
what was asked for, so that anyone with a clone gets the same from two trees: a file that is put as it already is takes
no part, a directory that goes is each file.
"""

from collections.abc import Collection, Mapping

from substrate import layout
from substrate.errors import BadPath
from substrate.packs.objects import Kind, check_path, object_id
from substrate.packs.trees import Trees
from substrate.storage.flush import Changes
from substrate.storage.journal import Journal

_BLOB = Kind.BLOB
"""Looked up once: on the class it costs as much as a checksum."""
_AMPLE = 1024 * 1024
_FILE = 8192
"""Bytes that a file of a commit costs at most, as a rule, beside its own: lines of directories."""
_OBJECT = 48
"""Bytes of an object in a journal beside its data: a head, a checksum, at times a distance, and the instructions."""
_LINE = 28
"""Bytes of a directory's line beside the name."""
_HEAD = 4096
"""Bytes of a commit, and of the signed one that ends its flush."""


def difference(trees: Trees, puts: Mapping[str, bytes], deletes: Collection[str]) -> Changes:
    """Check a commit and say what it changes, file by file.

    Raises BadPath where a name may not stand in a tree, nothing is there to delete, or a file and a directory collide.
    """
    changes: dict[str, bytes | None] = {}
    for path in deletes:
        changes.update(dict.fromkeys(_gone(trees, path)))
    for path, data in puts.items():
        check_path(path)
        old = trees.check(path)
        if old is not None and old == object_id(_BLOB, data):
            changes.pop(path, None)
        else:
            changes[path] = data
    if len(puts) > 1:
        for directory in {path.rpartition("/")[0] for path in puts}:
            for above in (directory, *layout.ancestors(directory)):
                if above in puts:
                    raise BadPath(above, "the same commit puts a file where a directory must be")
    return changes


def weight(trees: Trees, puts: Mapping[str, bytes], deletes: Collection[str], room: int) -> int:
    """Bytes that a commit and the end of its flush take at most; 0 where ``room``, in bytes, is plainly enough."""
    size = sum(map(len, puts.values()))
    if room >= _AMPLE + 2 * size + _FILE * (len(puts) + len(deletes)):
        return 0
    paths = {*puts, *(path.removesuffix("/") for path in deletes)}
    directories = {above for path in paths for above in ("", *layout.ancestors(path))}
    objects = len(puts) * _OBJECT + size + (size >> 10) + sum(_OBJECT + trees.size(each) for each in directories)
    return _HEAD + objects + sum(_LINE + len(each) - each.rfind("/") for each in (*paths, *directories))


def applied(
    trees: Trees, journal: Journal, puts: Mapping[str, bytes], deletes: Collection[str], changes: Changes
) -> bytes:
    """Make a commit's changes in the visible tree, with its objects in the journal; the new root's id."""
    # What only moves is an object already, perhaps in a pack: it is named again, not stored again.
    moving: set[bytes | None] = set()
    for path in deletes:
        if path.endswith("/"):
            moving.update(trees.blob(file) for file in changes if file.startswith(path))
            trees.remove_directory(path[:-1])
        elif path not in puts:
            moving.add(trees.remove(path))
    for path, data in puts.items():
        if path in changes or deletes:
            compress = path.endswith(".jsonl")  # then it may be long, and nothing that moves is
            moved = object_id(_BLOB, data) if moving and not compress else b""
            oid = moved if moved in moving else journal.add(_BLOB, data, compress=compress)
            trees.put(path, oid)
    return trees.write(journal)


def _gone(trees: Trees, path: str) -> list[str]:
    if path.isascii() and trees.blob(path) is not None:  # what is there has a name that may be there
        return [path]
    check_path(path.removesuffix("/"))
    gone = list(trees.files(path[:-1])) if path.endswith("/") else []
    if not gone:
        raise BadPath(path, "there is nothing to delete")
    return gone

"""Deployed code: a tree has the hash that it is named by and never changes; the record names a tree that is there.

Of a commit: what it puts below ``code/`` is one whole new tree, or what is there already. ``whole_code``
says the same of files that are just there.
"""

import hashlib
from collections.abc import Collection, Iterator
from contextlib import suppress

from substrate import layout
from substrate.errors import BadPath
from substrate.rules.commit import Before, Commit, Sorted, files
from substrate.rules.runs import has
from substrate.rules.table import Broken, broken
from substrate.runlog import Tree
from waypost.model import events as ev
from waypost.model.code import decode, tree_hash
from waypost.model.errors import Invalid
from waypost.model.ids import RunId, is_sha256


def coded(before: Before, commit: Commit, made: Sorted) -> Iterator[Broken]:
    """What a commit does to code."""
    new: dict[str, dict[str, bytes]] = {}
    for path, place in made.others.items():
        if place.kind != "code" or place.key is None or place.name is None:
            continue
        if not before.entries(layout.code_dir(place.key)):
            new.setdefault(place.key, {})[place.name] = commit.puts[path]
        elif not has(before, path) or before.read(path) != commit.puts[path]:
            yield broken("write-once", path, "a deployed tree of code was changed, or added to")
    for tree, found in new.items():
        yield from _hashed(tree, found)
    for path, place in made.gone_others.items():
        if place.kind == "code":
            yield broken("write-once", path, "deployed code was taken away")
    raw = made.single.get("deployed")
    if raw is not None:
        yield from _recorded(raw, before, new)


def begun_on(before: Before, made: Sorted, run: RunId, event: ev.RunStarted) -> Iterator[Broken]:
    """Where code is deployed, a run begins on a tree that is there; an older history names what ran and has it not."""
    if event.imported or ("deployed" not in made.single and not has(before, layout.DEPLOYED)):
        return
    if not before.entries(layout.code_dir(event.code)) and all(each.key != event.code for each in made.others.values()):
        yield broken("named", layout.event_path(run, event.seq), f"no tree of code here has the hash {event.code}")


def whole_code(tree: Tree) -> Iterator[Broken]:
    """Every tree of code, hashed again, and the record of what is deployed, where there is one. Raises Damaged."""
    for above in tree.entries(layout.CODE):
        for name in filter(is_sha256, tree.entries(f"{layout.CODE}/{above}")):
            yield from _hashed(name, code_of(tree, name))
    raw = tree.read(layout.DEPLOYED)
    if raw is not None:
        yield from _recorded(raw, tree, ())


def code_of(tree: Tree, name: str) -> dict[str, bytes]:
    """The files of a tree of code, by their paths in it; what has a name of another spelling is none of them."""
    found: dict[str, bytes] = {}
    for path in files(tree, layout.code_dir(name)):
        with suppress(BadPath):
            found[layout.place_of(path).name or ""] = tree.read(path) or b""
    return found


def _recorded(raw: bytes, tree: Tree, new: Collection[str]) -> Iterator[Broken]:
    try:
        record = decode(raw)
    except Invalid as bad:
        yield broken("record", layout.DEPLOYED, bad.message)
        return
    if record.tree not in new and not tree.entries(layout.code_dir(record.tree)):
        yield broken("named", layout.DEPLOYED, f"the tree {record.tree} isn't there")
    found = hashlib.sha256(bytes(record.declared)).hexdigest()
    if found != record.definition:
        yield broken("hash", layout.DEPLOYED, f"what is declared has the hash {found}, not {record.definition}")


def _hashed(name: str, found: dict[str, bytes]) -> Iterator[Broken]:
    hashed = tree_hash(found)
    if hashed != name:
        yield broken("hash", layout.code_dir(name), f"its files have the hash {hashed}")

"""Does a repository keep the rules? Every commit, oldest first, by the rule book that the writer has (``rules``).

The oldest commit that can be read is held against it as a whole tree, each later one by what it changed. Nothing is
written. Where something can't be read, that is a finding, and the check goes on behind it as far as it can. What is
signed, and by whom, is ``verify``'s to say.

Memory: 20 bytes a commit, the keys of the mails that aren't consumed, the folds of 256 runs, one commit's files.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import msgspec

from substrate import layout
from substrate import state as files
from substrate.checking.history import Objects
from substrate.checking.looking import Found, look, seen
from substrate.checking.walking import Walk
from substrate.errors import BadObject, Damaged, SubstrateError
from substrate.packs.objects import Commit as GitCommit
from substrate.packs.objects import Kind, parse_commit
from substrate.rules import Broken, advice
from substrate.rules.whole import whole
from substrate.rules.whole_runs import Counts
from substrate.runlog import Tree
from substrate.signing.keys import PublicKey
from waypost.model.errors import Invalid
from waypost.model.limits import DEFAULT, Limits

_OID = 20


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """What breaks a rule: in which commit (40 hex digits; empty where it is none), where, and the value."""

    commit: str
    rule: str
    path: str
    value: str

    @property
    def advice(self) -> str:
        """What to do about it."""
        return advice(self.rule)


@dataclass(slots=True)
class Looked:
    """What was looked at; complete when the findings are all told."""

    repository: str = ""
    deployment: str = ""
    commits: int = 0
    oldest: str = ""
    """The first commit that was looked at, 40 hex digits."""
    counts: Counts = field(default_factory=Counts)
    """Of the tree that was looked at as a whole."""


def fsck(
    path: str | Path, looked: Looked, *, key: PublicKey | None = None, tip: bool = False, limits: Limits = DEFAULT
) -> Iterator[Finding]:
    """Check a repository, live, at rest or a clone: all of its history, or with ``tip`` its newest commit alone.

    ``key``: the host's, by which its journals are read; else the one that the newest commit names. ``limits``: the same
    for every host; what an operator may set are bounds of supervision, on which no rule rests.
    Raises NotARepository; Unreadable where the disk lets nobody look.
    """
    found = look(path, key)
    if found.unread is not None:
        yield _unread(found.unread, b"")
    yield from _tip(found, looked, limits) if tip else _history(found, looked, limits)


def _tip(found: Found, looked: Looked, limits: Limits) -> Iterator[Finding]:
    try:
        commit = _commit(found.objects, found.tip)
        yield from _whole(found.objects, found.tip, commit, looked, limits)
    except (Damaged, BadObject) as failure:
        yield _unread(failure, found.tip)


def _history(found: Found, looked: Looked, limits: Limits) -> Iterator[Finding]:
    objects = found.objects
    row = bytearray()
    yield from _row(objects, found.tip, row)
    walk: Walk | None = None
    for at in range(len(row) - _OID, -1, -_OID):
        oid = bytes(row[at : at + _OID])
        try:
            commit = _commit(objects, oid)
            if walk is not None:
                looked.commits += 1
                for each in walk.step(commit):
                    yield _finding(each, oid)
                continue
            if not looked.commits:
                yield from _whole(objects, oid, commit, looked, limits)
            walk = Walk(objects, commit.tree, limits)
        except (Damaged, BadObject) as failure:
            walk = None
            yield _unread(failure, oid)


def _row(objects: Objects, tip: bytes, row: bytearray) -> Iterator[Finding]:
    """Fill in the ids of all commits, newest first, as far as they can be read."""
    oid: bytes | None = tip
    while oid is not None:
        try:
            parent = _commit(objects, oid).parent
        except (Damaged, BadObject) as failure:
            yield _unread(failure, oid)
            return
        row += oid
        oid = parent


def _whole(objects: Objects, oid: bytes, commit: GitCommit, looked: Looked, limits: Limits) -> Iterator[Finding]:
    looked.commits += 1
    looked.oldest = oid.hex()
    tree = seen(objects, commit.tree)
    _name(tree, looked)
    for each in whole(tree, looked.counts, limits):
        yield _finding(each, oid)


def _name(tree: Tree, looked: Looked) -> None:
    try:
        known = files.decode_format(tree.read(layout.FORMAT) or b"")
    except Invalid:
        return  # a finding, which the rules say
    looked.repository, looked.deployment = known.repository, known.deployment


def _commit(objects: Objects, oid: bytes) -> GitCommit:
    return parse_commit(objects.object(Kind.COMMIT, oid))


def _finding(each: Broken, oid: bytes) -> Finding:
    return Finding(commit=oid.hex(), rule=each.rule, path=each.path, value=each.value)


def _unread(failure: SubstrateError, oid: bytes) -> Finding:
    path = failure.file if isinstance(failure, Damaged) else ""
    value = failure.why if isinstance(failure, Damaged) else failure.message
    rule = "plain-file" if isinstance(failure, BadObject) and "tree" in failure.message else "readable"
    return Finding(commit=oid.hex(), rule=rule, path=path, value=value)

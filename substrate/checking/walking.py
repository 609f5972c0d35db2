"""A repository's history, walked by the rules: what each commit does to the tree that is there before it.

Nothing is read but what a commit changes and what a rule asks for: trees are told apart line by line, a run's fold and
the queue's keys are carried along.
"""

import re
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

from substrate import layout, runlog
from substrate import state as files
from substrate.checking.history import Changed, Differ, Objects
from substrate.checking.looking import seen
from substrate.errors import BadObject, BadPath, Damaged, SubstrateError
from substrate.packs.objects import Commit as GitCommit
from substrate.packs.objects import Kind
from substrate.rules import Broken, Commit, Ground, broken, judge
from substrate.rules.commit import QUEUED
from substrate.rules.commit import files as files_below
from substrate.runlog import Known
from substrate.state import State
from waypost.model.errors import Invalid
from waypost.model.ids import RunId
from waypost.model.limits import Limits

T = TypeVar("T")
_AUTHOR = re.compile(rb"([a-z-]+) <\1@deployment\.waypost> [0-9]+ \+0000\Z")
_FOLDS = 256
"""Runs whose state is carried along; others are read when a commit touches them."""


class Walk:
    """The repository as it is between two commits; ``step`` moves it along. Begin with the tree of the first one."""

    def __init__(self, objects: Objects, tree: bytes, limits: Limits) -> None:
        """Raises Damaged, BadObject."""
        self._objects, self._differ = objects, Differ(objects)
        self._tree, self._before = tree, seen(objects, tree)
        self._folds: OrderedDict[RunId, Known] = OrderedDict()
        self._spoilt: set[str] = set()
        """Runs that a commit has left unreadable: that is said once."""
        known = self._decoded(layout.FORMAT, files.decode_format)
        self.state = self._decoded(layout.STATE, files.decode_state) or State()
        address = known.address if known else ""
        self._ground = Ground(repository=known.repository if known else "", address=address, limits=limits)
        self._keys: dict[str, int] = {}
        for place in QUEUED:
            for path in files_below(self._before, layout.queue_dir(address, place)):
                self._arrives(path)

    def step(self, commit: GitCommit) -> Iterator[Broken]:
        """What the next commit breaks. Raises Damaged, BadObject where its tree can't be read: then begin anew."""
        changes = list(self._differ.changes(self._tree, commit.tree))
        puts: dict[str, bytes] = {}
        unread: list[Broken] = []
        for each in changes:
            if each.new is not None:
                try:
                    puts[each.path] = self._objects.object(Kind.BLOB, each.new)
                except Damaged as damage:
                    unread.append(broken("readable", each.path, damage.why))
        if unread:  # what the rules would say of the rest rests on what isn't there
            self._moved(commit.tree, changes)
            self.state = self._decoded(layout.STATE, files.decode_state) or self.state
            self._forget(each.path for each in changes)
            yield from unread
            return
        verdict = judge(self, _proposed(commit, puts, changes), self._ground)
        self._moved(commit.tree, changes)
        self.state = verdict.state
        for run, known in verdict.known.items():
            self._keep(run, known, spoilt=bool(verdict.broken))
        yield from (each for each in verdict.broken if not self._spoilt.intersection(each.path.split("/")))
        if verdict.broken:
            self._spoilt.update(run for run in verdict.known if not self._folds_again(run))

    # --- what the rules ask for: all of it as before the commit ---

    def read(self, path: str) -> bytes | None:
        """A file's bytes. Raises Damaged."""
        return self._before.read(path)

    def entries(self, path: str) -> tuple[str, ...]:
        """The names in a directory. Raises Damaged."""
        return self._before.entries(path)

    def several(self, directory: str, names: Sequence[str]) -> list[bytes | None]:
        """Files of one directory."""
        return [self.read(f"{directory}/{name}") for name in names]

    def known(self, run: RunId) -> Known:
        """A run's fold. Raises Damaged."""
        found = self._folds.get(run)
        return runlog.load(self._before, run) if found is None else found

    def arrival_of(self, key: str) -> int | None:
        """The mail with this key that isn't consumed."""
        return self._keys.get(key)

    def packed(self, directory: str) -> bytes:
        """The keys in a bucket's directory."""
        return b"".join(bytes.fromhex(name.removesuffix(".json")) for name in self._before.entries(directory))

    # --- inside ---

    def _moved(self, tree: bytes, changes: list[Changed]) -> None:
        self._tree, self._before = tree, seen(self._objects, tree)
        for each in changes:
            if each.new is None:
                self._leaves(each.path)
        for each in changes:
            if each.new is not None:
                self._arrives(each.path)

    def _arrives(self, path: str) -> None:
        place = _queued(path)
        if place is not None:
            self._keys[place.key or ""] = place.number or 0

    def _leaves(self, path: str) -> None:
        place = _queued(path)
        if place is not None:
            self._keys.pop(place.key or "", None)

    def _keep(self, run: RunId, known: Known, *, spoilt: bool) -> None:
        self._folds.pop(run, None)
        if not spoilt:
            self._folds[run] = known
            while len(self._folds) > _FOLDS:
                self._folds.popitem(last=False)

    def _forget(self, paths: Iterator[str]) -> None:
        for path in paths:
            for part in path.split("/"):
                self._folds.pop(RunId(part), None)

    def _folds_again(self, run: RunId) -> bool:
        try:
            runlog.load(self._before, run)
        except (SubstrateError, Invalid):
            return False
        return True

    def _decoded(self, path: str, decoder: Callable[[bytes], T]) -> T | None:
        try:
            return decoder(self._before.read(path) or b"")
        except (Invalid, Damaged, BadObject):
            return None


def _proposed(commit: GitCommit, puts: dict[str, bytes], changes: list[Changed]) -> Commit:
    author = _AUTHOR.match(commit.author)
    return Commit(
        author=author[1].decode() if author else commit.author.decode("utf-8", "replace"),
        puts=puts,
        deletes=tuple(each.path for each in changes if each.new is None),
    )


def _queued(path: str) -> layout.Place | None:
    """The place of a mail that isn't consumed; None for any other path."""
    if not path.startswith(f"{layout.QUEUE}/"):
        return None
    try:
        place = layout.place_of(path)
    except BadPath:
        return None
    return place if place.kind in QUEUED else None

"""A finished run's log on its way into one file: read, followed and compressed in portions of a few milliseconds.

A log of a hundred thousand events takes a second or so of work; between two portions others write. Nothing can follow
in a finished run, so what was gathered stays true until it is committed.
"""

import hashlib
import itertools
import zlib
from collections.abc import Iterator

from substrate import layout, runlog
from substrate.errors import Damaged
from substrate.runlog import Tree
from substrate.signing.chain import Chain, Proven
from waypost.model import events as ev
from waypost.model.ids import RunId

PORTION = 256 * 1024
"""Bytes of events after which a portion ends; of events it has one for each 256 bytes of these at most."""
_EVENT = 256
_HASHED = 16
"""Portions that are hashed at once."""
_LEVEL = 1
"""Of compression: a long log is read more seldom than it would wait."""


class Folding:
    """The log of one run. ``log`` is there when ``step`` has said that there is no more to do."""

    def __init__(self, tree: Tree, run: RunId, repository: str, portion: int = PORTION) -> None:
        self.run = run
        self.log: bytes | None = None
        self._portion = portion
        self._steps = self._gather(tree, repository)

    def step(self) -> bool:
        """Do a portion; whether there is more. Raises Damaged where the log can't be read, or isn't one chain."""
        return next(self._steps, False)

    def _gather(self, tree: Tree, repository: str) -> Iterator[bool]:
        grants = runlog.stored(tree, layout.grants_path(self.run))
        chain = Chain(ev.genesis(repository, self.run, grants))
        deflate = zlib.compressobj(_LEVEL)
        portions: list[bytes] = []
        deflated: list[bytes] = []
        events = runlog.events(tree, self.run)
        while True:
            lines = list(self._some(events))
            if not chain.follow(lines):
                raise Damaged(layout.run_dir(self.run), f"event {chain.count + 1} isn't the next one of its chain")
            portions.append(b"".join(line + b"\n" for line in lines))
            if len(portions) == 1 and len(lines) < self._events and len(portions[0]) < self._portion:
                self.log = portions[0]  # short, as most are: whoever stores it does the rest
                return
            deflated.append(deflate.compress(portions[-1]))
            if not lines:
                break
            yield True
        deflated.append(deflate.flush())
        size = sum(map(len, portions))
        oid = hashlib.sha1(b"blob %d\0" % size, usedforsecurity=False)
        for at, portion in enumerate(portions):
            oid.update(portion)
            if at % _HASHED == 0:
                yield True
        yield True
        log = Proven(b"".join(portions))
        log.oid, log.deflated, log.chain = oid.digest(), b"".join(deflated), chain
        yield True
        self.log = log

    @property
    def _events(self) -> int:
        return max(1, self._portion // _EVENT)

    def _some(self, events: Iterator[bytes]) -> Iterator[bytes]:
        size = 0
        for raw in itertools.islice(events, self._events):
            yield raw
            size += len(raw)
            if size >= self._portion:
                return

"""The derived index at work: whatever fails in its file, another takes its place, and the one who asked isn't told.

The index is derived, so nothing may rest on its file: not an append, not an answer. What fails (a bad disk, a byte that
somebody else wrote, a file that was cut off) is removed, and the index is made again of the tree: in a file while the
repository is being opened, when all of it is durable, and later in memory, because a file may only speak of what is.
The next start builds the file. Only a write that a full disk or a lock refuses for now is passed on: it is put off.
"""

import heapq
import logging
from collections import Counter
from collections.abc import Callable, Container, Iterable, Iterator
from functools import partial
from typing import TypeVar

from substrate import layout
from substrate.errors import DerivedFailed
from substrate.indexing.cards import Card
from substrate.indexing.covering import open_derived
from substrate.indexing.derived import DerivedFile, Row, Stamp
from substrate.runlog import Rooted
from substrate.state import decode_format
from waypost.model.deadlines import Deadline
from waypost.model.ids import RunId, run_ordinal

T = TypeVar("T")
_log = logging.getLogger(__name__)
_PAGE = 256


class Standby:
    """See ``DerivedFile`` for each question. Raises Damaged where the index is made again and a run can't be read."""

    def __init__(self, file: DerivedFile, tree: Rooted) -> None:
        self._file, self._tree, self._path = file, tree, file.path

    def opened(self) -> None:
        """From now on there are commits that aren't durable: what takes the file's place is kept in memory."""
        self._path = None

    def close(self) -> None:
        """Let go of the file; doing it twice is fine."""
        self._file.close()

    def discard(self) -> None:
        """Let go of it for good: the next start builds it again."""
        self._file.discard()

    # --- what it knows -----------------------------------------------------------------------------------------------

    def card(self, run: RunId) -> Card | None:
        """The card of a run; whether it still holds, its ``tree`` says."""
        return self._ask(lambda file: file.card(run))

    def run_of(self, key: str) -> RunId | None:
        """The run that the message with this key belongs to."""
        return self._ask(lambda file: file.run_of(key))

    def unsealed(self, key: str) -> RunId | None:
        """The same, if that run isn't sealed."""
        return self._ask(lambda file: file.unsealed(key))

    def root_of(self, run: RunId) -> RunId | None:
        """The first run of the thread that this one is in; None for one that isn't here."""
        return self._ask(lambda file: file.root_of(run))

    def newest_of(self, root: RunId) -> RunId | None:
        """The newest run of the thread that began with ``root``, itself excepted."""
        return self._ask(lambda file: file.newest_of(root))

    def newest(self) -> RunId | None:
        """The newest run that is nobody's child."""
        return self._ask(DerivedFile.newest)

    def all_in(self, stage: int) -> list[RunId]:
        """The runs in a stage (``DRIVEN`` or ``OVER``), oldest first."""
        return self._ask(lambda file: file.all_in(stage))

    def unended(self, after: int) -> Iterator[RunId]:
        """The runs with an ordinal above ``after`` that haven't ended, oldest first; read as far as it is asked."""
        while page := self._ask(partial(DerivedFile.unended, after=after, limit=_PAGE)):
            yield from page
            after = run_ordinal(page[-1])

    def deadlines(self, after: Deadline | None, but: Container[RunId], more: Iterable[Deadline]) -> Iterator[Deadline]:
        """Open deadlines in the order of firing, behind ``after``: those here of runs not in ``but``, and ``more``."""
        here = (each for each in self._deadlines(after) if each.run not in but)
        return heapq.merge(here, sorted(each for each in more if after is None or each > after))

    def _deadlines(self, after: Deadline | None) -> Iterator[Deadline]:
        while page := self._ask(partial(DerivedFile.deadlines, after=after, limit=_PAGE)):
            yield from page
            after = page[-1]

    def waiting(self, but: Iterable[RunId]) -> Counter[str]:
        """How many live runs wait on what (the kinds in one word each, blanks between), without those in ``but``."""
        return self._ask(lambda file: file.waiting(but))

    def open_deadlines(self, but: Iterable[RunId]) -> int:
        """How many deadlines of runs are open, without those of the runs in ``but``."""
        return self._ask(lambda file: file.open_deadlines(but))

    def stamped(self) -> Stamp | None:
        """Up to where it goes; None for a file that never was finished."""
        return self._ask(DerivedFile.stamped)

    def put(self, rows: Iterable[Row], stamp: Stamp | None = None) -> None:
        """Write runs, and a new stamp behind them. Raises DerivedFailed where that is to be put off."""
        told = tuple(rows)
        try:
            self._file.put(told, stamp)
        except DerivedFailed as failure:
            if failure.passing:
                raise
            self._replace(failure)
            self._file.put(told, stamp)

    # --- inside ------------------------------------------------------------------------------------------------------

    def _ask(self, question: Callable[[DerivedFile], T]) -> T:
        try:
            return question(self._file)
        except DerivedFailed as failure:
            self._replace(failure)
            return question(self._file)

    def _replace(self, failure: DerivedFailed) -> None:
        path, self._path = self._path, None
        _log.warning("%s; it is %s", failure.message, "kept in memory for this time" if path is None else "built again")
        self._file.discard()
        repository = decode_format(self._tree.read(layout.FORMAT) or b"").repository
        self._file = open_derived(path, self._tree, repository)

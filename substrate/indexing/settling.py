"""When the derived index is written: a portion at a time, of what is durable; a full disk or a lock puts it off.

It begins behind a seal; between two portions others write. What doesn't get into the file stays in memory, and a start
that doesn't find it there reads it from the repository. Whatever else fails is ``standby``'s.
"""

import logging
from collections.abc import Callable

from substrate.errors import DerivedFailed
from substrate.indexing.index import Index

_log = logging.getLogger(__name__)
_ROUNDS = 2


class Settling:
    """Of one repository. Raises nothing for what the disk refuses."""

    def __init__(self, index: Index, repository: str) -> None:
        self._index, self._repository = index, repository
        self._said = ""
        """Why it couldn't be written the last time; said once."""

    def begin(self) -> bool:
        """Everything that is visible is durable now: whether there is a portion to be written."""
        return self._as_far_as_it_goes(lambda: self._index.runs.begin_to_settle(self._repository))

    def step(self) -> bool:
        """Write a portion, some milliseconds; whether there is another."""
        return self._as_far_as_it_goes(self._index.runs.settle)

    def finish(self) -> None:
        """Write all of it, at a clean end: the next start has nothing to do then. Raises nothing."""
        try:
            for _ in range(_ROUNDS):  # what was touched while a round was under way comes in the next one
                more = self.begin()
                while more:
                    more = self.step()
        except DerivedFailed as failure:
            _log.warning("%s", failure.message)

    def _as_far_as_it_goes(self, act: Callable[[], bool]) -> bool:
        try:
            more = act()
        except DerivedFailed as failure:
            if not failure.passing:
                raise
            if self._said != failure.message:
                _log.warning("%s", failure.message)
            self._said = failure.message
            return False
        self._said = ""
        return more

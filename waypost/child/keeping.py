"""Large values on their way into the repository: no more of them at once than the host keeps for one child.

The host refuses values beyond ``Limits.unreferenced_blobs`` that no event names yet (storage §4), and a refusal fails
the run. So a value waits here, in order, until the ones before it are named by a recorded event, refused, or given up
with their run. What has its place counts as the host counts it, and is let go no sooner than the host lets go of it.
"""

from collections import deque
from collections.abc import Callable, Iterable

from waypost.model.ids import RunId

Send = Callable[[], None]


class Keeping:
    """The room of one child; ``room`` in bytes. For the workflow thread alone."""

    def __init__(self, room: int) -> None:
        self._room = room
        self._placed: list[tuple[RunId, str, int]] = []
        self._waiting: deque[tuple[RunId, str, int, Send]] = deque()

    def keep(self, run: RunId, sha256: str, size: int, send: Send) -> None:
        """Have a value of ``size`` bytes sent, now or when there is room beside those before it."""
        self._waiting.append((run, sha256, size, send))
        self._let_out()

    def let_go(self, run: RunId, names: Iterable[str]) -> None:
        """These values of a run are named by an event, or were refused."""
        gone = frozenset(names)
        self._placed = [each for each in self._placed if each[0] != run or each[1] not in gone]
        self._let_out()

    def forget(self, run: RunId) -> None:
        """The run has left this child: nothing of it will be named any more."""
        self._placed = [each for each in self._placed if each[0] != run]
        self._waiting = deque(each for each in self._waiting if each[0] != run)
        self._let_out()

    def _let_out(self) -> None:
        while self._waiting and self._fits(self._waiting[0][2]):
            run, sha256, size, send = self._waiting.popleft()
            self._placed.append((run, sha256, size))
            send()

    def _fits(self, size: int) -> bool:
        # A value that is over the limit by itself goes ahead alone: the host says why it can't be kept.
        return not self._placed or sum(each[2] for each in self._placed) + size <= self._room

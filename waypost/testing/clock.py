"""A clock that a test turns by hand: nothing waits, and what was asked for comes when its time is reached."""

import threading
from typing import Any

from waypost.acting import Ref
from waypost.model.times import Now

START = 1_795_939_200_000
"""2026-11-29T08:00:00Z in Unix milliseconds."""


class ManualClock:
    """Both clocks of ``waypost.acting.Clock``, standing still until ``advance`` is called."""

    def __init__(self, wall: int = START, mono: float = 1000.0) -> None:
        # Actors read it in their own threads while a test turns it in another.
        self._lock = threading.Lock()
        self._now = Now(wall, mono)
        self._calls: list[tuple[Ref, Any, float | None, int | None]] = []

    def now(self) -> Now:
        """The time at this moment."""
        with self._lock:
            return self._now

    def wake(self, ref: Ref, message: Any, *, mono: float | None = None, wall: int | None = None) -> None:
        """Remember the wish; one whose time has come already is granted at once."""
        with self._lock:
            self._calls.append((ref, message, mono, wall))
        self._ring()

    def advance(self, seconds: float) -> None:
        """Turn both clocks forward and send what is due, in the order of its time."""
        with self._lock:
            self._now = Now(self._now.wall + round(seconds * 1000), self._now.mono + seconds)
        self._ring()

    def set_wall(self, wall: int) -> None:
        """Somebody sets the machine's clock: the wall clock jumps, the monotonic one doesn't."""
        with self._lock:
            self._now = Now(wall, self._now.mono)
        self._ring()

    def _ring(self) -> None:
        with self._lock:
            due = [call for call in self._calls if self._due(call)]
            self._calls = [call for call in self._calls if not self._due(call)]
        for ref, message, _, _ in sorted(due, key=lambda call: (call[2] or 0.0, call[3] or 0)):
            if ref.is_alive():
                ref.tell(message)

    def _due(self, call: tuple[Ref, Any, float | None, int | None]) -> bool:
        _, _, mono, wall = call
        return (mono is not None and mono <= self._now.mono) or (wall is not None and wall <= self._now.wall)

"""A clock that stands still until a test turns it.

It has the protocol of the host's clock and wakes the same way, by a message; turning it is the only way in which time
passes, so a test about thirty seconds takes none. Any thread may ask for a wake-up while another one turns.
"""

import queue
from typing import Any

from waypost.acting import Ref
from waypost.host.alarms import Alarm, Alarms
from waypost.model.times import Now
from waypost.shell import tell

START = 1_795_939_200_000
"""2026-11-29T08:00:00Z in Unix milliseconds, where a manual clock begins unless told otherwise."""


class ManualClock:
    """Starts at ``wall`` (Unix ms) and ``mono`` (seconds)."""

    def __init__(self, wall: int = START, mono: float = 1000.0) -> None:
        self._now = Now(wall, mono)
        self._pending: queue.SimpleQueue[Alarm] = queue.SimpleQueue()

    def now(self) -> Now:
        """The time that was last set."""
        return self._now

    def wake(self, ref: Ref, message: Any, *, mono: float | None = None, wall: int | None = None) -> None:
        """Send ``message`` once the clock was turned to ``mono`` or ``wall``; at once if it was already."""
        self._pending.put(Alarm(ref, message, mono, wall))
        self._sweep()

    def advance(self, seconds: float) -> None:
        """Let time pass on both clocks; whoever is due is sent its message before this returns."""
        self._now = Now(self._now.wall + round(seconds * 1000), self._now.mono + seconds)
        self._sweep()

    def set_wall(self, wall: int) -> None:
        """Somebody sets the machine's clock: the wall clock jumps, the monotonic one doesn't."""
        back = wall < self._now.wall
        self._now = Now(wall, self._now.mono)
        if back:
            left, early = self._drained().set_back()
            for alarm in left.pending:
                self._pending.put(alarm)
            for alarm in early:
                tell(alarm.ref, alarm.message)
        self._sweep()

    @property
    def deadlines(self) -> tuple[Alarm, ...]:
        """What is waited for at this moment; to be looked at while nothing else runs."""
        alarms = self._drained()
        for alarm in alarms.pending:
            self._pending.put(alarm)
        return alarms.pending

    def _drained(self) -> Alarms:
        alarms = Alarms()
        while True:
            try:
                alarms = alarms.add(self._pending.get_nowait())
            except queue.Empty:
                return alarms

    def _sweep(self) -> None:
        # Without a lock: each alarm is in one hand at a time. If the clock was turned while we held some that weren't
        # due, whoever turned it couldn't see them, so we look again.
        while True:
            now = self._now
            left, due = self._drained().due(now)
            for alarm in due:
                tell(alarm.ref, alarm.message)
            for alarm in left.pending:
                self._pending.put(alarm)
            if self._now is now:
                return

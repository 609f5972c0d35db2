"""Who is to be woken when: a pure bookkeeping of deadlines on both clocks, for the real clock and the manual one."""

from bisect import bisect_right
from dataclasses import dataclass, replace
from typing import Any

from waypost.acting import Ref
from waypost.model.times import Now

RECHECK = 1.0
"""Seconds after which a wall deadline is looked at again: the wall clock may be set at any time."""
LONGEST_REST = 86_400.0
"""Seconds that a thread waits at once; what a system takes as a timeout ends somewhere, deadlines don't."""


@dataclass(frozen=True, slots=True)
class Alarm:
    """Send ``message`` to ``ref`` at ``mono`` (seconds) or at ``wall`` (Unix ms); exactly one of the two is set.

    ``put_off``: what was left of it is one breath; that is given once.
    """

    ref: Ref
    message: Any
    mono: float | None = None
    wall: int | None = None
    put_off: bool = False

    def __post_init__(self) -> None:
        if (self.mono is None) == (self.wall is None):
            raise ValueError("an alarm needs a mono or a wall deadline, and not both")

    def wait(self, now: Now) -> float:
        """Seconds from now, by the clock that it goes by; zero or less when it is due."""
        if self.mono is not None:
            return self.mono - now.mono
        assert self.wall is not None
        return (self.wall - now.wall) / 1000


@dataclass(frozen=True, slots=True)
class Alarms:
    """Everything that is waited for, each clock's in the order of its deadlines."""

    mono: tuple[Alarm, ...] = ()
    wall: tuple[Alarm, ...] = ()

    @property
    def pending(self) -> tuple[Alarm, ...]:
        """All of them."""
        return (*self.mono, *self.wall)

    def add(self, alarm: Alarm) -> "Alarms":
        """One more; behind those with the same deadline."""
        if alarm.mono is not None:
            at = bisect_right(self.mono, alarm.mono, key=_mono)
            return Alarms((*self.mono[:at], alarm, *self.mono[at:]), self.wall)
        assert alarm.wall is not None
        at = bisect_right(self.wall, alarm.wall, key=_wall)
        return Alarms(self.mono, (*self.wall[:at], alarm, *self.wall[at:]))

    def due(self, now: Now) -> tuple["Alarms", tuple[Alarm, ...]]:
        """What is left, and what is due, longest overdue first."""
        mono = bisect_right(self.mono, now.mono, key=_mono)
        wall = bisect_right(self.wall, now.wall, key=_wall)
        due = sorted((*self.mono[:mono], *self.wall[:wall]), key=lambda alarm: alarm.wait(now))
        return Alarms(self.mono[mono:], self.wall[wall:]), tuple(due)

    def overdue(self, now: Now) -> float:
        """Seconds by which the soonest watchdog is late, which may have been put off before; 0 where none is."""
        return max(0.0, -self.mono[0].wait(now)) if self.mono else 0.0

    def later(self, still: float, breath: float, now: Now) -> "Alarms":
        """Every watchdog put off by so much; one that would be due within a breath is so at its end, and no later.

        Those that lie further ahead lose nothing by another time like this one: each look takes less than what was
        gone since the one before, so they come nearer all the same.
        """
        end = now.mono + breath
        put_off = (
            alarm
            if alarm.put_off
            else replace(alarm, mono=max(_mono(alarm) + still, end), put_off=_mono(alarm) + still <= end)
            for alarm in self.mono
        )
        return Alarms(tuple(sorted(put_off, key=_mono)), self.wall)

    def set_back(self) -> tuple["Alarms", tuple[Alarm, ...]]:
        """The wall clock was set back: what is left, and whoever goes by it, who must look at the time anew."""
        return Alarms(self.mono, ()), self.wall

    def pause(self, now: Now) -> float | None:
        """Seconds until it is worth looking again; None when nothing is waited for."""
        waits = [alarm.wait(now) for alarm in (*self.mono[:1], *self.wall[:1])]
        if self.wall:
            waits.append(RECHECK)
        return min(max(0.0, min(waits)), LONGEST_REST) if waits else None


def _mono(alarm: Alarm) -> float:
    assert alarm.mono is not None
    return alarm.mono


def _wall(alarm: Alarm) -> int:
    assert alarm.wall is not None
    return alarm.wall

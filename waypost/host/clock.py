"""The host's clock: both times read together, and one thread that wakes whoever asked to be woken.

``ClockActor`` decides who is due; the timer thread only waits, on a queue, until there is something to look at. Wall
deadlines are looked at again at least every second, so what a clock that is set forward has passed is late by a second
at most. When it is set back, whoever goes by it is told at once, and asks anew.

A jump is what the wall clock has gone since the last look and the monotonic one hasn't, where that is more than
``JUMP``: the clock was set, or the machine slept. It is logged, once for the whole host. A host that was stopped
(SIGSTOP) isn't one: both clocks go on.

One that stood still, because it was stopped or had no processor, has not looked at what others did meanwhile: its
watchdogs would ring for children that have long been ready. So that time doesn't count for them, however often that
is, and none rings before ``BREATH`` is over, when what has come is heard; one that is due then isn't put off again.
It is seen by the soonest of them, which is never more than a second ahead (the spool is looked at); up to ``STILL`` it
is a busy machine's, and counts.
What is recorded goes by the wall clock, and isn't.
"""

import logging
import queue
import threading
import time
from dataclasses import dataclass, field
from typing import Any, assert_never

from waypost.acting import Next, Ref, Tell
from waypost.host.alarms import Alarm, Alarms
from waypost.model.times import Now
from waypost.observing import NOBODY, ClockSet, Observer
from waypost.shell import Shell, tell

_log = logging.getLogger(__name__)

JUMP = 2.0
"""Seconds by which the two clocks may part between two looks before it is called a jump."""
STILL, BREATH = 2.0, 2.0
"""Seconds: a watchdog that is looked at later than that was the host's own fault; and what is added then."""


@dataclass(frozen=True, slots=True)
class Elapsed:
    """From the timer thread: the pause is over."""


@dataclass(frozen=True, slots=True)
class Rest:
    """Effect: come back after ``seconds``; None: only when something new is asked for."""

    seconds: float | None


@dataclass(frozen=True, slots=True)
class Jumped:
    """Effect: say that the wall clock was set by so many seconds; below 0: back."""

    seconds: float


@dataclass(frozen=True, slots=True)
class StoodStill:
    """Effect: say that the host has done nothing for so many seconds at least."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Keeping:
    """Who is to be woken when, and when that was last looked at."""

    alarms: Alarms = field(default_factory=Alarms)
    looked: Now | None = None


def read() -> Now:
    """Both clocks at this moment."""
    return Now(wall=time.time_ns() // 1_000_000, mono=time.monotonic())


def jump(looked: Now | None, now: Now) -> float:
    """Seconds by which the wall clock was set since then, or slept through; 0 where it is no more than ``JUMP``."""
    if looked is None:
        return 0.0
    seconds = (now.wall - looked.wall) / 1000 - (now.mono - looked.mono)
    return seconds if abs(seconds) > JUMP else 0.0


def advance(state: Keeping, message: Alarm | Elapsed, now: Now) -> Next[Keeping]:
    """Wake who is due, and rest until the next deadline."""
    alarms = state.alarms
    resting = alarms.pause(now)
    still = alarms.overdue(now)
    if still > STILL:
        alarms = alarms.later(still, BREATH, now)
    match message:
        case Alarm():
            alarms = alarms.add(message)
        case Elapsed():
            resting = None
        case _:
            assert_never(message)
    left, due = alarms.due(now)
    effects: tuple[Jumped | StoodStill | Tell, ...] = tuple(Tell(alarm.ref, alarm.message) for alarm in due)
    if still > STILL:
        effects = (StoodStill(still), *effects)
    if seconds := jump(state.looked, now):
        left, early = left.set_back() if seconds < 0 else (left, ())
        effects = (Jumped(seconds), *effects, *(Tell(alarm.ref, alarm.message) for alarm in early))
    following, pause = Keeping(left, now), left.pause(now)
    if resting is not None and pause is not None and pause >= resting:
        return Next(following, effects)  # the rest that is under way ends no later
    return Next(following, (*effects, Rest(pause)))


class ClockActor(Shell):
    """Keeps the alarms. Use it through ``SystemClock``."""

    def __init__(self, clock: "SystemClock", parent: Ref | None = None, observer: Observer = NOBODY) -> None:
        super().__init__("clock", Keeping(), advance, clock=clock, parent=parent)
        self._observer = observer
        self._rests: queue.SimpleQueue[float | Elapsed | None] = queue.SimpleQueue()
        self._timer = threading.Thread(target=self._wait, name="timer", daemon=True)

    def perform(self, effect: Any) -> None:
        """Pass a pause on to the timer thread; say that the clock has jumped."""
        match effect:
            case Jumped(seconds):
                _log.warning("the wall clock jumped %s by %.1f s", "forward" if seconds > 0 else "back", abs(seconds))
                self._observer.mark(ClockSet(seconds))
            case StoodStill(seconds):
                _log.warning("the host stood still for %.1f s at least: it was stopped, or had no processor", seconds)
            case Rest():
                if self._timer.ident is None:
                    self._timer.start()
                self._rests.put(effect.seconds)
            case _:
                super().perform(effect)

    def finish(self) -> None:
        """End the timer thread."""
        self._rests.put(Elapsed())

    def _wait(self) -> None:
        seconds: float | Elapsed | None = None
        while not isinstance(seconds, Elapsed):
            try:
                seconds = self._rests.get(timeout=seconds)  # a newer pause replaces the one that is running
            except queue.Empty:
                seconds = None
                tell(self.actor_ref, Elapsed())


class SystemClock:
    """The clock that everybody is given. Between ``start`` and ``stop`` it wakes; ``now`` works at any time."""

    def __init__(self) -> None:
        self._actor: Ref | None = None

    def start(self, parent: Ref | None = None, observer: Observer = NOBODY) -> "SystemClock":
        """Start the actor and its thread; ``parent`` is told should it ever fail, ``observer`` of jumps."""
        self._actor = ClockActor.start(self, parent, observer)
        return self

    def now(self) -> Now:
        """Both clocks at this moment."""
        return read()

    def wake(self, ref: Ref, message: Any, *, mono: float | None = None, wall: int | None = None) -> None:
        """Send ``message`` to ``ref`` at ``mono`` (seconds) or ``wall`` (Unix ms); at once if that has passed."""
        tell(self._actor, Alarm(ref, message, mono, wall))

    def stop(self, timeout: float = 5.0) -> None:
        """Wake nobody any more. Raises pykka.Timeout when the actor doesn't end in ``timeout`` seconds."""
        if self._actor is not None:
            self._actor.stop(timeout=timeout)

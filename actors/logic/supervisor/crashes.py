"""How often children end unasked, and what follows from it: a longer pause each time, and at last no other child.

Only time in which there was a child counts: an exit is as old as the lives that came after it, however long the pauses
between them were. A stable time of running forgets all of it. Pure.
"""

from dataclasses import dataclass

from actors.exits import ExitCounted
from waypost.model.limits import Limits

_DOUBLINGS = 32
"""So often at most: what follows is above any cap."""


@dataclass(frozen=True, slots=True)
class Crashes:
    """Since the last stable time. ``ages``: of each exit, in seconds of children's lives, oldest first.

    ``tries``: how often a child ended, or couldn't be had; the pause doubles with each.
    """

    ages: tuple[float, ...] = ()
    tries: int = 0


NONE = Crashes()
"""After a stable time, or a reset."""


def charge(crashes: Crashes, life: float, counted: ExitCounted) -> Crashes:
    """A child ended unasked, ``life`` seconds after its launch, and that was counted against these runs.

    Where it has brought a run nearer to being set aside, that is the remedy, and it comes to an end: the deployment is
    charged with nothing, and what it was charged with for that run before is taken back. Else a few bad runs, one after
    the other, would latch it, and all others would wait for them.
    """
    if counted.alone or counted.explained:
        ages = _aged(crashes, life)
        return Crashes(ages[: max(0, len(ages) - counted.explains)], max(crashes.tries - counted.explains, 1))
    return Crashes((*_aged(crashes, life), 0.0), crashes.tries + 1)


def excuse(crashes: Crashes, life: float = 0.0) -> Crashes:
    """A child couldn't be had, or the host ended it for want of something: the pause grows, and nothing is counted."""
    return Crashes(_aged(crashes, life), crashes.tries + 1)


def pause(crashes: Crashes, limits: Limits) -> float:
    """Seconds until the next child."""
    return min(limits.backoff_cap, limits.backoff_first * 2.0 ** min(max(crashes.tries - 1, 0), _DOUBLINGS))


def loop(crashes: Crashes, limits: Limits) -> str:
    """Why no other child is to come, in words; empty as long as one may."""
    recent = sum(age <= limits.crash_window for age in crashes.ages)
    if recent >= limits.crash_exits:
        return f"{recent} exits within {limits.crash_window:g} s"
    if len(crashes.ages) >= limits.crash_total:
        return f"{len(crashes.ages)} exits without a stable time of {limits.stable_after:g} s between them"
    return ""


def left(crashes: Crashes, limits: Limits) -> int:
    """How many more ends like these there may be at least, the last one of which ``loop`` has words for; from 1."""
    recent = sum(age <= limits.crash_window for age in crashes.ages)
    return max(1, min(limits.crash_exits - recent, limits.crash_total - len(crashes.ages)))


def _aged(crashes: Crashes, life: float) -> tuple[float, ...]:
    return tuple(age + life for age in crashes.ages)

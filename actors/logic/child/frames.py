"""A frame that a child has begun and doesn't end: bounded, though nothing says when the rest of it would come.

Somebody looks again and again as long as there is one. Where nothing of it has come between two looks, and again not
between the next two, it never will: a host that was stopped finds the rest in its pipes by the second look, and a child
that is stopped is waited for. Frames that come in parts, and many after each other, are no matter. Pure.
"""

from dataclasses import dataclass
from typing import TypeAlias

Frames: TypeAlias = tuple[tuple[str, int, int], ...]
"""Begun and not whole: the channel, how many came before it, how many bytes of it are there."""

MISSES = 2
"""Looks in a row at which nothing had come."""


@dataclass(frozen=True, slots=True)
class Unfinished:
    """What isn't whole: after bytes that came, or (``looked``) when it was to be looked."""

    frames: Frames
    looked: bool = False
    stopped: bool = False
    """Somebody has stopped the child, as the kernel says: it can't go on with it, and nothing says that it won't."""


@dataclass(frozen=True, slots=True)
class Watch:
    """Somebody will look; what there was at the last look, and how often nothing had come."""

    frames: Frames
    misses: int = 0


def watched(watch: Watch | None, found: Unfinished) -> tuple[Watch | None, bool]:
    """Who looks from now on, and whether that is to be arranged: where it is somebody, or was. None: nobody has to."""
    if not found.looked:
        return (watch, False) if watch is not None else (Watch(found.frames), True)
    if not found.frames:
        return None, False
    still = watch is not None and not found.stopped and not set(watch.frames).isdisjoint(found.frames)
    return Watch(found.frames, watch.misses + 1 if watch is not None and still else 0), True

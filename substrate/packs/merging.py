"""Which packs to merge: a pure decision, geometric, so that an object is copied a bounded number of times (storage §3).

A pack's weight is its share of a full one, by bytes or by objects, whichever is more. Packs are sorted into levels,
each four times as heavy as the one below; four packs of one level are merged, with everything that is lighter. From a
quarter of a full pack on a pack is left alone. So a merged pack is never more than full, at most three packs are left
on each of the ten levels below, and an object is copied about once a level: twice on its way from the pack of a full
journal to a pack that is left alone.
"""

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from waypost.model.limits import Limits

FAN = 4
"""Packs of a level that are merged, and how much heavier the next level is."""
LEVELS = 10
"""Below the full packs; what is lighter than the lowest counts as on it."""


@dataclass(frozen=True, slots=True)
class Pack:
    """A sealed pack: its name (40 hex digits), how many objects it holds, and its size in bytes."""

    sha: str
    objects: int
    size: int


def weight(pack: Pack, limits: Limits) -> float:
    """Its share of a full pack; from 1 on it is full."""
    return max(pack.objects / limits.merge_objects, pack.size / limits.merge_bytes)


def level(pack: Pack, limits: Limits) -> int:
    """0 for the lightest, ``LEVELS`` for a pack that is left alone."""
    share, found = weight(pack, limits), LEVELS
    while found and share < FAN ** (found - LEVELS - 1):
        found -= 1
    return found


def choose(packs: Iterable[Pack], limits: Limits) -> tuple[Pack, ...]:
    """The packs to merge into one now, lightest first; nothing when all is well. They fit into one pack together."""
    found = sorted(packs, key=lambda pack: (weight(pack, limits), pack.sha))
    levels = [level(pack, limits) for pack in found]
    counts = Counter(levels)
    crowded = next((each for each in range(LEVELS) if counts[each] >= FAN), None)
    if crowded is None:
        return ()
    chosen: list[Pack] = []
    total = 0.0
    for pack, at in zip(found, levels, strict=True):
        total += weight(pack, limits)
        if at > crowded or total > 1:
            break
        chosen.append(pack)
    return tuple(chosen)

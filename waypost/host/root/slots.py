"""The slots of those who may be awake: a host has so many threads, a deployment that is awake takes some, others wait.

Whoever is woken waits behind those that were woken before. When there is no room, those that have been awake longest
are asked to give way: they let go as soon as there is nothing for them to do, and others are asked beside one that
doesn't within a while. Where all of them are at work for a while, one more is let in: a bound that nobody could ever
get past would be a standstill. Somebody who is on the way in or out makes room soon: on a machine that is busy with
them, more at once would only be slower. Only those for whom that takes as long as a process has to be ready aren't
waited for: that is no busy machine, they hang. Pure.
"""

from collections.abc import Container, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from waypost.model.ids import Deployment
from waypost.model.limits import Limits

HOST = 64
"""Threads of a host besides its deployments': its own actors, the API, and forty that answer requests."""
ONE = 7
"""Threads of a deployment that is awake: supervisor, courier, and its crew of five."""
PATIENCE = 2.0
"""Seconds in which nobody came in, after which one more is let in."""
VAIN = 15
"""So many times that pause whoever is on the way in or out is waited for: 30 s, then no more."""


@dataclass(frozen=True, slots=True)
class Patience:
    """The wake-up that looks whether anybody has come in: ``entered`` had, when it was asked for."""

    token: int
    entered: int


@dataclass(frozen=True, slots=True)
class Slots:
    """``awake`` in the order in which they came in, ``waiting`` in the order in which they were woken."""

    awake: Mapping[Deployment, None] = field(default_factory=dict)
    waiting: tuple[Deployment, ...] = ()
    pressed: frozenset[Deployment] = frozenset()
    """Those awake that were asked to give way."""
    late: frozenset[Deployment] = frozenset()
    """Those of them that haven't begun to within a pause: they are at work, and others are asked in their place."""
    entered: int = 0
    """How often somebody has come in."""
    extra: int = 0
    """So many were let in over the bound, as far as there still are so many too many."""
    vain: Mapping[Deployment, int] = field(default_factory=dict)
    """At how many pauses each of those awake was on the way in or out, since it was up last: whoever hangs does so
    whoever comes in."""
    patience: Patience | None = None


@dataclass(frozen=True, slots=True)
class Enter:
    """It may be started."""

    name: Deployment


@dataclass(frozen=True, slots=True)
class Press:
    """It is to give way."""

    name: Deployment


Move: TypeAlias = Enter | Press


def most(limits: Limits) -> int | None:
    """How many may be awake at once; None where nobody ever sleeps, so that nobody could wait for a place."""
    return max(1, (limits.threads - HOST) // ONE) if limits.idle else None


def wants(slots: Slots, name: Deployment, before: Container[Deployment] = ()) -> Slots:
    """It waits for a place, ahead of the first of ``before``; who waits already keeps the one in the row."""
    if name in slots.waiting:
        return slots
    at = next((place for place, each in enumerate(slots.waiting) if each in before), len(slots.waiting))
    return replace(slots, waiting=(*slots.waiting[:at], name, *slots.waiting[at:]))


def entered(slots: Slots, name: Deployment) -> Slots:
    """It is awake now."""
    waiting = tuple(each for each in slots.waiting if each != name)
    return replace(slots, awake={**slots.awake, name: None}, waiting=waiting, entered=slots.entered + 1)


def left(slots: Slots, name: Deployment) -> Slots:
    """It is awake no more, and waits for nothing."""
    awake = {each: None for each in slots.awake if each != name}
    waiting = tuple(each for each in slots.waiting if each != name)
    vain = {each: pauses for each, pauses in slots.vain.items() if each != name}
    pressed, late = slots.pressed - {name}, slots.late - {name}
    return replace(slots, awake=awake, waiting=waiting, pressed=pressed, late=late, vain=vain)


def anew(slots: Slots, name: Deployment) -> Slots:
    """It goes on, or has another supervisor: whoever was asked to give way isn't there any more."""
    return replace(slots, pressed=slots.pressed - {name}, late=slots.late - {name})


def moves(
    slots: Slots, limits: Limits, *, uncounted: Container[Deployment], may_leave: Container[Deployment]
) -> tuple[Slots, tuple[Move, ...]]:
    """Who comes in now, and who is to give way for those who can't yet.

    ``uncounted``: who stays awake whatever comes, and takes nobody's place; ``may_leave``: who could give way.
    """
    bound, made = most(limits), list[Move]()
    while slots.waiting:
        name = slots.waiting[0]
        if bound is not None and name not in uncounted and over(slots, bound, uncounted) >= slots.extra:
            break
        slots = entered(slots, name)
        made.append(Enter(name))
    if not slots.waiting:
        beyond = 0 if bound is None else max(0, over(slots, bound, uncounted))
        return replace(slots, extra=min(slots.extra, beyond), patience=None), tuple(made)
    asked = _first(len(slots.waiting) - len(slots.pressed - slots.late), slots, may_leave)
    slots = replace(slots, pressed=slots.pressed | {*asked})
    return slots, (*made, *map(Press, asked))


def impatient(
    slots: Slots, token: int, *, moving: frozenset[Deployment], up: Container[Deployment], beyond: int
) -> Slots:
    """The pause is over: if nobody came in meanwhile, one more may, whatever the bound says.

    ``moving``: those awake that are on the way in or out; ``up``: those that have arrived. ``beyond``: how many are
    over the bound, also such as have come in without waiting.
    """
    pause = slots.patience
    if pause is None or pause.token != token:
        return slots
    vain = {name: pauses for name, pauses in slots.vain.items() if name not in up}
    vain |= {name: vain.get(name, 0) + 1 for name in moving}
    slots = replace(slots, patience=None, vain=vain)
    if slots.entered != pause.entered:
        return slots
    soon = frozenset(name for name in moving if vain[name] < VAIN)
    return replace(slots, late=slots.pressed - soon, extra=slots.extra if soon else max(slots.extra, beyond) + 1)


def over(slots: Slots, bound: int, uncounted: Container[Deployment]) -> int:
    """How many more are awake than may be; below 0: for so many there is room."""
    return sum(each not in uncounted for each in slots.awake) - bound


def _first(count: int, slots: Slots, may_leave: Container[Deployment]) -> Iterable[Deployment]:
    able = (each for each in slots.awake if each in may_leave and each not in slots.pressed)
    return tuple(each for each, _ in zip(able, range(count), strict=False))

"""Who may be awake: a host has so many threads, a deployment that is awake takes some, and others wait in a row.

Whoever is woken waits behind those that were woken before. When there is no room, those that have been awake longest
are asked to give way: they let go as soon as there is nothing for them to do. Where all of them are at work for a
while, one more is let in: a bound that nobody could ever get past would be a standstill. Somebody who is on the way in
or out makes room soon: on a machine that is busy with them, more at once would only be slower. Pure.
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


@dataclass(frozen=True, slots=True)
class Patience:
    """The wake-up that looks whether anybody has come in: ``entered`` had, when it was asked for."""

    token: int
    entered: int


@dataclass(frozen=True, slots=True)
class Berths:
    """``awake`` in the order in which they came in, ``waiting`` in the order in which they were woken."""

    awake: Mapping[Deployment, None] = field(default_factory=dict)
    waiting: tuple[Deployment, ...] = ()
    pressed: frozenset[Deployment] = frozenset()
    """Those awake that were asked to give way."""
    entered: int = 0
    """How often somebody has come in."""
    extra: int = 0
    """So many were let in over the bound, since somebody waits."""
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


def wants(berths: Berths, name: Deployment) -> Berths:
    """It waits for a place; who waits already keeps the one in the row."""
    return berths if name in berths.waiting else replace(berths, waiting=(*berths.waiting, name))


def entered(berths: Berths, name: Deployment) -> Berths:
    """It is awake now."""
    waiting = tuple(each for each in berths.waiting if each != name)
    return replace(berths, awake={**berths.awake, name: None}, waiting=waiting, entered=berths.entered + 1)


def left(berths: Berths, name: Deployment) -> Berths:
    """It is awake no more, and waits for nothing."""
    awake = {each: None for each in berths.awake if each != name}
    waiting = tuple(each for each in berths.waiting if each != name)
    return replace(berths, awake=awake, waiting=waiting, pressed=berths.pressed - {name})


def moves(
    berths: Berths, limits: Limits, *, uncounted: Container[Deployment], may_leave: Container[Deployment]
) -> tuple[Berths, tuple[Move, ...]]:
    """Who comes in now, and who is to give way for those who can't yet.

    ``uncounted``: who stays awake whatever comes, and takes nobody's place; ``may_leave``: who could give way.
    """
    bound, made = most(limits), list[Move]()
    while berths.waiting:
        name = berths.waiting[0]
        if bound is not None and name not in uncounted and _taken(berths, uncounted) >= bound + berths.extra:
            break
        berths = entered(berths, name)
        made.append(Enter(name))
    if not berths.waiting:
        return replace(berths, extra=0, patience=None), tuple(made)
    asked = _first(len(berths.waiting) - len(berths.pressed), berths, may_leave)
    berths = replace(berths, pressed=berths.pressed | {*asked})
    return berths, (*made, *map(Press, asked))


def impatient(berths: Berths, token: int, *, moving: bool) -> Berths:
    """The pause is over: if nobody came in meanwhile, one more may, whatever the bound says.

    ``moving``: one of those awake is on the way in or out.
    """
    pause = berths.patience
    if pause is None or pause.token != token:
        return berths
    stuck = berths.entered == pause.entered and not moving
    return replace(berths, patience=None, extra=berths.extra + 1 if stuck else berths.extra)


def _taken(berths: Berths, uncounted: Container[Deployment]) -> int:
    return sum(each not in uncounted for each in berths.awake)


def _first(count: int, berths: Berths, may_leave: Container[Deployment]) -> Iterable[Deployment]:
    able = (each for each in berths.awake if each in may_leave and each not in berths.pressed)
    return tuple(each for each, _ in zip(able, range(count), strict=False))

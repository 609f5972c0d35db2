"""The line of those that mail has woken: they come up side by side, and their mail is taken up one after another.

Who stands where is decided by the first mail for each, in the order in which the bus took it in. Whoever is at the head
is called as soon as it has a supervisor; when its mail is taken up, durably, the next one is. So of two deployments
that slept, the run of the earlier mail begins first, although the process of the later one may be ready before.

Nobody is waited for who can't begin one: who is down, held, drained, crash-looping or backing off steps out. And where
nobody has got on for ``PATIENCE`` seconds although somebody is ready, the first that is ready goes ahead, and those
before it step out. Who has stepped out takes up its mail whenever it can. Pure.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from waypost.model.ids import Deployment

PATIENCE = 5.0
"""Seconds in which nobody got on, after which whoever is ready goes ahead of those that aren't."""

Stand: TypeAlias = Literal["coming", "callable", "ready", "over"]
"""How one that stands in the line is: no supervisor yet; that, but no process; a process that waits; nothing to wait
for any more, as its mail is taken up or can't be."""


@dataclass(frozen=True, slots=True)
class Patience:
    """The wake-up that looks whether anybody has got on: ``passed`` had, when it was asked for."""

    token: int
    passed: int


@dataclass(frozen=True, slots=True)
class Line:
    """``row``: who waits, the earliest first. ``called``: who is at the head, once it was told."""

    row: tuple[Deployment, ...] = ()
    called: Deployment | None = None
    passed: int = 0
    """How many have got on, or stepped out."""
    patience: Patience | None = None


def joined(line: Line, name: Deployment) -> Line:
    """Mail has come for one that sleeps; who stands there already keeps its place."""
    return line if name in line.row else replace(line, row=(*line.row, name))


def behind(line: Line, name: Deployment) -> frozenset[Deployment]:
    """Who stands behind it; nobody, where it doesn't stand there."""
    return frozenset(line.row[line.row.index(name) + 1 :]) if name in line.row else frozenset()


def moved(line: Line, stand: Callable[[Deployment], Stand]) -> tuple[Line, tuple[Deployment, ...]]:
    """Let on whoever may; those that are to be called now, in order."""
    calls: list[Deployment] = []
    while line.row:
        name = line.row[0]
        match stand(name):
            case "over":
                line = _passed(line, 1)
                calls.append(name)  # it may have been kept from mail that comes later
            case "callable" | "ready" if line.called != name:
                line = replace(line, called=name)
                calls.append(name)
            case _:
                break
    return line, tuple(calls)


def impatient(line: Line, token: int, stand: Callable[[Deployment], Stand]) -> tuple[Line, tuple[Deployment, ...]]:
    """The pause is over: if nobody got on meanwhile, those before the first that is ready step out, and are called."""
    pause = line.patience
    if pause is None or pause.token != token:
        return line, ()
    line = replace(line, patience=None)
    if pause.passed != line.passed:
        return line, ()
    place = next((at for at, name in enumerate(line.row) if stand(name) == "ready" and name != line.called), 0)
    return _passed(line, place), line.row[:place]


def _passed(line: Line, count: int) -> Line:
    called = line.called if line.called in line.row[count:] else None
    return replace(line, row=line.row[count:], passed=line.passed + count, called=called)

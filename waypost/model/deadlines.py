"""The open deadlines of a run: its pending timers, and its waits that end by themselves. Pure, over the run's state."""

from typing import NamedTuple, assert_never

from msgspec import UNSET

from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.ids import CallId, RunId


class Deadline(NamedTuple):
    """A pending timer, or a wait with a deadline (then ``timer`` is its call). In the order of firing.

    ``fire_at`` in Unix milliseconds. A tuple, because a hundred thousand of them are compared.
    """

    fire_at: int
    run: RunId
    call: CallId
    timer: str


def deadlines(run: fold.Run) -> frozenset[Deadline]:
    """The open deadlines of a run; none of one that hasn't begun or has ended."""
    match run:
        case fold.Absent() | fold.Ended():
            return frozenset()
        case fold.Driven(ledger) | fold.Parked(ledger) | fold.Paused(ledger):
            timers = (Deadline(timer.fire_at, ledger.run, timer.call, name) for name, timer in ledger.timers.items())
            waits = (
                Deadline(wait.timeout_at, ledger.run, call, call)
                for call, wait in ledger.waits.items()
                if wait.timeout_at is not None
            )
            return frozenset((*timers, *waits))
        case _:
            assert_never(run)


def opened(run: RunId, event: ev.AnyEvent) -> Deadline | None:
    """The deadline that an event of a run opens; whether it is open still, ``is_open`` says. No other event does."""
    match event:
        case ev.TimerSet():
            return Deadline(event.fire_at, run, event.call, event.timer)
        case ev.SignalAwaited() if event.timeout_at is not UNSET:
            return Deadline(event.timeout_at, run, event.call, event.call)
        case _:
            return None


def is_open(run: fold.Run, deadline: Deadline) -> bool:
    """Whether it is among the run's ``deadlines``, without making them all: a run may have a thousand."""
    ledger = fold.ledger(run)
    if ledger is None:
        return False
    timer = ledger.timers.get(deadline.timer)
    if timer is not None and (timer.fire_at, timer.call) == (deadline.fire_at, deadline.call):
        return True
    wait = ledger.waits.get(deadline.call)
    return wait is not None and wait.timeout_at == deadline.fire_at and deadline.timer == deadline.call

"""The open deadlines of a run: its pending timers, and its waits that end by themselves. Pure, over the run's state."""

from dataclasses import dataclass
from typing import assert_never

from waypost.model import run as fold
from waypost.model.ids import CallId, RunId


@dataclass(frozen=True, slots=True, order=True)
class Deadline:
    """A pending timer, or a wait with a deadline (then ``timer`` is its call). In the order of firing.

    ``fire_at`` in Unix milliseconds.
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

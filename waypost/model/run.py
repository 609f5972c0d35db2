"""A run's state: a fold over its log and nothing else.

``evolve`` is the only transition there is: the substrate calls it before a commit (an illegal event is refused there)
and every reader calls it again. One class per state; what is open lives in the ledger that live states share.
"""

from collections.abc import Mapping
from typing import TypeAlias, assert_never

import msgspec

from waypost.model import events as ev
from waypost.model.ids import CallId, RunId
from waypost.model.ledger import Illegal, Ledger, apply, expect, parked, sent
from waypost.model.opened import Cancel, ChildRun, OpenStep, Retry, Timer, Wait

__all__ = [
    "Absent",
    "Cancel",
    "ChildRun",
    "Driven",
    "Ended",
    "Illegal",
    "Ledger",
    "Live",
    "OpenStep",
    "Parked",
    "Paused",
    "Retry",
    "Run",
    "Timer",
    "Wait",
    "evolve",
    "ledger",
    "outcome",
    "parent_of",
]

_copy = msgspec.structs.replace


class Absent(msgspec.Struct, frozen=True):
    """No event yet."""


class Driven(msgspec.Struct, frozen=True):
    """The code has something to do: a new child is given this run at once."""

    ledger: Ledger


class Parked(msgspec.Struct, frozen=True):
    """The code waits for something outside; a new child is given this run when that comes."""

    ledger: Ledger


class Paused(msgspec.Struct, frozen=True):
    """The run waits for an operator. Results of calls under way are still taken."""

    ledger: Ledger
    code: str
    detail: str


class Ended(msgspec.Struct, frozen=True):
    """Nothing may follow. ``outcome`` is ``completed``, ``failed`` or ``cancelled``."""

    run: RunId
    seq: int
    outcome: str
    started: ev.RunStarted
    unsent: Mapping[int, CallId] = msgspec.field(default_factory=dict)
    sent: frozenset[str] = frozenset()
    received: tuple[str, ...] = ()
    children: Mapping[CallId, ChildRun] = msgspec.field(default_factory=dict)
    """Child runs that hadn't ended when it did: they were told to."""


Live: TypeAlias = Driven | Parked | Paused
Run: TypeAlias = Absent | Live | Ended
_TURNS = frozenset({*ev.TERMINAL, ev.RunPaused})
"""Kinds that end a run or pause it. By type: to ask an event for one class after the other is half of a fold."""


def evolve(run: Run, event: ev.AnyEvent, *, run_id: RunId) -> Live | Ended:
    """The state after ``event``, whose ``seq`` must be set. Raises Illegal; the state it was given stays good."""
    match run:
        case Driven() | Parked():
            _expect_next(run.ledger, event)
            return _settle(run.ledger, event)
        case Paused():
            _expect_next(run.ledger, event)
            return _while_paused(run, event)
        case Absent():
            return _begin(event, run_id)
        case Ended():
            return _after_the_end(run, event)
        case _:
            assert_never(run)


def ledger(run: Run) -> Ledger | None:
    """The ledger of a live run; None when it is absent or ended."""
    found: Ledger | None = getattr(run, "ledger", None)  # as each live state has one, and no other
    return found


def parent_of(run: Run) -> ev.Parent | None:
    """Whose child a run is; None for one that is nobody's, or hasn't begun."""
    known = ledger(run)
    started = run.started if isinstance(run, Ended) else None if known is None else known.started
    return (started.parent or None) if started is not None else None


def outcome(event: ev.RunCompleted | ev.RunFailed | ev.RunCancelled) -> str:
    """How a run has ended, in one word."""
    match event:
        case ev.RunCompleted():
            return "completed"
        case ev.RunFailed():
            return "failed"
        case ev.RunCancelled():
            return "cancelled"
        case _:
            assert_never(event)


# --- by state ------------------------------------------------------------------------------------------------------


def _begin(event: ev.AnyEvent, run_id: RunId) -> Driven:
    if not isinstance(event, ev.RunStarted):
        raise Illegal("phase", event, "the run has no RunStarted")
    expect(event.seq == 1, "sequence", event, "seq 1 comes first")
    return Driven(
        Ledger(
            run=run_id,
            seq=1,
            drive=1,
            seen=0,
            generation=event.generation,
            attempts=0,
            started=event,
            mails={event.mail.sha256: event.mail.arrival},
            received=(event.mail.id,),
        )
    )


def _after_the_end(run: Ended, event: ev.AnyEvent) -> Ended:
    # A run's last mail may still be on its way when the run ends: its fate is the one thing that may follow.
    if not isinstance(event, ev.MailSent | ev.MailFailed):
        raise Illegal("terminal", event, f"the run has {run.outcome}")
    expect(event.seq == run.seq + 1, "sequence", event, f"seq {run.seq + 1} comes next")
    return _copy(run, seq=event.seq, unsent=sent(run.unsent, event))


def _while_paused(run: Paused, event: ev.AnyEvent) -> Live | Ended:
    match event:
        case ev.RunUnpaused():
            return Driven(_copy(run.ledger, seq=event.seq, drive=event.seq, attempts=0))
        case (
            ev.StepCompleted()
            | ev.StepFailed()
            | ev.AttemptScheduled()
            | ev.TimerFired()
            | ev.MailSent()
            | ev.MailFailed()
            | ev.RunFailed()
            | ev.CancelRequested()
            | ev.RunCancelled()
            | ev.ChildCompleted()
        ):
            pass
        case ev.TimerSet() if event.timer != event.call:
            pass  # the back-off of a try that was under way
        case _:
            raise Illegal("paused", event, f"the run is paused ({run.code})")
    after = _settle(run.ledger, event)
    return after if isinstance(after, Ended) else _copy(run, ledger=after.ledger)


def _expect_next(now: Ledger, event: ev.AnyEvent) -> None:
    if event.seq != now.seq + 1:
        raise Illegal("sequence", event, f"seq {now.seq + 1} comes next")


def _settle(before: Ledger, event: ev.AnyEvent) -> Driven | Parked | Paused | Ended:
    if type(event) in _TURNS:
        return _turn(before, event)
    after = _numbered(before, event)  # type: ignore[arg-type]  # it is none of TERMINAL
    if not parked(after):
        return Driven(after)
    return Parked(_copy(after, attempts=0) if after.attempts else after)  # it came through: exits count anew


def _turn(before: Ledger, event: ev.AnyEvent) -> Paused | Ended:
    if isinstance(event, ev.TERMINAL):
        if isinstance(event, ev.RunCancelled):
            expect(before.cancel is not None, "not-cancelled", event, "nobody has asked for the run's end")
        else:  # of the two that race, the one that was recorded first has won
            expect(before.cancel is None, "cancelling", event, "the run is being cancelled")
        return Ended(
            before.run,
            event.seq,
            outcome(event),
            before.started,
            before.unsent,
            before.sent,
            before.received,
            before.children,
        )
    assert isinstance(event, ev.RunPaused), event
    return Paused(_numbered(before, event), event.code, event.detail)


def _numbered(before: Ledger, event: ev.Ongoing) -> Ledger:
    after = apply(before, event)
    return after if after.seq == event.seq else _copy(after, seq=event.seq)

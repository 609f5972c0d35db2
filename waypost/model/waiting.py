"""Why a run isn't moving: ``waiting_on``, derived from its state alone.

Every run that hasn't ended waits on something; a state for which this returns nothing would be a run that is stuck
in the dark, and a property test looks for one.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, assert_never

from waypost.model.ids import CallId
from waypost.model.run import Absent, Cancel, Driven, Ended, Ledger, Parked, Paused, Run, Wait

Kind = Literal[
    "child",
    "step",
    "mail",
    "approval",
    "signal",
    "child-run",
    "cancel",
    "timer",
    "retry",
    "code",
    "poison",
    "operator",
    "dispatch",
]
"""``child`` is the process that runs the code; ``child-run`` a run that this one has started."""


_PAUSES: Mapping[str, Kind] = {"code-changed": "code", "code-missing": "code", "poison": "poison"}
"""By the code of a pause; any other one waits for an operator."""


@dataclass(frozen=True, slots=True)
class Waiting:
    """One thing that a run waits on.

    ``deadline``: Unix milliseconds, None for an explicit "no deadline". ``detail`` is for people.
    """

    kind: Kind
    call: CallId | None
    detail: str
    deadline: int | None


def kinds_of(run: Run) -> tuple[Kind, ...]:
    """The kinds of what the run waits on, each once, oldest first."""
    return tuple(dict.fromkeys(wait.kind for wait in waiting_on(run)))


def waiting_on(run: Run) -> tuple[Waiting, ...]:
    """What the run waits on, oldest first; empty only for a run that has ended."""
    match run:
        case Ended():
            return ()
        case Absent():
            return (Waiting("dispatch", None, "its mail is queued and not taken up yet", None),)
        case Paused():
            return (Waiting(_PAUSES.get(run.code, "operator"), None, run.detail or run.code, None),)
        case Driven():
            found = _open(run.ledger) or (Waiting("child", None, "its code is to go on", None),)
            return found if run.ledger.cancel is None else (_cancelling(run.ledger.cancel), *found)
        case Parked():
            return _open(run.ledger)
        case _:
            assert_never(run)


def _open(ledger: Ledger) -> tuple[Waiting, ...]:
    steps = (
        Waiting("step", call, f"step {step.step}, attempt {step.attempt}, under way since {step.since}", None)
        for call, step in ledger.steps.items()
    )
    waits = (_wait(call, wait) for call, wait in ledger.waits.items())
    timers = (
        Waiting("retry", timer.call, _retry(ledger, timer.call), timer.fire_at)
        if timer.call in ledger.retries
        else Waiting("timer", timer.call, "a timer", timer.fire_at)
        for timer in ledger.timers.values()
    )
    children = (
        Waiting("child-run", call, f"{child.workflow}, as {child.child}", None)
        for call, child in ledger.children.items()
        if not child.cancelling
    )
    return (*steps, *waits, *timers, *children)


def _wait(call: CallId, wait: Wait) -> Waiting:
    match wait.park:
        case "approval":
            return Waiting("approval", call, f"{wait.title} ({', '.join(wait.who)})", wait.timeout_at)
        case "signal":
            return Waiting("signal", call, wait.name, wait.timeout_at)
        case _:
            return Waiting("mail", call, "the next mail for it", wait.timeout_at)


def _cancelling(cancel: Cancel) -> Waiting:
    who = f" by {cancel.by}" if cancel.by else ""
    return Waiting("cancel", None, f"it is being cancelled ({cancel.origin}{who}): {cancel.reason}", None)


def _retry(ledger: Ledger, call: CallId) -> str:
    retry = ledger.retries[call]
    return f"step {retry.step}, attempt {retry.attempt} follows; the last one failed with {retry.error}"

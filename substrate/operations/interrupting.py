"""An exit that nobody expected, counted against the runs that the child drove: in their logs, in one commit.

Who was driven follows from each log alone (storage §5). At the bound the steps in flight fail as ``child-crashed``, or
the run is paused as ``poison``, in the same commit as the count: no moment shows the one without the other. A run that
is being cancelled can't wait for an operator, so instead of the pause it has its end.
"""

from typing import assert_never

from substrate.messages import Interrupt, Interrupted, Refused
from substrate.operations.append import extend
from substrate.operations.change import Context, Decided, Extension, Settled, View, changed, fence
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.attempts import Consequence, consequence, suspicious

_REASON = 200
"""Characters of it that are kept."""


def interrupt(view: View, operation: Interrupt, context: Context) -> Decided:
    """Count an exit. Value: tuple of ``Interrupted``; empty where nobody was driven. Refused with ``generation``."""
    refused = fence(view, operation.generation)
    if refused is not None:
        return refused
    reason = "".join(char if char.isprintable() else " " for char in operation.reason)[:_REASON]
    extensions: list[Extension] = []
    value: list[Interrupted] = []
    for run in operation.runs:
        before = view.known(run)
        if not isinstance(before.run, fold.Driven) or before.run.ledger.generation != operation.generation:
            continue
        told, events = _counted(before.run.ledger, operation, reason, context)
        made = extend(view, run, before, events, context)
        if isinstance(made, Refused):
            return made
        extensions.append(made)
        value.append(told)
    if not value:
        return Settled(())
    which = value[0].run if len(value) == 1 else f"{len(value)} runs"
    subject = f"count the end of generation {operation.generation} against {which}"
    return changed(extensions, subject, value=tuple(value))


def _counted(
    ledger: fold.Ledger, operation: Interrupt, reason: str, context: Context
) -> tuple[Interrupted, tuple[ev.AnyEvent, ...]]:
    attempt, limits = ledger.attempts + 1, context.limits
    then = consequence(attempt, len(ledger.steps), limits)
    counted = ev.RunInterrupted(generation=operation.generation, attempt=attempt, reason=reason)
    told = Interrupted(
        run=ledger.run,
        attempt=attempt,
        then=then,
        suspect=suspicious(attempt, limits),
        suspected=suspicious(ledger.attempts, limits),
    )
    return told, (counted, *_consequences(then, ledger, attempt, reason))


def _consequences(then: Consequence, ledger: fold.Ledger, attempt: int, reason: str) -> tuple[ev.AnyEvent, ...]:
    times = f"{attempt} times without progress between, the last time {reason}"
    match then:
        case "resume":
            return ()
        case "step-failed":
            why = f"the process that ran it ended {times}"
            return tuple(
                ev.StepFailed(
                    call=call,
                    attempt=step.attempt,
                    error=ev.Fault(type="ChildCrashed", message=why, step=step.step, call=call),
                    final=True,
                    code="child-crashed",
                )
                for call, step in ledger.steps.items()
            )
        case "poison" if ledger.cancel is not None:
            return (ev.RunCancelled(code="past-grace", detail=f"the process that ran it ended {times}"),)
        case "poison":
            return (ev.RunPaused(code="poison", detail=f"the process that ran it ended {times}"),)
        case _:
            assert_never(then)

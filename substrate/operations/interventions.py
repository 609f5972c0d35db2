"""What an operator does to a run: answer its approval, pause it, let it go on."""

from typing import assert_never

from substrate import runlog
from substrate.messages import Answer, Pause, Refused, Unpause
from substrate.operations.append import extend
from substrate.operations.cancelling import absent, not_run
from substrate.operations.change import Context, Decided, Settled, View, changed, fence, plain
from substrate.runlog import Known
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.ids import CallId, RunId
from waypost.model.times import plainly


def answer(view: View, operation: Answer, context: Context) -> Decided:
    """Answer an open approval. Value: the answered CallId.

    Refused with code ``no-run``, ``not-begun``, ``paused``, ``no-approval``, ``several`` or ``already-decided`` (who,
    and when).
    """
    before = view.known(operation.run)
    match before.run:
        case fold.Absent():
            return absent(view, operation.run, "answered")
        case fold.Paused():
            return Refused(
                "paused", f"the run is paused ({before.run.code})", f"`waypost resume {operation.run}` first"
            )
        case fold.Ended():
            return _too_late(view, operation)
        case fold.Driven() | fold.Parked():
            return _answer(view, operation, before, before.run.ledger, context)
        case _:
            assert_never(before.run)


def _answer(view: View, operation: Answer, before: Known, ledger: fold.Ledger, context: Context) -> Decided:
    approvals = [call for call, wait in ledger.waits.items() if wait.park == "approval"]
    if operation.call is None and len(approvals) > 1:
        return Refused("several", f"{len(approvals)} approvals are open", f"name one: --call {' or '.join(approvals)}")
    call = approvals[0] if operation.call is None and approvals else operation.call
    if call is None or call not in approvals:
        return _too_late(view, operation)
    event = ev.SignalReceived(call=call, signal=f"{operation.decision.via}:{call}", decision=operation.decision)
    made = extend(view, operation.run, before, (event,), context)
    if isinstance(made, Refused):
        return made
    verdict = "approve" if operation.decision.approved else "reject"
    return changed((made,), f"{verdict} {call} of {operation.run}", value=call)


def pause(view: View, operation: Pause, context: Context) -> Decided:  # noqa: PLR0911 - one return per rule
    """RunPaused; a run that is paused or ended already is left alone. Value: None."""
    if operation.code == "poison":
        return Refused("principal", "a run is poison by the count of an exit only")
    if operation.generation is not None and (refused := fence(view, operation.generation)) is not None:
        return refused
    before = view.known(operation.run)
    match before.run:
        case fold.Absent():
            return Refused("no-run", f"there is no run {operation.run}")
        case fold.Ended() | fold.Paused():
            return Settled()
        case fold.Driven() | fold.Parked():
            pass
        case _:
            assert_never(before.run)
    given = before.run.ledger.generation
    if operation.generation is not None and given != operation.generation:
        return Refused("not-given", f"generation {operation.generation} wasn't given this run")
    if before.run.ledger.cancel is not None:
        return _one(view, operation.run, not_run(operation.code), f"cancel {operation.run}: paused", context)
    # An unknown code makes bytes that can't be read again; ``extend`` refuses those.
    event = ev.RunPaused(code=operation.code, detail=operation.detail)  # type: ignore[arg-type]  # see above
    return _one(view, operation.run, event, f"pause {operation.run}: {plain(operation.code)}", context)


def unpause(view: View, operation: Unpause, context: Context) -> Decided:
    """RunUnpaused, by an operator. Value: None."""
    before = view.known(operation.run)
    if not isinstance(before.run, fold.Paused):
        return Refused("not-paused", f"{operation.run} is not paused")
    if before.run.code in {"code-changed", "code-missing"} and before.run.ledger.generation == view.state.generation:
        # The child that found the difference still runs the same code, and has let go of the run.
        return Refused(
            "same-code",
            f"{operation.run} doesn't fit the code that runs now: {before.run.detail}",
            "put fitting code into the file, deploy it (`waypost deploy FILE`), then resume the run",
        )
    return _one(view, operation.run, ev.RunUnpaused(by=operation.by), f"resume {operation.run}", context)


def _one(view: View, run: RunId, event: ev.AnyEvent, subject: str, context: Context) -> Decided:
    made = extend(view, run, view.known(run), (event,), context)
    if isinstance(made, Refused):
        return made
    return changed((made,), subject)


def _too_late(view: View, operation: Answer) -> Refused:
    """No such approval is open: say who decided it and when, if it was ever asked."""
    found: tuple[CallId, ev.Decision, str] | None = None
    for raw in runlog.events(view, operation.run):
        event = ev.decode(raw)
        if (
            isinstance(event, ev.SignalReceived)
            and isinstance(event.decision, ev.Decision)
            and (call := ev.call_of(event)) is not None
            and operation.call in {None, call}
        ):
            found = call, event.decision, event.at
    if found is None:
        which = "no approval is open" if operation.call is None else f"{operation.call} is no open approval"
        return Refused(
            "no-approval", f"{which} in {operation.run}", f"`waypost why {operation.run}` says what it waits for"
        )
    call, decision, at = found
    verdict = "approved" if decision.approved else "rejected"
    told = f"{call} of {operation.run} was {verdict} already, by {decision.by} ({decision.via}), {plainly(at)}"
    return Refused("already-decided", told)

"""Asking for a run's end, and named signals: what comes to a run from outside and is recorded, whoever is awake.

The log's order decides: a cancel that comes after the end is too late, an end that comes after the cancel is refused
(``waypost.model.run``), so every reader sees the same winner.
"""

from typing import assert_never

import msgspec
from msgspec import UNSET, UnsetType

from substrate import layout, runlog
from substrate.messages import Cancel, CancelTaken, Refused, Signal, SignalTaken, Start, WorkflowProcess
from substrate.operations.append import child_may_write, extend
from substrate.operations.change import Change, Context, Decided, Settled, View, changed, plain
from substrate.operations.take_up import stillborn
from substrate.principals import Name
from substrate.runlog import Known
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.ids import RunId, message_key
from waypost.model.ledger import waiting_for
from waypost.model.times import plainly


def cancel(  # noqa: PLR0911 - one return per state
    view: View, operation: Cancel, context: Context
) -> Decided:
    """Ask for a run's end. A second time changes nothing. Value: ``CancelTaken``.

    Refused with code ``no-run``, ``not-begun``, ``ended``, or as a child's append is.
    """
    before = view.known(operation.run)
    refused = None
    if operation.generation is not None:
        refused = child_may_write(view, WorkflowProcess(operation.generation), before)
    match before.run:
        case _ if refused is not None:
            return refused
        case fold.Absent() if operation.start is not None and view.queued_for(operation.run):
            return _not_begun(view, operation, operation.start, context)
        case fold.Absent():
            return absent(view, operation.run, "cancelled")
        case fold.Ended(outcome="cancelled"):
            return Settled(CancelTaken(fresh=False, at=before.changed, origin="", by=""))
        case fold.Ended():
            return Refused("ended", f"{operation.run} {_ended(before.run.outcome)}: there is nothing left to cancel")
        case fold.Driven(ledger) | fold.Parked(ledger) | fold.Paused(ledger) if ledger.cancel is not None:
            known = ledger.cancel
            return Settled(CancelTaken(fresh=False, at=known.at, origin=known.origin, by=known.by))
        case fold.Driven() | fold.Parked() | fold.Paused():
            return _cancel(view, operation, before, context)
        case _:
            assert_never(before.run)


def _not_begun(view: View, operation: Cancel, start: Start, context: Context) -> Decided:
    """It begins and ends in one commit, which consumes its first mail: no child ever sees it."""
    ended = ev.RunCancelled(code="not-run", detail="it had not begun: its mail was queued")
    made = stillborn(view, operation.run, start, (_asked(operation), ended), context)
    if isinstance(made, Refused):
        return made
    return msgspec.structs.replace(
        made,
        author=_author(operation),
        subject=f"{made.subject}: {operation.origin}",
        value=CancelTaken(fresh=True, at=context.at, origin=operation.origin, by=operation.by),
    )


def _author(operation: Cancel) -> Name:
    return "hub" if operation.origin == "hub-admin" else "supervisor"


def _asked(operation: Cancel) -> ev.AnyEvent:
    return ev.CancelRequested(
        origin=operation.origin,
        reason=operation.reason,
        by=operation.by,
        call=UNSET if operation.call is None else operation.call,
    )


def _cancel(view: View, operation: Cancel, before: Known, context: Context) -> Decided:
    asked = _asked(operation)
    # No code of a paused run may be started, so there is nothing to wait for.
    events = (asked, not_run(before.run.code)) if isinstance(before.run, fold.Paused) else (asked,)
    made = extend(view, operation.run, before, events, context)
    if isinstance(made, Refused):
        return made
    taken = CancelTaken(fresh=True, at=context.at, origin=operation.origin, by=operation.by)
    return changed((made,), f"cancel {operation.run}: {operation.origin}", author=_author(operation), value=taken)


def not_run(code: str) -> ev.RunCancelled:
    """The end of a cancelled run that is paused, for this reason: its code was not told."""
    return ev.RunCancelled(code="not-run", detail=f"it was paused ({code}), so its code could not clean up")


def signal(view: View, operation: Signal, context: Context) -> Decided:
    """Record a named signal, once. Value: ``SignalTaken``.

    Refused with code ``no-run``, ``not-begun``, ``ended``, ``paused``, ``clash`` (its identity is another one's),
    ``signals`` (too many are kept) or ``too-large``.
    """
    before = view.known(operation.run)
    match before.run:
        case fold.Absent():
            return absent(view, operation.run, "signalled")
        case fold.Ended():
            late = f"{operation.run} {_ended(before.run.outcome)}: nobody would read the signal"
            return _repeated(view, operation) or Refused("ended", late)
        case fold.Paused():
            why = f"{operation.run} is paused ({before.run.code})"
            return Refused("paused", why, f"`waypost resume {operation.run}`, then send the signal again")
        case fold.Driven(ledger) | fold.Parked(ledger):
            known = _repeated(view, operation) if operation.id in ledger.signal_ids else None
            return known or _signal(view, operation, before, ledger, context)
        case _:
            assert_never(before.run)


def _signal(view: View, operation: Signal, before: Known, ledger: fold.Ledger, context: Context) -> Decided:
    raw, limits = operation.payload, context.limits
    call = waiting_for(ledger, operation.name)
    if call is None and sum(map(len, ledger.signals.values())) >= limits.signals:
        why = f"{limits.signals} signals of {operation.run} are kept that nobody has waited for"
        return Refused("signals", why, f"`waypost why {operation.run}` says what it waits for")
    if len(raw) > limits.signal:
        return Refused("too-large", f"the payload has {len(raw)} bytes; at most {limits.signal} are taken")
    sha256 = message_key(raw)
    blob = {layout.blob_path(operation.run, sha256): raw} if len(raw) > limits.inline else {}
    event = ev.SignalReceived(
        call=UNSET if call is None else call,
        signal=operation.id,
        name=operation.name,
        payload=ev.Value(blob=sha256) if blob else ev.Value(inline=msgspec.Raw(raw)),
    )
    made = extend(view, operation.run, before, (event,), context)
    if isinstance(made, Refused):
        return made
    where = f"kept for {operation.run}" if call is None else f"at {call} of {operation.run}"
    return Change(
        author="supervisor",
        subject=f"signal {plain(operation.name)} {where}",
        puts={**blob, **made.puts},
        deletes=made.deletes,
        facts=(made.fact,),
        known={operation.run: made.known},
        value=SignalTaken(outcome="kept" if call is None else "received", call=call),
    )


def _repeated(view: View, operation: Signal) -> Settled | Refused | None:
    """What a signal comes to whose identity the run had before, as its log tells; None where it hadn't.

    A repetition is no loss; another name or payload under the same identity would be one, and nobody would know.
    """
    for raw in runlog.events(view, operation.run):
        event = ev.decode(raw)
        if isinstance(event, ev.SignalReceived) and event.name and event.signal == operation.id:
            if event.name == operation.name and _carries(event.payload, operation.payload):
                return Settled(SignalTaken(outcome="already-present"))
            other = "with another payload" if event.name == operation.name else "and had another name"
            why = f"{operation.run} had a signal of this identity, {event.name}, {plainly(event.at)}, {other}"
            return Refused(
                "clash", why, "give each signal an --id of its own; the same one is for the same signal again"
            )
    return None


def _carries(value: ev.Value | UnsetType, raw: bytes) -> bool:
    """Whether this is what is recorded of a payload."""
    return value in (ev.Value(inline=msgspec.Raw(raw)), ev.Value(blob=message_key(raw)))


def absent(view: View, run: RunId, what: str) -> Refused:
    """Why nothing can be done to a run that has no event: its mail waits, or there is none of that id."""
    if view.queued_for(run):
        hint = "try again when its mail has been taken up; `waypost why` says what that waits for"
        return Refused("not-begun", f"{run} has not begun, so it can't be {what}: its mail is queued", hint)
    return Refused("no-run", f"there is no run {run}", "`waypost runs` lists them")


def _ended(outcome: str) -> str:
    return f"{'was' if outcome == 'cancelled' else 'has'} {outcome}"

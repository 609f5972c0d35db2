"""The latch: a deployment whose children end again and again gets no other one until an operator resets it.

It is in ``state/deployment.json``, so every host keeps it. Mail is accepted under it, timers fire, and runs stay live;
only where the workflow says ``on_crash_loop="fail"`` do those that aren't parked fail, in the same commits, before it
is there: a host that is killed in between has failed runs and no latch, and the next crash loop goes on from that.
"""

import msgspec
from msgspec import UNSET

from substrate.messages import LatchDeployment, Refused, ResetDeployment, Unlatched
from substrate.operations.append import extend
from substrate.operations.buckets import state_file
from substrate.operations.change import Change, Context, Decided, Extension, Settled, View, changed, plain
from substrate.state import DETAIL, Latch
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.ids import RunId

PORTION = 64
"""Runs that fail in one commit."""


def latch(view: View, operation: LatchDeployment, context: Context) -> Decided:
    """Latch it, after the runs that aren't parked, where they are to fail. Value: the latch, or None."""
    if view.state.latch:
        return Settled(view.state.latch)
    driven = view.driven() if operation.fail else ()
    if driven:
        return _failed(view, tuple(run.ledger.run for run in driven), operation.detail, context)
    made = Latch(at=context.at, detail=operation.detail[:DETAIL])
    state = msgspec.structs.replace(view.state, latch=made)
    return Change(
        author="supervisor",
        subject="latch the deployment: crash-looping",
        puts=state_file(state),
        state=state,
        value=made,
    )


def reset(view: View, operation: ResetDeployment) -> Decided:
    """Lift the latch, by an operator. Value: ``Unlatched``."""
    if not view.state.latch:
        if view.state.held:
            why = f"the deployment isn't crash-looping, it is held, after {view.state.held}: nothing executes"
            return Refused("not-latched", why, "`waypost resume` lets it go on")
        return Refused("not-latched", "the deployment isn't crash-looping: it goes on by itself")
    state = msgspec.structs.replace(view.state, latch=UNSET)
    drained_to = state.drain.to if state.drain else ""
    return Change(
        author="supervisor",
        subject=f"reset the deployment after {view.state.latch.reason}, by {plain(operation.by)}",
        puts=state_file(state),
        state=state,
        value=Unlatched(held=bool(state.held) or drained_to == "rest", ending=drained_to == "end"),
    )


def _failed(view: View, driven: tuple[RunId, ...], detail: str, context: Context) -> Decided:
    why = f"workflow-process crash-looped: {detail}"
    failed = ev.RunFailed(error=ev.Fault(type="CrashLoop", message=why))
    # The end of a run that is being cancelled is that: a child's, perhaps, whose parent has failed before it.
    cancelled = ev.RunCancelled(code="past-grace", detail=why)
    extensions: list[Extension] = []
    for run in driven[:PORTION]:
        known = view.known(run)
        ledger = fold.ledger(known.run)
        event = failed if ledger is None or ledger.cancel is None else cancelled
        made = extend(view, run, known, (event,), context)
        if isinstance(made, Refused):
            return made
        extensions.append(made)
    return changed(extensions, f"end {len(extensions)} runs: crash-looping")

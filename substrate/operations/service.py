"""A deployment comes to rest: an operator has it drained, it is held when that is over, and an operator lets it go on.

All are in ``state/deployment.json``, each written by one commit, so that every host goes on where one has ended:
``drain`` from the moment on at which somebody is told that it has begun, ``held`` in the commit that ends it. So it is
never both, and never neither before it is done.
"""

import msgspec
from msgspec import UNSET

from substrate.messages import DrainDeployment, GoesOn, NoteDrain, Refused, ResumeDeployment
from substrate.operations.buckets import state_file
from substrate.operations.change import Change, Context, Decided, Settled, View, plain
from substrate.state import DETAIL, Drain

_WORD = {"rest": "draining", "end": "retiring"}
"""Of a drain that is under way, for programs."""


def drain(view: View, operation: DrainDeployment, context: Context) -> Decided:
    """It begins. Value: the ``Drain``. Refused with code ``held``, ``latched``, ``draining`` or ``retiring``."""
    state = view.state
    if state.held:
        return Refused("held", f"it is held already, after {state.held}", "`waypost resume` lets it go on")
    if state.latch:
        return Refused("latched", f"it is {state.latch.reason}: nothing executes", "`waypost reset` first")
    if state.drain:
        why = f"it is being drained since {state.drain.at}, by {state.drain.by}"
        return Refused(_WORD[state.drain.to], why, "one thing at a time; `waypost resume` ends a drain")
    made = Drain(to="end" if operation.end else "rest", at=context.at, by=operation.by[:DETAIL])
    until = "every run has ended" if operation.end else "nothing executes"
    state = msgspec.structs.replace(state, drain=made)
    return Change(
        author="supervisor",
        subject=f"drain the deployment until {until}, by {plain(made.by)}",
        puts=state_file(state),
        state=state,
        value=made,
    )


def note(view: View, operation: NoteDrain) -> Decided:
    """What the clock of a drain has counted. Value: None. Refused with code ``not-draining``."""
    was = view.state.drain
    if not was or was.to != "end":
        return Refused("not-draining", "it isn't being drained until every run has ended")
    if operation.spent <= (was.spent or 0):
        return Settled()
    state = msgspec.structs.replace(view.state, drain=msgspec.structs.replace(was, spent=operation.spent))
    return Change(
        author="supervisor",
        subject=f"note the drain: {operation.spent} ms in steps that may be cut short",
        puts=state_file(state),
        state=state,
    )


def hold(view: View, context: Context) -> Decided:
    """It is drained, and rests; one that is held already stays so. Value: None. Refused with code ``not-draining``."""
    if view.state.held:
        return Settled()
    if not view.state.drain:
        return Refused("not-draining", "an operator lets it go on")
    by = plain(view.state.drain.by)
    state = msgspec.structs.replace(view.state, held="drain", held_at=context.at, drain=UNSET)
    return Change(
        author="supervisor",
        subject=f"hold the deployment: drained, by {by}",
        puts=state_file(state),
        state=state,
    )


def resume(view: View, operation: ResumeDeployment) -> Decided:
    """It goes on, by an operator. Value: ``GoesOn``. Refused with code ``not-held``."""
    if not view.state.held and not view.state.drain:
        if view.state.latch:
            why = f"the deployment isn't held, it is {view.state.latch.reason}: nothing executes"
            return Refused("not-held", why, "`waypost reset` lets it have a process again")
        return Refused("not-held", "the deployment isn't held: it goes on by itself")
    after = view.state.held or "draining"
    state = msgspec.structs.replace(view.state, held="", held_at=UNSET, drain=UNSET)
    return Change(
        author="supervisor",
        subject=f"resume the deployment after {after}, by {plain(operation.by)}",
        puts=state_file(state),
        state=state,
        value=GoesOn(after, latched=bool(view.state.latch)),
    )

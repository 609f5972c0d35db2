"""Which run a mail is for, decided when it is taken in: one that exists, one that an earlier mail starts, a new one.

With ``runs="message"`` each mail is a run of its own, but for the answers to approvals that our own mails ask for: such
a mail goes to the run that asked, as long as it asks. So it does with ``runs="deployment"``, as a child run may ask.
What is for a child run that has ended is for its parent, or theirs, as long as one goes on.
"""

from dataclasses import dataclass

import msgspec

from substrate.errors import Damaged
from substrate.operations.change import Context, View
from substrate.routing import Route, route
from substrate.state import State
from waypost.model import run as fold
from waypost.model.ids import RunId, message_key, run_id
from waypost.model.mail import Gist, thread_candidates


@dataclass(frozen=True, slots=True)
class Placed:
    """As the entry says it: its run, whether taking it up starts that, and which finished run is then named."""

    run: RunId
    starts: bool
    old: RunId | None


def placed(view: View, gist: Gist, context: Context) -> tuple[Placed, State]:
    """The place of a mail, and the state after it."""
    state = view.state
    going = route(context.runs, thread_candidates(gist), view.threads, view.standing)
    asking = None if context.runs == "thread" else _asking(view, gist)
    if context.runs == "message" or asking is not None:
        going = Route(asking)
    if going.old is not None:
        going = _above(view, going, going.old)
    if going.run is None:
        run, old = run_id(state.run, context.random()), going.old
        state = msgspec.structs.replace(state, run=state.run + 1)
    else:
        run, old = going.run, None
    # A run whose first mail was rejected starts with the next one; so what it follows goes into every entry for it.
    absent = view.standing(run) == "absent"
    if absent and old is None:
        old = view.threads.before(run)
    return Placed(run, absent and not view.queued_for(run), old), state


def _above(view: View, going: Route, ended: RunId) -> Route:
    """The nearest run that goes on of those above a run that has ended; as it was going, where there is none."""
    try:
        parent = fold.parent_of(view.known(ended).run)
        while parent is not None and view.standing(parent.run) != "live":
            parent = fold.parent_of(view.known(parent.run).run)
    except Damaged:  # a log that can't be read keeps no mail out
        return going
    return going if parent is None else Route(parent.run)


def _asking(view: View, gist: Gist) -> RunId | None:
    """The run whose open approval a mail speaks to: the newest of our own mails that it names has asked for that."""
    for each in thread_candidates(gist):
        name = each.decode("utf-8", "replace")
        run = view.threads.unsealed(message_key(each))
        ledger = None if run is None else fold.ledger(view.known(run).run)
        if ledger is not None and name in ledger.sent:
            asked = any(wait.request == name for wait in ledger.waits.values() if wait.park == "approval")
            return run if asked else None
    return None

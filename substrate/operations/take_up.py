"""Taking up a mail: the commit that records that it was consumed holds the event that it caused (design §3.5).

A mail starts its run, or answers a wait of it that is open at this very commit; anything else is refused and changes
nothing, and the claim goes back by ``Release``. A run that may not run, for good, begins and fails in the same commit:
it is in the history, with the reason, and no child ever sees it (storage §5, the barrier).
"""

import hashlib
from typing import assert_never

import msgspec
from msgspec import UNSET, UnsetType

from substrate import layout
from substrate.messages import Consumed, Fact, Queued, Refused, Start, TakeUp
from substrate.operations.append import extend
from substrate.operations.buckets import filed, files_after
from substrate.operations.change import Change, Context, Decided, Item, View, plain
from substrate.operations.granting import barred as barring
from substrate.operations.grants import encode_grants, grants
from substrate.runlog import Known
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.child_mail import spawner
from waypost.model.ids import CallId, Generation, RunId, idempotency_key, run_id
from waypost.model.mail import sender_matches
from waypost.model.queue import Entry, encode


def take_up(view: View, operation: TakeUp, context: Context) -> Decided:
    """Consume a claimed mail with its effect. Value: the id of the run that has it.

    Refused with code ``not-claimed``, ``live``, ``absent``, ``ended``, ``not-ended``, ``order``, ``paused``,
    ``wait-closed``, ``who`` or ``parent`` (no run awaits this child).
    """
    item = view.queue.get(operation.arrival)
    if item is None or not item.claimed:
        return Refused("not-claimed", f"mail {operation.arrival} is not in processing")
    match operation:
        case TakeUp(start=Start() as start, wait=None, decision=None):
            begin = _reroute if operation.reroute else _start
            return begin(view, item, start, context, operation.barred)
        case TakeUp(start=None, wait=str() as wait, reroute=False, barred=None):
            return _answer(view, item, wait, operation.decision, context)
        case _:
            return Refused("invalid", "a take-up names either what is started or the wait that is answered")


def _start(view: View, item: Item, start: Start, context: Context, barred: ev.Fault | None) -> Decided:
    entry = item.queued.entry
    match view.standing(entry.run):
        case "live":
            return Refused("live", f"{entry.run} has begun already")
        case "ended":
            return Refused(
                "ended", f"{entry.run} has ended", "take it up with reroute: a new run will name the old one"
            )
        case "absent":
            pass
        case standing:
            assert_never(standing)
    if view.queued_for(entry.run)[0] != entry.arrival:
        return Refused("order", f"an earlier mail of {entry.run} comes first")
    return _begin(view, item, entry, start, context, barred=barred)


def _reroute(view: View, item: Item, start: Start, context: Context, barred: ev.Fault | None) -> Decided:
    """The mail's run has ended meanwhile: a new run begins with it, and what else waits for the old one goes along."""
    old = item.queued.entry.run
    if view.standing(old) != "ended":
        return Refused("not-ended", f"{old} has not ended")
    if view.queued_for(old)[0] != item.queued.entry.arrival:
        return Refused("order", f"an earlier mail of {old} comes first")
    run = run_id(view.state.run, context.random())
    entry = msgspec.structs.replace(item.queued.entry, run=run, starts=True, old=old)
    return _begin(view, item, entry, start, context, barred=barred, rerouted=old)


def stillborn(
    view: View, run: RunId, start: Start, ending: tuple[ev.AnyEvent, ...], context: Context
) -> Change | Refused:
    """A run that is only queued begins and ends by one commit, claimed or not; its first mail is consumed by it."""
    item = view.queue[view.queued_for(run)[0]]
    made = _begun(view, item, item.queued.entry, start, ending, context)
    if isinstance(made, Refused):
        return made
    return msgspec.structs.replace(made, subject=f"cancel {run}, which had not begun")


def _begin(
    view: View,
    item: Item,
    entry: Entry,
    start: Start,
    context: Context,
    *,
    barred: ev.Fault | None,
    rerouted: RunId | None = None,
) -> Decided:
    barred = barred or barring(view.granted, start, context.deployment)
    ending = () if barred is None else (ev.RunFailed(error=barred),)
    made = _begun(view, item, entry, start, ending, context, rerouted=rerouted)
    if barred is None or isinstance(made, Refused):
        return made
    return msgspec.structs.replace(made, subject=f"{made.subject}, which fails: {plain(barred.type)}")


def _begun(
    view: View,
    item: Item,
    entry: Entry,
    start: Start,
    ending: tuple[ev.AnyEvent, ...],
    context: Context,
    *,
    rerouted: RunId | None = None,
) -> Change | Refused:
    """``ending``: what follows RunStarted at once."""
    begins = begins_with(view, entry, start, context)
    if isinstance(begins, Refused):
        return begins
    event, raw_grants = begins
    before = Known(fold.Absent(), prev=ev.genesis(context.repository, entry.run, raw_grants))
    made = extend(view, entry.run, before, (event, *ending), context)
    if isinstance(made, Refused):
        return made
    puts, deletes, facts = _others(view, entry, rerouted, context)
    state = view.state if rerouted is None else msgspec.structs.replace(view.state, run=view.state.run + 1)
    state = filed(view, state, entry.key, context)
    origin = "" if rerouted is None else f", after {rerouted}"
    return Change(
        author="supervisor",
        subject=f"take up mail {entry.arrival} as {entry.run}{origin}",
        puts={
            **puts,
            **made.puts,
            layout.grants_path(entry.run): raw_grants,
            **consumed(entry, state.bucket, context),
            **files_after(view, state, context),
        },
        deletes=(queued_path(item, context), *deletes, *made.deletes),
        facts=(Consumed(entry.arrival, entry.run), made.fact, *facts),
        state=state,
        known={entry.run: made.known},
        value=entry.run,
    )


def begins_with(view: View, entry: Entry, start: Start, context: Context) -> tuple[ev.RunStarted, bytes] | Refused:
    """RunStarted of the run that this mail begins, and the bytes of its grants. Refused with code ``parent``."""
    raw_grants = encode_grants(grants(entry.sender, start.mail_to, view.granted))
    parent: ev.Parent | UnsetType = UNSET
    origin = entry.key
    by = spawner(entry.id)
    if by is not None:
        # What the parent's log says, and nothing that the mail says.
        ledger = fold.ledger(view.known(by.run).run)
        child = None if ledger is None else ledger.children.get(by.call)
        if ledger is None or child is None or child.child != entry.run:
            return Refused("parent", f"{by.run} awaits no child {entry.run} at {by.call}")
        parent = ev.Parent(run=by.run, call=by.call, workflow=child.workflow, depth=depth_of(ledger.started) + 1)
        origin = idempotency_key(context.repository, ledger.started.origin, by.call)
    event = ev.RunStarted(
        mail=entry.mailed,
        definition=start.definition,
        code=start.code,
        python=start.python,
        waypost=start.waypost,
        distributions=start.distributions or UNSET,
        generation=Generation(view.state.generation),
        grants=hashlib.sha256(raw_grants).hexdigest(),
        origin=origin,
        after=entry.old,
        parent=parent,
    )
    return event, raw_grants


def depth_of(started: ev.RunStarted) -> int:
    """How deep a run lies: 0 for one that is nobody's child."""
    return started.parent.depth if started.parent else 0


def _answer(view: View, item: Item, wait: CallId, decision: ev.Decision | None, context: Context) -> Decided:
    entry = item.queued.entry
    before = view.known(entry.run)
    refused = _may_answer(before.run, entry.run, wait, decision)
    if refused is not None:
        return refused
    event = ev.SignalReceived(
        call=wait,
        signal=f"mail:{entry.key}",
        mail=entry.mailed,
        decision=UNSET if decision is None else decision,
    )
    made = extend(view, entry.run, before, (event,), context)
    if isinstance(made, Refused):
        return made
    state = filed(view, view.state, entry.key, context)
    return Change(
        author="supervisor",
        subject=f"take up mail {entry.arrival} at {wait} of {entry.run}",
        puts={**made.puts, **consumed(entry, state.bucket, context), **files_after(view, state, context)},
        deletes=(queued_path(item, context), *made.deletes),
        facts=(Consumed(entry.arrival, entry.run), made.fact),
        state=state,
        known={entry.run: made.known},
        value=entry.run,
    )


def _may_answer(run: fold.Run, name: RunId, call: CallId, decision: ev.Decision | None) -> Refused | None:
    match run:
        case fold.Absent():
            return Refused("absent", f"{name} has not begun")
        case fold.Ended():
            return Refused("ended", f"{name} has {run.outcome}")
        case fold.Paused():
            return Refused("paused", f"{name} is paused ({run.code})", "the mail waits until the run goes on")
        case fold.Driven() | fold.Parked():
            wait = run.ledger.waits.get(call)
        case _:
            assert_never(run)
    if wait is None:
        return Refused("wait-closed", f"no wait is open at {call} of {name}", "release the mail: it waits for the next")
    if decision is not None and wait.park == "approval" and not sender_matches(decision.by, wait.who):
        return Refused("who", f"the wait at {call} is for somebody else to answer")
    return None


def _others(
    view: View, first: Entry, rerouted: RunId | None, context: Context
) -> tuple[dict[str, bytes], list[str], list[Fact]]:
    """What else was queued for a run that has ended: the same mails, now for the new run; claims among them go back."""
    puts: dict[str, bytes] = {}
    deletes: list[str] = []
    facts: list[Fact] = []
    for arrival in view.queued_for(rerouted) if rerouted is not None else ():
        if arrival == first.arrival:
            continue
        item = view.queue[arrival]
        attempt = item.queued.attempt - 1 if item.claimed else item.queued.attempt
        entry = msgspec.structs.replace(item.queued.entry, run=first.run, starts=False, old=first.old, attempt=attempt)
        puts[layout.inbox_path(context.address, arrival, entry.key)] = encode(entry)
        if item.claimed:
            deletes.append(queued_path(item, context))
        facts.append(Queued(entry, item.queued.gist, attempt))
    return puts, deletes, facts


def queued_path(item: Item, context: Context) -> str:
    """Where a mail lies that isn't consumed, nor on hold."""
    entry = item.queued.entry
    if not item.claimed:
        return layout.inbox_path(context.address, entry.arrival, entry.key)
    return layout.processing_path(context.address, entry.arrival, entry.key, item.queued.attempt)


def consumed(entry: Entry, bucket: int, context: Context) -> dict[str, bytes]:
    """The entry of a mail that is consumed with its effect."""
    marked = msgspec.structs.replace(entry, consumed=context.at)
    return {layout.consumed_path(context.address, bucket, entry.key): encode(marked)}

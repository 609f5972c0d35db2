"""A schedule comes further: the tick's mail and the schedule's file in one commit, whatever its ``overlap`` says.

The mail's id is schedule and tick (``waypost.model.schedule.tick_id``), which no mail from outside can have: so a tick
that is asked for twice, by two hosts or after a clock went back, has one mail. It is from the deployment itself, is
marked as automatic, and its run has no grant to answer it. From then on it is a mail like any other.

A tick overlaps while the one before it is under way: while that one's mail is queued, or its run hasn't ended. With
``runs="deployment"`` no run is a tick's own, so it is the mail alone, and ``cancel`` cancels nothing. Where the mail of
the one before is still queued, ``cancel`` leaves the new tick out: there is nothing to cancel, and one of them will do.
Where ticks wait, of a policy before, it leaves the new one out and cancels all the same, so that the first one goes.
"""

import hashlib

import msgspec
from msgspec import UNSET

from substrate import layout
from substrate.errors import Damaged
from substrate.messages import Refused
from substrate.operations.append import extend
from substrate.operations.buckets import consumed_at
from substrate.operations.cancelling import not_run
from substrate.operations.change import Change, Context, Decided, View
from substrate.operations.intake import into_inbox, numbered
from substrate.operations.placing import placed
from substrate.ticking import MOST_WAITING, Fate, ScheduleMoved, Tick, Ticked, began, declared, decode, encode
from waypost.model import events as ev
from waypost.model import mail
from waypost.model import run as fold
from waypost.model.errors import Invalid
from waypost.model.ids import message_key
from waypost.model.schedule import Schedule, tick_id
from waypost.model.times import stamp


def tick(view: View, operation: Tick, context: Context) -> Decided:  # noqa: PLR0911 - one for each way
    """Move a schedule on. Value: its ``Ticked``. Refused with code ``schedule``, ``moved`` or ``due``."""
    try:
        planned = {each.id: each for each in declared(view.read(layout.DEPLOYED))}
    except Invalid as bad:
        raise Damaged(layout.DEPLOYED, bad.message) from None
    schedule, path = planned.get(operation.schedule), layout.schedule_path(operation.schedule)
    raw = view.read(path)
    if schedule is None or raw is None:
        return Refused("schedule", f"no schedule {operation.schedule!r} is deployed")
    before = _read(path, raw)
    if operation.after != before.reached:
        return Refused("moved", f"schedule {before.id} has come to {stamp(before.reached)}")
    if operation.due is None:
        return _left_out(before, operation)
    due = stamp(operation.due)
    if before.waiting and due == before.waiting[0] and operation.last == operation.after:
        if _under_way(view, before, context):
            return Refused("under-way", f"{before.run} has not ended")
        return _sent(
            view, schedule, msgspec.structs.replace(before, waiting=before.waiting[1:]), operation.due, context
        )
    if operation.due != operation.last or operation.due == operation.after:
        return Refused("due", f"schedule {before.id} has no tick at {due} to be dealt with now")
    before = msgspec.structs.replace(before, last=due)
    if due in before.waiting or _known(view, tick_id(before.id, operation.due), context):
        return _moved(before, "repeated", f"schedule {before.id} was due at {due} before the clock went back")
    if before.waiting or _under_way(view, before, context):
        return _overlapping(view, schedule, before, operation.due, context)
    return _sent(view, schedule, before, operation.due, context)


def replanned(view: View, after: tuple[Schedule, ...], context: Context) -> tuple[dict[str, bytes], tuple[str, ...]]:
    """The schedules' files where these are deployed: what to write, and which files go. Raises Damaged."""
    puts: dict[str, bytes] = {}
    for schedule in after:
        path = layout.schedule_path(schedule.id)
        raw, at = view.read(path), max(0, context.now.wall)
        if raw is not None:
            old = _read(path, raw)
            if (old.expression, old.tz) == (schedule.expression, schedule.tz):
                continue
            at = max(at, old.reached)  # nothing comes again because a clock went back between two deployments
        puts[path] = encode(began(schedule, at))
    kept = {layout.schedule_path(schedule.id) for schedule in after}
    there = (f"{layout.SCHEDULES}/{name}" for name in view.entries(layout.SCHEDULES))
    return puts, tuple(path for path in there if path not in kept)


def _read(path: str, raw: bytes) -> Ticked:
    try:
        return decode(raw)
    except Invalid as bad:
        raise Damaged(path, bad.message) from None


def _left_out(before: Ticked, operation: Tick) -> Decided:
    last = stamp(operation.last)
    if operation.last == operation.after:
        return Refused("due", f"schedule {before.id} is at {last} already")
    after = msgspec.structs.replace(before, last=last)
    if operation.last < operation.after:
        words = f"schedule {before.id} goes on from {last}: the clock was set back from {stamp(operation.after)}"
        return _moved(after, "set-back", words)
    return _moved(after, "missed", f"schedule {before.id} leaves out what was missed up to {last}")


def _overlapping(view: View, schedule: Schedule, before: Ticked, due: int, context: Context) -> Decided:
    """A new tick, and the one before it is under way, or others wait already; ``before`` has it as its last."""
    words, waiting = f"schedule {before.id} was due at {stamp(due)}", len(before.waiting)
    if schedule.overlap == "queue" and waiting < MOST_WAITING:
        after = msgspec.structs.replace(before, waiting=(*before.waiting, stamp(due)))
        return _moved(after, "waiting", f"{words}, and waits for {before.run}")
    may_cancel = schedule.overlap == "cancel" and before.arrival not in view.queue and _running(view, before, context)
    if waiting:  # of code with another policy, perhaps: what waits goes first, in its order
        skipped = f"{words}: {waiting} of its ticks wait{'s' * (waiting == 1)} for {before.run}"
        left_out = _moved(before, "skipped", skipped)
        return _in_its_place(view, before, left_out, due, context) if may_cancel else left_out
    if may_cancel:
        sent = _sent(view, schedule, before, due, context)
        return _in_its_place(view, before, sent, due, context, fate="cancelled")
    return _moved(before, "skipped", f"{words}, and {before.run} has not ended")


def _in_its_place(
    view: View, before: Ticked, made: Change, due: int, context: Context, *, fate: Fate = "skipped"
) -> Change:
    """What becomes of the tick, and the end of the run of the one before is asked for, if it wasn't. That has begun."""
    old = before.run
    assert old is not UNSET, "it has begun"
    known = view.known(old)
    ledger = fold.ledger(known.run)
    if ledger is None or ledger.cancel is not None:
        return made
    reason = f"schedule {before.id} was due again at {stamp(due)}"
    asked: ev.AnyEvent = ev.CancelRequested(origin="self", reason=reason, by=f"schedule {before.id}")
    # As any cancel: no code of a paused run may be started, so there is nothing to wait for.
    events = (asked, not_run(known.run.code)) if isinstance(known.run, fold.Paused) else (asked,)
    more = extend(view, old, known, events, context)
    assert not isinstance(more, Refused), "a run that hasn't ended, and whose end nobody has asked for"
    both = msgspec.structs.replace(
        made,
        puts={**made.puts, **more.puts},
        deletes=more.deletes,
        facts=(more.fact, *made.facts),
        known={old: more.known},
    )
    return _moved(made.value, fate, f"{made.subject}, and cancel {old}", both)


def _sent(view: View, schedule: Schedule, before: Ticked, due: int, context: Context) -> Change:
    """The tick's mail into the inbox."""
    raw = _mail(schedule, due, context)
    gist = mail.scan(raw)
    # Nobody has sent it: so nobody may be answered, and its run may mail only whom the workflow names.
    told = msgspec.structs.replace(gist, id=tick_id(schedule.id, due).encode(), sender="", from_count=0)
    place, state = placed(view, told, context)
    entry = numbered(told, place, state, context)
    change = into_inbox(entry, raw, gist, state, context)
    after = msgspec.structs.replace(before, arrival=entry.arrival, run=entry.run)
    words = f"enqueue mail {entry.arrival} for {entry.run}: schedule {before.id} was due at {stamp(due)}"
    return _moved(after, "sent", words, change)


def _mail(schedule: Schedule, due: int, context: Context) -> bytes:
    """The mail of a tick: the same bytes whenever it is made."""
    at = stamp(due)
    seed = f"tick\0{context.repository}\0{schedule.id}\0{due}"
    return mail.compose(
        sender=context.address,
        to=context.address,
        subject=f"Schedule {schedule.id}: {at}",
        text=f"Schedule {schedule.id} ({schedule.expression} in {schedule.tz}) was due at {at}.\n",
        message_id=context.message_id(hashlib.sha256(seed.encode()).hexdigest()),
        date_ms=due,
        automatic=True,
    )


def _under_way(view: View, before: Ticked, context: Context) -> bool:
    """Whether the newest tick's mail is queued, or its run hasn't ended."""
    if before.arrival is UNSET or before.run is UNSET:
        return False
    return before.arrival in view.queue or _running(view, before, context)


def _running(view: View, before: Ticked, context: Context) -> bool:
    """Whether the newest tick has a run of its own that hasn't ended."""
    return before.run is not UNSET and context.runs != "deployment" and view.standing(before.run) == "live"


def _known(view: View, identity: str, context: Context) -> bool:
    key = message_key(identity.encode())
    return (
        view.arrival_of(key) is not None
        or consumed_at(view, key, context) is not None
        or view.threads.unsealed(key) is not None
    )


def _moved(after: Ticked, fate: Fate, words: str, more: Change | None = None) -> Change:
    """The schedule's file, and what else there is."""
    after = msgspec.structs.replace(after, fate=fate)
    puts = {layout.schedule_path(after.id): encode(after)}
    more = more or Change(author="supervisor", subject=words, puts={})
    facts = (*more.facts, ScheduleMoved(after.id))
    return msgspec.structs.replace(more, subject=words, puts={**more.puts, **puts}, facts=facts, value=after)

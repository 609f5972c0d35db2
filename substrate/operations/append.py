"""Adding events to a run's log: numbered, chained, checked against the run's state, folded 64 by 64.

``extend`` is the one way in which any operation adds an event: it sets ``seq``, ``at``, ``prev`` and the absolute
times, asks the fold whether the event may follow, and keeps the tail at 64 files (storage §1). ``append`` is the
operation of that name, with the checks that belong to whoever asks.
"""

from collections.abc import Iterable, Mapping, Sequence

import msgspec
from msgspec import UNSET

from substrate import layout, principals, runlog
from substrate.messages import Append, Appended, Principal, PutBlob, Recorded, Refused, WorkflowProcess
from substrate.operations.change import Change, Context, Decided, Extension, Hold, Settled, View, fence, plain
from substrate.operations.grants import may_mail_now, no_grant
from substrate.runlog import Known
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.errors import Invalid
from waypost.model.event_parts import LATEST, SNAPSHOT
from waypost.model.ids import CallId, RunId, is_call_id, message_key

_SHOWN = 3
_TIMED = frozenset({ev.TimerSet, ev.SignalAwaited})
_LIMITED = frozenset({ev.TimerSet, ev.TimerCancelled, ev.SignalAwaited, ev.RunResumed})
"""What has fields that not everything may be said in. By type, as most events are of none of these."""


def append(view: View, operation: Append, context: Context) -> Decided:
    """Append events as their author may: all of them or none. Value: the run's new last seq."""
    if not operation.events:
        return Refused("empty", "an append needs at least one event")
    before = view.known(operation.run)
    refused = child_may_write(view, operation.by, before)
    for event in operation.events:
        refused = refused or _acceptable(view, operation, event, context)
    if refused is not None:
        return refused
    made = extend(view, operation.run, before, operation.events, context)
    if isinstance(made, Refused):
        return made
    if isinstance(operation.by, WorkflowProcess):
        refused = _within_quotas(made.known, context)
        if refused is not None:
            return refused
    blobs: dict[str, bytes] = {}
    used: list[tuple[RunId, str]] = []
    for sha256 in dict.fromkeys(ev.blobs(operation.events)):
        path = layout.blob_path(operation.run, sha256)
        data = view.held(operation.run, sha256)
        if data is not None:
            blobs[path] = data
            used.append((operation.run, sha256))
        elif sha256 not in view.entries(path.rpartition("/")[0]):
            return Refused("blob", f"blob {sha256} was never put", "put it first, then append the event that names it")
    return Change(
        author=principals.name_of(operation.by),
        subject=f"append {described(operation.events, before)} to {operation.run}",
        puts={**blobs, **made.puts},
        deletes=made.deletes,
        facts=(made.fact,),
        known={operation.run: made.known},
        used=tuple(used),
        value=made.known.seq,
        extension=made,
    )


def put_blob(view: View, operation: PutBlob, context: Context) -> Decided:
    """Hold a value until an event names it. Value: None."""
    refused = child_may_write(view, operation.by, view.known(operation.run))
    if refused is not None:
        return refused
    if len(operation.data) > context.limits.value:
        return Refused("too-large", f"a value of {len(operation.data)} bytes; at most {context.limits.value} are kept")
    if message_key(operation.data) != operation.sha256:
        return Refused("blob", f"the bytes aren't those of {operation.sha256}")
    if view.held(operation.run, operation.sha256) is not None:
        return Settled()
    if view.held_bytes + len(operation.data) > context.limits.unreferenced_blobs:
        return Refused("blobs", f"over {context.limits.unreferenced_blobs} bytes wait for an event that names them")
    return Hold(operation.run, operation.sha256, operation.data)


def extend(
    view: View, run: RunId, before: Known, events: Iterable[ev.AnyEvent], context: Context
) -> Extension | Refused:
    """Number, chain and fold the events on top of ``before``; Refused when one of them may not follow or is too big."""
    made = numbered(run, before, events, context)
    return made if isinstance(made, Refused) else extended(view, run, before, made)


def numbered(
    run: RunId, before: Known, events: Iterable[ev.AnyEvent], context: Context
) -> tuple[Known, tuple[Recorded, ...]] | Refused:
    """The events as they are recorded on top of ``before``, and the run after them, as if none had been filed yet."""
    state, seq, prev, at = before.run, before.seq, before.prev, context.at
    recorded: list[Recorded] = []
    for proposed in events:
        timed = _timed(proposed, context) if type(proposed) in _TIMED else proposed
        event, raw = ev.stored(timed, seq=seq + 1, at=at, prev=prev)
        if len(raw) > context.limits.event:
            return Refused(
                "too-large", f"{ev.kind(event)} has {len(raw)} bytes, at most {context.limits.event} are kept"
            )
        try:
            event = ev.decode(raw)  # what can't be read again must not be written
            state = fold.evolve(state, event, run_id=run)
        except fold.Illegal as illegal:
            return Refused(illegal.code, illegal.message)
        except Invalid as bad:
            return Refused("invalid", bad.message)
        recorded.append(Recorded(event, raw))
        seq, prev = seq + 1, ev.digest(raw)
    return Known(state, seq, prev, before.folded, at), tuple(recorded)


def extended(view: View, run: RunId, before: Known, made: tuple[Known, tuple[Recorded, ...]]) -> Extension:
    """The files of these events, which are all that is new since ``before``."""
    after, recorded = made
    puts, deletes, folded = filed_events(view, run, before, recorded)
    assert not isinstance(after.run, fold.Absent)
    known = Known(after.run, after.seq, after.prev, folded, after.changed)
    return Extension(before, puts, deletes, known, Appended(run, recorded, after.run))


def described(events: Sequence[ev.AnyEvent], before: Known) -> str:
    """The events as a commit's one line has them: ``StepCompleted extract r1#2, StepStarted pay r1#3``."""
    steps = {} if (ledger := fold.ledger(before.run)) is None else ledger.steps
    names = [_described(event, steps) for event in events[:_SHOWN]]
    more = f" and {len(events) - _SHOWN} more" if len(events) > _SHOWN else ""
    return ", ".join(names) + more


def _described(event: ev.AnyEvent, steps: Mapping[CallId, fold.OpenStep]) -> str:
    call = ev.call_of(event)
    if call is None:
        return ev.kind(event)
    open_step = steps.get(call)
    step = event.step if type(event) is ev.StepStarted else open_step.step if open_step is not None else ""
    return f"{ev.kind(event)} {plain(step)} {call}" if step else f"{ev.kind(event)} {call}"


# --- checks --------------------------------------------------------------------------------------------------------


def child_may_write(view: View, by: Principal, before: Known) -> Refused | None:
    """The fence: a child writes only as the newest generation, and only to runs that this generation was given."""
    if not isinstance(by, WorkflowProcess):
        return None
    refused = fence(view, by.generation)
    if refused is not None:
        return refused
    ledger = fold.ledger(before.run)
    if ledger is not None:
        given = ledger.generation == by.generation
        return None if given else Refused("not-given", f"generation {by.generation} wasn't given this run")
    if isinstance(before.run, fold.Ended):
        return Refused("terminal", f"the run has {before.run.outcome}")
    return Refused("not-given", "there is no such run")


def at_call(view: View, by: WorkflowProcess, run: RunId, call: CallId) -> tuple[Known, fold.Ledger] | Refused:
    """The live run in which a child asks for something at this call; Refused as its append is, and with ``call``."""
    before = view.known(run)
    refused = child_may_write(view, by, before)
    if refused is not None:
        return refused
    ledger = fold.ledger(before.run)
    assert ledger is not None, "a child may write to live runs only"
    return _no_call(call) or (before, ledger)


def _no_call(call: CallId) -> Refused | None:
    return None if is_call_id(call) else Refused("call", f"{call[:80]!r} is not a call identity such as r1#2")


def _acceptable(view: View, operation: Append, event: ev.AnyEvent, context: Context) -> Refused | None:
    """What can be said of one proposed event without the state of its run."""
    why = principals.forbids(operation.by, event, "append")
    if why:
        return Refused("principal", why)
    if event.seq or event.at or event.prev or event.original is not UNSET:
        return Refused("substrate-sets", "seq, at and prev are the substrate's to set")
    call = ev.call_of(event)
    if call is not None and (refused := _no_call(call)) is not None:
        return refused
    return _fields(view, operation, event, context) if type(event) in _LIMITED else None


def _fields(  # noqa: PLR0911 - a table
    view: View, operation: Append, event: ev.AnyEvent, context: Context
) -> Refused | None:
    call = ev.call_of(event)
    match event:
        case ev.TimerSet() if event.fire_at:
            return Refused("substrate-sets", "fire_at is the substrate's to set: say delay")
        case ev.TimerSet() | ev.TimerCancelled() if event.timer != call and not event.timer.startswith(f"{call}/"):
            return Refused("timer", f"{event.timer[:80]!r} is no timer of {call}")
        case ev.SignalAwaited() if event.timeout_at is not UNSET:
            return Refused("substrate-sets", "timeout_at is the substrate's to set: say timeout")
        case ev.SignalAwaited() if event.park == "approval":
            if event.snapshot is not UNSET and len(bytes(event.snapshot)) > SNAPSHOT:
                return Refused("too-large", f"a snapshot may have {SNAPSHOT} bytes, not {len(bytes(event.snapshot))}")
            run = view.known(operation.run).run
            stranger = next((who for who in event.who if not may_mail_now(view, operation.run, run, who)), None)
            if stranger is not None:
                return Refused("grants", f"{stranger[:200]} may not be asked: {no_grant(stranger, context.deployment)}")
        case ev.RunResumed() if event.generation != view.state.generation:
            return Refused("generation", f"generation {event.generation} is not at work, {view.state.generation} is")
        case ev.RunResumed():
            # Whoever asks may have looked before an operator let the run go on, and by that set the count back.
            ledger = fold.ledger(view.known(operation.run).run)
            if ledger is not None and event.attempt != ledger.attempts:
                return Refused("attempt", f"{ledger.attempts} exits are counted, not {event.attempt}")
        case _:
            pass
    return None


def _within_quotas(after: Known, context: Context) -> Refused | None:
    ledger = fold.ledger(after.run)
    if ledger is None:
        return None
    if len(ledger.timers) > context.limits.timers:
        return Refused("timers", f"a run may have {context.limits.timers} pending timers")
    if ledger.open_calls > context.limits.open_calls:
        return Refused("open-calls", f"a run may have {context.limits.open_calls} open calls")
    return None


# --- files ---------------------------------------------------------------------------------------------------------


def _timed(event: ev.AnyEvent, context: Context) -> ev.AnyEvent:
    """The event with its absolute time, where it has one: now and the duration that was asked for."""
    match event:
        case ev.TimerSet():
            return msgspec.structs.replace(event, fire_at=_deadline(context, event.delay))
        case ev.SignalAwaited() if event.timeout is not UNSET:
            return msgspec.structs.replace(event, timeout_at=_deadline(context, event.timeout))
        case _:
            return event


def _deadline(context: Context, seconds: float) -> int:
    when = context.now.wall + seconds * 1000
    return int(when) if 0 <= when <= LATEST else LATEST  # also for what is no number: decoding refuses that one


def filed_events(
    view: View, run: RunId, before: Known, recorded: Sequence[Recorded]
) -> tuple[dict[str, bytes], tuple[str, ...], int]:
    """Where the events go: to files of their own; while the tail would be over 64, its oldest 64 to a segment.

    Returns (puts, deletes, how many events are in segments then). An event that goes straight to a segment gets no
    file of its own: git would keep an object that no tree names.
    """
    directory = layout.events_dir(run)
    fresh = {f"{directory}/{each.event.seq:010d}.json": each.raw for each in recorded}  # layout.event_path
    if before.seq - before.folded + len(recorded) <= layout.FAN:
        return fresh, (), before.folded
    pending = [*runlog.tail(view, run, before), *fresh.items()]
    puts: dict[str, bytes] = {}
    gone: set[str] = set()
    folded = before.folded
    while len(pending) > layout.FAN:
        block, pending = pending[: layout.FAN], pending[layout.FAN :]
        puts[layout.segment_path(run, folded + 1)] = b"".join(raw + b"\n" for _, raw in block)
        gone.update(path for path, _ in block)
        folded += layout.FAN
    puts.update((path, raw) for path, raw in pending if path in fresh)
    return puts, tuple(sorted(gone - fresh.keys())), folded

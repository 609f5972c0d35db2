"""What is open in a live run, and how each kind of event changes it: the arithmetic of the fold, without its states.

``apply`` is pure and total: an event that doesn't fit what is open is Illegal; what it was given is never changed.
"""

from collections.abc import Mapping
from typing import TypeVar, assert_never

import msgspec
from msgspec import UNSET

from waypost.model import events as ev
from waypost.model.errors import WaypostError
from waypost.model.ids import CallId, Generation, RunId
from waypost.model.opened import Cancel, ChildRun, OpenStep, Retry, Timer, Wait

_copy = msgspec.structs.replace
K = TypeVar("K")
V = TypeVar("V")
REMEMBERED = 1024
"""Named signals of a run by whose identity a repetition is recognised: the newest ones."""


class Illegal(WaypostError):
    """The event may not follow: ``code`` names the rule, ``event`` the offender."""

    def __init__(self, code: str, event: ev.AnyEvent, why: str) -> None:
        super().__init__(f"{ev.kind(event)} is refused: {why}")
        self.code = code
        self.event = event


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    """What is open in a live run. Mappings keep the order in which things were opened; they are never mutated.

    A struct, as the states are: it is copied for every event, which takes a dataclass ten times as long.
    """

    run: RunId
    seq: int
    """Of the newest event."""
    drive: int
    """Of the newest event that gives the code something to do."""
    seen: int
    """The newest event that the code is known to have acted on."""
    generation: Generation
    attempts: int
    """Unexpected exits counted since the last progress."""
    started: ev.RunStarted
    steps: Mapping[CallId, OpenStep] = msgspec.field(default_factory=dict)
    retries: Mapping[CallId, Retry] = msgspec.field(default_factory=dict)
    timers: Mapping[str, Timer] = msgspec.field(default_factory=dict)
    waits: Mapping[CallId, Wait] = msgspec.field(default_factory=dict)
    unsent: Mapping[int, CallId] = msgspec.field(default_factory=dict)
    """Outbox ordinals that are neither sent nor failed."""
    mails: Mapping[str, int] = msgspec.field(default_factory=dict)
    """Mails that the run was given: SHA-256 to arrival ordinal."""
    sent: frozenset[str] = frozenset()
    """Message ids of its own mail: a reply to one of them belongs to this run."""
    received: tuple[str, ...] = ()
    """Message ids of the mails it was given."""
    cancel: Cancel | None = None
    """Set once its end was asked for: from then on it never rests, and ends with RunCancelled."""
    signals: Mapping[str, tuple[int, ...]] = msgspec.field(default_factory=dict)
    """Signals that nobody has waited for yet: by name the seqs of their SignalReceived, oldest first."""
    signal_ids: tuple[str, ...] = ()
    """Identities of the newest named signals, oldest first, at most ``REMEMBERED``."""
    children: Mapping[CallId, ChildRun] = msgspec.field(default_factory=dict)
    """Its child runs that haven't ended."""

    @property
    def open_calls(self) -> int:
        """How many calls have no outcome yet."""
        return len(self.steps) + len(self.retries) + len(self.timers) + len(self.waits) + len(self.children)


def apply(now: Ledger, event: ev.Ongoing) -> Ledger:  # noqa: C901, PLR0911, PLR0912 - one arm per kind of event
    """The ledger after ``event``, but for its ``seq``. Raises Illegal."""
    match event:  # the two that are most of a log come first
        case ev.StepStarted():
            return _step_started(now, event)
        case ev.StepCompleted():
            _open_step(now, event)
            return _copy(now, seq=event.seq, steps=_without(now.steps, event.call), drive=event.seq, attempts=0)
        case ev.RunStarted():
            raise Illegal("phase", event, "the run has begun already")
        case ev.RunUnpaused():
            raise Illegal("phase", event, "the run is not paused")
        case ev.Foreign():
            expect(now.started.imported is not UNSET, "imported", event, "the run was not imported")
            return now
        case ev.RunPaused():
            expect(now.cancel is None, "cancelling", event, "the run is being cancelled")
            return now
        case ev.CancelRequested():
            expect(now.cancel is None, "cancelling", event, "the run is being cancelled already")
            cancel = Cancel(event.origin, event.reason, event.by, event.at, event.seq)
            return _copy(now, cancel=cancel, drive=event.seq)
        case ev.CancelPropagated():
            expect(now.cancel is not None, "not-cancelled", event, "nobody has asked for the run's end")
            _open_step(now, event)
            return _copy(now, steps=_without(now.steps, event.call), drive=event.seq)
        case ev.RunResumed():
            expect(event.generation > now.generation, "generation", event, f"{now.generation} is at work already")
            expect(event.attempt >= now.attempts, "attempt", event, f"{now.attempts} exits are counted")
            return _copy(now, generation=event.generation, attempts=event.attempt)
        case ev.RunInterrupted():
            return _interrupted(now, event)
        case ev.StepFailed():
            return _step_failed(now, event)
        case ev.AttemptScheduled():
            retry = now.retries.get(event.call)
            if retry is None or retry.attempt != event.attempt:
                raise Illegal("attempt", event, f"{event.call} has no failed try {event.attempt - 1}")
            timer = now.timers.get(event.timer)
            if timer is None or timer.call != event.call:
                raise Illegal("timer", event, f"{event.timer} is no pending timer of {event.call}")
            return now
        case ev.TimerSet():
            expect(event.timer not in now.timers, "timer", event, f"{event.timer} is set already")
            expect(event.seen < event.seq, "seen", event, "it claims to have seen the future")
            return _copy(
                now,
                timers={**now.timers, event.timer: Timer(event.call, event.fire_at)},
                seen=max(now.seen, event.seen),
            )
        case ev.TimerFired():
            return _timer_fired(now, event)
        case ev.TimerCancelled():
            # The clock may have been quicker; then there is nothing left to cancel, and nothing wrong.
            return _copy(now, timers=_without(now.timers, event.timer))
        case ev.SignalAwaited():
            return _awaited(now, event)
        case ev.SignalReceived():
            return _received(now, event)
        case ev.SignalAwaitAbandoned():
            return _copy(now, waits=_without(now.waits, event.call))
        case ev.MailQueued():
            return _copy(
                now,
                drive=event.seq,
                unsent={**now.unsent, event.ordinal: event.call},
                sent=now.sent | {event.message_id},
            )
        case ev.MailSent():
            return _copy(now, unsent=sent(now.unsent, event))
        case ev.MailFailed():
            if event.ordinal is UNSET:
                return _copy(now, drive=event.seq)
            return _copy(now, unsent=sent(now.unsent, event))
        case ev.ChildSpawned() | ev.ChildRefused() | ev.ChildCompleted() | ev.ChildCancelRequested() | ev.CodeRested():
            return _of_children(now, event)
        case _:
            assert_never(event)


def parked(now: Ledger) -> bool:
    """Whether the code waits for something outside: the log alone says so.

    A run that is being cancelled rests nowhere but at its end.
    """
    return not now.steps and now.seen >= now.drive and now.cancel is None and _awaits(now)


def _awaits(now: Ledger) -> bool:
    return bool(now.waits or now.timers) or any(not each.cancelling for each in now.children.values())


def _interrupted(now: Ledger, event: ev.RunInterrupted) -> Ledger:
    expect(not parked(now), "parked", event, "the run is parked: no child was driving it")
    expect(event.generation == now.generation, "generation", event, f"generation {now.generation} has the run")
    expect(event.attempt == now.attempts + 1, "attempt", event, f"{now.attempts} exits are counted")
    return _copy(now, attempts=event.attempt)


def _step_started(now: Ledger, event: ev.StepStarted) -> Ledger:
    if event.call in now.steps:
        raise Illegal("step-already-started", event, f"{event.call} is under way")
    retry = now.retries.get(event.call)
    if retry is None and event.attempt != 1:
        raise Illegal("attempt", event, f"{event.call} has no failed try {event.attempt - 1}")
    if retry is not None:
        expect(event.attempt == retry.attempt, "attempt", event, f"attempt {retry.attempt} of {event.call} is next")
        waits = any(timer.call == event.call for timer in now.timers.values())
        expect(not waits, "timer", event, f"{event.call} waits for its timer")
    return _copy(
        now,
        seq=event.seq,
        steps={**now.steps, event.call: OpenStep(event.step, event.attempt, event.arguments, event.at)},
        retries=_without(now.retries, event.call),
    )


def _step_failed(now: Ledger, event: ev.StepFailed) -> Ledger:
    step = _open_step(now, event)
    after = _copy(now, steps=_without(now.steps, event.call))
    if event.final:
        return _copy(after, drive=event.seq)
    error = ": ".join(filter(None, (event.error.type, event.error.message)))
    retry = Retry(step.step, step.attempt + 1, step.arguments, error)
    return _copy(after, retries={**now.retries, event.call: retry})


def _timer_fired(now: Ledger, event: ev.TimerFired) -> Ledger:
    wait = now.waits.get(event.call)
    if wait is not None and event.timer == event.call and wait.timeout_at is not None:
        return _copy(now, waits=_without(now.waits, event.call), drive=event.seq)
    expect(event.timer in now.timers, "timer", event, f"{event.timer} is no pending timer")
    return _copy(now, timers=_without(now.timers, event.timer), drive=event.seq)


def _awaited(now: Ledger, event: ev.SignalAwaited) -> Ledger:
    expect(event.call not in now.waits, "wait", event, f"{event.call} waits already")
    expect(event.seen < event.seq, "seen", event, "it claims to have seen the future")
    if event.park == "approval":
        expect(bool(event.who), "who", event, "an approval names who may answer")
        expect(event.request in now.sent, "request", event, f"{event.request!r} is no mail of this run")
    expect(bool(event.name) == (event.park == "signal"), "name", event, "a wait has a name if it is for a signal")
    kept = now.signals.get(event.name, ())
    if kept:  # it came before the wait
        left = {**now.signals, event.name: kept[1:]} if kept[1:] else _without(now.signals, event.name)
        return _copy(now, signals=left, drive=event.seq, seen=max(now.seen, event.seen))
    wait = Wait(
        event.park,
        event.title,
        event.who,
        event.request,
        None if event.timeout_at is UNSET else event.timeout_at,
        event.at,
        event.name,
        event.seq,
    )
    return _copy(now, waits={**now.waits, event.call: wait}, seen=max(now.seen, event.seen))


def _received(now: Ledger, event: ev.SignalReceived) -> Ledger:
    if event.name:
        return _signalled(now, event)
    expect(event.payload is UNSET, "payload", event, "a named signal alone has a payload")
    wait = None if event.call is UNSET else now.waits.get(event.call)
    if wait is None or event.call is UNSET:
        raise Illegal("wait", event, f"no wait is open at {event.call or 'no call'}")
    after = _copy(now, waits=_without(now.waits, event.call), drive=event.seq)
    expect(wait.park != "signal", "payload", event, "a wait for a signal is answered by one of its name")
    if wait.park == "approval":
        expect(event.decision is not UNSET, "payload", event, "an approval is answered by a decision")
    else:
        expect(event.mail is not UNSET, "payload", event, "an input park is answered by a mail")
    if event.mail is UNSET:
        return after
    return _copy(
        after,
        mails={**now.mails, event.mail.sha256: event.mail.arrival},
        received=(*now.received, event.mail.id),
    )


def _signalled(now: Ledger, event: ev.SignalReceived) -> Ledger:
    """A named signal: the oldest wait for its name takes it, or it is kept for the next one."""
    whole = event.payload is not UNSET and event.mail is UNSET and event.decision is UNSET
    expect(whole, "payload", event, "a named signal has a payload and nothing else")
    expect(event.signal not in now.signal_ids, "signal-known", event, f"signal {event.signal!r} came before")
    oldest = waiting_for(now, event.name)
    expect((oldest or UNSET) == event.call, "wait", event, f"the oldest wait for {event.name!r} is at {oldest}")
    after = _copy(now, signal_ids=(*now.signal_ids, event.signal)[-REMEMBERED:])
    if oldest is not None:
        return _copy(after, waits=_without(now.waits, oldest), drive=event.seq)
    return _copy(after, signals={**now.signals, event.name: (*now.signals.get(event.name, ()), event.seq)})


def waiting_for(now: Ledger, name: str) -> CallId | None:
    """The oldest open wait for the signal of this name."""
    return next((call for call, wait in now.waits.items() if wait.park == "signal" and wait.name == name), None)


def _of_children(
    now: Ledger,
    event: ev.ChildSpawned | ev.ChildRefused | ev.ChildCompleted | ev.ChildCancelRequested | ev.CodeRested,
) -> Ledger:
    match event:
        case ev.ChildSpawned():
            return _spawned(now, event)
        case ev.ChildRefused():
            return _copy(now, drive=event.seq)
        case ev.ChildCompleted():
            return _child_completed(now, event)
        case ev.ChildCancelRequested():
            child = now.children.get(event.call)
            # The child may have been quicker, as a clock may be.
            return now if child is None else _copy(now, children={**now.children, event.call: _ending(child)})
        case ev.CodeRested():
            expect(event.seen < event.seq, "seen", event, "it claims to have seen the future")
            return _copy(now, seen=max(now.seen, event.seen))
        case _:
            assert_never(event)


def _spawned(now: Ledger, event: ev.ChildSpawned) -> Ledger:
    expect(event.call not in now.children, "child", event, f"{event.call} has a child run already")
    expect(event.seen < event.seq, "seen", event, "it claims to have seen the future")
    child = ChildRun(event.child, event.workflow, event.arguments, event.at)
    return _copy(now, children={**now.children, event.call: child}, seen=max(now.seen, event.seen))


def _child_completed(now: Ledger, event: ev.ChildCompleted) -> Ledger:
    child = now.children.get(event.call)
    if child is None:
        raise Illegal("child", event, f"{event.call} has no child run that goes on")
    completed = event.outcome == "completed"
    expect((event.result is not UNSET) == completed, "result", event, "what completed has a result, and nothing else")
    expect((event.error is UNSET) == completed, "result", event, "what didn't complete says why")
    after = _copy(now, children=_without(now.children, event.call))
    # Of one that was cancelled nobody waits for the outcome: the code has nothing to do with it.
    return after if child.cancelling else _copy(after, drive=event.seq)


def _ending(child: ChildRun) -> ChildRun:
    return ChildRun(child.child, child.workflow, child.arguments, child.since, cancelling=True)


def _open_step(now: Ledger, event: ev.StepCompleted | ev.StepFailed | ev.CancelPropagated) -> OpenStep:
    step = now.steps.get(event.call)
    if step is None:
        raise Illegal("unknown-step", event, f"{event.call} is not under way")
    if step.attempt != event.attempt:
        raise Illegal("attempt", event, f"attempt {step.attempt} of {event.call} is under way")
    return step


def sent(unsent: Mapping[int, CallId], event: ev.MailSent | ev.MailFailed) -> Mapping[int, CallId]:
    """What is still unsent after a mail of the outbox has met its fate. Raises Illegal."""
    if event.ordinal is UNSET or unsent.get(event.ordinal) != event.call:
        raise Illegal("outbox", event, f"{event.call} has no such mail in the outbox")
    return _without(unsent, event.ordinal)


def expect(legal: bool, code: str, event: ev.AnyEvent, why: str) -> None:  # noqa: FBT001 - reads as a sentence
    """Raise Illegal unless it is legal."""
    if not legal:
        raise Illegal(code, event, why)


def _without(mapping: Mapping[K, V], key: K) -> Mapping[K, V]:
    if key not in mapping:
        return mapping
    return {k: v for k, v in mapping.items() if k != key}

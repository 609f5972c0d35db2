"""A run's state: a fold over its log and nothing else.

``evolve`` is the only transition there is: the substrate calls it before a commit (an illegal event is refused there)
and every reader calls it again. One class per state; what is open lives in the ledger that live states share.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias, TypeVar, assert_never

import msgspec
from msgspec import UNSET

from waypost.model import events as ev
from waypost.model.errors import WaypostError
from waypost.model.ids import CallId, Generation, RunId

_copy = msgspec.structs.replace
K = TypeVar("K")
V = TypeVar("V")


class Illegal(WaypostError):
    """The event may not follow: ``code`` names the rule, ``event`` the offender."""

    def __init__(self, code: str, event: ev.AnyEvent, why: str) -> None:
        super().__init__(f"{ev.kind(event)} is refused: {why}")
        self.code = code
        self.event = event


@dataclass(frozen=True, slots=True)
class OpenStep:
    """A try under way."""

    step: str
    attempt: int
    arguments: str
    since: str


@dataclass(frozen=True, slots=True)
class Retry:
    """A step between two tries; the next begins when the timer has fired."""

    step: str
    attempt: int
    arguments: str
    error: str


@dataclass(frozen=True, slots=True)
class Timer:
    """A pending timer; ``fire_at`` in Unix milliseconds."""

    call: CallId
    fire_at: int


@dataclass(frozen=True, slots=True)
class Wait:
    """An open park; ``timeout_at`` in Unix milliseconds, None for an explicit "no deadline"."""

    park: str
    title: str
    who: tuple[str, ...]
    request: str
    timeout_at: int | None
    since: str


class Ledger(msgspec.Struct, frozen=True, kw_only=True):
    """What is open in a live run. Mappings keep the order in which things were opened; they are never mutated.

    A struct where the other states are dataclasses: it is copied twice for every event, and this copy is ten times as
    quick.
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

    @property
    def open_calls(self) -> int:
        """How many calls have no outcome yet."""
        return len(self.steps) + len(self.retries) + len(self.timers) + len(self.waits)


@dataclass(frozen=True, slots=True)
class Absent:
    """No event yet."""


@dataclass(frozen=True, slots=True)
class Driven:
    """The code has something to do: a new child is given this run at once."""

    ledger: Ledger


@dataclass(frozen=True, slots=True)
class Parked:
    """The code waits for something outside; a new child is given this run when that comes."""

    ledger: Ledger


@dataclass(frozen=True, slots=True)
class Paused:
    """The run waits for an operator. Results of calls under way are still taken."""

    ledger: Ledger
    code: str
    detail: str


@dataclass(frozen=True, slots=True)
class Ended:
    """Nothing may follow. ``outcome`` is ``completed`` or ``failed``."""

    run: RunId
    seq: int
    outcome: str
    started: ev.RunStarted
    unsent: Mapping[int, CallId] = field(default_factory=dict)
    sent: frozenset[str] = frozenset()
    received: tuple[str, ...] = ()


Live: TypeAlias = Driven | Parked | Paused
Run: TypeAlias = Absent | Live | Ended


def evolve(run: Run, event: ev.AnyEvent, *, run_id: RunId) -> Run:
    """The state after ``event``, whose ``seq`` must be set. Raises Illegal; the state it was given stays good."""
    match run:
        case Absent():
            return _begin(event, run_id)
        case Ended():
            return _after_the_end(run, event)
        case Driven() | Parked() | Paused():
            if event.seq != run.ledger.seq + 1:
                raise Illegal("sequence", event, f"seq {run.ledger.seq + 1} comes next")
            if isinstance(run, Paused):
                return _while_paused(run, event)
            return _settle(run.ledger, event)
        case _:
            assert_never(run)


def ledger(run: Run) -> Ledger | None:
    """The ledger of a live run; None when it is absent or ended."""
    return None if isinstance(run, Absent | Ended) else run.ledger


# --- by state ------------------------------------------------------------------------------------------------------


def _begin(event: ev.AnyEvent, run_id: RunId) -> Run:
    if not isinstance(event, ev.RunStarted):
        raise Illegal("phase", event, "the run has no RunStarted")
    _expect(event.seq == 1, "sequence", event, "seq 1 comes first")
    return Driven(
        Ledger(
            run=run_id,
            seq=1,
            drive=1,
            seen=0,
            generation=event.generation,
            attempts=0,
            started=event,
            mails={event.mail.sha256: event.mail.arrival},
            received=(event.mail.id,),
        )
    )


def _after_the_end(run: Ended, event: ev.AnyEvent) -> Run:
    # A run's last mail may still be on its way when the run ends: its fate is the one thing that may follow.
    if not isinstance(event, ev.MailSent | ev.MailFailed):
        raise Illegal("terminal", event, f"the run has {run.outcome}")
    _expect(event.seq == run.seq + 1, "sequence", event, f"seq {run.seq + 1} comes next")
    return replace(run, seq=event.seq, unsent=_sent(run.unsent, event))


def _while_paused(run: Paused, event: ev.AnyEvent) -> Run:
    match event:
        case ev.RunUnpaused():
            return Driven(_copy(run.ledger, seq=event.seq, drive=event.seq, attempts=0))
        case (
            ev.StepCompleted()
            | ev.StepFailed()
            | ev.AttemptScheduled()
            | ev.TimerFired()
            | ev.MailSent()
            | ev.MailFailed()
            | ev.RunFailed()
        ):
            pass
        case ev.TimerSet() if event.timer != event.call:
            pass  # the back-off of a try that was under way
        case _:
            raise Illegal("paused", event, f"the run is paused ({run.code})")
    after = _settle(run.ledger, event)
    return after if isinstance(after, Ended) else replace(run, ledger=after.ledger)


def _settle(before: Ledger, event: ev.AnyEvent) -> Driven | Parked | Paused | Ended:
    if isinstance(event, ev.RunCompleted | ev.RunFailed):
        outcome = "completed" if isinstance(event, ev.RunCompleted) else "failed"
        return Ended(before.run, event.seq, outcome, before.started, before.unsent, before.sent, before.received)
    after = _copy(_apply(before, event), seq=event.seq)
    if isinstance(event, ev.RunPaused):
        return Paused(after, event.code, event.detail)
    idle = not after.steps and after.seen >= after.drive and (after.waits or after.timers)
    if not idle:
        return Driven(after)
    return Parked(_copy(after, attempts=0) if after.attempts else after)  # it came through: exits count anew


# --- by event ------------------------------------------------------------------------------------------------------


def _apply(now: Ledger, event: ev.Ongoing) -> Ledger:  # noqa: C901, PLR0911, PLR0912 - one arm per kind of event
    match event:
        case ev.RunStarted():
            raise Illegal("phase", event, "the run has begun already")
        case ev.RunUnpaused():
            raise Illegal("phase", event, "the run is not paused")
        case ev.RunPaused():
            return now
        case ev.RunResumed():
            _expect(event.generation > now.generation, "generation", event, f"{now.generation} is at work already")
            return _copy(now, generation=event.generation, attempts=event.attempt)
        case ev.StepStarted():
            return _step_started(now, event)
        case ev.StepCompleted():
            _open_step(now, event)
            return _copy(now, steps=_without(now.steps, event.call), drive=event.seq, attempts=0)
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
            _expect(event.timer not in now.timers, "timer", event, f"{event.timer} is set already")
            _expect(event.seen < event.seq, "seen", event, "it claims to have seen the future")
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
            return _copy(now, unsent=_sent(now.unsent, event))
        case ev.MailFailed():
            if event.ordinal is UNSET:
                return _copy(now, drive=event.seq)
            return _copy(now, unsent=_sent(now.unsent, event))
        case _:
            assert_never(event)


def _step_started(now: Ledger, event: ev.StepStarted) -> Ledger:
    if event.call in now.steps:
        raise Illegal("step-already-started", event, f"{event.call} is under way")
    retry = now.retries.get(event.call)
    if retry is None and event.attempt != 1:
        raise Illegal("attempt", event, f"{event.call} has no failed try {event.attempt - 1}")
    if retry is not None:
        _expect(event.attempt == retry.attempt, "attempt", event, f"attempt {retry.attempt} of {event.call} is next")
        waits = any(timer.call == event.call for timer in now.timers.values())
        _expect(not waits, "timer", event, f"{event.call} waits for its timer")
    return _copy(
        now,
        steps={**now.steps, event.call: OpenStep(event.step, event.attempt, event.arguments, event.at)},
        retries=_without(now.retries, event.call),
    )


def _step_failed(now: Ledger, event: ev.StepFailed) -> Ledger:
    step = _open_step(now, event)
    after = _copy(now, steps=_without(now.steps, event.call))
    if event.final:
        return _copy(after, drive=event.seq)
    retry = Retry(step.step, step.attempt + 1, step.arguments, f"{event.error.type}: {event.error.message}")
    return _copy(after, retries={**now.retries, event.call: retry})


def _timer_fired(now: Ledger, event: ev.TimerFired) -> Ledger:
    wait = now.waits.get(event.call)
    if wait is not None and event.timer == event.call and wait.timeout_at is not None:
        return _copy(now, waits=_without(now.waits, event.call), drive=event.seq)
    _expect(event.timer in now.timers, "timer", event, f"{event.timer} is no pending timer")
    return _copy(now, timers=_without(now.timers, event.timer), drive=event.seq)


def _awaited(now: Ledger, event: ev.SignalAwaited) -> Ledger:
    _expect(event.call not in now.waits, "wait", event, f"{event.call} waits already")
    _expect(event.seen < event.seq, "seen", event, "it claims to have seen the future")
    if event.park == "approval":
        _expect(bool(event.who), "who", event, "an approval names who may answer")
        _expect(event.request in now.sent, "request", event, f"{event.request!r} is no mail of this run")
    wait = Wait(
        event.park,
        event.title,
        event.who,
        event.request,
        None if event.timeout_at is UNSET else event.timeout_at,
        event.at,
    )
    return _copy(now, waits={**now.waits, event.call: wait}, seen=max(now.seen, event.seen))


def _received(now: Ledger, event: ev.SignalReceived) -> Ledger:
    wait = now.waits.get(event.call)
    if wait is None:
        raise Illegal("wait", event, f"no wait is open at {event.call}")
    after = _copy(now, waits=_without(now.waits, event.call), drive=event.seq)
    if wait.park == "approval":
        _expect(event.decision is not UNSET, "payload", event, "an approval is answered by a decision")
    else:
        _expect(event.mail is not UNSET, "payload", event, "an input park is answered by a mail")
    if event.mail is UNSET:
        return after
    return _copy(
        after,
        mails={**now.mails, event.mail.sha256: event.mail.arrival},
        received=(*now.received, event.mail.id),
    )


def _open_step(now: Ledger, event: ev.StepCompleted | ev.StepFailed) -> OpenStep:
    step = now.steps.get(event.call)
    if step is None:
        raise Illegal("unknown-step", event, f"{event.call} is not under way")
    if step.attempt != event.attempt:
        raise Illegal("attempt", event, f"attempt {step.attempt} of {event.call} is under way")
    return step


def _sent(unsent: Mapping[int, CallId], event: ev.MailSent | ev.MailFailed) -> Mapping[int, CallId]:
    if event.ordinal is UNSET or unsent.get(event.ordinal) != event.call:
        raise Illegal("outbox", event, f"{event.call} has no such mail in the outbox")
    return _without(unsent, event.ordinal)


def _expect(legal: bool, code: str, event: ev.AnyEvent, why: str) -> None:  # noqa: FBT001 - reads as a sentence
    if not legal:
        raise Illegal(code, event, why)


def _without(mapping: Mapping[K, V], key: K) -> Mapping[K, V]:
    if key not in mapping:
        return mapping
    return {k: v for k, v in mapping.items() if k != key}

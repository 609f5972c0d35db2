"""What one call of a run is up to: the code's wish matched with the log's events.

Pure decisions: the state of a call after the code gave it up, or after an event of it. A call whose recorded form
differs from what the code now asks is a Mismatch. Nothing here knows whether it replays.
"""

from typing import TypeAlias, assert_never

import msgspec

from waypost.authoring.requests import (
    AwaitDecision,
    AwaitMail,
    AwaitSignal,
    CallChild,
    CallStep,
    Quit,
    Request,
    Send,
    Sleep,
    describe,
)
from waypost.child.errors import Mismatch
from waypost.model import events as ev
from waypost.model.ids import CallId

# --- the states of one call ----------------------------------------------------------------------------------------


class Wanted(msgspec.Struct, frozen=True):
    """The code asked; the log has nothing yet and the host hasn't been asked."""

    request: Request
    attempt: int = 1
    """Of a step: the try that is to begin."""


class Proposed(msgspec.Struct, frozen=True):
    """The host has been asked; the log has nothing yet."""

    request: Request
    attempt: int = 1


class Skipped(msgspec.Struct, frozen=True):
    """The code gave up before the host was asked; it won't be, but the log may show that an earlier child did."""

    request: Request


class Trying(msgspec.Struct, frozen=True):
    """A try of a step is recorded as begun."""

    request: CallStep
    attempt: int


class Failed(msgspec.Struct, frozen=True):
    """A try failed and another is due; its back-off isn't recorded yet. ``attempt`` is the failed one."""

    request: CallStep
    attempt: int


class BackingOff(msgspec.Struct, frozen=True):
    """A step between two tries; ``attempt`` is the next one."""

    request: CallStep
    attempt: int


class Orphan(msgspec.Struct, frozen=True):
    """A try of a step that nobody waits for any more; its result is taken and leads nowhere."""

    request: CallStep
    attempt: int


class Pending(msgspec.Struct, frozen=True):
    """A timer, a wait or a child run is recorded as open; ``child``: which run that is."""

    request: Request
    child: str = ""


class Unwanted(msgspec.Struct, frozen=True):
    """A timer, wait or child run that the code gave up; the host hasn't been told."""

    request: Request


class Leaving(msgspec.Struct, frozen=True):
    """A timer, wait or child run that the code gave up; the host has been told. An answer may cross that message."""

    request: Request


class Closed(msgspec.Struct, frozen=True):
    """The log holds the outcome."""


State: TypeAlias = (
    Wanted | Proposed | Skipped | Trying | Failed | BackingOff | Orphan | Pending | Unwanted | Leaving | Closed
)


# --- decisions -----------------------------------------------------------------------------------------------------

Next: TypeAlias = tuple[State, Request | None]
"""A call's next state, and its request where the event was its outcome."""


def given_up(state: State) -> State:  # noqa: PLR0911 - one arm per state
    """The state after the code stopped waiting. A step goes on and a mail is sent: only waiting can be called off.

    So can a child run, once it is there: of one that is asked for nobody knows yet whether it will be.
    """
    match state:
        case Wanted(request, attempt):
            return Skipped(request) if attempt == 1 else Closed()
        case Proposed(CallStep() as request, attempt):
            return Orphan(request, attempt)
        case Proposed(Send() | Quit() | CallChild() as request):
            return Skipped(request)
        case Proposed(request):
            return Unwanted(request)
        case Trying(request, attempt):
            return Orphan(request, attempt)
        case Failed() | BackingOff():
            return Closed()
        case Pending(request):
            return Unwanted(request)
        case Skipped() | Orphan() | Unwanted() | Leaving() | Closed():
            return state
        case _:
            assert_never(state)


def recorded(call: CallId, before: State | None, event: ev.AnyEvent) -> Next:  # noqa: C901 - one arm per state
    """The state of a call after an event of it, and its request where the event is the outcome. Raises Mismatch."""
    found: Next | None
    match before:
        case None | Closed():
            found = None
        case Wanted(request, attempt) | Proposed(request, attempt):
            found = _opened(request, attempt, event)
        case Skipped(request):
            found = _opened(request, 1, event)
            found = None if found is None else (given_up(found[0]), found[1])
        case Trying(request, attempt):
            found = _tried(request, attempt, event)
        case Orphan(request, attempt):
            found = _orphaned(before, request, attempt, event)
        case Failed(request, attempt):
            found = (BackingOff(request, attempt + 1), None) if isinstance(event, ev.TimerSet) else None
        case BackingOff(request, attempt):
            found = _backed_off(before, request, attempt, event)
        case Pending(request):
            found = _waited(request, event)
        case Unwanted(request) | Leaving(request):
            found = _left(before, request, event)
        case _:
            assert_never(before)
    if found is None:
        raise Mismatch(call, shown(event), asked(before))
    return found


def _opened(  # noqa: PLR0911 - one arm per kind of request
    request: Request, attempt: int, event: ev.AnyEvent
) -> Next | None:
    """The first record of a call, or of a step's next try; None where it isn't what the code asks for."""
    match request, event:
        case CallStep(), ev.StepStarted():
            same = (event.step, event.arguments, event.attempt) == (request.spec.name, request.digest, attempt)
            return (Trying(request, attempt), None) if same else None
        case Sleep(), ev.TimerSet():
            return Pending(request), None
        case AwaitMail(), ev.SignalAwaited(park="input"):
            return Pending(request), None
        case AwaitSignal(), ev.SignalAwaited(park="signal"):
            return (Pending(request), None) if event.name == request.name else None
        case Quit(), ev.CancelRequested():
            return Closed(), None
        case AwaitDecision(), ev.SignalAwaited(park="approval"):
            return (Pending(request), None) if event.who == request.who else None
        case Send(), ev.MailQueued() | ev.MailFailed():
            return Closed(), request
        case CallChild(spec, _, digest), ev.ChildSpawned(workflow=name, arguments=arguments, child=child):
            return (Pending(request, child), None) if (name, arguments) == (spec.name, digest) else None
        case CallChild(spec), ev.ChildRefused(workflow=name):
            return (Closed(), request) if name == spec.name else None
        case _:
            return None


def _tried(request: CallStep, attempt: int, event: ev.AnyEvent) -> Next | None:
    match event:
        case ev.StepCompleted():
            return Closed(), request
        case ev.StepFailed():
            return (Closed(), request) if event.final else (Failed(request, attempt), None)
        case ev.CancelPropagated():
            return Closed(), None
        case _:
            return None


def _orphaned(before: State, request: CallStep, attempt: int, event: ev.AnyEvent) -> Next | None:
    if isinstance(event, ev.StepStarted):
        return None if _opened(request, attempt, event) is None else (before, None)
    found = _tried(request, attempt, event)
    return None if found is None else (Closed(), None)


def _backed_off(before: State, request: CallStep, attempt: int, event: ev.AnyEvent) -> Next | None:
    match event:
        case ev.AttemptScheduled():
            return before, None
        case ev.TimerFired():
            return Wanted(request, attempt), None
        case _:
            return None


def _waited(request: Request, event: ev.AnyEvent) -> Next | None:
    match event:
        case ev.TimerFired():
            return Closed(), request
        case ev.SignalReceived() if isinstance(request, AwaitMail | AwaitDecision | AwaitSignal):
            return Closed(), request
        case ev.ChildCompleted() if isinstance(request, CallChild):
            return Closed(), request
        case _:
            return None


def _left(before: State, request: Request, event: ev.AnyEvent) -> Next | None:
    """Of a wait that the code gave up. An answer counts all the same: a mail must not be lost."""
    match event:
        case ev.TimerCancelled() | ev.SignalAwaitAbandoned():
            return Closed(), None
        case ev.ChildCancelRequested():
            return Leaving(request), None  # its end is still to come, and leads nowhere
        case ev.ChildCompleted() if isinstance(request, CallChild):
            return Closed(), None
        case ev.TimerSet() | ev.SignalAwaited():
            return None if _opened(request, 1, event) is None else (before, None)
        case _:
            return _waited(request, event)


# --- words ---------------------------------------------------------------------------------------------------------


def shown(event: ev.AnyEvent) -> str:  # noqa: PLR0911 - one arm per kind of event
    """An event in words, as a mismatch shows it."""
    match event:
        case ev.StepStarted():
            return f"step {event.step} (attempt {event.attempt}, arguments {event.arguments[:12]})"
        case ev.TimerSet():
            return "a sleep or timeout"
        case ev.SignalAwaited(park="approval"):
            return f"approve(who={', '.join(event.who)})"
        case ev.SignalAwaited(park="signal"):
            return f"signal({event.name!r})"
        case ev.SignalAwaited():
            return "receive()"
        case ev.CancelRequested():
            return "cancel()"
        case ev.MailQueued():
            return f"send(to={', '.join(event.to)})"
        case ev.ChildSpawned():
            return f"child {event.workflow} (arguments {event.arguments[:12]})"
        case ev.ChildRefused():
            return f"child {event.workflow}, refused"
        case _:
            return ev.kind(event)


def asked(state: State | None) -> str:
    """What the code does at a call, in words; empty where it does nothing."""
    match state:
        case None | Closed():
            return ""
        case Wanted(CallStep() as request, attempt) | Proposed(CallStep() as request, attempt):
            return f"step {request.spec.name} (attempt {attempt}, arguments {request.digest[:12]})"
        case Wanted(CallChild() as request) | Proposed(CallChild() as request):
            return f"child {request.spec.name} (arguments {request.digest[:12]})"
        case _:
            return describe(state.request)

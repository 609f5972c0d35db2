"""The calls of one run by identity: what the code wants of the host, and what is under way.

Live and in replay the same two streams come together here, the code's commands and the log's events. ``proposals``,
``adopt`` and what follows from answers are for live runs alone.
"""

from collections.abc import Iterator
from typing import assert_never

import msgspec
from msgspec import UNSET, UnsetType

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
)
from waypost.child.program import Asked, Command, GaveUp
from waypost.child.replay import (
    Closed,
    Failed,
    Leaving,
    Orphan,
    Pending,
    Proposed,
    State,
    Trying,
    Unwanted,
    Wanted,
    given_up,
    recorded,
)
from waypost.model import events as ev
from waypost.model.ids import CallId


class Reached(msgspec.Struct, frozen=True):
    """An event is the outcome of a call: the code is to be given it."""

    call: CallId
    request: Request
    event: ev.AnyEvent
    child: str = ""
    """The child run whose outcome it is."""


class Try(msgspec.Struct, frozen=True):
    """The body of a step is to run."""

    call: CallId
    request: CallStep
    attempt: int


class Asking(msgspec.Struct, frozen=True):
    """A mail, a child run or the run's own end is to be asked for: its event is the host's to write."""

    call: CallId
    request: Send | CallChild | Quit


_WISHED = frozenset((Wanted, Unwanted))
_MOVING = frozenset((Wanted, Proposed, Trying, Failed, Orphan, Unwanted))


class Calls:
    """The calls of one run, by identity, in the order in which the code made them."""

    def __init__(self) -> None:
        self._open: dict[CallId, State] = {}
        self._closed: set[CallId] = set()
        self._wishes: dict[CallId, None] = {}
        """Those of the open calls for which something is to be proposed: a run may have thousands of others."""

    def state(self, call: CallId) -> State | None:
        """Where a call stands; None for one that the code never made."""
        return Closed() if call in self._closed else self._open.get(call)

    @property
    def settled(self) -> bool:
        """Whether every call that is open rests in the log: nothing is on its way to it, and no try is under way."""
        return _MOVING.isdisjoint(map(type, self._open.values()))

    def take(self, commands: tuple[Command, ...]) -> None:
        """Note what a turn of the code asked for."""
        for command in commands:
            match command:
                case Asked(call, request):
                    self._move(call, Wanted(request))
                case GaveUp(call):
                    before = self._open.get(call)
                    if before is not None:
                        self._move(call, given_up(before))
                case _:
                    assert_never(command)

    def record(self, event: ev.AnyEvent) -> Reached | None:
        """Take one event of the log. Raises Mismatch when the code did something else at that call."""
        call = ev.call_of(event)
        if call is None or call in self._closed:
            return None
        before = self._open.get(call)
        after, request = recorded(call, before, event)
        if after != before:
            self._move(call, after)
        if request is None:
            return None
        return Reached(call, request, event, before.child if isinstance(before, Pending) else "")

    def proposals(self, seen: int) -> Iterator[ev.AnyEvent | Asking]:
        """What a live run asks its host for now, in the order of the code; each is given out once.

        ``seen``: seq of the newest event that the code was given.
        """
        for call in tuple(self._wishes):
            match self._open.get(call):
                case Wanted(request, attempt):
                    self._move(call, Proposed(request, attempt))
                    yield _opening(call, request, attempt, seen)
                case Unwanted(request):
                    self._move(call, Leaving(request))
                    yield _closing(call, request)
                case _:
                    pass

    def adopt(self) -> Iterator[Try]:
        """The tries that an earlier child left under way: they go on here when the run goes live.

        Also those that the code no longer waits for: a step that began comes to its end in the child that began it,
        too, and one that never does would have its run count as at work for ever.
        """
        for call, state in self._open.items():
            if isinstance(state, Trying | Orphan):
                yield Try(call, state.request, state.attempt)

    def without_back_off(self) -> Iterator[tuple[CallId, int]]:
        """Steps whose failed try has no timer in the log, and the number of that try; only a cut log has any."""
        for call, state in self._open.items():
            if isinstance(state, Failed):
                yield call, state.attempt

    def refused(self, call: CallId) -> None:
        """The host didn't take what was proposed for this call: it is to be proposed again later."""
        match self._open.get(call):
            case Proposed(request, attempt):
                self._move(call, Wanted(request, attempt))
            case Leaving(request):
                self._move(call, Unwanted(request))
            case Orphan(request, attempt):  # it was cut off before it had begun: the log has nothing of it
                self._move(call, given_up(Wanted(request, attempt)))
            case _:
                pass

    def tries(self, events: tuple[ev.AnyEvent, ...]) -> Iterator[Try]:
        """The tries that these accepted proposals begin."""
        for event in events:
            if not isinstance(event, ev.StepStarted):
                continue
            match self._open.get(event.call):
                case Proposed(CallStep() as request) | Trying(request) | Orphan(request):
                    yield Try(event.call, request, event.attempt)
                case _:
                    pass

    def _move(self, call: CallId, after: State) -> None:
        if type(after) is Closed:
            self._open.pop(call, None)
            self._closed.add(call)
        else:
            self._open[call] = after
        if type(after) in _WISHED:
            self._wishes[call] = None
        else:
            self._wishes.pop(call, None)


def _opening(call: CallId, request: Request, attempt: int, seen: int) -> ev.AnyEvent | Asking:
    match request:
        case CallStep():
            return ev.StepStarted(call=call, step=request.spec.name, attempt=attempt, arguments=request.digest)
        case Sleep():
            return ev.TimerSet(call=call, timer=call, delay=request.delay, seen=seen)
        case AwaitMail():
            return ev.SignalAwaited(call=call, park="input", seen=seen, timeout=_or_unset(request.timeout))
        case AwaitDecision():
            return ev.SignalAwaited(
                call=call,
                park="approval",
                seen=seen,
                title=request.title,
                who=request.who,
                request=request.request,
                snapshot=UNSET if request.snapshot is None else msgspec.Raw(request.snapshot),
                timeout=_or_unset(request.timeout),
            )
        case AwaitSignal():
            timeout = _or_unset(request.timeout)
            return ev.SignalAwaited(call=call, park="signal", seen=seen, name=request.name, timeout=timeout)
        case Quit() | Send() | CallChild():
            return Asking(call, request)
        case _:
            assert_never(request)


def _closing(call: CallId, request: Request) -> ev.AnyEvent:
    if isinstance(request, Sleep):
        return ev.TimerCancelled(call=call, timer=call)
    if isinstance(request, CallChild):
        return ev.ChildCancelRequested(call=call)
    return ev.SignalAwaitAbandoned(call=call)


def _or_unset(timeout: float | None) -> float | UnsetType:
    return UNSET if timeout is None else timeout

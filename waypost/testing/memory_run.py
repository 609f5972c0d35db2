"""A run without processes: a Drive whose effects go into a MemoryLog, step bodies in place, one effect at a time.

What a host and a child do between them, in one thread and in one order, so that a test can stop after any event and
go on with a new drive, as after a crash.
"""

import asyncio
import random
from collections import deque
from collections.abc import Callable
from contextvars import Context
from typing import Any

from msgspec.structs import replace

from waypost.authoring.requests import CallChild, Quit, Send
from waypost.authoring.scope import InStep, enter
from waypost.authoring.workflow import Workflow
from waypost.child import effects as fx
from waypost.child import faults
from waypost.child.drive import Drive
from waypost.child.entry import Entry
from waypost.child.loop import WorkflowLoop
from waypost.child.phase import Phase
from waypost.child.program import Program, Turn
from waypost.model import events as ev
from waypost.model.ids import CallId
from waypost.model.limits import DEFAULT
from waypost.model.run import Illegal
from waypost.testing.memory_log import MemoryLog

Kin = Callable[[bytes], bytes | ev.Fault]
"""What a child run comes to, from its arguments as JSON: its result as JSON, or how it fails."""
TIMER_FIRST = 0.3
LIMITS = replace(DEFAULT, retry_first=0.02)


class MemoryRun:
    """One child's view of a run.

    ``done`` lists (step, attempt, key) of every body that ran, over all children; ``chance`` decides which of several
    bodies ends first, or child runs where ``kin`` says what these come to.
    """

    def __init__(
        self,
        workflow: Workflow,
        log: MemoryLog,
        *,
        done: list[tuple[str, int, str]] | None = None,
        chance: random.Random | None = None,
        kin: Kin | None = None,
    ) -> None:
        self.workflow = workflow
        self.log = log
        self.done = [] if done is None else done
        self.pauses: list[str] = []
        self.progress: list[str] = []
        self.called_off: list[CallId] = []
        self._effects: deque[fx.Effect] = deque()
        self._bodies: list[fx.Body] = []
        self._chance = chance
        self._kin = kin
        self.drive = Drive(
            log.run,
            last_seq=len(log.stored),
            repository=log.repository,
            workflow=workflow,
            limits=LIMITS,
            program=self._program,
        )
        self._told = len(log.stored)
        self.drive.page(log.events)
        self.settle()
        self.drive.live()

    def _program(self, entry: Entry, on_turn: Callable[[Turn], None]) -> Program:
        return WorkflowLoop.create(entry, on_turn)

    def settle(self, *, events: int | None = None) -> bool:
        """Perform effects until none is left, or the log has so many events (then False: killed there)."""
        while True:
            self._tell()
            self._effects.extend(self.drive.effects())
            if events is not None and len(self.log.stored) >= events:
                return False
            if self._effects:
                self._perform(self._effects.popleft())
            elif not self.log.ended and (self._bodies or self._children):
                self._some_body_ends()
            else:
                return True

    def abandon(self) -> None:
        """The child is gone; its code is let go of, so that it doesn't wait for the garbage collector."""
        self.drive.drop()

    def _tell(self) -> None:
        news = [event for event, _ in self.log.stored[self._told :]]
        self._told += len(news)
        if news and self.drive.phase is not Phase.LEFT:
            self.drive.committed(news)

    def _perform(self, effect: fx.Effect) -> None:
        match effect:
            case fx.Append(events):
                self._append(events)
            case fx.Ask(call, request):
                self._ask(effect)
                self.drive.answered(call, request, None)
            case fx.Fetch(sha256):
                self.drive.fetched(sha256, self.log.blobs[sha256])
            case fx.Keep(sha256, raw):
                self.log.blobs[sha256] = raw
                self.drive.kept(sha256, None)
            case fx.Body():
                self._bodies.append(effect)
            case fx.Pause(detail, code):
                self.pauses.append(detail)
                paused: Any = code  # one of the event's own
                self.log.append([ev.RunPaused(code=paused, detail=detail)])
            case fx.CallOff(call):
                self.called_off.append(call)
                self._bodies = [body for body in self._bodies if body.step.call != call or self._stopped(body)]
            case fx.Credit() | fx.Leave() | fx.Starve():
                pass

    def _ask(self, ask: fx.Ask) -> None:
        match ask.request:
            case Send(to=to):
                self.log.queue_mail(ask.call, to)
            case Quit(reason):
                self.log.append([ev.CancelRequested(origin="self", reason=reason, call=ask.call)])
            case CallChild(spec, raw):
                self.log.spawn(ask.call, spec.name, raw, seen=ask.seen)

    def _append(self, events: tuple[ev.AnyEvent, ...]) -> None:
        try:
            self.log.append(ev.decode(ev.proposed(event)) for event in events)
        except Illegal as refused:
            self._tell()
            self.drive.appended(events, str(refused), refused.code)
        else:
            self._tell()
            self.drive.appended(events, None, "")

    def _stopped(self, body: fx.Body) -> bool:
        """A body that is called off before it has run ends without running."""
        error = asyncio.CancelledError()
        spec = body.step.request.spec
        self.drive.body_ended(body.step, fx.Errored(faults.of_step(error, spec), answer=False))
        return False

    @property
    def _children(self) -> tuple[CallId, ...]:
        return () if self._kin is None else tuple(self.log.ledger.children)

    def _some_body_ends(self) -> None:
        """The oldest body; with ``chance`` any, or any child run, or a timer is quicker than all of them."""
        if self._chance is not None and self.log.ledger.timers and self._chance.random() < TIMER_FIRST:
            self.log.fire()
            return
        children = self._children
        which = 0 if self._chance is None else self._chance.randrange(len(self._bodies) + len(children))
        if which < len(self._bodies):
            self._body(self._bodies.pop(which))
        else:
            self._child_ends(children[which - len(self._bodies)])

    def _child_ends(self, call: CallId) -> None:
        assert self._kin is not None
        if self.log.ledger.children[call].cancelling:
            self.log.child_ended(call, outcome="cancelled", error=ev.Fault(type="RunCancelled", message="let go"))
            return
        came = self._kin(self.log.inputs[call])
        if isinstance(came, bytes):
            self.log.child_ended(call, result=came)
        else:
            self.log.child_ended(call, error=came)

    def _body(self, body: fx.Body) -> None:
        request = body.step.request
        self.done.append((request.spec.name, body.step.attempt, body.key))
        end: fx.BodyEnd
        try:
            value = _in_step(
                InStep(body.key, self.progress.append), request.spec.function, request.args, request.kwargs
            )
            end = fx.Completed(request.spec.codec.store(value).raw)
        except BaseException as error:  # noqa: BLE001 - as the runtime does
            end = fx.Errored(faults.of_step(error, request.spec), faults.is_answer(error, request.spec))
        self.drive.body_ended(body.step, end)


def _in_step(scope: InStep, function: Callable[..., Any], args: Any, kwargs: Any) -> Any:
    def call() -> Any:
        enter(scope)
        return function(*args, **kwargs)

    return Context().run(call)

"""A dispatch at work, without actors: its decision over the substrate's real rules, one message at a time.

Nothing happens by itself: requests are answered, facts told and flushes made when a test says so.
"""

from collections import deque
from typing import Any

import msgspec

from actors.credentials import Barred
from actors.draining import RecycleRequested, Rested, StillExecuting, Takes, TookUp
from actors.effects import Ask, ToKeeper, ToSupervisor
from actors.exits import ExitCounted
from actors.logic.dispatch.card import Broken, Up, Waning
from actors.logic.dispatch.decision import advance
from actors.logic.dispatch.state import Open, State, Unopened
from actors.logic.dispatch.turn import Setup
from actors.messages import GenerationDown, GenerationUp, Send
from ipc.messages import RunStart
from substrate.messages import (
    Append,
    BeginGeneration,
    Done,
    Enqueue,
    Outcome,
    Start,
    WorkflowProcess,
)
from waypost.acting import Tell, WakeAt
from waypost.model import events as ev
from waypost.model.ids import CallId, Generation, RunId
from waypost.model.limits import Limits
from waypost.model.times import Now
from waypost.testing.paper import Paper

HASH = "a" * 64
BOSS = "boss@example.com"
START = Start(definition=HASH, code=HASH, python="3.11", waypost="0", mail_to=(BOSS,))
RUN = RunId("run_1_0000000000000001")
"""The first run of a bench."""
NOW = Now(0, 50.0)
CHILD: Any = "child"  # a word stands for the ref: a decision only hands it on


class Bench:
    """A dispatch and a paper substrate; requests are answered only when a test says so."""

    def __init__(self, limits: Limits | None = None, paper: Paper | None = None, setup: Setup | None = None) -> None:
        self.limits = limits or Limits()
        self.paper = paper or Paper(limits=self.limits)
        self.paper.taken()
        self.state: State = Unopened(setup or Setup(start=START, limits=self.limits))
        self.requests: deque[Ask] = deque()
        self.sent: list[Any] = []
        self.wakes: list[WakeAt] = []
        self.counted: list[ExitCounted] = []
        self.draining: list[StillExecuting] = []
        """What the supervisor was told."""
        self.rested: list[int | None] = []
        """What it has said of whether all is at rest."""
        self.took_up: list[TookUp] = []
        """That it has, where it was told to take up mail."""
        self.recycles: list[RecycleRequested] = []
        """What it was asked for."""
        self.wanted: list[ToKeeper] = []
        """What the keeper of credentials was asked."""
        self.barred: list[str] = []
        """Why no run is given to the child, as the supervisor was told."""
        self.now = NOW
        self._published: list[Any] = []
        self.tell(self.paper.snapshot())

    def tell(self, message: Any) -> None:  # noqa: C901 - one line per effect
        """One message, and its effects sorted."""
        following = advance(self.state, message, self.now)
        self.state = following.state
        for effect in following.effects:
            match effect:
                case Ask():
                    self.requests.append(effect)
                case Tell(_ref, Send() as send):
                    self.sent.extend(send.payloads)
                case WakeAt():
                    self.wakes.append(effect)
                case ToSupervisor(ExitCounted() as counted):
                    self.counted.append(counted)
                case ToSupervisor(StillExecuting() as told):
                    self.draining.append(told)
                case ToSupervisor(Rested(position=position)):
                    self.rested.append(position)
                case ToSupervisor(TookUp() as done):
                    self.took_up.append(done)
                case ToSupervisor(Barred(why=why)):
                    self.barred.append(why)
                case ToKeeper():
                    self.wanted.append(effect)
                case ToSupervisor(RecycleRequested() as wish):
                    self.recycles.append(wish)
                case _:
                    raise AssertionError(effect)

    def stream(self) -> None:
        """What the substrate has published, told."""
        for message in self.paper.taken():
            self._published.append(message)
            self.tell(message)

    def published(self) -> list[Any]:
        """What the substrate has published since this was last called, all of it told."""
        self.stream()
        published, self._published = self._published, []
        return published

    def do(self, what: Any) -> Any:
        """Somebody else's operation, with its facts told."""
        result = self.paper.submit(what)
        assert isinstance(result, Done), result
        self.stream()
        return result.value

    def answer(self, result: Any = None) -> Any:
        """Carry out the oldest request (or answer it with ``result``), tell the facts, then the answer."""
        request = self.requests.popleft()
        found = self.paper.submit(request.what) if result is None else result
        self.stream()
        self.tell(Outcome(request.correlation, found))
        return request.what

    def flush(self) -> None:
        """Everything becomes durable."""
        self.paper.flush()
        self.stream()

    def settle(self) -> None:
        """Answer and flush until nothing is asked for."""
        self.flush()
        while self.requests:
            self.answer()
            self.flush()

    def up(self, *, broken: str = "", takes: Takes = "all") -> Generation:
        """The next generation is up."""
        generation: Generation = self.do(BeginGeneration())
        self.flush()
        self.tell(GenerationUp(generation, CHILD, broken, takes))
        return generation

    def crash(self, reason: str = "ended by SIGSEGV") -> ExitCounted:
        """The child ends, and nobody wanted that: it is counted, and the supervisor told so."""
        assert isinstance(self.state, Open)
        assert isinstance(self.state.child, Up | Broken | Waning)
        self.tell(GenerationDown(self.state.child.generation, unexpected=True, reason=reason))
        self.settle()
        return self.counted.pop()

    def later(self, seconds: float) -> None:
        """Time passes, and wakes whoever wanted to be woken by then, each when it is due."""
        until = self.now.mono + seconds
        for wake in sorted((wake for wake in self.wakes if wake.mono is not None and wake.mono <= until), key=_due):
            self.wakes.remove(wake)
            self.now = Now(self.now.wall, max(self.now.mono, _due(wake)))
            self.tell(wake.message)
        self.now = Now(self.now.wall, until)

    def stood_still(self, seconds: float) -> None:
        """Time passes in which the host does nothing: whoever is due in it is woken at its end."""
        self.now = Now(self.now.wall, self.now.mono + seconds)
        self.later(0.0)

    def mail(
        self,
        number: int = 1,
        *,
        to: str = "",
        sender: str = "claire@example.com",
        text: str = "Hi",
        known: bool = False,
    ) -> None:
        """A mail comes and is accepted, or found to be ``known``."""
        thread = f"In-Reply-To: {to}\r\n" if to else ""
        raw = f"Message-ID: <m{number}@x>\r\nFrom: {sender}\r\n{thread}\r\n{text}\r\n"
        accepted = self.do(Enqueue(raw.encode()))
        assert (accepted.outcome == "already-present") == known

    def child(self, generation: int, *events: ev.AnyEvent, run: RunId = RUN) -> None:
        """The child appends."""
        self.do(Append(by=WorkflowProcess(Generation(generation)), run=run, events=events))

    def kinds(self) -> list[str]:
        """What the child was sent, and forget it."""
        kinds = [type(payload).__name__ for payload in self.sent]
        self.sent.clear()
        return kinds

    def started(self, *, generation: int) -> list[RunId]:
        """Runs that were started since this was last asked, in this generation."""
        assert isinstance(self.state, Open)
        assert isinstance(self.state.child, Up)
        assert self.state.child.generation == generation
        runs = [RunId(payload.run) for payload in self.sent if isinstance(payload, RunStart)]
        self.sent.clear()
        return runs

    @property
    def asked(self) -> list[Any]:
        """What is under way."""
        return [request.what for request in self.requests]


def _due(wake: WakeAt) -> float:
    assert wake.mono is not None
    return wake.mono


def receiving(call: str, seen: int = 1) -> ev.SignalAwaited:
    """The run waits for its next mail."""
    return ev.SignalAwaited(call=CallId(call), park="input", seen=seen)


def started() -> Bench:
    """A run that is live in generation 1 and parked at a receive."""
    bench = Bench()
    bench.up()
    bench.mail()
    bench.settle()
    bench.child(1, receiving("r1#1"))
    bench.settle()
    bench.sent.clear()
    return bench


def step(call: str) -> ev.StepStarted:
    """A step begins."""
    return ev.StepStarted(call=CallId(call), step="pay", arguments=HASH)


def value() -> ev.Value:
    """A JSON value."""
    return ev.Value(inline=msgspec.Raw(b"1"))

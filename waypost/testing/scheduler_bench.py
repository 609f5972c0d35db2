"""A scheduler at work, without actors or clock: its decision over the substrate's real rules, one message at a time."""

from collections import deque
from dataclasses import replace
from typing import Any

import msgspec

from actors.effects import Ask
from actors.logic.scheduler.decision import State, Unopened, advance
from actors.logic.scheduler.ticks import Warn
from substrate import layout
from substrate.messages import (
    Append,
    BeginGeneration,
    Claim,
    Deploy,
    Done,
    Enqueue,
    Outcome,
    ReadDeadlines,
    ReadSchedules,
    Start,
    TakeUp,
    Ticked,
    WorkflowProcess,
)
from substrate.ticking import decode
from waypost.acting import WakeAt
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.code import deployed, tree_hash
from waypost.model.declaration import Declared
from waypost.model.ids import CallId, Generation, RunId
from waypost.model.limits import DEFAULT, Limits
from waypost.model.schedule import Schedule, tick_of
from waypost.model.times import Now
from waypost.testing.clock import START as MORNING
from waypost.testing.desk import ADDRESS
from waypost.testing.paper import Paper

HASH = "a" * 64
START = Start(definition=HASH, code=HASH, python="3.11", waypost="0", mail_to=())
HOUR = 3_600_000
CODE = {"flow.py": b"x = 1\n"}


class TimeBench:
    """A paper substrate with runs, and perhaps a scheduler; time is what the test says."""

    def __init__(self, *, runs: int = 1, limits: Limits = DEFAULT, prompt: bool = True) -> None:
        """``prompt``: what is asked about deadlines further ahead is answered at once, not when a test says so."""
        self.paper = Paper()
        self.limits, self.prompt = limits, prompt
        self.state: State = Unopened(limits)
        self.requests: deque[Ask] = deque()
        self.looks: deque[Ask] = deque()
        self.questions: deque[Ask] = deque()
        self.warnings: list[str] = []
        self.wakes: list[WakeAt] = []
        self.do(BeginGeneration())
        self.runs: list[RunId] = []
        for number in range(1, runs + 1):
            self.do(Enqueue(f"Message-ID: <{number}@x>\r\nFrom: a@example.com\r\n\r\n".encode()))
            self.do(Claim(number))
            self.runs.append(self.do(TakeUp(arrival=number, start=START)).value)
        self.paper.taken()

    def open(self) -> None:
        """A scheduler begins, at this repository and time."""
        self.state = Unopened(self.limits)
        self.requests.clear()
        self.wakes.clear()
        self.paper.taken()
        self.looks.clear()
        self.questions.clear()
        self.tell(self.paper.snapshot())
        self._look()
        self.plan()

    def look(self, result: Any = None) -> None:
        """Answer what it asked about deadlines further ahead; every fact up to then has been told before."""
        for message in self.paper.taken():
            self.tell(message)
        question = self.looks.popleft()
        self.tell(Outcome(question.correlation, self.paper.submit(question.what) if result is None else result))

    def deploy(self, *schedules: Schedule) -> None:
        """Code that declares these schedules is what runs from now on; a host starts with it, and its scheduler."""
        declared = Declared(name="expenses", address=ADDRESS, schedules=schedules)
        self.do(Deploy(record=deployed(CODE, root="", module="flow", declared=declared), files=CODE))
        self.open()

    def ticked(self, schedule: str) -> Ticked:
        """How far a schedule has come."""
        return decode(self.paper.index.read(layout.schedule_path(schedule)) or b"")

    def take_up(self, arrival: int) -> RunId:
        """The mail begins its run, and the scheduler hears of it."""
        self.do(Claim(arrival))
        run: RunId = self.do(TakeUp(arrival=arrival, start=replace(START, code=tree_hash(CODE)))).value
        self.stream()
        return run

    def end(self, run: RunId) -> None:
        """The run completes, and the scheduler hears of it."""
        ledger = fold.ledger(self.paper.index.known(run).run)
        cancelled = ledger is not None and ledger.cancel is not None
        done = ev.RunCancelled() if cancelled else ev.RunCompleted(result=ev.Value(inline=msgspec.Raw(b"1")))
        self.do(Append(by=WorkflowProcess(Generation(1)), run=run, events=(done,)))
        self.stream()

    def sent(self) -> list[int]:
        """The ticks that have a mail, in the order of arrival: minutes after the morning."""
        entries = (each.queued.entry for each in self.paper.index.queue.values())
        found = [tick_of(entry.id) for entry in entries]
        return [(round(tick.due.timestamp() * 1000) - MORNING) // 60_000 for tick in found if tick is not None]

    def plan(self) -> None:
        """Answer what it asked about schedules; every fact up to then has been told before."""
        while self.questions:
            for message in self.paper.taken():
                self.tell(message)
            question = self.questions.popleft()
            self.tell(Outcome(question.correlation, self.paper.submit(question.what)))

    def _look(self) -> None:
        while self.prompt and self.looks:
            self.look()

    def at(self, wall: int) -> None:
        """It is this late now, in milliseconds after the morning; nobody has been woken."""
        self.paper.now = Now(MORNING + wall, self.paper.now.mono)

    def tell(self, message: Any) -> None:
        """One message, and its effects sorted."""
        following = advance(self.state, message, self.paper.now)
        self.state = following.state
        for effect in following.effects:
            match effect:
                case Ask(what=ReadDeadlines()):
                    self.looks.append(effect)
                case Ask(what=ReadSchedules()):
                    self.questions.append(effect)
                case Warn(text):
                    self.warnings.append(text)
                case Ask():
                    self.requests.append(effect)
                case WakeAt():
                    self.wakes.append(effect)
                case _:
                    raise AssertionError(effect)

    def wake(self) -> None:
        """The newest wake-up comes."""
        self.tell(self.wakes[-1].message)
        self._look()

    def child(self, *events: ev.AnyEvent, run: int = 0) -> None:
        """The child appends, and the scheduler hears of it."""
        self.do(Append(by=WorkflowProcess(Generation(1)), run=self.runs[run], events=events))
        self.stream()

    def stream(self) -> None:
        """What was published, told."""
        for message in self.paper.taken():
            self.tell(message)
        self._look()

    def answer(self, result: Any = None) -> Any:
        """Carry out the oldest request, tell facts and answer; the result."""
        request = self.requests.popleft()
        found = self.paper.submit(request.what) if result is None else result
        self.stream()
        self.tell(Outcome(request.correlation, found))
        self._look()
        return found

    def fired(self) -> list[tuple[str, str]]:
        """What is asked to be fired, as (run's number, timer)."""
        return [(request.what.run.split("_")[1], request.what.events[0].timer) for request in self.requests]  # type: ignore[union-attr]  # appends only

    def do(self, what: Any) -> Done:
        """Somebody's operation, which must pass; nothing is told."""
        result = self.paper.submit(what)
        assert isinstance(result, Done), result
        return result


def timer(call: str, seconds: float, name: str = "") -> ev.TimerSet:
    """A timer is set."""
    return ev.TimerSet(call=CallId(call), timer=name or call, delay=seconds, seen=1)

"""Sinks of approvals under chance: whatever is late, dropped or made anew, each ends up with what is open, once."""

from collections import deque
from random import Random
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from actors.logic import terminal
from actors.logic.terminal import Show
from actors.messages import Seen, Watch
from actors.watching import APPROVALS, Asking
from substrate.messages import (
    Append,
    Cancel,
    Committed,
    Done,
    Durable,
    Outcome,
    Pause,
    QueueMail,
    Unpause,
    Withheld,
    WorkflowProcess,
)
from substrate.messages import Supervisor as Host
from waypost.host.watching.sink_logic import advance
from waypost.host.watching.sink_states import (
    Announced,
    Connect,
    Disconnect,
    End,
    HangUp,
    Hub,
    Inquire,
    Line,
    Listed,
    Ready,
    Say,
    State,
    Unread,
    Withdrawn,
)
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.ids import CallId, Deployment, Generation, RunId
from waypost.model.times import Now
from waypost.testing.dispatch_bench import BOSS, Bench

NOW = Now(0, 0.0)
NAME = Deployment("expenses")
CHILD = WorkflowProcess(Generation(1))
HUB: Any = "hub"  # a word stands for the ref


class Screen:
    """A sink that shows what is open, and holds what it is told to the rules."""

    def __init__(self) -> None:
        self.lines: deque[Line] = deque()
        self.shown: set[tuple[RunId, CallId]] = set()
        self.listed = 0

    def say(self, line: Line) -> None:
        """A line waits to be written."""
        self.lines.append(line)

    def end(self) -> None:
        """The host ends."""

    def write(self) -> bool:
        """Write a line; whether that was the last one."""
        match self.lines.popleft():
            case Announced(approval=approval):
                key = (approval.run, approval.call)
                assert key not in self.shown, "announced twice"
                self.shown.add(key)
            case Withdrawn(run=run, call=call):
                assert (run, call) in self.shown, "withdrawn, and never announced"
                self.shown.remove((run, call))
            case Listed():
                self.listed += 1
            case Unread():
                pass
        return not self.lines


class World:
    """A repository with runs that ask, a broadcaster, a hub, and sinks that come and go."""

    def __init__(self, chance: Random) -> None:
        self.chance = chance
        self.bench = Bench()
        self.bench.up()
        for number in range(1, 5):
            self.bench.mail(number)
        self.bench.settle()
        self.paper = self.bench.paper
        self.paper.taken()
        self.hub: State = Hub()
        self.to_hub: deque[Any] = deque()
        self.questions: deque[Inquire] = deque()
        self.sinks: list[Screen] = []
        self.calls = 10
        self.crew()

    def crew(self) -> None:
        """The deployment's crew is made anew: events that weren't told yet are never told."""
        self.paper.flush()
        self.paper.taken()
        self.broadcaster = terminal.State(deployment=NAME)
        self.broadcaster = terminal.advance(self.broadcaster, self.paper.snapshot(), NOW).state
        self.broadcaster = terminal.advance(self.broadcaster, Watch(APPROVALS, HUB), NOW).state
        self.to_hub.append(Asking(NAME, "expenses@example.com", HUB))

    def stream(self) -> None:
        """What the substrate has published reaches the broadcaster."""
        for message in self.paper.taken():
            assert isinstance(message, Committed | Durable)
            following = terminal.advance(self.broadcaster, message, NOW)
            self.broadcaster = following.state
            for effect in following.effects:
                assert isinstance(effect, Show)
                assert isinstance(effect.what, Seen)
                self.to_hub.append(effect.what)

    def serve(self) -> None:
        """The hub takes a message."""
        if self.to_hub:
            following = advance(self.hub, self.to_hub.popleft(), NOW)
            self.hub = following.state
            for effect in following.effects:
                match effect:
                    case Say(sink, line):
                        sink.say(line)
                    case Inquire():
                        self.questions.append(effect)
                    case _:
                        raise AssertionError(effect)

    def answer(self) -> None:
        """A question is answered, from what is durable; or it can't be, now."""
        if self.questions:
            asked = self.questions.popleft()
            self.paper.flush()
            self.stream()
            result: Any = self.paper.submit(asked.question)
            assert isinstance(result, Done)
            self.to_hub.append(Outcome(asked.correlation, result))

    def write(self) -> None:
        """A sink writes a line."""
        writing = [sink for sink in self.sinks if sink.lines]
        if writing:
            sink = self.chance.choice(writing)
            if sink.write():
                self.to_hub.append(Ready(sink))

    def act(self) -> None:
        """A run does something, or something is done to it."""
        run = self.chance.choice(self.paper.runs())
        ledger = fold.ledger(self.paper.index.known(run).run)
        if ledger is None:
            return
        self.calls += 2
        mail, wait = CallId(f"r1#{self.calls}"), CallId(f"r1#{self.calls + 1}")
        asks = [call for call, each in ledger.waits.items() if each.park == "approval"]
        match self.chance.randrange(12):
            case 0 | 1 | 2 | 3 if ledger.cancel is None:
                self.paper.submit(QueueMail(by=CHILD, run=run, call=mail, to=(BOSS,), subject="?", text="?"))
                after = fold.ledger(self.paper.index.known(run).run)
                assert after is not None
                new = set(after.sent) - set(ledger.sent)
                if new:
                    self._append(
                        run,
                        ev.SignalAwaited(
                            call=wait,
                            park="approval",
                            seen=1,
                            title="?",
                            who=(BOSS,),
                            request=new.pop(),
                            timeout=60.0,
                        ),
                    )
            case 4 | 5 if asks:
                decision = ev.Decision(approved=True, by="ann", via="cli")
                from substrate.messages import Answer

                self.paper.submit(Answer(run=run, call=asks[0], decision=decision))
            case 6 if asks:
                fired = ev.TimerFired(call=asks[0], timer=asks[0])
                self.paper.submit(Append(by=Host(), run=run, events=(fired,)))
            case 7 if asks:
                self._append(run, ev.SignalAwaitAbandoned(call=asks[0]))
            case 8:
                self.paper.submit(Cancel(run=run, reason="enough", origin="supervisor-operator"))
            case 9:
                self._append(
                    run, ev.RunCancelled() if ledger.cancel else ev.SignalAwaited(call=wait, park="input", seen=1)
                )
            case 10:
                self.paper.submit(Pause(run=run, code="operator", detail=""))
            case _:
                self.paper.submit(Unpause(run=run, by="me"))

    def _append(self, run: RunId, event: ev.AnyEvent) -> None:
        self.paper.submit(Append(by=CHILD, run=run, events=(event,)))

    def rest(self) -> None:
        """Everything is served to its end."""
        self.paper.flush()
        self.stream()
        for _ in range(10_000):
            if not (self.to_hub or self.questions or any(sink.lines for sink in self.sinks)):
                return
            self.serve()
            self.answer()
            self.write()
        raise AssertionError("it never comes to rest")

    def open(self) -> set[tuple[RunId, CallId]]:
        """The approvals that are open, by the logs."""
        return {
            (run, call)
            for run, known in self.paper.live().items()
            for call, wait in known.run.ledger.waits.items()  # type: ignore[union-attr]  # it is live
            if wait.park == "approval"
        }


@given(seed=st.integers(0, 2**32), length=st.integers(5, 200))
@settings(max_examples=12)
def test_every_sink_ends_up_with_what_is_open_and_hears_of_each_once(seed: int, length: int) -> None:
    """Slow sinks, sinks that leave in the middle, crews that are made anew, pages that are old when they come."""
    chance = Random(seed)
    world = World(chance)
    for _ in range(length):
        match chance.randrange(20):
            case 0:
                sink = Screen()
                world.sinks.append(sink)
                world.to_hub.append(Connect(sink))
            case 1 if world.sinks:
                world.to_hub.append(Disconnect(world.sinks.pop(chance.randrange(len(world.sinks)))))
            case 2 if chance.randrange(3) == 0:
                world.crew()
            case 3:
                world.paper.flush()
            case 4 | 5:
                world.stream()
            case 6 | 7 | 8:
                world.serve()
            case 9 | 10:
                world.answer()
            case 11 | 12:
                world.write()
            case _:
                world.act()
    last = Screen()
    world.sinks.append(last)
    world.to_hub.append(Connect(last))
    world.rest()
    found = world.open()
    for sink in world.sinks:
        assert sink.shown == found
        assert sink.listed
    assert isinstance(world.hub, Hub)
    assert set(world.hub.peers) == {*world.sinks}
    assert not world.hub.pages


def test_a_repository_that_cannot_be_read_is_named_and_others_are_read_on() -> None:
    """One that is down hides none of the others."""
    sink = Screen()
    state = advance(Hub(), Connect(sink), NOW).state
    state = advance(state, Asking(NAME, "a@example.com", HUB), NOW).state
    following = advance(state, Asking(Deployment("other"), "b@example.com", HUB), NOW)
    assert isinstance(following.state, Hub)
    (first,) = following.state.pages
    said = advance(following.state, Outcome(first, Withheld("down")), NOW)
    assert [effect.line for effect in said.effects if isinstance(effect, Say)] == [
        Unread(NAME, "Withheld(reason='down')")
    ]
    over = advance(said.state, HangUp(), NOW)
    assert over.effects == (End(sink),)
    assert advance(over.state, Connect(sink), NOW).effects == (End(sink),)
    on = advance(said.state, Ready(sink), NOW)
    assert [type(effect) for effect in on.effects] == [Inquire]

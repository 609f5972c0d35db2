"""The observer: what it knows is what there is, once nothing happens any more; and nobody notices when it is gone."""

from collections import deque
from random import Random
from typing import Any

import pykka
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from actors.describing import Description, Exited, ExitReason
from actors.messages import StateChanged
from actors.watching import Asking, Turned
from substrate.messages import Census, Done, Outcome, Withheld
from waypost.acting import Asked, WakeAt
from waypost.host.watching.histogram import BOUNDS, Histogram, Recent
from waypost.host.watching.observer import Ear, ObserverActor
from waypost.host.watching.observer_logic import Count, Counted, CountNow, Figures, State, Unasked, Watched, advance
from waypost.model.ids import Deployment, Generation
from waypost.model.times import Now
from waypost.observing import ClockSet, Enqueued, Flushed, Mark, Timed
from waypost.shell import request
from waypost.testing.clock import ManualClock

NAMES = (Deployment("a"), Deployment("b"))
TIMED = Timed(
    deployment="a", claim=0.001, consume=0.002, events=0.1, round_trip=0.103, written=4, commits=3, mails=1, runs=1
)


def census(queued: int) -> Census:
    """A repository with so many mails."""
    return Census(waiting=(), queued=queued, on_hold=0, rejected=0, outbox=0, deadlines=0, next=None)


def description(name: Deployment, state: str, generation: int, exited_at: int = 0) -> Description:
    """How a deployment is."""
    exited = Exited(Generation(generation), exited_at, "status 1", ExitReason(status=1)) if exited_at else None
    return Description(
        name=name, address="", state=state, reason="", generation=Generation(generation), pid=None, until=None,
        isolation="none", exited=exited,
    )  # fmt: skip


class World:
    """Two repositories whose truth changes, supervisors that come and go, and answers that are late or never come."""

    def __init__(self, chance: Random) -> None:
        self.chance, self.state, self.mono = chance, State(), 0.0
        self.truth = dict.fromkeys(NAMES, 0)
        self.supervisors: dict[Deployment, Any] = {}  # words stand for refs
        self.questions: deque[Count] = deque()
        self.alarms: list[WakeAt] = []
        self.asked_at: dict[Deployment, list[float]] = {name: [] for name in NAMES}

    def tell(self, message: Any) -> None:
        """One message."""
        following = advance(self.state, message, Now(0, self.mono))
        self.state = following.state
        for effect in following.effects:
            match effect:
                case Count():
                    self.questions.append(effect)
                case WakeAt():
                    self.alarms.append(effect)
                case _:
                    raise AssertionError(effect)

    def moment(self) -> None:
        """Something happens."""
        name = self.chance.choice(NAMES)
        match self.chance.randrange(6):
            case 0:
                self.supervisors[name] = f"{name}{self.mono}"
                self.tell(Asking(name, "", self.supervisors[name]))
            case 1 if name in self.supervisors:
                self.truth[name] += 1
                self.tell(self.chance.choice([Turned(name), Enqueued(name, 0.1)]))
            case 2 if self.questions:
                self.answer(self.questions.popleft())
            case 3 if self.alarms:
                self.wake()
            case _:
                self.mono += 0.3

    def answer(self, count: Count) -> None:
        """By whoever was asked, if that one is still there."""
        whose = [name for name, supervisor in self.supervisors.items() if supervisor == count.supervisor]
        for name in whose:
            late = self.chance.random() < 0.1
            result = Withheld("it is being stopped") if late else Done(0, census(self.truth[name]))
            self.tell(Outcome(count.correlation, result))
            if late:  # and so it is made anew
                self.supervisors[name] = f"{name}{self.mono}+"
                self.tell(Asking(name, "", self.supervisors[name]))

    def wake(self) -> None:
        """The clock goes on to the next alarm."""
        alarm = min(self.alarms, key=lambda each: each.mono or 0.0)
        self.alarms.remove(alarm)
        self.mono = max(self.mono, alarm.mono or 0.0)
        self.tell(alarm.message)

    def settle(self) -> None:
        """Everything under way comes."""
        while self.questions or self.alarms:
            while self.questions:
                self.answer(self.questions.popleft())
            if self.alarms:
                self.wake()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 2**32))
def test_what_is_counted_is_what_there_is_once_nothing_happens_any_more(seed: int) -> None:
    """Whichever news came while it counted, and whoever it asked is gone."""
    world = World(Random(seed))
    for _ in range(60):
        world.moment()
    world.settle()
    for name in world.supervisors:
        one = world.state.deployments[name]
        assert one.census == census(world.truth[name])
        assert isinstance(one.standing, Counted)
    assert not world.state.asked


def test_a_repository_is_not_asked_again_within_a_second() -> None:
    """A busy one has other things to do than to be counted."""
    world = World(Random(0))
    world.supervisors[NAMES[0]] = "s"
    world.tell(Asking(NAMES[0], "", world.supervisors[NAMES[0]]))
    world.answer(world.questions.popleft())
    for _ in range(9):
        world.mono += 0.1
        world.tell(Turned(NAMES[0]))
        assert not world.questions
    (alarm,) = world.alarms
    world.mono = alarm.mono or 0.0
    world.tell(CountNow(NAMES[0]))
    assert len(world.questions) == 1


def test_nobody_is_asked_who_is_not_there() -> None:
    """News of a deployment may come before its supervisor has said where it is."""
    world = World(Random(0))
    world.tell(Turned(NAMES[0], ("failed",)))
    world.tell(CountNow(NAMES[0]))
    one = world.state.deployments[NAMES[0]]
    assert (one.standing, one.ended, world.questions) == (Unasked(), {"failed": 1}, deque())


def test_a_new_process_counts_as_a_restart_unless_the_one_before_was_let_go() -> None:
    """Who looks for crashes must not find a deployment that only slept."""
    state = State()
    for each in (
        description(NAMES[0], "running", 7),
        description(NAMES[0], "backing-off", 7, exited_at=5),
        description(NAMES[0], "running", 8, exited_at=5),
        description(NAMES[0], "dormant", 8),
        description(NAMES[0], "starting", 0),
        description(NAMES[0], "running", 9),
        description(NAMES[0], "running", 10),
    ):
        state = advance(state, StateChanged(each), Now(0, 0.0)).state
    one = state.deployments[NAMES[0]]
    assert (one.restarts, one.wakes, one.exits) == (2, 1, 1)


def test_what_was_counted_of_a_deployment_that_sleeps_holds_if_nothing_has_changed_since() -> None:
    """Nobody is there who could count: what may be wrong is not known."""
    asleep, supervisor = StateChanged(description(NAMES[0], "dormant", 8)), world_of_one()
    kept = advance(supervisor.state, asleep, Now(0, 0.0)).state.deployments[NAMES[0]]
    assert (kept.census, kept.standing, kept.supervisor) == (census(0), Unasked(), None)
    supervisor.tell(Turned(NAMES[0]))
    forgotten = advance(supervisor.state, asleep, Now(0, 0.0)).state.deployments[NAMES[0]]
    assert (forgotten.census, forgotten.standing) == (None, Unasked())


def test_a_count_that_was_refused_is_no_count() -> None:
    """It falls asleep while it is asked: what is known is what was, and that isn't told as what is."""
    world = world_of_one()
    world.mono = 5.0
    world.tell(Turned(NAMES[0]))
    world.tell(Outcome(world.questions.popleft().correlation, Withheld("it sleeps")))
    world.tell(StateChanged(description(NAMES[0], "dormant", 8)))
    assert world.state.deployments[NAMES[0]].census is None


def world_of_one() -> World:
    """A repository that was counted."""
    world = World(Random(0))
    world.supervisors[NAMES[0]] = "s"
    world.tell(Asking(NAMES[0], "", world.supervisors[NAMES[0]]))
    world.answer(world.questions.popleft())
    return world


def test_marks_are_added_up() -> None:
    """Each leg by itself, and what the work consisted of."""
    state = State()
    marks: tuple[Mark, ...] = (Enqueued("a", 0.01), TIMED, TIMED, Flushed("a", (0.001, 0.004)), ClockSet(-3600.0))
    for mark in marks:
        state = advance(state, mark, Now(0, 0.0)).state
    assert {leg: one.count for leg, one in state.legs.items()} == {
        "enqueue": 1, "claim": 2, "consume": 2, "events": 2, "round_trip": 2,
    }  # fmt: skip
    assert (state.mails, state.written, state.commits, state.clock_jumps) == (2, 8, 6, 1)
    assert (state.ahead, state.beside) == (2, 2)
    flushed = state.deployments[NAMES[0]]
    assert flushed.flushes.count == 2
    assert 0.002 < (flushed.flush_p99 or 0) <= 0.005
    assert Watched().flush_p99 is None


@given(st.lists(st.floats(0, 29), min_size=1, max_size=200), st.floats(0.01, 1))
def test_a_quantile_lies_within_the_bounds_of_what_it_is_the_quantile_of(seconds: list[float], share: float) -> None:
    """It is known to the width of a bound, never better, and never worse."""
    found = Histogram().add(seconds).quantile(share)
    wanted = sorted(seconds)[max(0, -int(-share * len(seconds) // 1) - 1)]
    above = next(bound for bound in BOUNDS if wanted <= bound)
    below = max((bound for bound in (0.0, *BOUNDS) if bound < wanted), default=0.0)
    assert found is not None
    assert below <= found <= above * (1 + 1e-9)


def test_what_was_slow_long_ago_is_forgotten() -> None:
    """A share of all flushes ever would show for weeks that the disk was slow for an hour."""
    recent = Recent().add([5.0] * 100)
    for _ in range(3):
        recent = recent.add([0.001] * 1000)
    assert (recent.quantile(0.99) or 0) <= 0.001


# --- the actor -----------------------------------------------------------------------------------------------------


def test_an_ear_drops_what_it_has_no_room_for_and_counts_it() -> None:
    """An observer that is slow may not grow, nor hold up anybody; what is told seldom gets through."""
    observer = ObserverActor.start(clock=ManualClock())
    ear = Ear(observer, most=0)
    for _ in range(3):
        ear.mark(TIMED)
    ear.tell(StateChanged(description(NAMES[0], "running", 1)))
    assert ear.dropped == 3
    state: State = request(observer, Figures(), timeout=5)
    assert state.mails == 0
    assert state.deployments[NAMES[0]].generation == 1
    observer.stop()


@pytest.mark.parametrize("deaths", range(4))
def test_whoever_marks_does_not_notice_that_the_observer_has_ended(deaths: int) -> None:
    """It may end at any message, by its own failure or because it is stopped."""
    observer = ObserverActor.start(clock=ManualClock())
    ear = Ear(observer)
    for number in range(4):
        if number == deaths:
            observer.stop()
        ear.mark(TIMED)
    assert ear.is_alive() == observer.is_alive()
    assert not ear.is_alive()
    with pytest.raises(pykka.ActorDeadError):
        request(ear, Figures(), timeout=5)


def test_an_observer_that_fails_is_gone_and_nobody_else(caplog: pytest.LogCaptureFixture) -> None:
    """It has no parent that would make it anew: what is known of the past would be wrong."""
    observer = ObserverActor.start(clock=ManualClock())
    ear = Ear(observer)
    ear.tell(Flushed("a", (object(),)))  # type: ignore[arg-type] # that is the fault
    observer.actor_stopped.wait(5)
    ear.mark(TIMED)
    assert not observer.is_alive()
    assert "observer failed" in caplog.text


def test_a_question_is_answered_at_once() -> None:
    """Whoever looks waits for nobody else."""
    assert advance(State(), Asked(3, Figures()), Now(0, 0.0)).effects[0].value == State()

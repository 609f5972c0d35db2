"""The clock of a drain that waits for every run to end: counted on by the next child, and by the next host."""

from dataclasses import replace

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.draining import ChildWeighed, Weigh
from actors.logic.supervisor.effects import Pass, TellChild
from actors.logic.supervisor.retiring import LEAST, PART, part, retire
from actors.logic.supervisor.states import Retiring, Running
from actors.messages import Woken
from substrate.messages import (
    Cancel,
    Done,
    Drain,
    DrainDeployment,
    HoldDeployment,
    LiveRuns,
    NoteDrain,
    Outcome,
    ResumeDeployment,
)
from substrate.operations import Settled
from waypost.acting import Next
from waypost.model.ids import Generation
from waypost.model.times import Now
from waypost.testing.desk import Desk
from waypost.testing.supervision import END, LEFT, LIMITS, NOW, RETIRING, SETUP, step

SELDOM = msgspec.structs.replace(LIMITS, drain_look=10.0)
"""A look that comes late isn't one of a host that stood still."""
CUT = replace(SETUP, spec=replace(SETUP.spec, cut_short=("check",)), limits=SELDOM)
SHORT, OTHERS = LiveRuns((LEFT,), 0), LiveRuns((), 1)


def looked(state: Retiring, left: LiveRuns, at: float) -> Next[Retiring]:
    """The repository says at this time who is left."""
    following = step(state, Outcome(state.asked, Done(1, left)), setup=CUT, now=Now(NOW.wall, at))
    assert isinstance(following.state, Retiring)
    return following


def noted(following: Next[Retiring]) -> list[int]:
    """What is to be written down, in ms."""
    return [
        each.what.spent for each in following.effects if isinstance(each, Pass) and isinstance(each.what, NoteDrain)
    ]


def begun(spent: float) -> Retiring:
    """By a child, of this host or of the next one, for which so much was counted before."""
    drain = msgspec.structs.replace(END, spent=int(spent * 1000)) if spent else END
    books = replace(RETIRING.books, drain=drain)
    following = retire(Running(books, 77, 90.0))
    assert isinstance(following.state, Retiring)
    return following.state


@pytest.mark.parametrize(
    ("spent", "limit", "parts"),
    [(0.0, 60.0, 0), (7.4, 60.0, 0), (7.5, 60.0, 1), (59.9, 60.0, 7), (60.0, 60.0, 8), (0.9, 2.0, 0), (1.0, 2.0, 1)],
)
def test_a_limit_has_eight_parts_of_a_second_at_least(spent: float, limit: float, parts: int) -> None:
    """Each is a commit, so that none comes a second."""
    assert part(spent, limit) == parts


def test_another_part_of_the_limit_is_noted_and_the_next_child_counts_on() -> None:
    """A process that ends again and again would otherwise keep a deployment in service for ever."""
    state, notes = begun(0.0), list[int]()
    for second in range(100, 131):
        following = looked(state, SHORT, float(second))
        notes += noted(following)
        state = following.state
    assert notes == [8_000, 15_000, 23_000, 30_000]
    assert state.books.drain is not None
    assert state.books.drain.spent == 30_000
    again = retire(Running(state.books, 78, 140.0)).state
    assert isinstance(again, Retiring)
    assert (again.spent, again.counted) == (30.0, None)


def test_the_next_host_begins_where_it_was_noted_and_ends_in_time() -> None:
    """So many seconds are left, of steps that execute; nothing is counted while it is down."""
    state = begun(52.5)
    first = looked(state, SHORT, 9000.0)
    assert not noted(first)
    before = looked(first.state, SHORT, 9007.0)
    assert [each for each in before.effects if isinstance(each, Pass)] == []
    over = looked(before.state, SHORT, 9007.6)
    assert [type(each.what) for each in over.effects if isinstance(each, Pass)] == [Cancel, NoteDrain]
    at_once = looked(begun(60.1), SHORT, 50.0)
    assert [type(each.what) for each in at_once.effects if isinstance(each, Pass)] == [Cancel]


@given(st.lists(st.tuples(st.floats(0.0, 20.0), st.booleans(), st.sampled_from(["", "child", "host"])), max_size=30))
def test_whatever_ends_in_between_less_than_a_part_is_lost_for_each_host(
    story: list[tuple[float, bool, str]],
) -> None:
    """Of what executed; nothing is counted twice, and there are no more notes than parts."""
    state, at, recorded, lost, notes = begun(0.0), 100.0, 0, 0.0, 0
    executed, before = 0.0, False
    for seconds, short, ends in story:
        at += seconds
        executed += seconds if before else 0.0
        following = looked(state, SHORT if short else OTHERS, at)
        state, before = following.state, short
        for spent in noted(following):
            assert spent > recorded
            recorded, notes = spent, notes + 1
        assert state.spent <= executed + 1e-6
        assert state.spent >= executed - lost - 0.01
        if ends == "child":
            again = retire(Running(state.books, 78, at)).state
            assert isinstance(again, Retiring)
            state, before = again, False
        elif ends == "host":
            limit = LIMITS.drain_end
            assert min(state.spent, limit) - min(recorded / 1000, limit) < max(limit * PART, LEAST)
            lost += state.spent - recorded / 1000
            state, before = begun(recorded / 1000), False
        lost += 0.001  # what is kept is in milliseconds
    assert notes <= 8


@given(st.lists(st.tuples(st.floats(0.01, 2.0), st.booleans(), st.booleans()), max_size=30))
def test_nothing_counts_between_two_looks_of_which_one_found_the_child_stopped(
    story: list[tuple[float, bool, bool]],
) -> None:
    """By SIGSTOP, or a debugger: its step is open, and nothing executes; it is asked for with each look that counts."""
    state, at, most, before = begun(0.0), 100.0, 0.0, False
    for seconds, short, halted in story:
        at += seconds
        most += seconds if before and not halted else 0.0
        if state.halted or state.counted is not None:
            (asks, *_) = step(replace(state, asked=1), Woken(1), setup=CUT).effects
            assert asks == TellChild(Weigh(memory=False))
            state = step(state, ChildWeighed(Generation(3), 1, halted), setup=CUT).state
            assert state.halted is halted
            state = looked(state, SHORT if short else OTHERS, at).state
            before = short and not halted
        else:
            most -= seconds if before and not halted else 0.0
            state = looked(state, SHORT if short else OTHERS, at).state
            before = short
        assert state.spent <= most + 1e-6
        assert state.spent >= most - 1e-6
        assert (state.counted is not None) is before


def test_what_an_earlier_child_was_like_is_no_matter() -> None:
    """The answer may come when the next one is there."""
    state = looked(begun(0.0), SHORT, 100.0).state
    assert step(state, ChildWeighed(Generation(2), 1, halted=True), setup=CUT).state == state


# --- the repository ------------------------------------------------------------------------------------------------


def test_what_was_counted_is_in_the_repository_and_only_rises() -> None:
    """For whoever opens it next; an older figure that comes late changes nothing."""
    desk = Desk()
    desk.begin()
    assert desk.code(NoteDrain(1_000)) == "not-draining"
    made = desk.must(DrainDeployment("ann", end=True))
    assert isinstance(made, Drain)
    assert desk.must(NoteDrain(7_500)) is None
    assert desk.changes[-1].subject == "note the drain: 7500 ms in steps that may be cut short"
    assert desk.index.state.drain == msgspec.structs.replace(made, spent=7_500)
    assert desk.do(NoteDrain(7_500)) == desk.do(NoteDrain(1)) == desk.do(NoteDrain(0)) == Settled()
    desk.check()
    desk.must(ResumeDeployment("ann"))
    assert desk.code(NoteDrain(9_000)) == "not-draining", "an operator has thought better of it"
    desk.must(DrainDeployment("ann"))
    assert desk.code(NoteDrain(9_000)) == "not-draining", "nothing has a clock that is only to rest"
    desk.must(HoldDeployment())
    desk.check()

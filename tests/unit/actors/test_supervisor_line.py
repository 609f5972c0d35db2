"""A deployment that mail has woken: dispatch takes up mail when the host says so, whatever its child does meanwhile."""

from dataclasses import replace

from actors.draining import GoAhead, Line, TakeUpMail, TookUp
from actors.logic.supervisor import states as st
from actors.logic.supervisor.effects import Pass, TellDispatch, Up
from actors.logic.supervisor.words import describe
from actors.messages import ChildReady, Start
from waypost.acting import Next
from waypost.model.ids import Generation
from waypost.testing.supervision import CODE, END, IDLE, RUNNING, SETUP, STARTING, step

GENERATION = STARTING.books.generation
TURN = TellDispatch(TakeUpMail(GENERATION))


def at(state: st.State, line: Line) -> st.State:
    return replace(state, books=replace(state.books, line=line))


def told(following: Next[st.State]) -> list[object]:
    """What dispatch is told."""
    return [each for each in following.effects if isinstance(each, Up | TellDispatch)]


def test_its_child_comes_up_and_takes_no_mail_until_it_is_its_turn() -> None:
    """Which the host may say before the child is there, or after; even before the supervisor has begun."""
    ready = ChildReady(GENERATION, 7, CODE, "")
    waits = step(at(STARTING, "waits"), ready)
    assert told(waits) == [Up(GENERATION, takes="nothing")]
    assert describe(SETUP, waits.state).line == "waits"
    assert told(step(waits.state, GoAhead())) == [TURN]
    called = step(at(STARTING, "waits"), GoAhead())
    assert told(called) == []
    assert told(step(called.state, ready)) == [Up(GENERATION, takes="nothing"), TURN]
    early = step(step(IDLE, GoAhead()).state, Start("waits"))
    assert early.state.books.line == "called"
    assert told(step(STARTING, ready)) == [Up(GENERATION)], "one that nobody has woken is as ever"


def test_one_that_is_to_end_comes_up_for_what_has_begun_whoevers_turn_it_is() -> None:
    """It takes up no other mail anyway; and what it does beside that, it does in the line as well."""
    ending = replace(STARTING, books=replace(STARTING.books, drain=END))
    ready = ChildReady(GENERATION, 7, CODE, "")
    waits, alone = step(at(ending, "waits"), ready), step(ending, ready)
    assert told(waits) == told(alone) == [Up(GENERATION, takes="begun")]
    assert any(isinstance(each, Pass) for each in waits.effects)


def test_when_its_mail_is_taken_up_the_host_is_told() -> None:
    """By its description; of another child's mail it isn't."""
    called = at(RUNNING, "called")
    assert describe(SETUP, step(called, TookUp(GENERATION)).state).line == ""
    assert step(called, TookUp(Generation(GENERATION + 1))).state.books.line == "called"


def test_it_is_called_once() -> None:
    """The host says it to whoever steps out of the line as well."""
    for line in ("", "called"):
        assert step(at(RUNNING, line), GoAhead()) == Next(at(RUNNING, line))


def test_it_waits_for_others_and_says_so() -> None:
    """`waypost why`."""
    said = describe(SETUP, at(RUNNING, "waits")).why
    assert said.waits_for.startswith("its turn")

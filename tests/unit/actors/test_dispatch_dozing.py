"""Whether all is at rest is dispatch's to say: it knows the runs at work, and which mail could be taken up."""

import pytest

from actors.draining import Doze, Quiesce
from actors.logic.dispatch.card import Up, Waning
from actors.logic.dispatch.decision import advance
from actors.logic.dispatch.state import Open, Unopened
from actors.logic.dispatch.turn import Setup
from actors.messages import GenerationDown
from ipc.messages import RunStart
from substrate.messages import Claim, Withheld
from waypost.model.ids import Generation
from waypost.model.limits import Limits
from waypost.testing.dispatch_bench import NOW, START, Bench, receiving, step

DOZE = Doze(Generation(1))


def parked() -> Bench:
    """A run that waits for its next mail."""
    bench = Bench()
    bench.up()
    bench.mail()
    bench.settle()
    bench.child(1, receiving("r1#1", seen=1))
    bench.settle()
    return bench


def child(bench: Bench) -> object:
    assert isinstance(bench.state, Open)
    return bench.state.child


def test_parked_runs_are_at_rest_as_of_the_newest_commit_and_nothing_is_claimed_from_then_on() -> None:
    """What comes after it is seen by its position, by whoever asks the repository last."""
    bench = parked()
    bench.tell(DOZE)
    assert isinstance(bench.state, Open)
    assert bench.rested == [bench.state.position]
    assert isinstance(child(bench), Waning)
    bench.mail(2, to="<m1@x>")
    bench.settle()
    assert not bench.requests
    assert not bench.draining, "nobody drains"
    bench.tell(GenerationDown(Generation(1), unexpected=False))
    bench.sent.clear()
    bench.up()
    bench.settle()
    assert any(isinstance(sent, RunStart) for sent in bench.sent), "the next child goes on with it"


def test_a_deployment_without_runs_is_at_rest() -> None:
    """As most are, most of the time."""
    bench = Bench()
    bench.up()
    bench.tell(DOZE)
    assert bench.rested == [1]


def test_a_run_at_work_is_not_at_rest_and_goes_on() -> None:
    """However long its step takes."""
    bench = Bench()
    bench.up()
    bench.mail()
    bench.settle()
    bench.child(1, step("r1#1"))
    bench.settle()
    bench.tell(DOZE)
    assert bench.rested == [None]
    assert isinstance(child(bench), Up)


def test_a_mail_that_is_being_taken_up_is_something_to_do() -> None:
    """Each step of it is asked of the repository, and its answer is on the way."""
    bench = parked()
    bench.mail(2, to="<m1@x>")
    assert isinstance(bench.requests[0].what, Claim)
    bench.tell(DOZE)
    assert bench.rested == [None]
    bench.settle()
    assert isinstance(child(bench), Up)


def test_what_could_not_be_written_is_something_to_do() -> None:
    """It is tried again in a moment."""
    bench = parked()
    bench.mail(2, to="<m1@x>")
    bench.answer(Withheld("no space"))
    bench.tell(DOZE)
    assert bench.rested == [None]


@pytest.mark.parametrize("generation", [0, 2])
def test_a_word_to_another_child_changes_nothing(generation: int) -> None:
    """Whoever it was for is gone."""
    bench = parked()
    bench.tell(Doze(Generation(generation)))
    assert bench.rested == [None]
    assert isinstance(child(bench), Up)


def test_without_a_child_or_with_one_that_is_drained_there_is_nobody_to_let_go_of() -> None:
    """Another purpose has come first."""
    bench = Bench()
    bench.tell(DOZE)
    bench.up()
    bench.tell(Quiesce(Generation(1)))
    bench.tell(DOZE)
    assert bench.rested == [None, None]


def test_before_it_knows_the_repository_nothing_is_at_rest() -> None:
    """It can't say."""
    following = advance(Unopened(Setup(start=START, limits=Limits())), DOZE, NOW)
    assert isinstance(following.state, Unopened)
    assert len(following.effects) == 1

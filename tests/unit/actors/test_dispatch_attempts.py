"""Exits that nobody expected: against whom they count, what they lead to, and in which order suspects are resumed."""

import pytest

from actors.exits import ExitCounted
from actors.logic.dispatch.card import Counting, NoChild, Uncounted
from actors.logic.dispatch.state import Open
from actors.logic.dispatch.turn import PORTION
from actors.messages import GenerationDown, GenerationUp
from ipc.messages import RunStart
from substrate.messages import (
    Append,
    Interrupt,
    Interrupted,
    Pause,
    ReadLog,
    Refused,
    ResumeRuns,
    Stage,
    Unpause,
    Withheld,
    WorkflowProcess,
)
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.attempts import Consequence, consequence, suspicious
from waypost.model.ids import CallId, Generation, RunId
from waypost.model.limits import DEFAULT, Limits
from waypost.testing.dispatch_bench import CHILD, RUN, Bench, receiving, started, step, value

FIRST, SECOND, THIRD = (RunId(f"run_{n}_{n:016}") for n in (1, 2, 3))
LONG = DEFAULT.stable_after


def begun(count: int) -> Bench:
    """So many runs, each given to the first child."""
    bench = Bench()
    bench.up()
    for number in range(1, count + 1):
        bench.mail(number)
    bench.settle()
    bench.sent.clear()
    return bench


def again(bench: Bench) -> ExitCounted:
    """The child ends once more, and the next one comes."""
    counted = bench.crash()
    bench.sent.clear()
    bench.up()
    bench.settle()
    return counted


def generation(bench: Bench) -> int:
    return bench.paper.index.state.generation


def resumed(bench: Bench) -> list[RunId]:
    return bench.started(generation=generation(bench))


def finished(bench: Bench, run: RunId, call: str = "r1#1") -> None:
    """A step of the run begins and is done."""
    bench.child(generation(bench), step(call), run=run)
    bench.child(generation(bench), ev.StepCompleted(call=CallId(call), output=value()), run=run)
    bench.settle()


def kinds(bench: Bench, run: RunId = RUN) -> list[str]:
    return [ev.kind(event) for event in bench.paper.log(run)]


# --- the pure part --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("attempts", "steps", "follows"),
    [
        (1, 0, "resume"),
        (1, 2, "resume"),
        (2, 1, "resume"),
        (3, 1, "step-failed"),
        (3, 2, "step-failed"),
        (3, 0, "poison"),
        (4, 1, "poison"),
        (4, 0, "poison"),
    ],
)
def test_what_an_exit_leads_to_follows_from_how_many_there_were(attempts: int, steps: int, follows: Consequence):
    """Storage §5: at three a step in flight fails; where there is none, or it kills again, the run is paused."""
    assert consequence(attempts, steps, DEFAULT) == follows
    assert suspicious(attempts, DEFAULT) == (attempts >= 2)


def test_the_bound_is_configuration_and_one_exit_may_be_enough():
    """Whoever sets it to one gets a run set aside by its first exit, and suspects from the first one on."""
    strict = Limits(attempts=1)
    assert consequence(1, 1, strict) == "step-failed"
    assert not suspicious(0, strict)


# --- counting -------------------------------------------------------------------------------------------------------


def test_an_exit_is_counted_durably_before_the_supervisor_is_answered():
    """No other child comes before the count is in the log: whatever dies after that finds it there."""
    bench = begun(1)
    bench.tell(GenerationDown(Generation(1), unexpected=True, reason="ended by SIGSEGV"))
    assert bench.asked == [Interrupt(generation=Generation(1), reason="ended by SIGSEGV", runs=(RUN,))]
    assert bench.requests[0].stage is Stage.DURABLE
    assert bench.counted == []
    bench.answer()
    (counted,) = bench.counted
    assert [(each.run, each.attempt, each.then) for each in counted.runs] == [(RUN, 1, "resume")]
    assert kinds(bench) == ["RunStarted", "RunInterrupted"]
    bench.up()
    assert ResumeRuns(generation=Generation(2), runs=(RUN,)) in bench.asked


def test_an_exit_while_nothing_is_driven_is_answered_at_once():
    """The supervisor waits for it; nobody is charged."""
    bench = started()
    counted = bench.crash()
    assert counted == ExitCounted(generation=Generation(1), runs=())
    assert not counted.alone
    assert not counted.explained
    assert "RunInterrupted" not in kinds(bench)


def test_a_dispatch_that_knows_nothing_yet_answers_too():
    """It was made anew in this moment; the child that ended had been given nothing by it."""
    bench = Bench()
    bench.tell(GenerationDown(Generation(1), unexpected=True))
    assert bench.counted == [ExitCounted(generation=Generation(1), runs=())]
    bench.tell(GenerationDown(Generation(2), unexpected=False))
    assert len(bench.counted) == 1


def test_a_run_that_parked_in_the_same_moment_is_not_charged():
    """Dispatch hears of the park after the exit; the log decides, and there it came first."""
    bench = begun(2)
    bench.paper.submit(Append(by=WorkflowProcess(Generation(1)), run=FIRST, events=(receiving("r1#1"),)))
    bench.tell(GenerationDown(Generation(1), unexpected=True, reason="x"))
    assert bench.asked[0].runs == (FIRST, SECOND)
    bench.answer()
    (counted,) = bench.counted
    assert [each.run for each in counted.runs] == [SECOND]
    assert "RunInterrupted" not in kinds(bench, FIRST)


def test_a_run_that_was_begun_and_not_yet_given_is_not_charged():
    """Its RunStarted is there, its run.start isn't: it can't have ended the child."""
    bench = Bench()
    bench.up()
    bench.mail()
    bench.answer()
    bench.answer()
    counted = bench.crash()
    assert counted.runs == ()


def test_many_are_counted_in_portions_and_answered_once():
    """A commit stays bounded, whatever was driven."""
    bench = begun(PORTION + 3)
    bench.tell(GenerationDown(Generation(1), unexpected=True, reason="x"))
    assert [len(each.runs) for each in bench.asked] == [PORTION]
    bench.answer()
    assert [len(each.runs) for each in bench.asked] == [3]
    assert bench.counted == []
    bench.answer()
    assert len(bench.counted[0].runs) == PORTION + 3


def test_runs_are_resumed_in_portions_and_each_is_started_when_its_own_is_durable():
    """One commit for many runs: a commit for each was most of what a crash of a busy child took."""
    bench = begun(PORTION + 3)
    runs = bench.paper.runs()
    bench.tell(GenerationDown(Generation(1), unexpected=False))
    bench.up()
    assert [each.runs for each in bench.asked] == [tuple(runs[:PORTION]), tuple(runs[PORTION:])]
    bench.answer()
    bench.answer()
    assert bench.asked == []
    bench.flush()
    assert [each.run for each in bench.asked] == runs
    assert all(isinstance(each, ReadLog) for each in bench.asked)


def test_a_run_that_was_paused_before_it_could_be_resumed_is_resumed_when_it_goes_on():
    """It was left out of the commit; that answers for this one run, and not for ever."""
    bench = begun(2)
    paused, other = bench.paper.runs()
    bench.crash()
    bench.up()
    bench.paper.submit(Pause(run=paused, code="operator", detail=""))
    bench.answer()
    bench.settle()
    assert kinds(bench, paused)[-1] == "RunPaused"
    assert [each.run for each in bench.sent if isinstance(each, RunStart)] == [other]
    bench.do(Unpause(run=paused, by="me"))
    assert bench.asked == [ResumeRuns(generation=Generation(2), runs=(paused,))]
    bench.settle()
    assert [each.run for each in bench.sent if isinstance(each, RunStart)] == [other, paused]


def test_a_count_that_could_not_be_written_is_tried_again():
    """The disk is full: no child could begin either, so the supervisor waits with it."""
    bench = begun(1)
    bench.tell(GenerationDown(Generation(1), unexpected=True, reason="x"))
    bench.answer(Withheld("full"))
    assert isinstance(bench.state, Open)
    assert isinstance(bench.state.child, Uncounted)
    assert bench.counted == []
    bench.later(DEFAULT.backoff_first)
    assert isinstance(bench.state.child, Counting)
    bench.answer()
    assert isinstance(bench.state.child, NoChild)
    assert len(bench.counted[0].runs) == 1


def test_a_refused_count_is_answered_as_one_of_nobody():
    """Another generation is at work: whatever there was to be counted is over, and nobody waits for ever."""
    bench = begun(1)
    bench.tell(GenerationDown(Generation(1), unexpected=True, reason="x"))
    bench.answer(Refused("generation", "."))
    assert bench.counted == [ExitCounted(generation=Generation(1), runs=())]


def test_mail_that_comes_while_an_exit_is_counted_waits_for_the_next_child():
    """A claim that nobody can take up would be put back."""
    bench = begun(1)
    bench.tell(GenerationDown(Generation(1), unexpected=True, reason="x"))
    bench.mail(2)
    assert [type(each) for each in bench.asked] == [Interrupt]
    bench.settle()
    bench.tell(GenerationUp(Generation(bench.paper.index.state.generation + 1), CHILD))
    assert len(bench.asked) > 0


# --- what it leads to -----------------------------------------------------------------------------------------------


def test_at_three_a_step_in_flight_fails_and_the_workflow_is_given_the_failure():
    """It may handle it: note it, ask somebody, go another way."""
    bench = begun(1)
    bench.child(1, step("r1#1"))
    again(bench)
    again(bench)
    counted = again(bench)
    assert counted.runs == (Interrupted(run=RUN, attempt=3, then="step-failed", suspect=True, suspected=True),)
    assert counted.alone
    failed = next(event for event in bench.paper.log(RUN) if isinstance(event, ev.StepFailed))
    assert (failed.code, failed.final, failed.attempt) == ("child-crashed", True, 1)
    assert "3 times" in failed.error.message
    assert "SIGSEGV" in failed.error.message
    assert resumed(bench) == [RUN]
    finished(bench, RUN, "r1#2")
    assert fold.ledger(bench.paper.index.known(RUN).run).attempts == 0  # type: ignore[union-attr]  # it is live


def test_a_run_that_kills_again_after_its_step_has_failed_is_paused_as_poison():
    """It had its chance; from now on an operator decides."""
    bench = begun(1)
    bench.child(1, step("r1#1"))
    for _ in range(3):
        again(bench)
    counted = bench.crash()
    assert [(each.attempt, each.then) for each in counted.runs] == [(4, "poison")]
    paused = bench.paper.index.known(RUN).run
    assert isinstance(paused, fold.Paused)
    assert paused.code == "poison"
    assert "4 times" in paused.detail
    bench.sent.clear()
    bench.up()
    bench.settle()
    assert resumed(bench) == []
    bench.do(Unpause(run=RUN, by="ann"))
    bench.settle()
    assert resumed(bench) == [RUN]
    assert fold.ledger(bench.paper.index.known(RUN).run).attempts == 0  # type: ignore[union-attr]  # it is live


def test_at_three_a_run_without_a_step_in_flight_is_paused_as_poison():
    """The code itself ends the process: there is nothing that could be told to it."""
    bench = begun(1)
    again(bench)
    again(bench)
    counted = bench.crash()
    assert [each.then for each in counted.runs] == ["poison"]
    assert kinds(bench)[-2:] == ["RunInterrupted", "RunPaused"]


@pytest.mark.parametrize("how", ["a finished step", "a park"])
def test_progress_sets_the_count_back(how: str):
    """Only exits without anything in between add up."""
    bench = begun(1)
    again(bench)
    again(bench)
    if how == "a park":
        bench.child(3, receiving("r1#1", seen=fold.ledger(bench.paper.index.known(RUN).run).seq))  # type: ignore[union-attr]  # live
        bench.mail(2, to="<m1@x>")
        bench.settle()
    else:
        finished(bench, RUN)
    counted = bench.crash()
    assert [each.attempt for each in counted.runs] == [1]


# --- suspects -------------------------------------------------------------------------------------------------------


def test_suspects_are_resumed_one_at_a_time():
    """If one of them kills the child again, it is known which one."""
    bench = begun(2)
    again(bench)
    again(bench)
    assert resumed(bench) == [FIRST]
    bench.child(3, step("r1#1"), run=FIRST)
    bench.settle()
    assert resumed(bench) == []
    bench.child(3, ev.StepCompleted(call=CallId("r1#1"), output=value()), run=FIRST)
    bench.settle()
    assert resumed(bench) == []  # its next step may be the one
    bench.child(3, receiving("r1#2", seen=fold.ledger(bench.paper.index.known(FIRST).run).seq), run=FIRST)  # type: ignore[union-attr]  # live
    bench.settle()
    assert resumed(bench) == [SECOND]


def test_the_exit_of_a_suspect_that_was_cleared_is_not_another_suspects():
    """It has finished a step, and ends the child in the next one: who waited behind it was not there."""
    bench = begun(2)
    again(bench)
    again(bench)
    assert resumed(bench) == [FIRST]
    finished(bench, FIRST)
    bench.child(3, step("r1#2"), run=FIRST)
    counted = bench.crash()
    assert [(each.run, each.attempt) for each in counted.runs] == [(FIRST, 1)]


def test_suspects_come_after_the_others_and_mail_goes_on_meanwhile():
    """The others have done nothing; a suspect that kills again would take them along."""
    bench = begun(2)
    again(bench)
    finished(bench, SECOND)
    again(bench)
    assert resumed(bench) == [SECOND]  # one exit since its progress
    bench.mail(3)
    bench.settle()
    assert resumed(bench) == [THIRD]
    for run in (SECOND, THIRD):
        bench.child(3, ev.RunCompleted(result=value()), run=run)
        bench.settle()
    assert resumed(bench) == [FIRST]


def test_a_suspect_waits_for_the_others_no_longer_than_a_stable_time():
    """Where somebody is always at work, it would wait for ever."""
    bench = begun(2)
    again(bench)
    finished(bench, SECOND)
    again(bench)
    assert resumed(bench) == [SECOND]
    bench.later(LONG - 1)
    bench.settle()
    assert resumed(bench) == []
    bench.later(1)
    bench.settle()
    assert resumed(bench) == [FIRST]


def test_no_suspect_waits_longer_than_a_stable_time_behind_another():
    """A step may hang, or take a week."""
    bench = begun(3)
    again(bench)
    again(bench)
    assert resumed(bench) == [FIRST]
    bench.later(LONG)
    bench.settle()
    assert resumed(bench) == [SECOND]
    bench.later(LONG)
    bench.settle()
    assert resumed(bench) == [THIRD]


def test_a_suspect_that_has_run_for_long_is_spared_while_another_one_is_on_trial():
    """It is the exit of the one that was just let in; the others would pay for it with a step that fails."""
    bench = begun(2)
    for run in (FIRST, SECOND):
        bench.child(1, step("r1#1"), run=run)
    again(bench)
    again(bench)
    bench.later(LONG)
    bench.settle()
    assert resumed(bench) == [FIRST, SECOND]
    counted = bench.crash()
    assert [(each.run, each.attempt) for each in counted.runs] == [(SECOND, 3)]
    assert counted.beside == 1
    assert not counted.alone
    bench.up()
    bench.settle()
    first = [event for event in bench.paper.log(FIRST) if isinstance(event, ev.RunResumed)]
    assert [event.attempt for event in first] == [1, 2, 2]


def test_a_suspect_that_ends_its_child_late_is_charged_when_nobody_else_is_on_trial():
    """A trial that is over proves nothing for ever."""
    bench = begun(1)
    again(bench)
    again(bench)
    bench.later(LONG * 3)
    assert [each.attempt for each in bench.crash().runs] == [3]


def test_a_suspect_that_is_paused_lets_the_next_one_be_tried():
    """What an operator has stopped proves nothing any more; those behind it must not wait for it."""
    bench = begun(2)
    again(bench)
    again(bench)
    assert resumed(bench) == [FIRST]
    bench.do(Pause(run=FIRST, code="operator", detail=""))
    bench.settle()
    assert resumed(bench) == [SECOND]


def test_an_exit_of_one_suspect_among_others_is_not_charged_to_it_alone():
    """Somebody else was at work: the deployment may have a trouble of its own."""
    bench = begun(1)
    again(bench)
    again(bench)
    bench.mail(2)
    bench.settle()
    counted = bench.crash()
    assert [(each.run, each.attempt) for each in counted.runs] == [(FIRST, 3), (SECOND, 1)]
    assert not counted.alone
    assert counted.explained


def test_what_a_late_wake_up_says_is_ignored():
    """It was for the suspects of a child that has gone."""
    bench = begun(3)
    again(bench)
    again(bench)
    bench.tell(GenerationDown(Generation(3), unexpected=False))
    before = bench.state
    bench.tell(bench.wakes[0].message)
    assert bench.state == before

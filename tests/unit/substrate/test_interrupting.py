"""An exit of the child, counted in the logs of the runs that it drove: what is written, of whom, and what isn't."""

import msgspec
import pytest

from substrate.messages import Append, BeginGeneration, Cancel, Interrupt, Interrupted, Pause, Supervisor, Unpause
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.attempts import is_suspect
from waypost.model.ids import Generation, RunId
from waypost.model.limits import Limits
from waypost.testing.desk import Desk, call, message

ONE = ev.Value(inline=msgspec.Raw(b"1"))
STEP = ev.StepStarted(call=call(1), step="pay", arguments="a" * 64)
WAITS = ev.SignalAwaited(call=call(1), park="input", seen=1)


def placed(limits: Limits | None = None) -> tuple[Desk, RunId]:
    """A run that a child drives."""
    desk = Desk(limits=limits or Limits())
    desk.begin()
    return desk, desk.start(message("m1@x"))


def ended(desk: Desk, *runs: RunId, reason: str = "ended by SIGSEGV") -> tuple[Interrupted, ...]:
    """The present child ends over these runs."""
    generation = Generation(desk.index.state.generation)
    return desk.must(Interrupt(generation=generation, reason=reason, runs=runs))  # type: ignore[no-any-return]  # it says so


def another(desk: Desk, *runs: RunId) -> None:
    """The next child comes, and is given these runs."""
    generation = Generation(desk.must(BeginGeneration()))
    for run in runs:
        known = fold.ledger(desk.index.known(run).run)
        assert known is not None
        resumed = ev.RunResumed(generation=generation, attempt=known.attempts)
        desk.must(Append(by=Supervisor(), run=run, events=(resumed,)))


def kinds(desk: Desk, run: RunId) -> list[str]:
    return [ev.kind(event) for event in desk.events(run)]


def attempts(desk: Desk, run: RunId) -> int:
    known = fold.ledger(desk.index.known(run).run)
    assert known is not None
    return known.attempts


def test_an_exit_is_in_the_log_of_each_run_that_was_driven_and_of_no_other() -> None:
    """Parked, paused, ended, not begun, or another child's: none of them can have ended this one."""
    desk, driven = placed()
    parked, paused, over = (desk.start(message(f"m{n}@x")) for n in (2, 3, 4))
    desk.append(parked, WAITS)
    desk.must(Pause(run=paused, code="operator", detail=""))
    desk.append(over, ev.RunCompleted(result=ONE))
    old = desk.start(message("m5@x"))
    another(desk, driven)
    absent = RunId("run_77_00000000000000aa")
    counted = ended(desk, driven, parked, paused, over, old, absent)
    assert counted == (Interrupted(run=driven, attempt=1, then="resume", suspect=False, suspected=False),)
    assert kinds(desk, driven)[-1] == "RunInterrupted"
    for run in (parked, paused, over, old):
        assert "RunInterrupted" not in kinds(desk, run)
    desk.check()


def test_it_is_one_commit_for_all_of_them() -> None:
    """A host that is killed has counted the exit, or hasn't: never for one half of the runs."""
    desk, first = placed()
    second = desk.start(message("m2@x"))
    before = len(desk.changes)
    assert len(ended(desk, first, second)) == 2
    assert len(desk.changes) == before + 1
    assert desk.changes[-1].subject == "count the end of generation 1 against 2 runs"


def test_nothing_is_written_where_nobody_was_driven() -> None:
    """An empty commit would say nothing."""
    desk, run = placed()
    desk.append(run, WAITS)
    before = len(desk.changes)
    assert ended(desk, run) == ()
    assert len(desk.changes) == before


def test_a_count_that_can_not_be_written_for_one_run_is_written_for_none() -> None:
    """Half a count would make one run a suspect for an exit that the other one's log denies."""
    desk, first = placed()
    second = desk.start(message("m2@x"))
    desk.append(second, *(ev.StepStarted(call=call(n), step="pay", arguments="a" * 64) for n in (1, 2)))
    before = len(desk.changes)
    desk.limits = Limits(attempts=1, event=400)
    exit_of_both = Interrupt(generation=Generation(1), reason="x" * 150, runs=(first, second))
    assert desk.code(exit_of_both) == "too-large"
    assert len(desk.changes) == before
    assert (attempts(desk, first), attempts(desk, second)) == (0, 0)
    assert len(ended(desk, first, reason=exit_of_both.reason)) == 1, "the first one's would have fitted"


def test_only_the_generation_that_is_at_work_can_end() -> None:
    """News of an older one comes too late to be counted."""
    desk, run = placed()
    another(desk, run)
    assert desk.code(Interrupt(generation=Generation(1), reason="x", runs=(run,))) == "generation"


def test_every_step_in_flight_fails_at_the_bound_in_the_commit_of_the_count() -> None:
    """Nobody knows which of them it was; and no moment shows three exits and a step that goes on."""
    desk, run = placed()
    desk.append(run, STEP, ev.StepStarted(call=call(2), step="tell", arguments="b" * 64))
    for _ in range(2):
        ended(desk, run)
        another(desk, run)
    (told,) = ended(desk, run)
    assert (told.attempt, told.then, told.suspect, told.suspected) == (3, "step-failed", True, True)
    failed = [event for event in desk.events(run) if isinstance(event, ev.StepFailed)]
    assert [(event.call, event.code, event.final, event.error.type, event.error.step) for event in failed] == [
        (call(1), "child-crashed", True, "ChildCrashed", "pay"),
        (call(2), "child-crashed", True, "ChildCrashed", "tell"),
    ]
    state = desk.index.known(run).run
    assert isinstance(state, fold.Driven)
    assert is_suspect(state.ledger, desk.limits)
    desk.check()


def test_poison_says_how_often_and_how_and_is_let_go_on_with_a_count_of_nothing() -> None:
    """An operator who resumes it has done something about it; it gets all its tries anew."""
    desk, run = placed()
    for _ in range(2):
        ended(desk, run)
        another(desk, run)
    (told,) = ended(desk, run, reason="ended by SIGKILL (out of memory)")
    assert told.then == "poison"
    state = desk.index.known(run).run
    assert isinstance(state, fold.Paused)
    assert state.code == "poison"
    assert state.detail.endswith(
        "ended 3 times without progress between, the last time ended by SIGKILL (out of memory)"
    )
    desk.must(Unpause(run=run, by="ann"))
    assert attempts(desk, run) == 0
    desk.check()


def test_a_run_that_is_being_cancelled_ends_instead_of_waiting_for_an_operator() -> None:
    """Somebody asked for its end; that its clean-up kills the child is no reason to keep it."""
    desk, run = placed()
    desk.must(Cancel(run=run, origin="supervisor-operator", reason="enough", by="ann"))
    for _ in range(2):
        ended(desk, run)
        another(desk, run)
    assert [each.then for each in ended(desk, run)] == ["poison"]
    assert isinstance(desk.index.known(run).run, fold.Ended)
    last = desk.events(run)[-1]
    assert isinstance(last, ev.RunCancelled)
    assert last.code == "past-grace"
    desk.check()


def test_what_a_child_said_of_its_end_is_made_fit_to_be_shown_and_short() -> None:
    """The reason of a broken channel quotes what came; it goes into commits, logs and terminals."""
    desk, run = placed()
    ended(desk, run, reason="\x1b[2J\n\ud800" + "x" * 5000)
    event = desk.events(run)[-1]
    assert isinstance(event, ev.RunInterrupted)
    assert event.reason.isprintable()
    assert len(event.reason) == 200


@pytest.mark.parametrize(
    ("event", "code"),
    [
        (ev.RunInterrupted(generation=Generation(1), attempt=2, reason="x"), "attempt"),
        (ev.RunInterrupted(generation=Generation(2), attempt=1, reason="x"), "generation"),
    ],
)
def test_a_count_that_does_not_follow_is_illegal(event: ev.AnyEvent, code: str) -> None:
    """One at a time, and of the child that had the run."""
    desk, run = placed()
    with pytest.raises(fold.Illegal) as refused:
        fold.evolve(desk.index.known(run).run, msgspec.structs.replace(event, seq=2), run_id=run)
    assert refused.value.code == code


def test_a_parked_run_can_not_be_charged_by_anybody() -> None:
    """The log says that no code of it was at work."""
    desk, run = placed()
    desk.append(run, WAITS)
    event = ev.RunInterrupted(seq=3, generation=Generation(1), attempt=1, reason="x")
    with pytest.raises(fold.Illegal) as refused:
        fold.evolve(desk.index.known(run).run, event, run_id=run)
    assert refused.value.code == "parked"


def test_a_run_is_never_resumed_with_fewer_exits_than_are_counted() -> None:
    """Whoever resumes it may not know of the newest one yet: it is refused, and asked again with what the log has."""
    desk, run = placed()
    ended(desk, run)
    generation = Generation(desk.must(BeginGeneration()))
    resumed = ev.RunResumed(generation=generation, attempt=0)
    assert desk.code(Append(by=Supervisor(), run=run, events=(resumed,))) == "attempt"


def test_a_run_is_never_resumed_with_exits_that_an_operator_has_forgiven() -> None:
    """Whoever resumes it may have looked before it was let go on: with that count it would be a suspect again."""
    desk, run = placed()
    ended(desk, run)
    desk.must(Pause(run=run, code="operator", detail=""))
    desk.must(Unpause(run=run, by="me"))
    generation = Generation(desk.must(BeginGeneration()))
    assert (
        desk.code(Append(by=Supervisor(), run=run, events=(ev.RunResumed(generation=generation, attempt=1),)))
        == "attempt"
    )
    another(desk, run)
    assert attempts(desk, run) == 0

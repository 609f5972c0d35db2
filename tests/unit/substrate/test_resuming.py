"""Runs given to a new child: what is written of each, in one commit, and of whom nothing is."""

import msgspec

from substrate import layout
from substrate.messages import BeginGeneration, Interrupt, Pause, ResumeRuns
from waypost.model import events as ev
from waypost.model.ids import Generation, RunId
from waypost.testing.desk import Desk, Files, call, message

ONE = ev.Value(inline=msgspec.Raw(b"1"))


def running(count: int) -> tuple[Desk, list[RunId]]:
    """So many runs that a child drives."""
    desk = Desk()
    desk.begin()
    return desk, [desk.start(message(f"m{number}@x")) for number in range(count)]


def resumed(desk: Desk, *runs: RunId) -> tuple[RunId, ...]:
    """The next child comes and is given these runs."""
    generation = Generation(desk.must(BeginGeneration()))
    return desk.must(ResumeRuns(generation=generation, runs=runs))  # type: ignore[no-any-return]  # it says so


def last(desk: Desk, run: RunId) -> ev.AnyEvent:
    """The newest event of a run."""
    return desk.events(run)[-1]


def test_many_runs_are_resumed_in_one_commit() -> None:
    """A commit for each was the larger part of what the host did between two children."""
    desk, runs = running(3)
    before = len(desk.changes)
    assert resumed(desk, *runs) == tuple(runs)
    begun, change = desk.changes[before:]
    assert begun.state is not None
    assert change.subject == "append RunResumed to 3 runs"
    assert len(change.puts) == len(change.facts) == 3
    assert all(isinstance(last(desk, run), ev.RunResumed) for run in runs)
    desk.check()


def test_each_repeats_the_count_of_its_own_log() -> None:
    """Whoever reads the log sees how often the step in flight may have been begun, without reading all of it."""
    desk, (one, other) = running(2)
    desk.must(Interrupt(generation=Generation(1), reason="ended by SIGSEGV", runs=(one,)))
    resumed(desk, one, other)
    events = [last(desk, run) for run in (one, other)]
    assert [event.attempt for event in events if isinstance(event, ev.RunResumed)] == [1, 0]
    assert {event.generation for event in events if isinstance(event, ev.RunResumed)} == {2}


def test_what_is_not_driven_is_left_out() -> None:
    """Parked, paused, ended, resumed already, not there: between question and commit anything may have happened."""
    desk, (driven, parked, paused, over) = running(4)
    desk.append(parked, ev.SignalAwaited(call=call(1), park="input", seen=1))
    desk.must(Pause(run=paused, code="operator", detail=""))
    desk.append(over, ev.RunCompleted(result=ONE))
    logs = {run: len(desk.events(run)) for run in (parked, paused, over)}
    absent = RunId("run_77_00000000000000aa")
    assert resumed(desk, parked, driven, driven, paused, over, absent) == (driven,)
    assert {run: len(desk.events(run)) for run in logs} == logs
    assert desk.must(ResumeRuns(generation=Generation(2), runs=(driven, over))) == ()
    desk.check()


def test_a_generation_that_is_not_at_work_resumes_nothing() -> None:
    """An older child's run would be given to nobody."""
    desk, runs = running(1)
    desk.must(BeginGeneration())
    assert desk.code(ResumeRuns(generation=Generation(1), runs=tuple(runs))) == "generation"


def test_a_run_whose_log_cannot_be_read_holds_up_no_other() -> None:
    """A damaged run is nobody else's fault; whoever asks for it is told so."""
    desk, (broken, sound) = running(2)
    for number in range(1, layout.FAN // 2):
        desk.append(broken, ev.StepStarted(call=call(number), step="pay", arguments="a" * 64))
        desk.append(broken, ev.StepCompleted(call=call(number), output=ONE))
    desk.append(broken, ev.StepStarted(call=call(layout.FAN), step="pay", arguments="a" * 64))
    assert isinstance(desk.tree, Files)
    del desk.tree.files[layout.event_path(broken, 7)]  # the next event would take it into a segment
    assert resumed(desk, broken, sound) == (sound,)

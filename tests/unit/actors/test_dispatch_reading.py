"""What is done for the next child before it is there: logs are read, and RunResumed is written."""

from dataclasses import replace

import msgspec
import pytest

from actors.logic.dispatch.barrier import Barrier
from actors.logic.dispatch.reading import MOST, NOTHING, ROOM, UNDER_WAY
from actors.logic.dispatch.state import Open
from actors.messages import GenerationDown, GenerationUp
from ipc.messages import RunLog
from substrate.granting import NOTHING_GRANTED
from substrate.messages import BeginGeneration, Cancel, ReadLog, Refused, ResumeRuns, Signal, Stage, Withheld
from waypost.model import events as ev
from waypost.model.ids import CallId, Generation, RunId
from waypost.testing.dispatch_bench import CHILD, RUN, Bench, receiving, step

READY = ["GrantsUpdated", "RunStart", "RunLog", "RunLive"]


def begun(count: int = 1) -> Bench:
    """So many runs, each at a step in the first child."""
    bench = Bench()
    bench.up()
    for number in range(1, count + 1):
        bench.mail(number)
    bench.settle()
    for run in bench.paper.runs():
        bench.child(1, step("r1#1"), run=run)
    bench.settle()
    bench.sent.clear()
    return bench


def crashed(count: int = 1) -> Bench:
    """The child has ended, that is counted, and the logs were read."""
    bench = begun(count)
    bench.crash()
    return bench


def ready(bench: Bench, generation: int = 2) -> None:
    """The child that was on the way says that it is ready."""
    bench.tell(GenerationUp(Generation(generation), CHILD))


def pages(bench: Bench) -> list[RunId]:
    """Whose logs lie there."""
    assert isinstance(bench.state, Open)
    return list(bench.state.reading.pages)


def sent_log(bench: Bench) -> list[bytes]:
    """The events that the child was sent in pages."""
    return [raw for page in bench.sent if isinstance(page, RunLog) for raw in page.events]


def test_logs_are_read_a_few_at_a_time_once_the_exit_is_counted() -> None:
    """Whoever else wants something of the repository waits for a few of them, never for all."""
    bench = begun(UNDER_WAY + 2)
    bench.tell(GenerationDown(Generation(1), unexpected=True, reason="x"))
    assert not [each for each in bench.asked if isinstance(each, ReadLog)]
    bench.answer()
    assert [type(each) for each in bench.asked] == [ReadLog] * UNDER_WAY
    bench.answer()
    assert len(bench.requests) == UNDER_WAY
    bench.settle()
    assert pages(bench) == bench.paper.runs()


def test_runs_are_resumed_while_their_child_starts_and_given_to_it_when_it_is_ready() -> None:
    """Nothing has to be read or written then: that was most of what a crash of a busy child took beside its start."""
    bench = crashed(2)
    bench.do(BeginGeneration())
    assert bench.asked == [ResumeRuns(generation=Generation(2), runs=tuple(bench.paper.runs()))]
    assert bench.requests[0].stage is Stage.DURABLE
    bench.settle()
    assert bench.kinds() == []
    ready(bench)
    assert not bench.requests
    logs = [list(map(ev.decode, each.events)) for each in bench.sent if isinstance(each, RunLog)]
    assert logs == [bench.paper.log(run) for run in bench.paper.runs()]
    assert [ev.kind(event) for event in logs[0]] == ["RunStarted", "StepStarted", "RunInterrupted", "RunResumed"]
    assert bench.kinds() == [*READY, *READY[1:]]
    assert pages(bench) == []


def test_a_child_that_is_quicker_than_the_disk_waits_for_it() -> None:
    """RunResumed is durable before its run.start, whatever lies there already."""
    bench = crashed()
    bench.do(BeginGeneration())
    bench.answer()
    ready(bench)
    assert bench.kinds() == READY[:1]
    bench.flush()
    assert bench.kinds() == READY[1:]


@pytest.mark.parametrize("failure", [Withheld("full"), Refused("generation", "another one is at work")])
def test_what_could_not_be_written_before_is_written_when_the_child_is_ready(failure) -> None:
    """Nothing depends on it that it was tried before."""
    bench = crashed()
    bench.do(BeginGeneration())
    bench.answer(failure)
    bench.flush()
    ready(bench)
    assert bench.asked == [ResumeRuns(generation=Generation(2), runs=(RUN,))]
    bench.settle()
    assert bench.kinds() == READY


def test_children_that_can_not_be_had_leave_one_event_in_each_log_however_many_they_are() -> None:
    """Where none can be started for want of anything, that may go on for days; what was read still holds."""
    bench = crashed()
    for _ in range(3):
        bench.do(BeginGeneration())
        bench.settle()
    assert [ev.kind(event) for event in bench.paper.log(RUN)][3:] == ["RunResumed"]
    ready(bench, 4)
    bench.settle()
    assert [ev.kind(event) for event in bench.paper.log(RUN)][3:] == ["RunResumed", "RunResumed"]
    assert list(map(ev.decode, sent_log(bench))) == bench.paper.log(RUN)
    assert bench.kinds() == READY


def test_what_comes_between_follows_what_was_read() -> None:
    """An operator cancels in the pause: the child learns it from the same log."""
    bench = crashed()
    bench.do(Cancel(run=RUN, reason="enough", origin="supervisor-operator", by="ann"))
    bench.do(BeginGeneration())
    bench.settle()
    ready(bench)
    assert list(map(ev.decode, sent_log(bench))) == bench.paper.log(RUN)
    assert bench.paper.log(RUN)[-2].seq == bench.paper.log(RUN)[-1].seq - 1
    assert bench.kinds() == READY


def test_a_mail_that_is_taken_up_between_is_read_with_its_log() -> None:
    """What was read has no room for it: it is forgotten, and read as ever."""
    bench = begun()
    bench.child(1, receiving("r1#2", 1))
    bench.settle()
    bench.mail(2, to="<m1@x>")
    bench.settle()
    bench.crash()
    bench.sent.clear()
    bench.do(BeginGeneration())
    bench.settle()
    ready(bench)
    bench.settle()
    assert list(map(ev.decode, sent_log(bench))) == bench.paper.log(RUN)
    mails = [mail for page in bench.sent if isinstance(page, RunLog) for mail in page.mails]
    assert len(mails) == 2


def test_a_signal_that_comes_between_is_read_with_its_log() -> None:
    """Somebody answers in the pause: what was read is forgotten, and nothing of it is left out."""
    bench = crashed()
    bench.do(Signal(run=RUN, name="paid", id="s1", payload=b"1"))
    assert pages(bench) == []
    bench.do(BeginGeneration())
    bench.settle()
    ready(bench)
    bench.settle()
    assert list(map(ev.decode, sent_log(bench))) == bench.paper.log(RUN)
    assert any(isinstance(event, ev.SignalReceived) for event in bench.paper.log(RUN))


def test_a_log_that_can_not_be_read_in_the_pause_is_read_when_it_is_needed() -> None:
    """A full disk, or a repository that is being opened anew: nothing depends on what is done ahead."""
    bench = begun()
    bench.tell(GenerationDown(Generation(1), unexpected=True, reason="x"))
    bench.answer()
    assert [type(each) for each in bench.asked] == [ReadLog]
    bench.answer(Withheld("it is being opened"))
    assert pages(bench) == []
    bench.do(BeginGeneration())
    bench.settle()
    ready(bench)
    bench.settle()
    assert list(map(ev.decode, sent_log(bench))) == bench.paper.log(RUN)


def test_a_long_log_is_read_when_it_is_needed() -> None:
    """No more than 4 MiB lie there, whatever the runs have recorded."""
    bench = begun()
    large = ev.Value(inline=msgspec.Raw(b'"' + b"x" * ROOM + b'"'))
    bench.child(1, ev.StepCompleted(call=CallId("r1#1"), output=large), step("r1#2"))
    bench.settle()
    bench.crash()
    assert pages(bench) == []
    bench.do(BeginGeneration())
    bench.settle()
    ready(bench)
    assert [type(each) for each in bench.asked] == [ReadLog]


def test_only_the_first_of_many_runs_are_prepared() -> None:
    """The others have their turn when the child is there: children that end at once leave a bounded trace."""
    bench = crashed(MOST + 2)
    assert pages(bench) == bench.paper.runs()[:MOST]
    bench.do(BeginGeneration())
    assert [run for each in bench.asked for run in each.runs] == bench.paper.runs()[:MOST]
    bench.settle()
    ready(bench)
    assert [each.runs for each in bench.asked if isinstance(each, ResumeRuns)] == [tuple(bench.paper.runs()[MOST:])]


def test_suspects_wait_for_their_turn() -> None:
    """They are resumed one at a time, after the others, by a child that is there."""
    bench = crashed()
    bench.up()
    bench.settle()
    bench.crash()
    assert pages(bench) == []
    bench.do(BeginGeneration())
    assert bench.asked == []


def test_where_grants_can_not_be_read_nothing_is_resumed() -> None:
    """Those runs are to fail, and not to be given to anybody."""
    bench = crashed()
    assert isinstance(bench.state, Open)
    granted = replace(NOTHING_GRANTED, unreadable={"grants/read.json": "not JSON"})
    bench.state = replace(bench.state, barrier=Barrier(granted=granted))
    bench.do(BeginGeneration())
    assert bench.asked == []


def test_a_child_that_was_let_go_leaves_nothing_to_be_prepared() -> None:
    """A host that stops reads no logs."""
    bench = begun()
    bench.tell(GenerationDown(Generation(1), unexpected=False))
    assert not bench.requests
    assert isinstance(bench.state, Open)
    assert bench.state.reading == NOTHING

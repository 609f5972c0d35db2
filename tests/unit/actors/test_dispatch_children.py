"""Child runs as dispatch sees them: mail that begins them, an end that wakes a parent, an exit that is theirs."""

import msgspec

from actors.draining import Close, Quiesce, StillExecuting
from ipc.messages import EventsCommitted, RunStart
from substrate.messages import SpawnChild, WorkflowProcess
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.ids import CallId, Generation, RunId
from waypost.testing.dispatch_bench import RUN, Bench, step, value

CALL = CallId("r1#1")


def spawn(bench: Bench, call: CallId = CALL, *, generation: int = 1, seen: int = 1) -> None:
    """The first run asks for a child run."""
    by = WorkflowProcess(Generation(generation))
    bench.do(SpawnChild(by=by, run=RUN, call=call, workflow="pay", input=b"{}", seen=seen))


def at_work() -> Bench:
    """A run under way."""
    bench = Bench()
    bench.up()
    bench.mail()
    bench.settle()
    bench.sent.clear()
    return bench


def kin(bench: Bench) -> RunId:
    """The child run."""
    (found,) = (run for run in bench.paper.runs() if run != RUN)
    return found


def test_a_child_run_is_begun_by_its_mail_and_given_to_the_same_process() -> None:
    """Nobody but the queue tells of it: a host that was killed in between finds it there."""
    bench = at_work()
    spawn(bench)
    bench.settle()
    assert bench.started(generation=1) == [kin(bench)]
    started = bench.paper.index.known(kin(bench)).run
    assert isinstance(started, fold.Driven)
    assert started.ledger.started.parent == ev.Parent(run=RUN, call=CALL, workflow="pay", depth=1)
    assert isinstance(bench.paper.index.known(RUN).run, fold.Parked)


def test_a_deployment_that_is_taken_out_of_service_still_begins_child_runs() -> None:
    """Who waits for it has begun, and could never end otherwise; a mail from outside stays where it is."""
    bench = at_work()
    bench.tell(Close(Generation(1)))
    spawn(bench)
    bench.mail(2)
    bench.settle()
    assert bench.started(generation=1) == [kin(bench)]
    assert len(bench.paper.runs()) == 2


def test_a_drain_begins_none_and_waits_for_no_parent() -> None:
    """The mail is there for the next process."""
    bench = at_work()
    bench.tell(Quiesce(Generation(1)))
    spawn(bench)
    bench.settle()
    assert bench.draining[-1] == StillExecuting(Generation(1), ())
    assert len(bench.paper.runs()) == 1


def test_the_end_of_a_child_wakes_its_parent_like_any_event() -> None:
    """One that the process follows is told; one that was parked is resumed."""
    bench = at_work()
    spawn(bench)
    bench.settle()
    bench.sent.clear()
    bench.child(1, ev.RunCompleted(result=value()), run=kin(bench))
    bench.settle()
    told = [each for each in bench.sent if isinstance(each, EventsCommitted) and each.run == RUN]
    assert [ev.kind(ev.decode(raw)) for each in told for raw in each.events] == ["ChildCompleted"]

    bench = at_work()
    spawn(bench)
    bench.settle()
    bench.sent.clear()
    bench.crash()
    bench.up()
    bench.settle()
    assert bench.started(generation=2) == [kin(bench)]
    bench.child(2, ev.RunFailed(error=ev.Fault(type="ValueError", message="no")), run=kin(bench))
    bench.settle()
    assert bench.started(generation=2) == [RUN]


def test_an_exit_counts_against_the_child_that_was_driven_and_not_against_its_parent() -> None:
    """Attempts and poison are a run's own; the parent only waited."""
    bench = at_work()
    spawn(bench)
    bench.settle()
    bench.child(1, step("r1#1"), run=kin(bench))
    bench.flush()
    assert [each.run for each in bench.crash().runs] == [kin(bench)]


def test_a_childs_end_and_its_parents_are_told_in_one_commit() -> None:
    """The parent ends with a child open: the process is told of that one's cancellation at once."""
    bench = at_work()
    spawn(bench)
    bench.settle()
    bench.sent.clear()
    bench.child(1, ev.RunCompleted(result=ev.Value(inline=msgspec.Raw(b"1"))))
    bench.settle()
    told = [each for each in bench.sent if isinstance(each, EventsCommitted) and each.run == kin(bench)]
    assert [ev.kind(ev.decode(raw)) for each in told for raw in each.events] == ["CancelRequested"]
    assert not [each for each in bench.sent if isinstance(each, RunStart)]

"""How a run is given to the child and kept fed: arrow by arrow, over the substrate's real rules on paper."""

from actors.logic.dispatch.state import Open
from actors.logic.dispatch.turn import chunks
from actors.messages import GenerationDown
from ipc.messages import EventsCommitted, RunLive, RunLog, RunLogCredit, RunStart
from substrate.messages import (
    Append,
    MailDelivered,
    Outcome,
    Pause,
    QueueMail,
    ResumeRuns,
    Stage,
    Unpause,
    WorkflowProcess,
)
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.ids import CallId, Generation, run_ordinal
from waypost.model.limits import Limits
from waypost.testing.dispatch_bench import BOSS, RUN, Bench, receiving, started, step, value

# --- a run and the child --------------------------------------------------------------------------------------------


def test_what_is_committed_while_pages_are_read_is_read_too():
    """No event is lost between the last page and run.live, and none comes twice."""
    bench = Bench()
    bench.up()
    bench.mail()
    bench.answer()
    bench.answer()
    bench.flush()
    request = bench.requests.popleft()
    page = bench.paper.submit(request.what)
    bench.do(Pause(run=RUN, code="operator", detail=""))
    bench.do(Unpause(run=RUN, by="me"))
    bench.tell(Outcome(request.correlation, page))
    assert bench.kinds() == ["GrantsUpdated", "RunStart", "RunLog"]
    bench.answer()
    assert bench.kinds() == ["RunLog", "RunLive"]
    bench.do(Pause(run=RUN, code="operator", detail=""))
    (news,) = bench.sent
    assert isinstance(news, EventsCommitted)
    assert [ev.decode(raw).seq for raw in news.events] == [4]


def test_facts_that_a_page_held_already_are_not_sent_again():
    """The answer may be newer than the stream: its events come once."""
    bench = Bench()
    bench.up()
    bench.mail()
    bench.answer()
    bench.answer()
    bench.flush()
    bench.paper.submit(Pause(run=RUN, code="operator", detail=""))
    request = bench.requests.popleft()
    bench.tell(Outcome(request.correlation, bench.paper.submit(request.what)))
    assert bench.kinds() == ["GrantsUpdated", "RunStart", "RunLog", "RunLive"]
    bench.stream()
    assert bench.sent == []


def test_a_run_that_was_paused_before_its_first_page_is_not_started():
    """While a run is paused, run.start isn't legal; it is started when it goes on, once."""
    bench = Bench()
    bench.up()
    bench.mail()
    bench.answer()
    bench.answer()
    bench.flush()
    bench.do(Pause(run=RUN, code="operator", detail=""))
    bench.answer()
    assert bench.kinds() == ["GrantsUpdated"]
    bench.do(Unpause(run=RUN, by="me"))
    bench.settle()
    assert bench.kinds() == ["RunStart", "RunLog", "RunLive"]


def test_pages_wait_for_credit():
    """A child that takes nothing in is sent four pages, not its whole history."""
    bench = Bench(Limits(page=1, page_credit=2))
    bench.up()
    bench.mail()
    bench.settle()
    for call in range(1, 6):
        bench.child(1, receiving(f"r1#{call}", seen=call))
    bench.sent.clear()
    bench.do(Append(by=WorkflowProcess(Generation(1)), run=RUN, events=(step("r1#9"),)))
    bench.sent.clear()
    bench.tell(GenerationDown(Generation(1), unexpected=False))
    bench.up()
    bench.settle()
    assert bench.kinds() == ["GrantsUpdated", "RunStart", "RunLog", "RunLog"]
    bench.tell(RunLogCredit(run=RUN))
    bench.settle()
    assert bench.kinds() == ["RunLog"]
    for _ in range(5):
        bench.tell(RunLogCredit(run=RUN))
        bench.settle()
    assert bench.kinds() == ["RunLog"] * 5 + ["RunLive"]


def test_a_batch_of_events_travels_in_frames_that_fit():
    """A frame has a limit, a commit has none: events.committed is cut like the pages are."""
    assert list(chunks([b"aa", b"bb", b"c", b"dddddd", b"e"], 4)) == [(b"aa", b"bb"), (b"c",), (b"dddddd",), (b"e",)]
    assert list(chunks([], 4)) == []


def test_a_driven_run_is_resumed_before_it_is_started_again():
    """RunResumed is durable before run.start; the log shows every child that had the run."""
    bench = started()
    bench.child(1, step("r1#2"))
    bench.tell(GenerationDown(Generation(1), unexpected=False))
    bench.up()
    assert bench.requests[0].stage is Stage.DURABLE
    assert bench.answer() == ResumeRuns(generation=Generation(2), runs=(RUN,))
    assert bench.asked == []
    bench.flush()
    bench.answer()
    assert bench.kinds() == ["EventsCommitted", "GrantsUpdated", "RunStart", "RunLog", "RunLive"]


def test_an_expected_exit_counts_no_attempt():
    """A host that stops is nobody's fault."""
    bench = started()
    bench.child(1, step("r1#2"))
    bench.tell(GenerationDown(Generation(1), unexpected=False))
    bench.up()
    assert bench.asked == [ResumeRuns(generation=Generation(2), runs=(RUN,))]


def test_a_parked_run_is_left_alone_until_something_wakes_it():
    """Thousands of parked runs cost a new child nothing."""
    bench = started()
    bench.crash()
    bench.up()
    assert bench.asked == []
    bench.mail(2, to="<m1@x>")
    bench.answer()
    bench.answer()
    assert bench.asked == [ResumeRuns(generation=Generation(2), runs=(RUN,))]
    bench.settle()
    assert bench.kinds() == ["GrantsUpdated", "RunStart", "RunLog", "RunLive"]


def test_code_that_does_not_load_pauses_what_should_run_and_starts_nothing():
    """A child that can't run anything is no reason to lose, fail or hide a run."""
    bench = started()
    bench.child(1, step("r1#2"))
    bench.tell(GenerationDown(Generation(1), unexpected=False))
    bench.mail(9)
    bench.up(broken="ModuleNotFoundError: rates")
    assert bench.asked == [Pause(run=RUN, code="code-missing", detail="ModuleNotFoundError: rates")]
    bench.settle()
    assert isinstance(bench.paper.index.known(RUN).run, fold.Paused)
    assert len(bench.paper.index.queue) == 1


def test_a_refused_resume_is_tried_again_when_the_run_has_moved():
    """It was paused in that moment: as soon as it goes on, it is resumed."""
    bench = started()
    bench.child(1, step("r1#2"))
    bench.tell(GenerationDown(Generation(1), unexpected=False))
    bench.up()
    bench.sent.clear()
    bench.do(Pause(run=RUN, code="operator", detail=""))
    bench.settle()
    assert bench.asked == []
    bench.do(Unpause(run=RUN, by="me"))
    bench.settle()
    assert bench.kinds() == ["RunStart", "RunLog", "RunLive"]


def test_nothing_is_sent_after_the_end_of_a_run():
    """What becomes of its last mail is no news for code that has returned."""
    bench = started()
    by = WorkflowProcess(Generation(1))
    bench.do(QueueMail(by=by, run=RUN, call=CallId("r1#2"), to=(BOSS,), subject="?", text="?"))
    bench.child(1, ev.RunCompleted(result=value()))
    bench.sent.clear()
    bench.do(MailDelivered(1))
    assert bench.sent == []
    assert isinstance(bench.state, Open)
    assert not bench.state.cards


def test_a_run_that_rests_with_its_child_costs_no_card_and_misses_nothing():
    """Parked, sent to its end, no mail: one bit is kept. What is committed next goes to the child all the same."""
    bench = Bench()
    generation = bench.up()
    bench.mail()
    bench.settle()
    by = WorkflowProcess(generation)
    bench.do(Append(by=by, run=RUN, events=(ev.SignalAwaited(call=CallId("r1#1"), park="input", seen=1),)))
    bench.settle()
    assert isinstance(bench.state, Open)
    assert not bench.state.cards
    assert run_ordinal(RUN) in bench.state.resting
    before = len(bench.sent)
    bench.mail(2, to="<m1@x>")
    bench.settle()
    told = [each for each in bench.sent[before:] if isinstance(each, EventsCommitted)]
    assert [ev.decode(raw).seq for each in told for raw in each.events] == [3]
    assert not [each for each in bench.sent[before:] if isinstance(each, RunStart)], "it was given to this child once"
    assert run_ordinal(RUN) not in bench.state.resting


def test_a_run_that_rested_with_a_child_that_has_gone_is_not_charged_and_not_resumed():
    """It was parked: the next child is given it when something wakes it, and from its beginning."""
    bench = Bench()
    generation = bench.up()
    bench.mail()
    bench.settle()
    by = WorkflowProcess(generation)
    bench.do(Append(by=by, run=RUN, events=(ev.SignalAwaited(call=CallId("r1#1"), park="input", seen=1),)))
    bench.settle()
    bench.crash()
    bench.up()
    bench.settle()
    before = len(bench.sent)
    assert not [each for each in bench.sent if isinstance(each, RunStart)][1:]
    bench.mail(2, to="<m1@x>")
    bench.settle()
    assert [type(each) for each in bench.sent[before:]] == [RunStart, RunLog, RunLive]
    resumed = [event for event in bench.paper.log(RUN) if isinstance(event, ev.RunResumed)]
    assert [event.attempt for event in resumed] == [0]

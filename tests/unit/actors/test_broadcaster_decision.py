"""Who is shown what, and when: arrow by arrow, over the substrate's real rules on paper."""

from typing import Any

import msgspec

from actors.logic import terminal
from actors.logic.terminal import HELD_PROGRESS, Show, State, advance
from actors.messages import ProgressCame, Seen, SeenProgress, SeenQueued, Unwatch, Watch
from actors.watching import APPROVALS, EVERYTHING, TURNS, Turned
from substrate.messages import (
    Append,
    BeginGeneration,
    Claim,
    Deploy,
    Done,
    Enqueue,
    MailDelivered,
    QueueMail,
    ReadSchedules,
    Reject,
    Release,
    SpawnChild,
    Start,
    TakeUp,
    Tick,
    WorkflowProcess,
)
from waypost.model import events as ev
from waypost.model.code import deployed
from waypost.model.declaration import Declared
from waypost.model.ids import CallId, Deployment, Generation, RunId
from waypost.model.schedule import schedule
from waypost.model.times import Now
from waypost.testing.paper import Paper

HASH = "a" * 64
START = Start(definition=HASH, code=HASH, python="3.11", waypost="0", mail_to=())
RUN = RunId("run_1_0000000000000001")
ANNE: Any = "anne"  # words stand for refs: a decision only hands them on
BEN: Any = "ben"
CHILD = WorkflowProcess(Generation(1))


class Bench:
    """A broadcaster and a paper substrate that it has been subscribed to from the start."""

    def __init__(self) -> None:
        self.paper = Paper()
        self.state = State(deployment=Deployment("test"))
        self.shown: list[Show] = []
        self.do(BeginGeneration(), told=False)
        self.paper.taken()
        self.subscribe()

    def subscribe(self) -> None:
        """The substrate tells what there is."""
        self.tell(self.paper.snapshot())

    def tell(self, message: Any) -> None:
        """One message; what it shows is kept."""
        following = advance(self.state, message, Now(0, 0.0))
        self.state = following.state
        self.shown += following.effects

    def do(self, what: Any, *, told: bool = True) -> None:
        """An operation, visible and not durable."""
        result = self.paper.submit(what)
        assert isinstance(result, Done), result
        if told:
            self.stream()

    def stream(self) -> None:
        """What was published, told."""
        for message in self.paper.taken():
            self.tell(message)

    def flush(self) -> None:
        """Everything becomes durable."""
        self.paper.flush()
        self.stream()

    def mail(self, number: int = 1) -> None:
        """A mail is accepted."""
        self.do(Enqueue(f"Message-ID: <{number}@x>\r\nFrom: a@example.com\r\nSubject: Taxi\r\n\r\n".encode()))

    def run(self, number: int = 1) -> None:
        """A mail is accepted and starts a run."""
        self.mail(number)
        self.do(Claim(number))
        self.do(TakeUp(arrival=number, start=START))

    def take(self) -> list[tuple[str, str]]:
        """Who was shown what since this was last called."""
        shown = [(str(show.watcher), text(show.what)) for show in self.shown]
        self.shown.clear()
        return shown


def text(what: Seen | SeenProgress | SeenQueued | Turned) -> str:
    """What a watcher sees, in short."""
    match what:
        case Seen():
            return f"{what.recorded.event.seq} {ev.kind(what.recorded.event)}"
        case SeenProgress():
            return f"… {what.text}"
        case Turned():
            return f"turned {' '.join(what.ended)}".strip()
        case SeenQueued():
            return f"mail {what.arrival} {what.subject} from {what.sender}"


def step(call: str = "r1#1") -> Append:
    """A step begins."""
    return Append(by=CHILD, run=RUN, events=(ev.StepStarted(call=CallId(call), step="pay", arguments=HASH),))


def end() -> Append:
    """The run returns."""
    return Append(by=CHILD, run=RUN, events=(ev.RunCompleted(result=ev.Value(inline=msgspec.Raw(b"1"))),))


def progress(seq: int, said: str, call: str = "r1#1") -> ProgressCame:
    """A step says how far it is."""
    return ProgressCame(RUN, CallId(call), seq, said)


def test_a_watcher_sees_an_event_when_it_is_durable_and_not_before():
    """A power cut may take what is only visible; nobody outside may have heard of it."""
    bench = Bench()
    bench.tell(Watch(RUN, ANNE))
    bench.run()
    assert bench.take() == []
    bench.flush()
    assert bench.take() == [("anne", "1 RunStarted")]


def test_events_come_once_in_order_and_the_end_last():
    """And after the end the watcher is forgotten."""
    bench = Bench()
    bench.tell(Watch(RUN, ANNE))
    bench.run()
    bench.do(step())
    bench.flush()
    bench.do(end())
    bench.flush()
    assert bench.take() == [("anne", "1 RunStarted"), ("anne", "2 StepStarted"), ("anne", "3 RunCompleted")]
    assert not bench.state.watchers


def test_who_counts_is_told_once_a_flush_that_something_is_otherwise_and_not_of_steps():
    """A count is made anew for it; that a step has begun, or another one, changes nothing that is counted."""
    bench = Bench()
    bench.tell(Watch(TURNS, ANNE))
    bench.run()
    bench.mail(2)
    assert bench.take() == []
    bench.flush()
    assert bench.take() == [("anne", "turned")]
    bench.do(step())
    bench.flush()
    assert bench.take() == []
    bench.do(Claim(2))
    bench.do(Reject(2, "no"))
    bench.flush()
    assert bench.take() == [("anne", "turned")]
    bench.do(end())
    bench.flush()
    assert bench.take() == [("anne", "turned completed")]


def test_who_counts_is_told_that_a_schedule_has_come_further_without_a_mail():
    """When it is due next is counted, too: it stood in the past for as long as a run kept its ticks from beginning."""
    bench = Bench()
    bench.tell(Watch(TURNS, ANNE))
    declared = Declared(name="test", address="test@example.com", schedules=(schedule("* * * * *", name="minutely"),))
    files = {"flow.py": b""}
    bench.do(Deploy(record=deployed(files, root="", module="flow", declared=declared), files=files))
    bench.flush()
    bench.take()
    listed = bench.paper.submit(ReadSchedules())
    assert isinstance(listed, Done)
    reached = listed.value[0].ticked.reached
    bench.do(Tick(schedule="minutely", after=reached, last=reached + 60_000))
    assert bench.take() == [], "not before it is durable"
    bench.flush()
    assert bench.take() == [("anne", "turned")]


def test_what_becomes_of_a_run_s_last_mail_comes_to_who_watches_all_runs():
    """The timeline has a line for each event; who waits for one run has heard its end, and that was the last."""
    bench = Bench()
    bench.tell(Watch(None, ANNE))
    bench.tell(Watch(RUN, BEN))
    bench.run()
    bench.do(QueueMail(by=CHILD, run=RUN, call=CallId("r1#1"), to=("a@example.com",), subject="?", text="?"))
    bench.do(end())
    bench.flush()
    bench.take()
    bench.do(MailDelivered(1))
    bench.flush()
    assert bench.take() == [("anne", "4 MailSent")]


def test_a_watcher_of_all_runs_sees_accepted_mail_once():
    """A claim that goes back to the inbox is no second mail."""
    bench = Bench()
    bench.tell(Watch(None, ANNE))
    bench.tell(Watch(RUN, BEN))
    bench.mail()
    bench.do(Claim(1))
    bench.do(Release(1))
    bench.flush()
    bench.do(Claim(1))
    bench.do(BeginGeneration())
    bench.flush()
    assert bench.take() == [("anne", "mail 1 Taxi from a@example.com")]


def test_the_mail_of_a_child_run_is_from_nobody():
    """It is on behalf of whoever wrote to the parent, and they have sent no second one."""
    bench = Bench()
    bench.run()
    bench.tell(Watch(None, ANNE))
    bench.flush()
    bench.take()
    bench.do(SpawnChild(by=CHILD, run=RUN, call=CallId("r1#1"), workflow="pay", input=b"1", seen=1))
    bench.flush()
    assert bench.take() == [("anne", "2 ChildSpawned"), ("anne", f"mail 2 Child pay of {RUN} from ")]


def test_a_child_run_that_was_there_before_is_named_where_it_is_told_of():
    """Whoever watches was told of no call of it: it was spawned before the host was started, perhaps."""
    bench = Bench()
    bench.run()
    call = CallId("r1#1")
    bench.do(SpawnChild(by=CHILD, run=RUN, call=call, workflow="pay", input=b"1", seen=1))
    bench.flush()
    bench.state = State(deployment=Deployment("test"))
    bench.subscribe()
    bench.tell(Watch(None, ANNE))
    bench.do(Append(by=CHILD, run=RUN, events=(ev.ChildCancelRequested(call=call),)))
    bench.flush()
    told = [each.what for each in bench.shown if isinstance(each.what, Seen)]
    named = [(ev.kind(each.recorded.event), each.child.workflow) for each in told if each.child is not None]
    assert named == [("ChildCancelRequested", "pay"), ("ChildCompleted", "pay")]
    assert {each.child.child for each in told if each.child is not None} == {each.run for each in told} - {RUN}


def test_a_mail_that_was_there_before_is_no_news():
    """A broadcaster that took another one's place doesn't announce the queue."""
    bench = Bench()
    bench.mail()
    bench.state = State(deployment=Deployment("test"))
    bench.subscribe()
    bench.tell(Watch(None, ANNE))
    bench.do(Claim(1))
    bench.do(Release(1))
    bench.flush()
    assert bench.take() == []


def test_who_watches_one_run_and_all_of_them_sees_each_event_once():
    """Once is once, however somebody asked."""
    bench = Bench()
    for _ in range(2):
        bench.tell(Watch(RUN, ANNE))
        bench.tell(Watch(None, ANNE))
    bench.run()
    bench.flush()
    assert bench.take() == [("anne", "mail 1 Taxi from a@example.com"), ("anne", "1 RunStarted")]


def test_who_follows_everything_has_each_event_of_every_run_and_no_mail_or_progress():
    """A program that reads them by their number in the history must have none twice and miss none."""
    bench = Bench()
    bench.tell(Watch(EVERYTHING, ANNE))
    bench.run(1)
    bench.run(2)
    bench.do(step())
    bench.tell(progress(2, "half"))
    bench.flush()
    bench.do(end())
    bench.flush()
    assert [said for _who, said in bench.take()] == ["1 RunStarted", "1 RunStarted", "2 StepStarted", "3 RunCompleted"]


def test_who_shows_approvals_has_what_may_open_or_close_one_and_nothing_else():
    """Of whichever run; a step has nothing to do with it."""
    bench = Bench()
    bench.tell(Watch(APPROVALS, ANNE))
    bench.run()
    bench.do(step())
    awaited = ev.SignalAwaited(call=CallId("r1#2"), park="input", seen=1)
    bench.do(Append(by=CHILD, run=RUN, events=(awaited,)))
    assert bench.take() == []
    bench.flush()
    bench.do(end())
    bench.flush()
    assert bench.take() == [("anne", "3 SignalAwaited"), ("anne", "4 RunCompleted")]


def test_a_run_s_watcher_sees_nothing_of_other_runs():
    """What it didn't ask for is none of its business."""
    bench = Bench()
    bench.tell(Watch(RUN, ANNE))
    bench.run(1)
    bench.run(2)
    bench.flush()
    assert bench.take() == [("anne", "1 RunStarted")]


def test_a_watcher_that_stops_watching_sees_no_more():
    """Also what a shell sends when a watcher has gone."""
    bench = Bench()
    bench.tell(Watch(RUN, ANNE))
    bench.tell(Watch(RUN, BEN))
    bench.tell(Unwatch(RUN, ANNE))
    bench.tell(Unwatch(None, ANNE))
    bench.run()
    bench.flush()
    assert bench.take() == [("ben", "1 RunStarted")]
    bench.tell(Unwatch(RUN, BEN))
    assert not bench.state.watchers


def test_progress_waits_until_what_the_step_had_seen_is_durable():
    """It would tell of an event that a power cut may take; and it comes after that event."""
    bench = Bench()
    bench.tell(Watch(RUN, ANNE))
    bench.run()
    bench.flush()
    bench.do(step())
    bench.tell(progress(2, "half"))
    assert bench.take() == [("anne", "1 RunStarted")]
    bench.flush()
    assert bench.take() == [("anne", "2 StepStarted"), ("anne", "… half")]
    bench.tell(progress(2, "done"))
    assert bench.take() == [("anne", "… done")]


def test_progress_waits_through_what_is_durable_before():
    """What other runs do, or an earlier event of its own, doesn't let it out, and doesn't lose it."""
    bench = Bench()
    bench.tell(Watch(RUN, ANNE))
    bench.run()
    bench.flush()
    bench.take()
    bench.tell(progress(3, "half"))
    bench.run(2)
    bench.do(step())
    bench.flush()
    assert bench.take() == [("anne", "2 StepStarted")]
    bench.do(step("r1#2"))
    bench.flush()
    assert bench.take() == [("anne", "3 StepStarted"), ("anne", "… half")]


def test_progress_of_a_run_that_has_ended_is_dropped():
    """After the end nothing more comes, also what was waiting."""
    bench = Bench()
    bench.tell(Watch(None, ANNE))
    bench.run()
    bench.do(step())
    bench.tell(progress(9, "late"))
    bench.do(end())
    bench.flush()
    bench.tell(progress(2, "later"))
    assert [said for _who, said in bench.take() if said.startswith("…")] == []
    assert not bench.state.held


def test_progress_between_a_visible_and_a_durable_end_is_dropped():
    """The end is on its way: what waits for a later event would wait for ever."""
    bench = Bench()
    bench.run()
    bench.flush()
    bench.do(end())
    bench.tell(progress(7, "late"))
    bench.flush()
    assert not bench.state.held


def test_held_progress_is_the_newest_of_each_call_and_bounded():
    """A child that says it has seen events which never come can't fill the memory."""
    bench = Bench()
    bench.tell(Watch(RUN, ANNE))
    bench.run()
    bench.flush()
    bench.take()
    for number in range(HELD_PROGRESS + 50):
        bench.tell(progress(2, "old", f"r1#{number + 1}"))
        bench.tell(progress(2, "new", f"r1#{number + 1}"))
    assert len(bench.state.held) == HELD_PROGRESS
    bench.do(step())
    bench.flush()
    assert {said for _who, said in bench.take()} == {"2 StepStarted", "… new"}


def test_a_new_broadcaster_shows_progress_once_it_knows_what_is_durable():
    """A snapshot shows what is visible; the next Durable says that it holds."""
    bench = Bench()
    bench.run()
    bench.state = State(deployment=Deployment("test"))
    bench.subscribe()
    bench.tell(Watch(RUN, ANNE))
    bench.tell(progress(1, "half"))
    assert bench.take() == []
    bench.flush()
    assert bench.take() == [("anne", "… half")]


def test_progress_of_an_unknown_run_is_dropped():
    """Nothing of it was ever visible."""
    bench = Bench()
    bench.tell(progress(1, "?"))
    assert not bench.state.held


def test_runs_that_rest_are_forgotten_but_for_the_last_ones(monkeypatch):
    """A hundred thousand parked runs cost nothing; one that is woken is followed as before."""
    monkeypatch.setattr(terminal, "RESTING", 16)
    bench = Bench()
    runs: list[RunId] = []
    for number in range(1, terminal.RESTING + 4):
        bench.do(Enqueue(f"Message-ID: <m{number}@x>\r\nFrom: a@example.com\r\n\r\n".encode()))
        bench.do(Claim(number))
        runs.append(bench.paper.submit(TakeUp(arrival=number, start=START)).value)  # type: ignore[union-attr]  # it is done
        wait = ev.SignalAwaited(call=CallId("r1#1"), park="input", seen=1)
        bench.paper.submit(Append(by=CHILD, run=runs[-1], events=(wait,)))
    bench.paper.flush()
    for message in bench.paper.taken():
        bench.tell(message)
    assert list(bench.state.seqs) == list(bench.state.resting) == runs[3:]
    bench.paper.submit(Append(by=CHILD, run=runs[0], events=(ev.SignalAwaitAbandoned(call=CallId("r1#1")),)))
    bench.paper.flush()
    for message in bench.paper.taken():
        bench.tell(message)
    bench.shown.clear()
    bench.tell(Watch(runs[0], ANNE))
    bench.tell(ProgressCame(runs[0], CallId("r1#2"), 2, "half"))
    assert [show.what.text for show in bench.shown if isinstance(show.what, SeenProgress)] == ["half"]

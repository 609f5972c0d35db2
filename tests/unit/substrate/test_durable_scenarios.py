"""The hostile collection of durable scenarios, as far as the host decides them: dispatch, scheduler and the rules.

One handler for each row, or the reason why it isn't decided here; what the child decides is tested with its drive.
"""

from collections.abc import Callable

import msgspec
import pytest

from ipc.messages import RunStart
from substrate.messages import (
    Answer,
    Append,
    Cancel,
    CancelTaken,
    Done,
    Operation,
    QueueMail,
    Refused,
    Signal,
    SignalTaken,
    Supervisor,
    TakeUp,
    WorkflowProcess,
)
from waypost.model import event_parts as ev_parts
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.errors import Invalid
from waypost.model.ids import CallId, Generation, RunId, parse_run_id
from waypost.model.schedule import schedule, tick_of
from waypost.model.times import stamp, unstamp
from waypost.testing import cases
from waypost.testing.clock import START
from waypost.testing.dispatch_bench import BOSS, RUN, Bench, receiving, started, step
from waypost.testing.scheduler_bench import HOUR, TimeBench, timer

MINUTE = 60_000
CHILD = WorkflowProcess(Generation(1))
ASK = CallId("r1#3")
YES = ev.Decision(approved=True, by="bob", via="cli")
NO = ev.Decision(approved=False, by="bob", via="cli")


def events(bench: Bench, kind: type[ev.Event]) -> list[ev.AnyEvent]:
    """The run's events of a kind."""
    return [event for event in bench.paper.log(RUN) if isinstance(event, kind)]


def approval(*, timeout: float | None = None) -> tuple[Bench, str]:
    """A run that waits for the boss, and the Message-ID of its request."""
    bench = started()
    bench.child(1, ev.SignalAwaitAbandoned(call=CallId("r1#1")))
    bench.do(QueueMail(by=CHILD, run=RUN, call=CallId("r1#2"), to=(BOSS,), subject="?", text="?"))
    state = bench.paper.index.known(RUN).run
    assert isinstance(state, fold.Driven)
    (request,) = state.ledger.sent
    wait = ev.SignalAwaited(
        call=ASK,
        park="approval",
        seen=4,
        title="Pay?",
        who=(BOSS,),
        request=request,
        timeout=msgspec.UNSET if timeout is None else timeout,
    )
    bench.child(1, wait)
    return bench, request


def refused(bench: Bench, what: Operation) -> Refused:
    """It is refused."""
    result = bench.paper.submit(what)
    assert isinstance(result, Refused), result
    return result


def _early_mail_waits() -> None:
    bench = started()
    bench.child(1, ev.SignalAwaitAbandoned(call=CallId("r1#1")))
    bench.mail(2, to="<m1@x>")
    bench.settle()
    assert not events(bench, ev.SignalReceived)
    bench.child(1, receiving("r1#2", seen=3))
    bench.settle()
    (received,) = events(bench, ev.SignalReceived)
    assert ev.call_of(received) == "r1#2"


def _one_delivery() -> None:
    bench = started()
    bench.mail(2, to="<m1@x>")
    bench.mail(2, to="<m1@x>", known=True)
    bench.settle()
    assert len(events(bench, ev.SignalReceived)) == 1
    bench.child(1, receiving("r1#2", seen=3))
    bench.settle()
    assert len(events(bench, ev.SignalReceived)) == 1


def _oldest_wait_first() -> None:
    bench = started()
    bench.child(1, receiving("r1.1#1", seen=2))
    bench.mail(2, to="<m1@x>")
    bench.settle()
    assert [ev.call_of(event) for event in events(bench, ev.SignalReceived)] == ["r1#1"]


def _log_decides() -> None:
    bench, request = approval(timeout=60.0)
    bench.mail(2, to=request, sender=BOSS, text="yes")
    bench.answer()
    fired = ev.TimerFired(call=ASK, timer=ASK)
    bench.do(Append(by=Supervisor(), run=RUN, events=(fired,)))
    bench.settle()
    assert not events(bench, ev.SignalReceived)
    assert not bench.paper.index.queue[2].claimed, "the answer that came too late waits for the next receive"


def _handed_on() -> None:
    bench = started()
    bench.mail(2, to="<m1@x>")
    bench.answer()
    bench.do(Append(by=Supervisor(), run=RUN, events=(ev.RunFailed(error=ev.Fault(type="X", message="x")),)))
    bench.settle()
    (live,) = bench.paper.live()
    ledger = fold.ledger(bench.paper.index.known(live).run)
    assert ledger is not None
    assert (ledger.started.mail.arrival, ledger.started.after) == (2, RUN)


def _first_decision_counts() -> None:
    bench, _request = approval()
    bench.do(Answer(run=RUN, call=None, decision=YES))
    again = refused(bench, Answer(run=RUN, call=ASK, decision=NO))
    assert again.code == "already-decided"
    assert "was approved already, by bob" in again.why


def _reply_twice() -> None:
    bench, request = approval()
    bench.mail(2, to=request, sender=BOSS, text="yes")
    bench.mail(2, to=request, sender=BOSS, text="yes", known=True)
    bench.mail(3, to=request, sender=BOSS, text="no")
    bench.settle()
    (received,) = events(bench, ev.SignalReceived)
    assert isinstance(received, ev.SignalReceived)
    assert received.decision
    assert received.decision.approved
    assert 3 in bench.paper.index.queue


def _too_late() -> None:
    bench, _request = approval(timeout=60.0)
    bench.do(Append(by=Supervisor(), run=RUN, events=(ev.TimerFired(call=ASK, timer=ASK),)))
    late = refused(bench, Answer(run=RUN, call=ASK, decision=YES))
    assert late.why


def _one_of_two_stays() -> None:
    bench = started()
    bench.child(1, receiving("r1.1#1", seen=2))
    bench.mail(2, to="<m1@x>")
    bench.settle()
    ledger = fold.ledger(bench.paper.index.known(RUN).run)
    assert ledger is not None
    assert list(ledger.waits) == ["r1.1#1"]


def _stored_deadline() -> None:
    bench = TimeBench()
    bench.do(Append(by=CHILD, run=bench.runs[0], events=(timer("r1#1", 3600),)))
    bench.at(HOUR // 2)
    bench.open()
    assert not bench.requests
    bench.at(HOUR)
    bench.wake()
    assert isinstance(bench.answer(), Done)


def _due_at_once() -> None:
    bench = TimeBench()
    bench.do(Append(by=CHILD, run=bench.runs[0], events=(timer("r1#1", 60),)))
    bench.at(HOUR)
    bench.open()
    assert len(bench.requests) == 1
    assert isinstance(bench.answer(), Done)
    bench.open()
    assert not bench.requests


def _cancel_races() -> None:
    bench = TimeBench()
    bench.open()
    bench.child(timer("r1#1", 60))
    bench.at(60_000)
    bench.wake()
    cancelled = ev.TimerCancelled(call=CallId("r1#1"), timer="r1#1")
    bench.do(Append(by=CHILD, run=bench.runs[0], events=(cancelled,)))
    assert isinstance(bench.answer(), Refused)
    assert not bench.requests


def _clock_back() -> None:
    bench = TimeBench()
    bench.open()
    bench.child(timer("r1#1", 60))
    bench.at(60_000)
    bench.wake()
    assert isinstance(bench.answer(), Done)
    bench.at(60_000 - HOUR)
    bench.open()
    bench.at(60_000)
    bench.open()
    assert not bench.requests


def _no_catching_up() -> None:
    bench = TimeBench()
    bench.open()
    bench.child(timer("r1#1", 60), timer("r1#2", 120))
    bench.at(10 * HOUR)
    bench.wake()
    assert [name for _run, name in bench.fired()] == ["r1#1", "r1#2"]
    assert len(bench.wakes) == 1
    bench = TimeBench(runs=0)  # a schedule of each minute, stopped for ten
    bench.deploy(schedule("* * * * *", name="tick"))
    bench.at(10 * MINUTE)
    bench.wake()
    assert len(bench.requests) == 1
    bench.answer()
    assert (bench.sent(), len(bench.requests)) == ([10], 0)


def _one_tick_of_two_hosts() -> None:
    benches = TimeBench(runs=0), TimeBench(runs=0)
    benches[0].deploy(schedule("* * * * *", name="tick"))
    benches[1].paper = benches[0].paper
    benches[1].open()
    benches[0].at(MINUTE)
    for bench in benches:
        bench.wake()
    for bench in benches:
        while bench.requests or bench.questions:
            bench.plan()
            bench.answer() if bench.requests else None
    assert benches[0].sent() == [1]


def _gap_and_fold() -> None:
    gap, fold_ = "2027-03-28T01:00:00.000Z", "2027-10-31T00:30:00.000Z"  # half past two in Berlin: never, and twice
    usual = schedule("30 2 * * *", tz="Europe/Berlin", name="night")
    other = schedule("30 2 * * *", tz="Europe/Berlin", name="night", gap="skip", repeat="both")
    for one, first, second in ((usual, [gap], [fold_]), (other, [], [fold_, "2027-10-31T01:30:00.000Z"])):
        for day, expected in (("2027-03-27T12:00:00.000Z", first), ("2027-10-30T12:00:00.000Z", second)):
            bench, noon = TimeBench(runs=0), unstamp(day)
            bench.at(noon - START)
            bench.deploy(one)
            for hour in range(2, 49):  # each half an hour of the night and the day
                bench.at(noon - START + hour * HOUR // 2)
                for wake in tuple(bench.wakes):
                    bench.tell(wake.message)
                while bench.requests:
                    bench.answer()
                for arrival in tuple(bench.paper.index.queue):
                    bench.end(bench.take_up(arrival))
            ticks = [
                tick_of(event.mail.id)
                for run in bench.paper.runs()
                for event in bench.paper.log(run)[:1]
                if isinstance(event, ev.RunStarted)
            ]
            assert [stamp(round(tick.due.timestamp() * 1000)) for tick in ticks if tick is not None] == expected


def _adopted() -> None:
    bench = started()
    bench.child(1, step("r1#2"))
    bench.crash()
    bench.up()
    bench.settle()
    ledger = fold.ledger(bench.paper.index.known(RUN).run)
    assert ledger is not None
    assert len(events(bench, ev.StepStarted)) == 1
    assert ledger.steps[CallId("r1#2")].attempt == 1


def _found_again() -> None:
    bench = started()
    bench.child(1, step("r1#2"))
    bench.crash()
    again = Bench(paper=bench.paper)
    again.up()
    again.settle()
    assert [payload.run for payload in again.sent if isinstance(payload, RunStart)] == [RUN]


def _locked() -> None:
    bench = started()
    bench.child(1, ev.RunCompleted(result=ev.Value(inline=msgspec.Raw(b"1"))))
    failed = ev.RunFailed(error=ev.Fault(type="X", message="x"))
    assert refused(bench, Append(by=Supervisor(), run=RUN, events=(failed,))).code == "terminal"


def _no_path() -> None:
    with pytest.raises(Invalid):
        parse_run_id("run_../../x@h")
    bench = started()
    bad = TakeUp(arrival=1, wait=CallId("r1#1"))
    assert refused(bench, bad).code == "not-claimed"
    appended = Append(by=CHILD, run=RunId("run_../../x@h"), events=(step("r1#1"),))
    assert isinstance(bench.paper.submit(appended), Refused)


def _signal(bench: Bench, identity: str) -> str:
    taken = bench.do(Signal(run=RUN, name="paid", id=identity, payload=b"1"))
    assert isinstance(taken, SignalTaken)
    return taken.outcome


def _waiting(call: str, seen: int) -> ev.SignalAwaited:
    return ev.SignalAwaited(call=CallId(call), park="signal", name="paid", seen=seen)


def _early_signal_waits() -> None:
    _early_mail_waits()
    bench = started()
    assert _signal(bench, "s1") == "kept"
    bench.child(1, ev.SignalAwaitAbandoned(call=CallId("r1#1")), _waiting("r1#2", seen=3))
    state = bench.paper.index.known(RUN).run
    assert isinstance(state, fold.Driven)
    assert not state.ledger.waits


def _one_signal() -> None:
    _one_delivery()
    bench = started()
    assert [_signal(bench, "s1"), _signal(bench, "s1")] == ["kept", "already-present"]


def _first_waiter() -> None:
    _oldest_wait_first()
    bench = started()
    bench.child(1, _waiting("r1#2", seen=2), _waiting("r1#3", seen=2))
    assert [_signal(bench, "s1"), _signal(bench, "s2")] == ["received", "received"]
    assert [ev.call_of(event) for event in events(bench, ev.SignalReceived)] == ["r1#2", "r1#3"]


def _late_signal_is_reported() -> None:
    _handed_on()
    bench = started()
    bench.child(1, ev.RunFailed(error=ev.Fault(type="X", message="x")))
    assert refused(bench, Signal(run=RUN, name="paid", id="s1", payload=b"1")).code == "ended"


def _cancel(bench: Bench, origin: ev_parts.Origin = "supervisor-operator") -> CancelTaken:
    taken = bench.do(Cancel(run=RUN, reason="enough", origin=origin))
    assert isinstance(taken, CancelTaken)
    return taken


def _no_retry_after_a_cancel() -> None:
    bench = started()
    fault = ev.Fault(type="OSError", message="no route")
    bench.child(1, ev.SignalAwaitAbandoned(call=CallId("r1#1")), step("r1#2"))
    bench.child(
        1,
        ev.StepFailed(call=CallId("r1#2"), error=fault, final=False),
        ev.TimerSet(call=CallId("r1#2"), timer="r1#2/2", delay=60.0, seen=4),
        ev.AttemptScheduled(call=CallId("r1#2"), attempt=2, timer="r1#2/2"),
    )
    _cancel(bench)
    bench.child(1, ev.RunCancelled())
    fired = ev.TimerFired(call=CallId("r1#2"), timer="r1#2/2")
    assert refused(bench, Append(by=Supervisor(), run=RUN, events=(fired,))).code == "terminal"


def _first_origin_counts() -> None:
    bench = started()
    assert [_cancel(bench, "self").fresh, _cancel(bench).fresh] == [True, False]
    (asked,) = events(bench, ev.CancelRequested)
    assert isinstance(asked, ev.CancelRequested)
    assert asked.origin == "self"


def _bounded_clean_up() -> None:
    bench = started()
    _cancel(bench)
    bench.flush()
    bench.child(1, ev.TimerSet(call=CallId("r1#2"), timer="r1#2", delay=600.0, seen=3))
    bench.later(bench.limits.cancel_grace)
    bench.settle()
    (end,) = events(bench, ev.RunCancelled)
    assert isinstance(end, ev.RunCancelled)
    assert end.code == "past-grace"


HERE: dict[str, Callable[[], None]] = {
    "cancel during retry back-off": _no_retry_after_a_cancel,
    "cancel twice / by two origins": _first_origin_counts,
    "cleanup hangs on cancel": _bounded_clean_up,
    "signal before wait": _early_signal_waits,
    "duplicate signal id": _one_signal,
    "two waiters one signal": _first_waiter,
    # Debatable row: "the timer wins" in the reference; here the log's order does, on every replay the same.
    "signal and timeout at the same moment": _log_decides,
    "signal lost on hand-over to a new run": _late_signal_is_reported,
    "approval twice: yes then no": _first_decision_counts,
    "approval by mail reply delivered twice": _reply_twice,
    "approval after the park timed out": _too_late,
    "two parks in one step, one answered": _one_of_two_stays,
    "timer after restart": _stored_deadline,
    "timer already due at start": _due_at_once,
    "timer cancelled at the deadline": _cancel_races,
    "wall clock back over the deadline": _clock_back,
    "missed ticks after process suspension (SIGSTOP)": _no_catching_up,
    "two schedulers": _one_tick_of_two_hosts,
    "cron in DST gap / fold": _gap_and_fold,
    "step retried after crash": _adopted,
    "zombie run": _found_again,
    "two terminal events": _locked,
    "run id from hostile address": _no_path,
}

CHILD_SIDE = "decided in the child, and tested with its drive"
ELSEWHERE = {
    "timer 0 / negative / NaN / huge": CHILD_SIDE,
    "error type that must not be retried": CHILD_SIDE,
    "changed code, order only": CHILD_SIDE,
    "random/time in the body": CHILD_SIDE,
    "event bytes changed / event deleted": "what is on disk is the substrate's to check",
    "history 100,000 events": "a benchmark, not a timed test",
}


@pytest.mark.parametrize("name", sorted(HERE))
def test_durable_scenarios_have_their_right_outcome(name):
    """Each row of the collection that the host decides."""
    HERE[name]()


def test_every_scenario_has_a_handler_or_a_reason():
    """A row that is added must be looked at."""
    if not cases.available():
        pytest.skip(cases.MISSING)
    assert {row["name"] for row in cases.rows("durable_scenarios.jsonl")} == HERE.keys() | ELSEWHERE.keys()

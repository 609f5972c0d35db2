"""The run's fold, arrow by arrow: what each event changes, and what may not follow what."""

from collections.abc import Sequence

import msgspec
import pytest

from waypost.model import events as ev
from waypost.model.ids import CallId, Generation, RunId
from waypost.model.ledger import REMEMBERED
from waypost.model.run import Driven, Ended, Illegal, Parked, Paused, Run, evolve, ledger
from waypost.testing.samples import BEGAN, HASH, NULL, folded

RUN = RunId("run_7_00000000000000aa")
A, B = CallId("r1#1"), CallId("r1#2")
BOOM = ev.Fault(type="ValueError", message="boom")


def mailed(arrival: int = 1, hashed: str = HASH) -> ev.Mailed:
    return ev.Mailed(arrival=arrival, id=f"<{arrival}@x>", sha256=hashed)


STARTED = msgspec.structs.replace(BEGAN, mail=mailed())
STEP = ev.StepStarted(call=A, step="extract", arguments=HASH)
DONE = ev.StepCompleted(call=A, output=NULL)
FAILED = ev.StepFailed(call=A, error=BOOM, final=True)
TRY_AGAIN = (
    ev.StepFailed(call=A, error=BOOM, final=False),
    ev.TimerSet(call=A, timer="r1#1/2", delay=1, seen=1),
    ev.AttemptScheduled(call=A, attempt=2, timer="r1#1/2"),
)
QUEUED = ev.MailQueued(call=A, message_id="<ask@x>", to=("boss@x",), ordinal=3, sha256=HASH)
INPUT = ev.SignalAwaited(call=B, park="input", seen=1)
LATER_INPUT = ev.SignalAwaited(call=B, park="input", seen=2)
APPROVAL = ev.SignalAwaited(
    call=B, park="approval", seen=2, title="Pay?", who=("boss@x",), request="<ask@x>", timeout=5, timeout_at=9
)
MAIL = ev.SignalReceived(call=B, signal="mail:2", mail=mailed(2, "1" * 64))
YES = ev.SignalReceived(call=B, signal="cli:1", decision=ev.Decision(approved=True, by="boss@x", via="cli"))
SLEEP = ev.TimerSet(call=A, timer="r1#1", delay=60, seen=1, fire_at=99)
FIRED = ev.TimerFired(call=A, timer="r1#1")
CANCEL = ev.CancelRequested(origin="supervisor-operator", reason="enough", by="ann")
CANCELLED = ev.RunCancelled()
PAID = ev.SignalAwaited(call=B, park="signal", name="paid", seen=1)
LATER_PAID = ev.SignalAwaited(call=B, park="signal", name="paid", seen=2)
EARLY = ev.SignalReceived(signal="s1", name="paid", payload=NULL)
TAKEN = ev.SignalReceived(call=B, signal="s1", name="paid", payload=NULL)
PAUSED = ev.RunPaused(code="code-changed", detail="a is b now")


def fold(events: Sequence[ev.AnyEvent]) -> Run:
    return folded(RUN, events)


@pytest.mark.parametrize(
    ("events", "state"),
    [
        ([STARTED], Driven),
        ([STARTED, STEP], Driven),
        ([STARTED, STEP, DONE], Driven),
        ([STARTED, STEP, FAILED], Driven),
        ([STARTED, STEP, *TRY_AGAIN], Parked),
        ([STARTED, STEP, *TRY_AGAIN, ev.TimerFired(call=A, timer="r1#1/2")], Driven),
        ([STARTED, INPUT], Parked),
        ([STARTED, INPUT, MAIL], Driven),
        ([STARTED, SLEEP], Parked),
        ([STARTED, SLEEP, FIRED], Driven),
        ([STARTED, SLEEP, ev.RunResumed(generation=Generation(2))], Parked),
        ([STARTED, QUEUED, APPROVAL], Parked),
        ([STARTED, QUEUED, APPROVAL, YES], Driven),
        ([STARTED, QUEUED, APPROVAL, ev.TimerFired(call=B, timer=B)], Driven),
        ([STARTED, INPUT, STEP], Driven),
        ([STARTED, ev.MailFailed(call=A, reason="too large"), INPUT], Driven),
        ([STARTED, QUEUED, ev.MailFailed(call=A, reason="no such box", ordinal=3), LATER_INPUT], Parked),
        ([STARTED, INPUT, ev.SignalAwaitAbandoned(call=B)], Driven),
        ([STARTED, PAUSED], Paused),
        ([STARTED, STEP, PAUSED, DONE], Paused),
        ([STARTED, STEP, PAUSED, *TRY_AGAIN], Paused),
        ([STARTED, INPUT, PAUSED, ev.RunUnpaused(by="ann")], Driven),
        ([STARTED, ev.RunCompleted(result=NULL)], Ended),
        ([STARTED, ev.RunFailed(error=BOOM)], Ended),
        ([STARTED, QUEUED, ev.RunCompleted(result=NULL), ev.MailSent(call=A, ordinal=3)], Ended),
        ([STARTED, PAUSED, ev.RunFailed(error=BOOM)], Ended),
        ([STARTED, CANCEL], Driven),
        ([STARTED, INPUT, CANCEL], Driven),
        (
            [STARTED, INPUT, CANCEL, ev.SignalAwaitAbandoned(call=B), ev.SignalAwaited(call=A, park="input", seen=3)],
            Driven,
        ),
        ([STARTED, CANCEL, CANCELLED], Ended),
        ([STARTED, STEP, CANCEL, DONE, CANCELLED], Ended),
        ([STARTED, STEP, CANCEL, ev.CancelPropagated(call=A), CANCELLED], Ended),
        ([STARTED, STEP, CANCEL, CANCELLED], Ended),
        ([STARTED, PAUSED, CANCEL], Paused),
        ([STARTED, PAUSED, CANCEL, CANCELLED], Ended),
        ([STARTED, PAID], Parked),
        ([STARTED, PAID, TAKEN], Driven),
        ([STARTED, EARLY, LATER_PAID], Driven),
        ([STARTED, INPUT, EARLY], Parked),
    ],
)
def test_each_arrow_leads_to_its_state(events: list[ev.AnyEvent], state: type) -> None:
    """One row is one road through the diagram."""
    assert isinstance(fold(events), state)


@pytest.mark.parametrize(
    ("events", "refused", "code"),
    [
        ([], STEP, "phase"),
        ([STARTED], STARTED, "phase"),
        ([STARTED], ev.RunUnpaused(by="x"), "phase"),
        ([STARTED], ev.RunResumed(generation=Generation(1)), "generation"),
        ([STARTED, STEP], STEP, "step-already-started"),
        ([STARTED], DONE, "unknown-step"),
        ([STARTED, STEP, DONE], DONE, "unknown-step"),
        ([STARTED, STEP], ev.StepCompleted(call=A, attempt=2, output=NULL), "attempt"),
        ([STARTED], ev.StepStarted(call=A, step="extract", arguments=HASH, attempt=2), "attempt"),
        ([STARTED, STEP, *TRY_AGAIN], ev.StepStarted(call=A, step="x", arguments=HASH, attempt=2), "timer"),
        ([STARTED, STEP], ev.AttemptScheduled(call=A, attempt=2, timer="r1#1/2"), "attempt"),
        ([STARTED, STEP, TRY_AGAIN[0]], TRY_AGAIN[2], "timer"),
        ([STARTED, SLEEP], SLEEP, "timer"),
        ([STARTED], FIRED, "timer"),
        ([STARTED, SLEEP, FIRED], FIRED, "timer"),
        ([STARTED, SLEEP, ev.TimerCancelled(call=A, timer="r1#1")], FIRED, "timer"),
        ([STARTED], ev.TimerSet(call=A, timer="r1#1", delay=1, seen=2), "seen"),
        ([STARTED, INPUT], INPUT, "wait"),
        ([STARTED], MAIL, "wait"),
        ([STARTED, INPUT, MAIL], MAIL, "wait"),
        ([STARTED, INPUT, ev.SignalAwaitAbandoned(call=B)], MAIL, "wait"),
        ([STARTED, QUEUED, APPROVAL, ev.TimerFired(call=B, timer=B)], YES, "wait"),
        ([STARTED, QUEUED, APPROVAL, YES], ev.TimerFired(call=B, timer=B), "timer"),
        ([STARTED, INPUT], ev.TimerFired(call=B, timer=B), "timer"),
        ([STARTED, INPUT], YES, "payload"),
        ([STARTED, QUEUED, APPROVAL], MAIL, "payload"),
        ([STARTED, INPUT], ev.SignalAwaited(call=A, park="input", seen=9), "seen"),
        ([STARTED], ev.SignalAwaited(call=A, park="approval", seen=1, request="<ask@x>"), "who"),
        ([STARTED, STEP], APPROVAL, "request"),
        ([STARTED, PAUSED], STEP, "paused"),
        ([STARTED, PAID, PAUSED], TAKEN, "paused"),
        ([STARTED, CANCEL], CANCEL, "cancelling"),
        ([STARTED, CANCEL], PAUSED, "cancelling"),
        ([STARTED, CANCEL], ev.RunCompleted(result=NULL), "cancelling"),
        ([STARTED, CANCEL], ev.RunFailed(error=BOOM), "cancelling"),
        ([STARTED], CANCELLED, "not-cancelled"),
        ([STARTED, STEP], ev.CancelPropagated(call=A), "not-cancelled"),
        ([STARTED, CANCEL], ev.CancelPropagated(call=A), "unknown-step"),
        ([STARTED, CANCEL, CANCELLED], CANCEL, "terminal"),
        ([STARTED, ev.RunCompleted(result=NULL)], CANCEL, "terminal"),
        ([STARTED, PAID], EARLY, "wait"),
        ([STARTED, INPUT], TAKEN, "wait"),
        ([STARTED, PAID, TAKEN], TAKEN, "signal-known"),
        ([STARTED, EARLY], EARLY, "signal-known"),
        ([STARTED, PAID], MAIL, "payload"),
        ([STARTED, INPUT], ev.SignalReceived(call=B, signal="s", payload=NULL), "payload"),
        ([STARTED], ev.SignalReceived(signal="s", name="paid"), "payload"),
        ([STARTED], ev.SignalAwaited(call=B, park="signal", seen=1), "name"),
        ([STARTED], ev.SignalAwaited(call=B, park="input", name="paid", seen=1), "name"),
        ([STARTED, PAUSED], SLEEP, "paused"),
        ([STARTED, INPUT, PAUSED], MAIL, "paused"),
        ([STARTED, PAUSED], PAUSED, "paused"),
        ([STARTED, ev.RunCompleted(result=NULL)], STEP, "terminal"),
        ([STARTED, ev.RunCompleted(result=NULL)], ev.RunCompleted(result=NULL), "terminal"),
        ([STARTED, ev.RunFailed(error=BOOM)], ev.RunCompleted(result=NULL), "terminal"),
        ([STARTED], ev.MailSent(call=A, ordinal=3), "outbox"),
        ([STARTED, QUEUED, ev.MailSent(call=A, ordinal=3)], ev.MailSent(call=A, ordinal=3), "outbox"),
        ([STARTED, QUEUED], ev.MailSent(call=B, ordinal=3), "outbox"),
    ],
)
def test_what_may_not_follow_is_refused_by_rule(events: list[ev.AnyEvent], refused: ev.AnyEvent, code: str) -> None:
    """The refusal names the rule, and the event stays outside."""
    run = fold(events)
    with pytest.raises(Illegal) as refusal:
        evolve(run, ev.stored(refused, seq=len(events) + 1, at="now", prev=HASH)[0], run_id=RUN)
    assert refusal.value.code == code
    assert ev.kind(refused) in refusal.value.message


def test_signals_that_come_before_their_waits_are_taken_in_order() -> None:
    """The first to come is the first to be read; another name's wait takes none of them."""
    second = ev.SignalReceived(signal="s2", name="paid", payload=NULL)
    other = ev.SignalAwaited(call=A, park="signal", name="shipped", seen=1)
    open_now = ledger(fold([STARTED, EARLY, other, second, LATER_PAID]))
    assert open_now is not None
    assert dict(open_now.signals) == {"paid": (4,)}
    assert list(open_now.waits) == [A]


def test_so_many_signals_are_remembered_by_their_identity() -> None:
    """What is kept of a run must not grow with all the signals it ever had."""
    signals = [ev.SignalReceived(signal=f"s{n}", name="paid", payload=NULL) for n in range(REMEMBERED + 1)]
    run = fold([STARTED, *signals])
    again = ev.stored(signals[1], seq=len(signals) + 2, at="now", prev=HASH)[0]
    with pytest.raises(Illegal):
        evolve(run, again, run_id=RUN)
    forgotten = ev.stored(signals[0], seq=len(signals) + 2, at="now", prev=HASH)[0]
    assert isinstance(evolve(run, forgotten, run_id=RUN), Driven)


@pytest.mark.parametrize("events", [[], [STARTED], [STARTED, QUEUED, ev.RunFailed(error=BOOM)]])
@pytest.mark.parametrize("off", [-1, 1])
def test_a_gap_or_a_repeat_in_seq_is_refused(events: list[ev.AnyEvent], off: int) -> None:
    """Seq counts by one from 1, in every state."""
    following: ev.AnyEvent = [STARTED, STEP, None, ev.MailSent(call=A, ordinal=3)][len(events)] or STEP
    wrong = ev.stored(following, seq=len(events) + 1 + off, at="now", prev=HASH)[0]
    with pytest.raises(Illegal) as refusal:
        evolve(fold(events), wrong, run_id=RUN)
    assert refusal.value.code == "sequence"


def test_a_timer_cancelled_too_late_is_no_error() -> None:
    """The clock may be quicker than the code; the child must not be refused for losing a race."""
    fold([STARTED, SLEEP, FIRED, ev.TimerCancelled(call=A, timer="r1#1")])
    fold([STARTED, INPUT, MAIL, ev.SignalAwaitAbandoned(call=B)])


def test_a_park_asked_for_before_the_newest_outcome_was_seen_does_not_park_the_run() -> None:
    """Two steps end in one flush; the first one's turn parks, the second one's is lost with the child.

    Were the run parked now, no new child would be given it, and it would wait for ever.
    """
    other = ev.StepStarted(call=B, step="other", arguments=HASH)
    parked_by_the_first = ev.SignalAwaited(call=CallId("r1.1#2"), park="input", seen=4)
    run = fold([STARTED, STEP, other, DONE, ev.StepCompleted(call=B, output=NULL), parked_by_the_first])
    assert isinstance(run, Driven)


def test_attempts_count_from_the_last_progress() -> None:
    """Exits are held against a run only until it gets on."""
    resumed = ev.RunResumed(generation=Generation(2), attempt=2)
    before = ledger(fold([STARTED, STEP, resumed]))
    after = ledger(fold([STARTED, STEP, resumed, DONE]))
    assert before is not None
    assert after is not None
    assert (before.attempts, before.generation, after.attempts) == (2, 2, 0)


def test_the_run_knows_the_mails_it_may_read_and_its_thread() -> None:
    """What the child may fetch, and which replies are this run's, follow from the log."""
    now = ledger(fold([STARTED, QUEUED, INPUT, MAIL]))
    assert now is not None
    assert now.mails == {HASH: 1, "1" * 64: 2}
    assert now.received == ("<1@x>", "<2@x>")
    assert now.sent == {"<ask@x>"}
    assert now.unsent == {3: A}


def test_a_park_shows_that_a_run_came_through() -> None:
    """Exits before it are forgotten (storage §5, Attempts)."""
    wait = ev.SignalAwaited(call=A, park="input", seen=2)
    resumed = ev.RunResumed(generation=Generation(2), attempt=2)
    before, after = ledger(fold([STARTED, resumed])), ledger(fold([STARTED, resumed, wait]))
    assert before is not None
    assert after is not None
    assert (before.attempts, after.attempts) == (2, 0)

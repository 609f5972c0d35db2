"""The fold over random legal histories: refusals change nothing, and no live run waits in the dark."""

import random
from collections.abc import Callable

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from waypost.host.reading.explain import Situation, Told
from waypost.host.reading.run_why import why
from waypost.model import events as ev
from waypost.model.ids import CallId, Generation, RunId
from waypost.model.run import Absent, Ended, Illegal, Parked, Paused, Run, evolve, ledger
from waypost.model.waiting import waiting_on
from waypost.testing.samples import BEGAN, HASH, NULL
from waypost.testing.sayings import check_reason

RUN = RunId("run_7_00000000000000aa")
CHILD = RunId("run_8_00000000000000bb")
HERE = Situation(name="orders", address="orders@x", hosted=True, state="running")


def anything(rng: random.Random, seq: int) -> ev.AnyEvent:
    """Any kind of event with small identities, so that legal and illegal ones both come up often."""
    call = CallId(f"r1#{rng.randint(1, 3)}")
    attempt = rng.choice([1, 1, 2])
    timer = rng.choice([call, f"{call}/2"])
    seen = max(0, seq - rng.randint(1, 3))
    fault = ev.Fault(type="E", message="m")
    mail = ev.Mailed(arrival=seq, id=f"<{seq}@x>", sha256=HASH)
    makers: list[Callable[[], ev.AnyEvent]] = [
        lambda: msgspec.structs.replace(BEGAN, mail=mail),
        lambda: ev.RunResumed(generation=Generation(rng.randint(1, 9)), attempt=rng.randint(0, 2)),
        lambda: ev.RunPaused(code=rng.choice(["operator", "poison", "code-changed", "code-missing"])),
        lambda: ev.RunUnpaused(by="x"),
        lambda: ev.StepStarted(call=call, step="s", attempt=attempt, arguments=HASH),
        lambda: ev.StepCompleted(call=call, attempt=attempt, output=NULL),
        lambda: ev.StepFailed(call=call, attempt=attempt, error=fault, final=rng.random() < 0.5),
        lambda: ev.TimerSet(call=call, timer=timer, delay=1, seen=seen, fire_at=seq),
        lambda: ev.AttemptScheduled(call=call, attempt=2, timer=timer),
        lambda: ev.TimerFired(call=call, timer=timer),
        lambda: ev.TimerCancelled(call=call, timer=timer),
        lambda: ev.MailQueued(call=call, message_id="<q@x>", to=("a@x",), ordinal=rng.randint(1, 2), sha256=HASH),
        lambda: ev.MailSent(call=call, ordinal=rng.randint(1, 2)),
        lambda: ev.MailFailed(call=call, reason="no"),
        lambda: ev.SignalAwaited(call=call, park="input", seen=seen, timeout_at=5),
        lambda: ev.SignalAwaited(call=call, park="approval", seen=seen, who=("a@x",), request="<q@x>"),
        lambda: ev.SignalReceived(call=call, signal="m", mail=mail),
        lambda: ev.SignalReceived(call=call, signal="c", decision=ev.Decision(approved=True, by="a", via="cli")),
        lambda: ev.SignalAwaitAbandoned(call=call),
        lambda: ev.SignalAwaited(call=call, park="signal", name=rng.choice("ab"), seen=seen),
        lambda: ev.SignalReceived(call=call, signal=str(seq), name=rng.choice("ab"), payload=NULL),
        lambda: ev.SignalReceived(signal=str(rng.randint(1, 9)), name=rng.choice("ab"), payload=NULL),
        lambda: ev.CancelPropagated(call=call, attempt=attempt),
        lambda: ev.ChildSpawned(call=call, child=CHILD, workflow="pay", arguments=HASH, seen=seen),
        lambda: ev.ChildRefused(call=call, workflow="pay", reason="no"),
        lambda: ev.ChildCompleted(call=call, outcome="completed", result=NULL),
        lambda: ev.ChildCompleted(call=call, outcome="failed", error=fault),
        lambda: ev.ChildCancelRequested(call=call),
        lambda: ev.CodeRested(seen=seen),
    ]
    if rng.random() < 0.02:
        makers = [
            lambda: ev.RunCompleted(result=NULL),
            lambda: ev.RunFailed(error=fault),
            ev.RunCancelled,
            lambda: ev.CancelRequested(origin="self", reason="x"),
        ]
    return rng.choice(makers)()


@given(st.integers(0, 2**32))
def test_refusals_change_nothing_and_every_live_state_says_what_it_waits_on(seed: int) -> None:
    """Whatever order events are tried in: the log that was accepted folds to the same state again."""
    rng = random.Random(seed)
    run: Run = Absent()
    log: list[ev.AnyEvent] = []
    for _ in range(150):
        seq = len(log) + 1
        event = ev.stored(anything(rng, seq), seq=seq, at="now", prev=HASH)[0]
        before = repr(run)
        try:
            following = evolve(run, event, run_id=RUN)
        except Illegal:
            assert repr(run) == before
            continue
        run = following
        log.append(event)
        assert bool(waiting_on(run)) != isinstance(run, Ended)
        _says_why(run)
        _cancelled_ends_cancelled(log, run)
        open_now = ledger(run)
        assert open_now is None or open_now.seq == len(log)
    again: Run = Absent()
    for event in log:
        again = evolve(again, event, run_id=RUN)
    assert again == run


def _says_why(run: Run) -> None:
    """What it waits for, what follows, and the command that helps, of each thing and of all together."""
    began = "1970-01-01T00:00:00.000Z"
    answer = why(Told(run=RUN, state=run, lines=(), opened={}, started=None, changed=began, ending="ended"), HERE)
    assert bool(answer.waiting) != isinstance(run, Ended)
    assert answer.needed == isinstance(run, Paused)
    for reason in (answer, *answer.waiting):
        check_reason(reason)


def _cancelled_ends_cancelled(log: list[ev.AnyEvent], run: Run) -> None:
    """Who was first has won, in every order of events; and a run that is being cancelled rests nowhere."""
    cancels = sum(isinstance(event, ev.CancelRequested) for event in log)
    assert cancels <= 1
    if isinstance(run, Ended):
        assert (run.outcome == "cancelled") == bool(cancels)
    assert not (cancels and isinstance(run, Parked))


@given(st.integers(0, 2**32))
def test_nothing_but_the_fate_of_mail_follows_the_end(seed: int) -> None:
    """Terminal is terminal."""
    rng = random.Random(seed)
    run: Run = Absent()
    seq = 0
    ended_at = None
    for _ in range(200):
        event = ev.stored(anything(rng, seq + 1), seq=seq + 1, at="now", prev=HASH)[0]
        try:
            run = evolve(run, event, run_id=RUN)
        except Illegal:
            continue
        seq += 1
        if ended_at is not None:
            assert isinstance(event, ev.MailSent | ev.MailFailed)
        if isinstance(run, Ended) and ended_at is None:
            ended_at = seq

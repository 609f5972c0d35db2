"""Scheduler and broadcaster under chance: each timer once, each durable event once and in order."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from actors.logic.scheduler.decision import Watching
from actors.logic.terminal import Show, State, advance
from actors.messages import Seen, Watch
from substrate.messages import Append, Durable, Pause, Unpause, Withheld, WorkflowProcess
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.deadlines import Deadline, deadlines, is_open, opened
from waypost.model.ids import CallId, Deployment, Generation, RunId
from waypost.model.limits import Limits
from waypost.model.times import Now
from waypost.testing.dispatch_bench import Bench, receiving
from waypost.testing.scheduler_bench import HASH, TimeBench, timer

CHILD = WorkflowProcess(Generation(1))


@given(seed=st.integers(0, 2**32), length=st.integers(5, 120), most=st.sampled_from([1, 2, 5, 256]))
@settings(max_examples=25)
def test_each_timer_fires_once_however_the_clock_runs(seed, length, most):
    """Set, cancelled, paused, withheld, restarted, with a clock that jumps: once each, and none is forgotten.

    So it is, too, where only the next one or two are in memory, and what comes after them is asked for and withheld.
    """
    chance = Random(seed)
    bench = TimeBench(runs=3, limits=Limits(deadlines=most), prompt=False)
    bench.open()
    wall = 0
    for number in range(1, length):
        run, call = chance.randrange(3), CallId(f"r1#{number}")
        ledger = fold.ledger(bench.paper.index.known(bench.runs[run]).run)
        assert ledger is not None
        match chance.randrange(11):
            case 0 | 1 if not isinstance(bench.paper.index.known(bench.runs[run]).run, fold.Paused):
                bench.child(timer(call, chance.randrange(100)), run=run)
            case 2 if not isinstance(bench.paper.index.known(bench.runs[run]).run, fold.Paused):
                wait = ev.SignalAwaited(call=call, park="input", seen=1, timeout=float(chance.randrange(100)))
                bench.child(wait, run=run)
            case 3 if ledger.timers:
                name = next(iter(ledger.timers))
                cancelled = ev.TimerCancelled(call=ledger.timers[name].call, timer=name)
                bench.paper.submit(Append(by=CHILD, run=bench.runs[run], events=(cancelled,)))
            case 4:
                wall += chance.randrange(-50_000, 100_000)
                bench.at(wall)
            case 5 if bench.wakes:
                bench.tell(chance.choice(bench.wakes).message)
            case 6 if bench.requests:
                bench.answer(Withheld("full") if chance.random() < 0.3 else None)
            case 7:
                what = Pause(run=bench.runs[run], code="operator", detail="")
                bench.paper.submit(what if chance.random() < 0.5 else Unpause(run=bench.runs[run], by="me"))
            case 8 if bench.looks:
                bench.look(Withheld("full") if chance.random() < 0.3 else None)
            case 9 if number % 7 == 0:
                bench.open()
            case _:
                bench.stream()
        assert isinstance(bench.state, Watching)
        assert len(bench.state.timers.ahead) <= 2 * most or bench.state.timers.looking is not None
    bench.at(10_000_000)
    for _ in range(200):
        bench.stream()
        for wake in tuple(bench.wakes):
            bench.tell(wake.message)
        bench.tell(Durable(10**6))
        while bench.requests:
            bench.answer()
        while bench.looks:
            bench.look()
    for run_id in bench.runs:
        fired = [event.timer for event in bench.paper.log(run_id) if isinstance(event, ev.TimerFired)]
        assert len(fired) == len(set(fired))
        left = fold.ledger(bench.paper.index.known(run_id).run)
        assert left is not None
        assert not left.timers
        assert not [wait for wait in left.waits.values() if wait.timeout_at is not None]
    assert isinstance(bench.state, Watching)
    assert not bench.state.timers.ahead
    assert not bench.state.timers.runs


@given(seed=st.integers(0, 2**32))
@settings(max_examples=15)
def test_what_an_event_opens_and_what_is_open_still_are_the_deadlines_of_a_run(seed):
    """The scheduler follows the events one by one; whoever folds the whole log must find the same deadlines."""
    chance = Random(seed)
    bench = TimeBench()
    run, followed = bench.runs[0], frozenset[Deadline]()
    for number in range(1, 40):
        ledger = fold.ledger(bench.paper.index.known(run).run)
        assert ledger is not None
        call = CallId(f"r1#{number}")
        match chance.randrange(6):
            case 0 | 1:
                events: tuple[ev.AnyEvent, ...] = (timer(call, chance.randrange(9)),)
            case 2:
                events = (ev.SignalAwaited(call=call, park="input", seen=1, timeout=float(chance.randrange(9))),)
            case 3 if ledger.timers:
                name = chance.choice(list(ledger.timers))
                events = (ev.TimerCancelled(call=ledger.timers[name].call, timer=name),)
            case 4 if ledger.waits:
                events = (ev.SignalAwaitAbandoned(call=chance.choice(list(ledger.waits))),)
            case _:
                events = (timer(call, 1), ev.TimerCancelled(call=call, timer=call))
        bench.paper.submit(Append(by=CHILD, run=run, events=events))
        for message in bench.paper.taken():
            for fact in getattr(message, "facts", ()):
                opens = {found for each in fact.events if (found := opened(run, each.event)) is not None}
                followed = frozenset(each for each in followed | opens if is_open(fact.state, each))
        assert followed == deadlines(bench.paper.index.known(run).run)


@given(seed=st.integers(0, 2**32))
@settings(max_examples=15)
def test_a_watcher_sees_what_became_durable_after_it_came_once_and_in_order(seed):
    """Whenever it came, and however commits and flushes fell."""
    chance = Random(seed)
    bench = Bench()
    state = State(deployment=Deployment("test"))
    state = advance(state, bench.paper.snapshot(), Now(0, 0.0)).state
    bench.up()
    seen: dict[str, list[tuple[RunId, int]]] = {}
    durable: list[tuple[RunId, int]] = []
    came: dict[str, int] = {}
    waiting: list[tuple[RunId, int]] = []
    for number in range(1, 40):
        runs = list(bench.paper.live())
        match chance.randrange(4):
            case 0:
                bench.mail(number)
                for _ in range(2):
                    bench.answer() if bench.requests else None
            case 1 if runs:
                run = chance.choice(runs)
                bench.paper.submit(Append(by=CHILD, run=run, events=(receiving(f"r1#{number}", seen=1), _step(number))))
            case 2:
                bench.paper.flush()
            case _:
                name = f"watcher {number}"
                came[name] = len(durable)
                seen[name] = []
                state = advance(state, Watch(None, name), Now(0, 0.0)).state  # type: ignore[arg-type]  # a word stands for the ref
        for message in bench.published():
            if isinstance(message, Durable):
                durable, waiting = durable + waiting, []
            else:
                waiting += _events(message)
            following = advance(state, message, Now(0, 0.0))
            state = following.state
            for effect in following.effects:
                assert isinstance(effect, Show)
                if isinstance(effect.what, Seen):
                    seen[str(effect.watcher)].append((effect.what.run, effect.what.recorded.event.seq))
    for name, since in came.items():
        assert seen[name] == durable[since:]


def _step(number: int) -> ev.StepStarted:
    return ev.StepStarted(call=CallId(f"r1#{1000 + number}"), step="pay", arguments=HASH)


def _events(message: object) -> list[tuple[RunId, int]]:
    facts = getattr(message, "facts", ())
    return [(fact.run, recorded.event.seq) for fact in facts if hasattr(fact, "events") for recorded in fact.events]

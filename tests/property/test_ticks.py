"""Ticks under chance: starts, clocks, refusals and runs that take their time; each tick once, in order, none lost."""

from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from substrate.messages import Withheld
from waypost.model.schedule import Overlap, schedule
from waypost.testing.scheduler_bench import TimeBench

MINUTE = 60_000
EVERY = 5


def turn(bench: TimeBench, chance: Random) -> None:
    """Something happens that takes no time: a wake-up, an answer or none, a mail taken up, a run's end, a new host."""
    match chance.randrange(7):
        case 0 | 1 if bench.wakes:
            bench.tell(chance.choice(bench.wakes).message)
        case 2 if bench.requests:
            bench.answer(Withheld("full") if chance.random() < 0.2 else None)
        case 3 if bench.paper.index.queue:
            bench.take_up(next(iter(bench.paper.index.queue)))
        case 4 if live := list(bench.paper.live()):
            bench.end(live[0])
        case 5 if chance.random() < 0.3:
            bench.open()
        case _:
            bench.plan()


def arrivals(bench: TimeBench, seen: dict[int, int]) -> None:
    """Remember the ticks of the mails that are queued: by arrival."""
    seen.update(zip(bench.paper.index.queue, bench.sent(), strict=True))


def settle(bench: TimeBench, seen: dict[int, int]) -> None:
    """Everybody has what they want, and no run stands in the way."""
    for _ in range(300):
        bench.stream()
        bench.plan()
        for wake in tuple(bench.wakes[-4:]):
            bench.tell(wake.message)
        while bench.requests:
            bench.answer()
        arrivals(bench, seen)
        for arrival in tuple(bench.paper.index.queue):
            bench.take_up(arrival)
        for run in bench.paper.live():
            bench.end(run)
        if not bench.requests and not bench.questions and not bench.ticked("tick").waiting:
            return


@given(seed=st.integers(0, 2**32))
@settings(max_examples=10)
def test_each_tick_has_its_mail_once_and_in_order_whatever_comes_between(seed):
    """With a clock that only goes on, a schedule that queues and catches all up loses and repeats nothing."""
    chance, bench, seen = Random(seed), TimeBench(runs=0), dict[int, int]()
    bench.deploy(schedule(f"*/{EVERY} * * * *", name="tick", catch_up=100, overlap="queue"))
    now = 0
    for _ in range(chance.randrange(10, 50)):
        if chance.random() < 0.4:
            now += chance.randrange(9 * MINUTE)
            bench.at(now)
        turn(bench, chance)
        arrivals(bench, seen)
        assert all(minute * MINUTE <= now for minute in seen.values()), "none is early"
    bench.open()
    settle(bench, seen)
    assert list(seen.values()) == list(range(EVERY, now // MINUTE + 1, EVERY))


@given(seed=st.integers(0, 2**32), catch_up=st.sampled_from(["none", "latest", 1, 7]))
@settings(max_examples=10)
def test_no_tick_has_two_mails_however_the_clock_runs(seed, catch_up):
    """Set back and forth by hours; and when it goes on again, so does the schedule."""
    chance, bench, seen = Random(seed), TimeBench(runs=0), dict[int, int]()
    overlap: Overlap = chance.choice(["skip", "queue", "cancel"])
    bench.deploy(schedule(f"*/{EVERY} * * * *", name="tick", catch_up=catch_up, overlap=overlap))
    now = 0
    for _ in range(chance.randrange(10, 50)):
        if chance.random() < 0.3:
            now = max(0, now + chance.randrange(-100 * MINUTE, 120 * MINUTE))
            bench.at(now)
        turn(bench, chance)
        arrivals(bench, seen)
    assert len(seen) == len(set(seen.values()))
    late = 10_000 * MINUTE
    for minute in range(0, 3 * EVERY, EVERY):  # by now nothing of it may hold the schedule up
        bench.at(late + minute * MINUTE)
        bench.open()
        settle(bench, seen)
    assert 10_000 + 2 * EVERY in seen.values()

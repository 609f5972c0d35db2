"""Deadlines on two clocks: who is woken when, by the pure bookkeeping, by the manual clock and by the real one."""

import threading
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waypost.acting import Tell
from waypost.host.alarms import LONGEST_REST, RECHECK, Alarm, Alarms
from waypost.host.clock import (
    BREATH,
    JUMP,
    STILL,
    ClockActor,
    Elapsed,
    Jumped,
    Keeping,
    Rest,
    StoodStill,
    SystemClock,
    advance,
)
from waypost.model.times import Now
from waypost.testing.clock import START, ManualClock
from waypost.testing.listener import Listener

NOW = Now(wall=1_000_000, mono=100.0)
NOBODY = Listener()
NOBODY.stop()


def mono(at: float, message: str = "x") -> Alarm:
    """On the clock that nobody sets."""
    return Alarm(NOBODY.ref, message, mono=at)


def wall(at: int, message: str = "x") -> Alarm:
    """On the clock that people read."""
    return Alarm(NOBODY.ref, message, wall=at)


@pytest.mark.parametrize(("first", "second"), [(None, None), (1.0, 1)])
def test_an_alarm_goes_by_exactly_one_clock(first: float | None, second: int | None) -> None:
    """The two are never compared with each other."""
    with pytest.raises(ValueError, match="mono or a wall"):
        Alarm(NOBODY.ref, "x", mono=first, wall=second)


def test_the_longest_overdue_comes_first_whatever_its_clock() -> None:
    """After a long sleep of the machine the order is still the order of the deadlines."""
    alarms = Alarms()
    for alarm in (
        mono(99.0, "b"),
        wall(998_000, "a"),
        mono(100.0, "c"),
        mono(100.1, "later"),
        wall(1_000_001, "later"),
    ):
        alarms = alarms.add(alarm)
    left, due = alarms.due(NOW)
    assert [alarm.message for alarm in due] == ["a", "b", "c"]
    assert [alarm.message for alarm in left.pending] == ["later", "later"]


@given(st.lists(st.one_of(st.floats(0, 200).map(mono), st.integers(0, 2_000_000).map(wall)), max_size=20))
def test_every_alarm_rings_once_and_not_before_its_time(alarms: list[Alarm]) -> None:
    """Nothing is lost and nothing rings twice, in whatever order it was asked for."""
    pending = Alarms()
    for alarm in alarms:
        pending = pending.add(alarm)
    left, due = pending.due(NOW)
    assert all(alarm.wait(NOW) <= 0 for alarm in due)
    assert all(alarm.wait(NOW) > 0 for alarm in left.pending)
    assert sorted(map(id, (*left.pending, *due))) == sorted(map(id, alarms))
    pause = left.pause(NOW)
    assert (pause is None) == (not left.pending)
    assert pause is None or pause <= min(alarm.wait(NOW) for alarm in left.pending)


def test_a_wall_deadline_is_looked_at_again_each_second() -> None:
    """Somebody may set the clock forward; nobody tells us."""
    following = advance(Keeping(), wall(NOW.wall + 3_600_000), NOW)
    assert following.effects == (Rest(RECHECK),)
    later = Now(NOW.wall + 3_600_000, NOW.mono + 1.0)
    assert advance(following.state, Elapsed(), later).effects == (Jumped(3599.0), Tell(NOBODY.ref, "x"), Rest(None))


@pytest.mark.parametrize("hours", [-1, 1, 8760])
def test_a_clock_that_was_set_is_noticed_with_by_how_much(hours: int) -> None:
    """What fires late, or all at once, after that must be explained by a line in the log."""
    following = advance(Keeping(), mono(200.0), NOW)
    later = Now(NOW.wall + 1000 + hours * 3_600_000, NOW.mono + 1.0)
    assert advance(following.state, Elapsed(), later).effects[0] == Jumped(hours * 3600.0)


@pytest.mark.parametrize("parted", [-JUMP, 0.0, JUMP])
def test_a_host_that_stood_still_for_an_hour_has_seen_no_jump(parted: float) -> None:
    """SIGSTOP stops neither clock; and a clock that is brought right by a second or two is no news."""
    following = advance(Keeping(), mono(10_000.0), NOW)
    later = Now(NOW.wall + 3_600_000 + round(parted * 1000), NOW.mono + 3600.0)
    assert advance(following.state, Elapsed(), later).effects == (Rest(6300.0),)


def test_a_host_that_stood_still_hears_what_has_come_before_its_watchdogs_ring() -> None:
    """Else it ends a child that has long been ready, and calls that a crash; people's deadlines pass all the same."""
    following = advance(advance(Keeping(), mono(105.0, "watchdog"), NOW).state, mono(130.0, "far"), NOW)
    following = advance(following.state, wall(NOW.wall + 60_000, "recorded"), NOW)
    woken = Now(NOW.wall + 900_000, NOW.mono + 900.0)
    still = advance(following.state, Elapsed(), woken)
    assert still.effects == (StoodStill(895.0), Tell(NOBODY.ref, "recorded"), Rest(BREATH))
    heard = Now(woken.wall + 2000, woken.mono + BREATH)
    rung = advance(still.state, Elapsed(), heard)
    assert rung.effects == (Tell(NOBODY.ref, "watchdog"), Rest(23.0))


def test_time_in_which_the_host_stood_still_does_not_count_however_often_that_is() -> None:
    """Ctrl-Z twice within one minute: what lies ahead is as far ahead as before, each time."""
    following = advance(advance(Keeping(), mono(101.0, "poll"), NOW).state, mono(130.0, "watchdog"), NOW)
    first = advance(following.state, Elapsed(), Now(NOW.wall + 60_000, 160.0))
    polled = advance(first.state, Elapsed(), Now(NOW.wall + 62_000, 162.0))
    assert polled.effects == (Tell(NOBODY.ref, "poll"), Rest(27.0))
    asked = advance(polled.state, mono(163.0, "poll"), Now(NOW.wall + 62_000, 162.0))
    second = advance(asked.state, Elapsed(), Now(NOW.wall + 163_000, 263.0))
    assert second.effects == (StoodStill(100.0), Rest(BREATH))
    assert advance(second.state, Elapsed(), Now(NOW.wall + 165_000, 265.0)).effects[-1] == Rest(24.0)


def test_a_second_time_within_a_breath_of_the_first_does_not_count_either() -> None:
    """Ctrl-Z, fg, Ctrl-Z: what would be due soon was put off to the end of the breath, and is late by the second."""
    following = advance(advance(Keeping(), mono(101.0, "poll"), NOW).state, mono(130.0, "watchdog"), NOW)
    first = advance(following.state, Elapsed(), Now(NOW.wall + 60_000, 160.0))
    second = advance(first.state, Elapsed(), Now(NOW.wall + 121_000, 221.0))
    assert second.effects == (StoodStill(59.0), Tell(NOBODY.ref, "poll"), Rest(27.0))


def test_a_host_that_is_always_late_comes_to_its_watchdogs_all_the_same() -> None:
    """Each look is a second's work, three seconds late."""
    state, at, rang = advance(Keeping(), mono(130.0, "watchdog"), NOW).state, NOW.mono, 0
    while not rang and at < 1000.0:
        state = advance(state, mono(at + 1.0, "poll"), Now(NOW.wall, at)).state
        at += 4.0
        effects = advance(state, Elapsed(), Now(NOW.wall, at))
        state, rang = effects.state, effects.effects.count(Tell(NOBODY.ref, "watchdog"))
    assert 130.0 < at < 250.0


def test_a_watchdog_that_is_due_is_put_off_once_however_often_the_host_stands_still() -> None:
    """By a breath. One that never has the processor in time must not wait for ever."""
    following = advance(Keeping(), mono(105.0, "watchdog"), NOW)
    first = advance(following.state, Elapsed(), Now(NOW.wall + 60_000, NOW.mono + 60.0))
    again = advance(first.state, mono(170.0, "another"), Now(NOW.wall + 61_000, NOW.mono + 61.0))
    assert again.effects == ()
    second = advance(again.state, Elapsed(), Now(NOW.wall + 120_000, NOW.mono + 120.0))
    assert second.effects == (StoodStill(58.0), Tell(NOBODY.ref, "watchdog"), Rest(8.0))


@pytest.mark.parametrize("late", [0.1, STILL])
def test_a_moment_late_is_late_as_ever(late: float) -> None:
    """A busy machine is no stopped one; and what was due before it was asked for rings at once."""
    following = advance(Keeping(), mono(105.0), NOW)
    assert advance(following.state, Elapsed(), Now(NOW.wall, 105.0 + late)).effects[-2:] == (
        Tell(NOBODY.ref, "x"),
        Rest(None),
    )
    assert Tell(NOBODY.ref, "past") in advance(Keeping(), mono(1.0, "past"), NOW).effects


def test_a_deadline_beyond_what_a_thread_can_wait_is_waited_for_in_pieces() -> None:
    """A day at a time; the alarm itself is kept as it is."""
    following = advance(Keeping(), mono(1e18), NOW)
    assert following.effects == (Rest(LONGEST_REST),)
    assert following.state.alarms.pending[0].mono == 1e18


def test_a_jump_is_logged_by_the_clock_for_the_whole_host(caplog: pytest.LogCaptureFixture) -> None:
    """One line, and not one for each deployment."""
    listener, clock = Listener(), ManualClock()
    actor = ClockActor.start(clock)
    try:
        actor.tell(Alarm(listener.ref, "looked", mono=clock.now().mono))
        assert listener.next(str) == "looked"
        clock.set_wall(START - 3_600_000)
        actor.tell(Elapsed())
    finally:
        actor.stop(timeout=5.0)
        listener.stop()
    assert [record.message for record in caplog.records] == ["the wall clock jumped back by 3600.0 s"]


def test_the_rest_is_cut_short_only_for_an_earlier_deadline() -> None:
    """Each change of the pause wakes a thread."""
    first = advance(Keeping(), mono(110.0), NOW)
    assert first.effects == (Rest(10.0),)
    second = advance(first.state, mono(120.0), NOW)
    assert second.effects == ()
    assert advance(second.state, mono(105.0), NOW).effects == (Rest(5.0),)
    assert advance(second.state, mono(90.0, "due"), NOW).effects[0] == Tell(NOBODY.ref, "due")


def test_the_manual_clock_wakes_when_it_is_turned_and_not_before() -> None:
    """Turning it is the only way in which time passes."""
    listener, clock = Listener(), ManualClock()
    try:
        clock.wake(listener.ref, "mono", mono=clock.now().mono + 30)
        clock.wake(listener.ref, "wall", wall=START + 60_000)
        assert [alarm.message for alarm in clock.deadlines] == ["mono", "wall"]
        clock.advance(29.9)
        assert listener.drain() == []
        clock.advance(0.1)
        assert listener.next(str) == "mono"
        clock.set_wall(START + 60_000)
        assert listener.next(str) == "wall"
        clock.wake(listener.ref, "at once", wall=START)
        assert listener.next(str) == "at once"
    finally:
        listener.stop()


def test_a_wall_clock_that_is_set_back_tells_whoever_goes_by_it() -> None:
    """A deadline is further away now, and a schedule may have its next tick sooner: each knows itself. No watchdog."""
    following = advance(advance(Keeping(), wall(NOW.wall + 1000, "later"), NOW).state, mono(999.0, "never"), NOW)
    earlier = Now(NOW.wall - 3_600_000, NOW.mono + 0.5)
    assert advance(following.state, Elapsed(), earlier).effects == (
        Jumped(-3600.5),
        Tell(NOBODY.ref, "later"),
        Rest(898.5),
    )


def test_the_manual_clock_tells_the_same_when_it_is_set_back() -> None:
    """What is tested with it must hold with the real one."""
    listener, clock = Listener(), ManualClock()
    try:
        clock.wake(listener.ref, "wall", wall=START + 1000)
        clock.wake(listener.ref, "mono", mono=clock.now().mono + 1)
        clock.set_wall(START - 3_600_000)
        assert listener.next(str) == "wall"
        clock.advance(2.0)
        assert listener.next(str) == "mono"
        assert clock.deadlines == ()
    finally:
        listener.stop()


def test_the_manual_clock_may_be_turned_while_others_ask() -> None:
    """Actors ask from their own threads; no wake-up may fall between a question and a turn."""
    listener, clock = Listener(), ManualClock()
    number = 200

    def ask() -> None:
        for _ in range(number):
            clock.wake(listener.ref, 1, mono=clock.now().mono + 0.5)

    asking = threading.Thread(target=ask)
    try:
        asking.start()
        while asking.is_alive():
            clock.advance(0.25)
        asking.join()
        clock.advance(1.0)
        assert sum(listener.next(int) for _ in range(number)) == number
        assert clock.deadlines == ()
    finally:
        listener.stop()


def test_the_real_clock_wakes_in_order_and_ends_with_its_thread() -> None:
    """Once for each wish, the nearer deadline first, although it was asked for last."""
    listener, clock = Listener(), SystemClock().start()
    try:
        now = clock.now()
        clock.wake(listener.ref, "second", mono=now.mono + 0.15)
        clock.wake(listener.ref, "first", wall=now.wall + 50)
        clock.wake(listener.ref, "at once", mono=now.mono - 1)
        assert [listener.next(str) for _ in range(3)] == ["at once", "first", "second"]
        assert clock.now().mono >= now.mono + 0.15
    finally:
        clock.stop()
        listener.stop()


def test_the_real_clock_reads_both_clocks() -> None:
    """Unix milliseconds, and the monotonic seconds that the operating system counts."""
    before, now, after = time.monotonic(), SystemClock().now(), time.monotonic()
    assert before <= now.mono <= after
    assert abs(now.wall - time.time() * 1000) < 60_000

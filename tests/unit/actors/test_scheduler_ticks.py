"""When schedules tick, arrow by arrow, over the substrate's real rules on paper: starts, clocks, overlap, refusals."""

from datetime import UTC

import msgspec
import pytest

from substrate.messages import BeginGeneration, Claim, Deadlines, Done, Outcome, Refused, Reject, Tick, Withheld
from waypost.model import zones
from waypost.model.limits import DEFAULT
from waypost.model.schedule import CatchUp, Overlap, Schedule, schedule
from waypost.testing.clock import START as MORNING
from waypost.testing.scheduler_bench import HOUR, TimeBench

MINUTE = 60_000
DAY = 24 * HOUR


def every(minutes: int, *, overlap: Overlap = "skip", catch_up: CatchUp = "latest", name: str = "tick") -> Schedule:
    """A schedule of so many minutes."""
    return schedule(f"*/{minutes} * * * *", name=name, overlap=overlap, catch_up=catch_up)


def ticking(*schedules: Schedule) -> TimeBench:
    """A deployment with these schedules, at work since the morning."""
    bench = TimeBench(runs=0)
    bench.deploy(*schedules)
    return bench


def settled(bench: TimeBench) -> TimeBench:
    """Everything that is asked is answered."""
    while bench.requests or bench.questions:
        bench.plan()
        if bench.requests:
            bench.answer()
    return bench


def woken(bench: TimeBench, wall: int) -> TimeBench:
    """It is so late, the clock wakes whoever wants it, and all is answered."""
    bench.at(wall)
    for wake in tuple(bench.wakes):
        bench.tell(wake.message)
    return settled(bench)


def finished(bench: TimeBench) -> list[int]:
    """The ticks with a mail, whose runs then begin and end."""
    found = bench.sent()
    for arrival in tuple(bench.paper.index.queue):
        bench.end(bench.take_up(arrival))
        settled(bench)
    return found


# --- in the course of time --------------------------------------------------------------------------------------------


def test_a_tick_is_waited_for_by_the_wall_clock_and_comes_once():
    """Not a second before; and the next one is waited for then."""
    bench = ticking(every(5))
    assert [wake.wall for wake in bench.wakes] == [MORNING + 5 * MINUTE]
    assert woken(bench, 5 * MINUTE - 1).sent() == []
    assert woken(bench, 5 * MINUTE).sent() == [5]
    assert bench.wakes[-1].wall == MORNING + 10 * MINUTE
    assert woken(bench, 5 * MINUTE + 1).sent() == [5]


def test_one_wake_up_is_enough_for_all_schedules():
    """It is the soonest one's; when it has come, the next is asked for."""
    bench = ticking(every(7, name="a"), every(5, name="b"))
    assert [wake.wall for wake in bench.wakes] == [MORNING + 5 * MINUTE]
    woken(bench, 5 * MINUTE)
    assert bench.wakes[-1].wall == MORNING + 7 * MINUTE


def test_a_deployment_without_schedules_asks_once_and_waits_for_nothing():
    """Most have none."""
    bench = TimeBench(runs=0)
    bench.open()
    assert not bench.wakes
    assert not bench.requests


def test_a_tick_that_is_a_little_late_is_not_a_missed_one():
    """A busy machine must not lose one, though its schedule catches nothing up."""
    bench = ticking(every(5, catch_up="none"))
    assert woken(bench, 5 * MINUTE + 59_000).sent() == [5]
    assert not bench.warnings


# --- what was missed --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("catch_up", "sent"), [("none", []), ("latest", [24 * 60]), (3, [22 * 60, 23 * 60, 24 * 60])], ids=str
)
def test_after_a_day_without_a_host_it_is_caught_up_as_the_schedule_says(catch_up, sent):
    """And never tick by tick without a bound; what is left out is told."""
    bench = ticking(schedule("0 * * * *", name="tick", catch_up=catch_up, overlap="queue"))
    bench.at(DAY + 120_000)
    bench.open()
    settled(bench)
    found: list[int] = []
    while more := finished(bench):
        found += more
    assert found == sent
    assert len(bench.warnings) == 1
    assert "leaves out what was missed" in bench.warnings[0]
    assert bench.wakes[-1].wall == MORNING + DAY + HOUR


def test_a_start_in_between_repeats_and_loses_nothing():
    """How far a schedule has come is in the repository, not in a scheduler."""
    bench = ticking(every(5))
    woken(bench, 5 * MINUTE)
    finished(bench)
    bench.at(7 * MINUTE)
    bench.open()
    settled(bench)
    assert bench.sent() == []
    assert bench.wakes[-1].wall == MORNING + 10 * MINUTE


def test_a_stopped_host_catches_up_once_when_it_goes_on():
    """SIGSTOP over several ticks is no loop that works through each of them."""
    bench = ticking(every(1))
    assert woken(bench, 10 * MINUTE).sent() == [10]
    assert woken(bench, 10 * MINUTE + 1).sent() == [10]


# --- clocks -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("catch_up", ["none", "latest", 3], ids=str)
def test_a_clock_that_went_back_an_hour_repeats_no_tick_and_goes_on(catch_up):
    """Those of the hour that comes again have had their mails; after it all is as before."""
    bench = ticking(every(5, catch_up=catch_up))
    sent: list[int] = []
    for minute in (*range(61), *range(2, 76)):  # the clock tells whoever goes by it that it was set
        woken(bench, minute * MINUTE)
        sent += finished(bench)
    assert sent == list(range(5, 76, 5))
    assert bench.ticked("tick").last == "2026-11-29T09:15:00.000Z"


def test_a_clock_that_went_back_holds_a_schedule_for_one_interval_at_most():
    """It had been wrong by a year, say: nobody waits a year for the next tick; and the log says why it waited."""
    bench = ticking(every(5))
    woken(bench, 365 * DAY)
    finished(bench)
    woken(bench, 2 * MINUTE)
    assert bench.ticked("tick").fate == "set-back"
    assert any("is due again after" in line for line in bench.warnings)
    assert woken(bench, 5 * MINUTE).sent() == []
    assert woken(bench, 10 * MINUTE).sent() == [10]


def test_a_clock_that_went_back_is_told_once_while_ticks_wait():
    """A hundred of them are a hundred answers: the log must not say the same of each."""
    bench = ticking(schedule("0 * * * *", name="tick", catch_up=20, overlap="queue"))
    woken(bench, 30 * HOUR)
    woken(bench, 29 * HOUR + 30 * MINUTE)
    found: list[int] = []
    while more := finished(bench):
        found += more
    assert len(found) == 20
    assert len([each for each in bench.warnings if "so it was set back" in each]) == 1


def test_a_start_after_the_clock_went_back_is_the_same():
    """Whether somebody was there when it was set makes no difference."""
    bench = ticking(every(5))
    woken(bench, 365 * DAY)
    finished(bench)
    for minute in (2, 3, 4):  # each start would hold it for another interval, if the first one hadn't written it down
        bench.at(minute * MINUTE)
        bench.open()
        settled(bench)
    bench.at(10 * MINUTE)
    bench.open()
    assert settled(bench).sent() == [10]


def test_a_clock_that_went_forward_a_year_catches_up_and_goes_on():
    """A year of minutes is decided at once, by the same rule as a day."""
    bench = ticking(every(1, catch_up=2, overlap="queue"))
    woken(bench, 365 * DAY)
    assert finished(bench) + finished(bench) == [365 * 24 * 60 - 1, 365 * 24 * 60]


# --- overlap ----------------------------------------------------------------------------------------------------------


def test_a_tick_that_waits_is_sent_when_the_run_before_it_ends():
    """Not at the next tick, which may be a year away."""
    bench = ticking(every(5, overlap="queue"))
    woken(bench, 5 * MINUTE)
    (arrival,) = bench.paper.index.queue
    run = bench.take_up(arrival)
    assert woken(bench, 10 * MINUTE).sent() == []
    bench.end(run)
    assert settled(bench).sent() == [10]


def test_a_tick_that_waits_is_sent_at_the_start_when_that_run_has_ended_meanwhile():
    """The last host may have died between the two."""
    bench = ticking(every(5, overlap="queue"))
    woken(bench, 5 * MINUTE)
    (arrival,) = bench.paper.index.queue
    run = bench.take_up(arrival)
    woken(bench, 10 * MINUTE)
    bench.end(run)
    bench.requests.clear()
    bench.open()
    assert settled(bench).sent() == [10]


def test_a_rejected_mail_lets_the_next_tick_go():
    """Nobody would ever end a run that never began."""
    bench = ticking(every(5, overlap="queue"))
    woken(bench, 5 * MINUTE)
    (arrival,) = bench.paper.index.queue
    woken(bench, 10 * MINUTE)
    bench.do(Claim(arrival))
    bench.do(Reject(arrival, "test"))
    bench.stream()
    assert settled(bench).sent() == [10]


def test_a_mail_that_goes_on_hold_lets_the_next_tick_go():
    """Whoever took it up died of it: it waits for a person, and the schedule doesn't wait with it."""
    bench = ticking(every(5, overlap="queue"))
    woken(bench, 5 * MINUTE)
    (arrival,) = bench.paper.index.queue
    assert woken(bench, 10 * MINUTE).sent() == [5]
    for _ in range(DEFAULT.attempts):
        bench.do(Claim(arrival))
        bench.do(BeginGeneration(blame=True))
    bench.stream()
    assert settled(bench).sent() == [10]


def test_an_end_that_comes_while_a_tick_is_on_its_way_is_not_missed():
    """The answer tells that one waits: what it waits for is looked at once more."""
    bench = ticking(every(5, overlap="queue"))
    woken(bench, 5 * MINUTE)
    (arrival,) = bench.paper.index.queue
    run = bench.take_up(arrival)
    bench.at(10 * MINUTE)
    bench.wake()
    bench.answer()  # it waits
    bench.end(run)
    bench.at(15 * MINUTE)
    for wake in tuple(bench.wakes):
        bench.tell(wake.message)
    assert settled(bench).sent() == [10]
    assert len(bench.ticked("tick").waiting) == 1


# --- what can't be written, or read -----------------------------------------------------------------------------------


def test_what_could_not_be_written_is_tried_again_a_second_later():
    """A full disk holds a tick up; it doesn't lose it."""
    bench = ticking(every(5))
    bench.at(5 * MINUTE)
    bench.wake()
    bench.answer(Withheld("the disk is full"))
    assert not bench.requests
    assert bench.wakes[-1].mono == 1000.0 + DEFAULT.backoff_first
    bench.wake()
    assert settled(bench).sent() == [5]


def test_what_could_be_written_beside_what_could_not_waits_with_it_for_the_next_look():
    """The disk was full for one and not for the next: nothing more is asked of it until a while has passed."""
    bench = ticking(every(5), every(5, name="other"))
    bench.at(5 * MINUTE)
    bench.wake()
    asked = [ask.what.schedule for ask in bench.requests if isinstance(ask.what, Tick)]
    bench.at(10 * MINUTE)
    bench.answer(Withheld("the disk is full"))
    bench.answer()
    assert asked == ["tick", "other"]
    assert (bench.sent(), len(bench.requests)) == ([5], 0)
    bench.wake()
    assert settled(bench).sent() == [5, 10]
    assert bench.wakes[-1].wall == MORNING + 15 * MINUTE


def test_a_scheduler_that_is_behind_looks_anew():
    """Somebody else has moved the schedule: another host, or other code."""
    bench = ticking(every(5))
    bench.at(5 * MINUTE)
    bench.do(Tick(schedule="tick", after=MORNING, last=MORNING + 5 * MINUTE, due=MORNING + 5 * MINUTE))
    bench.wake()
    assert settled(bench).sent() == [5]
    assert bench.wakes[-1].wall == MORNING + 10 * MINUTE


def test_schedules_that_cannot_be_read_are_told_and_looked_at_again():
    """Timers go on meanwhile."""
    bench = ticking(every(5))
    bench.at(5 * MINUTE)
    bench.wake()
    bench.answer(Refused("damaged", "a file is gone"))
    assert bench.warnings == ["schedule tick can't be moved on: a file is gone"]
    bench.wake()
    question = bench.questions.popleft()
    bench.tell(Outcome(question.correlation, Refused("damaged", "a file is gone")))
    assert bench.warnings[1] == "the schedules can't be read: a file is gone"
    assert bench.wakes[-1].mono == 1000.0 + DEFAULT.backoff_cap
    bench.wake()
    assert settled(bench).sent() == [5]


def test_schedules_that_are_withheld_are_looked_at_again_and_nobody_is_told():
    """The repository is being opened anew: that passes by itself."""
    bench = ticking(every(5))
    bench.at(5 * MINUTE)
    bench.wake()
    bench.answer(Refused("damaged", "a file is gone"))
    bench.wake()
    question = bench.questions.popleft()
    bench.tell(Outcome(question.correlation, Withheld("it is being opened")))
    assert len(bench.warnings) == 1
    assert bench.wakes[-1].mono == 1000.0 + DEFAULT.backoff_first
    bench.wake()
    assert settled(bench).sent() == [5]


def test_two_schedules_that_fail_at_once_are_looked_at_once():
    """One wake-up is enough for all that failed."""
    bench = ticking(every(5), every(5, name="other"))
    bench.at(5 * MINUTE)
    bench.wake()
    before = len(bench.wakes)
    bench.answer(Withheld("the disk is full"))
    bench.answer(Withheld("the disk is full"))
    assert len(bench.wakes) == before + 1
    bench.wake()
    assert settled(bench).sent() == [5, 5]


def test_an_answer_that_nobody_waits_for_changes_nothing():
    """Of a question that was asked before the schedules were looked at anew."""
    bench = ticking(every(5))
    before = bench.state
    bench.tell(Outcome(-99, Done(1, Deadlines((), more=False))))
    assert bench.state == before


def test_a_schedule_whose_zone_is_gone_stands_still_and_says_so(monkeypatch):
    """A zone database may lose a name; the others tick, and it goes on where it was when the zone is back."""
    berlin = schedule("*/5 * * * *", tz="Europe/Berlin", name="berlin")
    bench = ticking(berlin, every(5))
    woken(bench, 5 * MINUTE)
    finished(bench)
    with monkeypatch.context() as patched:
        patched.setattr(zones, "names", lambda: frozenset({"UTC"}))
        zones.zone.cache_clear()
        bench.at(10 * MINUTE)
        bench.open()
        assert settled(bench).sent() == [10]
        assert any("schedule berlin stands still: there is no time zone" in line for line in bench.warnings)
        finished(bench)
    zones.zone.cache_clear()
    bench.at(12 * MINUTE)
    bench.open()
    assert settled(bench).sent() == [10]


def test_a_stored_schedule_that_cannot_be_read_harms_no_other():
    """Another version may have written it: the deployment goes on, and its log says what stands still."""
    bench = ticking(msgspec.structs.replace(every(1, name="odd"), expression="61 * * * *"), every(5))
    assert "schedule odd stands still: '61 * * * *'" in bench.warnings[0]
    assert woken(bench, 5 * MINUTE).sent() == [5]


def test_another_version_of_a_zone_repeats_and_loses_nothing(monkeypatch):
    """What is kept is an instant: the next tick is the first one behind it by whatever the rules are now."""
    daily = schedule("30 9 * * *", tz="Europe/Berlin", name="daily")
    bench = ticking(daily)
    assert woken(bench, 30 * MINUTE).sent() == [30]
    finished(bench)
    with monkeypatch.context() as patched:  # Berlin gives up its winter time overnight
        patched.setattr(zones, "zone", lambda _: UTC)
        bench.at(40 * MINUTE)
        bench.open()
        settled(bench)
        assert bench.wakes[-1].wall == MORNING + 90 * MINUTE
        assert woken(bench, 90 * MINUTE).sent() == [90]
        finished(bench)
    bench.at(91 * MINUTE)
    bench.open()
    settled(bench)
    assert bench.wakes[-1].wall == MORNING + 30 * MINUTE + DAY
    assert bench.sent() == []

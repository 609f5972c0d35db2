"""Schedules against somebody who walks through time minute by minute, in all kinds of zones, around their jumps."""

import functools
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

import msgspec
from cronsim import CronSim
from hypothesis import given, settings
from hypothesis import strategies as st

from waypost.model import zones
from waypost.model.errors import Invalid
from waypost.model.schedule import Schedule, caught_up, latest, next_after, schedule, tick_id, ticks_between

MINUTE = 60_000
DAY = 1440 * MINUTE
ZONES = (
    *("Europe/Berlin", "America/New_York", "America/Havana", "Australia/Lord_Howe", "Africa/Casablanca"),
    *("Africa/Cairo", "Antarctica/Troll", "America/Santiago", "Pacific/Chatham", "Pacific/Apia", "Europe/Dublin"),
    *("America/St_Johns", "Asia/Gaza", "Asia/Pyongyang", "UTC"),
)


@functools.cache
def jumps(name: str) -> tuple[int, ...]:
    """The days (Unix ms) in whose course the zone's clock jumps, from 2005 to 2030."""
    zone = zones.zone(name)
    days = range(12_784 * DAY, 21_915 * DAY, DAY)
    offsets = [zones.shown(day, zone).utcoffset() for day in (*days, 21_915 * DAY)]
    return tuple(day for day, before, after in zip(days, offsets, offsets[1:], strict=False) if before != after) or (0,)


class Plan(msgspec.Struct, frozen=True):
    """An expression, and the sets that it stands for: made together, so that nothing has to be read."""

    text: str
    minutes: frozenset[int]
    hours: frozenset[int]
    days: frozenset[int]
    weekdays: frozenset[int]

    def holds(self, local: datetime) -> bool:
        """Whether a clock that shows this is one of its times."""
        day, weekday = local.day in self.days, local.isoweekday() % 7 in self.weekdays
        _, _, days, _, weekdays = self.text.split()
        on_day = day and weekday if days[0] == "*" or weekdays[0] == "*" else day or weekday
        return on_day and local.hour in self.hours and local.minute in self.minutes

    @property
    def every_so_often(self) -> bool:
        """Whether it goes by the clock as it runs."""
        return self.text[0] == "*" or self.text.split()[1][0] == "*"


@st.composite
def _field(draw, low, high, *, favourites=()):
    """A field as text, and its numbers."""
    every = range(low, high + 1)
    match draw(st.sampled_from(["*", "step", "list", "range"])):
        case "*":
            return "*", frozenset(every)
        case "step":
            step = draw(st.integers(1, len(every)))
            return f"*/{step}", frozenset(every[::step])
        case "list":
            some = draw(st.lists(st.sampled_from([*every, *favourites * 8]), min_size=1, max_size=4))
            return ",".join(map(str, some)), frozenset(some)
        case _:
            first = draw(st.integers(low, high))
            last = draw(st.integers(first, high))
            return f"{first}-{last}", frozenset(range(first, last + 1))


@st.composite
def plans(draw):
    """Any expression of every month."""
    minutes, hours = draw(_field(0, 59, favourites=(0, 30))), draw(_field(0, 23, favourites=(0, 1, 2, 3)))
    free = ("*", frozenset(range(1, 32))), ("*", frozenset(range(7)))
    days, weekdays = (draw(_field(1, 31)), draw(_field(0, 6))) if draw(st.integers(0, 3)) == 0 else free
    text = f"{minutes[0]} {hours[0]} {days[0]} * {weekdays[0]}"
    return Plan(text, minutes[1], hours[1], days[1], weekdays[1])


@st.composite
def scenes(draw, *, names=ZONES):
    """A schedule with its plan, and an instant about where its zone's clock jumps (or anywhere)."""
    plan, name = draw(plans()), draw(st.sampled_from(names))
    gap, repeat = draw(st.sampled_from(["run-after", "skip"])), draw(st.sampled_from(["first", "both"]))
    try:
        made = schedule(plan.text, tz=name, gap=gap, repeat=repeat)
    except Invalid:  # the 31st that is the fifth Monday: no such day
        plan = Plan("30 2 * * *", frozenset({30}), frozenset({2}), frozenset(range(1, 32)), frozenset(range(7)))
        made = schedule(plan.text, tz=name, gap=gap, repeat=repeat)
    begin = draw(st.sampled_from(jumps(name))) + draw(st.integers(-2 * DAY, 2 * DAY)) + DAY
    return made, plan, max(begin, 3 * DAY)


def oracle(made: Schedule, plan: Plan, begin: int, end: int) -> Iterator[int]:
    """The ticks later than ``begin`` and not later than ``end``, by what the policies say in words."""
    zone = zones.zone(made.tz)
    first = (begin - DAY // 4) // MINUTE * MINUTE  # no clock here was ever set back by more
    before = zones.shown(first - MINUTE, zone).replace(tzinfo=None, fold=0)
    highest = before
    for at in range(first, end + 1, MINUTE):
        local = zones.shown(at, zone).replace(tzinfo=None, fold=0)
        due = plan.holds(local)
        if not plan.every_so_often:
            if local <= highest and made.repeat == "first":
                due = False
            if made.gap == "run-after":
                missing = before + timedelta(minutes=1)
                while missing < local and not due:
                    due = missing > highest and plan.holds(missing)
                    missing += timedelta(minutes=1)
        before, highest = local, max(local, highest)
        if due and at > begin:
            yield at


@given(scene=scenes())
@settings(max_examples=25, deadline=None)
def test_ticks_are_those_of_a_clock_that_is_watched_minute_by_minute(scene):
    """None early, none twice, none lost: whatever the expression, the zone, the policies, and the jump."""
    made, plan, begin = scene
    end = begin + 2 * DAY
    right = tuple(oracle(made, plan, begin, end))
    assert ticks_between(made, begin, end, 40) == right[:40]
    assert latest(made, begin, end) == (right[-1] if right else None)
    for tick in right[:5]:
        assert next_after(made, tick - 1) == tick


@given(scene=scenes(), catch_up=st.sampled_from(["none", "latest", 1, 2, 7, 40]), away=st.integers(0, 2 * DAY))
@settings(max_examples=25, deadline=None)
def test_what_is_made_up_for_is_the_newest_of_what_was_missed(scene, catch_up, away):
    """Whatever is fired was due and is the newest; whatever isn't is named; and asking again finds nothing."""
    made, plan, last = scene
    made, now = msgspec.structs.replace(made, catch_up=catch_up), last + away
    missed = tuple(oracle(made, plan, last, now))
    caught = caught_up(made, last, now)
    count = {"none": int(bool(missed) and now - missed[-1] < MINUTE), "latest": 1}.get(catch_up, catch_up)
    cut = max(len(missed) - count, 0)
    assert caught.fire == missed[cut:]
    assert caught.left_out == ((missed[0], missed[cut - 1]) if cut else None)
    assert caught.last == (missed[-1] if missed else last)
    again = caught_up(made, caught.last, now)
    assert (again.fire, again.last, again.left_out) == ((), caught.last, None)


@given(scene=scenes(), steps=st.lists(st.integers(-DAY, DAY), max_size=12))
@settings(max_examples=25, deadline=None)
def test_a_clock_that_jumps_about_makes_no_tick_early_nor_twice_nor_a_silence(scene, steps):
    """The host looks now and then, at a clock that goes forward and back; ids keep the ticks apart."""
    made, _, last = scene
    now, fired = last, set[str]()
    for step in steps:
        now = max(now + step, 3 * DAY)
        caught = caught_up(made, last, now)
        assert all(tick <= now for tick in caught.fire)
        assert list(caught.fire) == sorted({*caught.fire})
        new = {tick_id(made.id, tick) for tick in caught.fire} - fired
        fired |= new
        following = next_after(made, now)
        assert following is not None
        assert caught.last <= following  # whatever the clock did, it holds for one interval at most
        last = caught.last


@given(scene=scenes(names=("Europe/Berlin", "America/New_York", "Europe/Dublin", "UTC")))
@settings(max_examples=20, deadline=None)
def test_the_defaults_are_those_of_cronsim(scene):
    """What they mean is another program's word, too; where a clock jumps by half an hour or at midnight, it errs."""
    made, _, begin = scene
    made = msgspec.structs.replace(made, gap="run-after", repeat="first")
    zone = zones.zone(made.tz)
    theirs = (round(each.timestamp()) * 1000 for each in CronSim(made.expression, zones.shown(begin, zone)))
    several = [next(theirs) for _ in range(5)]
    later = [each for each in several if each > begin]  # it may begin with one within the hour that is repeated
    assert list(ticks_between(made, begin, 10**15, len(later))) == later


WORDS = st.one_of(
    st.text(max_size=30),
    st.text("0123456789*,-/#LWlw? \t\nMONJANmonjan@", max_size=40),
    st.lists(st.text("01259*,-/#LWMON", min_size=1, max_size=8), min_size=5, max_size=5).map(" ".join),
)


@given(text=WORDS, tz=st.one_of(st.sampled_from(ZONES), st.text(max_size=20)))
@settings(max_examples=60, deadline=None)
def test_whatever_is_written_is_a_schedule_or_is_refused_in_words(text, tz):
    """No text ends the scheduler, keeps it busy, or means something that can't be said again."""
    refused = refusal(lambda: next_after(schedule(text, tz=tz), 1_796_000_000_000))
    if refused is None:
        made = schedule(text, tz=tz)
        assert schedule(made.expression, tz=tz) == made
        assert next_after(made, 1_796_000_000_000) is not None
    else:
        assert refused.hint
        assert 0 < len(refused.message) < 600


def refusal(ask: Callable[[], object]) -> Invalid | None:
    """The words in which something is refused; None where it isn't."""
    try:
        ask()
    except Invalid as refused:
        return refused
    return None

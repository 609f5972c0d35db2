"""Schedules as a table: which instants they mean, what of the missed ones is due, and what can't be one."""

import contextlib
import importlib.resources
import itertools
import os
import sys
import zoneinfo
from datetime import UTC, datetime

import msgspec
import pytest

from waypost.model import cron, zones
from waypost.model.cron import BadExpression
from waypost.model.errors import Invalid
from waypost.model.schedule import (
    LATE,
    Caught,
    Schedule,
    Tick,
    caught_up,
    check,
    latest,
    next_after,
    schedule,
    tick_id,
    tick_of,
    ticks_between,
)
from waypost.model.times import stamp, unstamp
from waypost.model.zones import NoZone
from waypost.testing import cases

DEBIAN = "next_utc_debian_cron"
OTHER = "next_utc_if_policy_is_skip-gap/run-twice(brute force, only where different)"
NEVER = 10**14
DAY = 86_400_000


def at(text: str) -> int:
    """Unix milliseconds of ``2026-11-30T09:00``, UTC."""
    return unstamp(f"{text}:00Z")


def shown(ticks: tuple[int, ...]) -> list[str]:
    """Ticks as the cases write them."""
    return [f"{stamp(each)[:16]}Z" for each in ticks]


# --- the cases ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", cases.rows("cron.tsv"), ids=lambda row: row["case"])
def test_every_row_of_the_cron_cases_is_due_by_both_policies(row):
    """A clock that jumps or is set back makes other schedulers skip a day, run twice, or stop for a year."""
    base = unstamp(row["base_local"])
    debian = schedule(row["expression"], tz=row["zone"])
    other = schedule(row["expression"], tz=row["zone"], gap="skip", repeat="both")
    for made, column in ((debian, DEBIAN), (other, OTHER)):
        right = (row[column] or row[DEBIAN]).split()
        assert shown(ticks_between(made, base, NEVER, len(right))) == right


ACCEPTED = {"0 0 L * *": "2026-12-31T00:00:00.000Z"}
"""Documented: the last day of the month."""


@pytest.mark.parametrize("row", cases.rows("cron_invalid.tsv"), ids=lambda row: row["expression(escaped)"][:20])
def test_every_row_of_the_invalid_expressions_is_refused_in_words(row):
    """Each is a typo or another program's dialect: what is guessed at runs at a time that nobody wanted."""
    text = row["expression(escaped)"].replace(r"\n", "\n").replace("...(100,000 items)", ",".join(["0"] * 100_000))
    if (first := ACCEPTED.get(text)) is not None:
        assert stamp(next_after(schedule(text), at("2026-11-30T09:00")) or 0) == first
        return
    with pytest.raises(BadExpression, match="can't be a schedule: ") as refused:
        schedule(text)
    assert refused.value.hint.startswith("write ") or "together" in refused.value.hint
    assert len(str(refused.value)) < 400
    assert str(refused.value).isprintable()


@pytest.mark.parametrize(
    ("expression", "field", "wanted"),
    [
        ("61 * * * *", "minute", "0 to 59"),
        ("* 24 * * *", "hour", "0 to 23"),
        ("* * 32 * *", "day-of-month", "1 to 31"),
        ("* * ? * *", "day-of-month", "1 to 31"),
        ("* * * FOO *", "month", "JAN to DEC"),
        ("* * * * 5-9", "day-of-week", "SUN to SAT"),
    ],
)
def test_a_field_that_cannot_be_is_named_with_what_it_may_be(expression, field, wanted):
    """Five of them look alike; whoever has mistaken one for another sees it at once."""
    with pytest.raises(BadExpression) as refused:
        schedule(expression)
    assert f"its {field} " in refused.value.message
    assert refused.value.hint.startswith(f"write the {field} as ")
    assert wanted in refused.value.hint


ZONES = {
    "Europe/Kiev": "+0200",
    "Etc/GMT+3": "-0300",
    "PST8PDT": "-0800",
    "+03:00": "Etc/GMT-3",
    "/etc/localtime": "name the place",
    "local": "name the place",
    "europe/berlin": "it is spelt 'Europe/Berlin'",
    "tzdata.zi": "name a place",
    "US/Pacific-New": "new zones come with",
}
"""An old name is one name more, the same everywhere, because the names are the package's; nothing else is a zone."""


@pytest.mark.parametrize("row", cases.rows("zones.tsv"), ids=lambda row: row["zone(escaped)"])
def test_every_row_of_the_zones_is_known_or_refused_with_what_to_write(row):
    """A zone that depends on the machine makes a schedule mean one thing here and another there."""
    name = row["zone(escaped)"]
    outcome = ZONES[name]
    made = schedule("0 9 * * *", tz=name)
    if outcome[0] in "+-":
        check(made, 0)
        assert zones.shown(at("2026-11-30T09:00"), zones.zone(name)).strftime("%z") == outcome
        return
    with pytest.raises(NoZone) as refused:
        check(made, 0)
    assert outcome in refused.value.hint


@pytest.mark.parametrize(
    "name", ["", ".", "..", "Europe", "Europe/", "Europe/../UTC", "Factory", "zone.tab", "Europe/Berlin\n", "x" * 5000]
)
def test_no_path_and_no_other_file_of_the_database_is_a_zone(name):
    """Names are looked up in a list, so nothing that a name says reaches the file system."""
    with pytest.raises(NoZone) as refused:
        zones.zone(name)
    assert len(str(refused.value)) < 200


def test_every_zone_of_the_database_can_be_read():
    """The list and the files come from one package, and nobody else has tried all of them."""
    assert len(zones.names()) > 400
    for name in zones.names():
        assert next_after(schedule("0 9 * * *", tz=name), 0) is not None


@pytest.mark.parametrize(("left", "why"), [(None, "No such file"), (b"", "isn't whole")])
def test_a_zone_whose_file_is_gone_or_not_whole_is_none(tmp_path, monkeypatch, left, why):
    """An update of the database under a live host exchanges one file after another."""
    if left is not None:
        (tmp_path / "Tokyo").write_bytes(left)
    zones.zone.cache_clear()
    assert "Asia/Tokyo" in zones.names(), "which is read once"
    monkeypatch.setattr(importlib.resources, "files", lambda _: tmp_path)
    with pytest.raises(NoZone, match=why) as refused:
        zones.zone("Asia/Tokyo")
    assert "tzdata" in refused.value.hint
    monkeypatch.undo()
    assert zones.shown(at("2026-11-30T09:00"), zones.zone("Asia/Tokyo")).hour == 18, "whole again"


def test_a_zone_whose_file_is_a_pipe_is_none(tmp_path, monkeypatch):
    """Nobody writes to it: the host would wait in its start, or in a deployment's writer, for ever."""
    os.mkfifo(tmp_path / "Tokyo")
    zones.zone.cache_clear()
    assert "Asia/Tokyo" in zones.names()
    monkeypatch.setattr(importlib.resources, "files", lambda _: tmp_path)
    with pytest.raises(NoZone, match="no plain file"):
        zones.zone("Asia/Tokyo")


def test_without_a_zone_database_there_is_no_zone(monkeypatch):
    """Not even UTC, as nothing says what its name is; a schedule stands still, and its deployment goes on."""
    zones.zone.cache_clear()
    zones.names.cache_clear()
    monkeypatch.setitem(sys.modules, "tzdata", None)
    with pytest.raises(NoZone, match="not installed"):
        zones.zone("Europe/Berlin")
    monkeypatch.undo()
    assert zones.zone("UTC") is UTC
    assert zones.release() != "not installed"


def test_the_machine_s_own_zone_database_has_no_say(tmp_path):
    """One that is missing, old or wrong must not move a schedule when it moves to another machine."""
    here = tmp_path / "Europe" / "Berlin"
    here.parent.mkdir()
    here.write_bytes(importlib.resources.files("tzdata.zoneinfo.Asia").joinpath("Tokyo").read_bytes())
    zoneinfo.reset_tzpath(to=[str(tmp_path)])
    zones.zone.cache_clear()
    try:
        assert zones.shown(at("2026-11-30T09:00"), zoneinfo.ZoneInfo.no_cache("Europe/Berlin")).hour == 18
        assert zones.shown(at("2026-11-30T09:00"), zones.zone("Europe/Berlin")).hour == 10
    finally:
        zoneinfo.reset_tzpath()


# --- what is due ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("gap", "repeat", "ticks"),
    [
        ("run-after", "first", ["2026-03-29T01:00Z", "2026-03-30T00:30Z"]),
        ("skip", "first", ["2026-03-30T00:30Z", "2026-03-31T00:30Z"]),
    ],
)
def test_a_missing_time_is_due_after_the_gap_or_not_at_all(gap, repeat, ticks):
    """02:30 doesn't exist in Berlin that day; each policy stands for itself."""
    made = schedule("30 2 * * *", tz="Europe/Berlin", gap=gap, repeat=repeat)
    assert shown(ticks_between(made, at("2026-03-28T12:00"), NEVER, 2)) == ticks


@pytest.mark.parametrize(
    ("repeat", "ticks"),
    [
        ("first", ["2026-10-25T00:00Z", "2026-10-25T00:30Z", "2026-10-26T01:00Z"]),
        ("both", ["2026-10-25T00:00Z", "2026-10-25T00:30Z", "2026-10-25T01:00Z", "2026-10-25T01:30Z"]),
    ],
)
def test_repeated_times_are_due_once_or_twice_and_always_in_order(repeat, ticks):
    """With both, the second 02:00 comes after the first 02:30: by the calendar alone it would be lost."""
    made = schedule("0,30 2 * * *", tz="Europe/Berlin", repeat=repeat)
    assert shown(ticks_between(made, at("2026-10-24T12:00"), NEVER, len(ticks))) == ticks
    for before, tick in itertools.pairwise(ticks):
        assert shown((next_after(made, at(before[:16])) or 0,)) == [tick]


def test_several_times_of_one_gap_are_due_once():
    """Four mails at one instant would be four runs for one jump of the clock."""
    made = schedule("0,15,30,45 2,3 * * *", tz="Europe/Berlin")
    assert shown(ticks_between(made, at("2026-03-29T00:50"), NEVER, 2)) == ["2026-03-29T01:00Z", "2026-03-29T01:15Z"]


def test_what_is_rare_or_far_away_has_an_end():
    """A search without one stops the scheduler for good."""
    made = schedule("0 0 29 2 */7")
    assert shown(ticks_between(made, at("2026-01-01T00:00"), NEVER, 2)) == ["2032-02-29T00:00Z", "2060-02-29T00:00Z"]
    assert next_after(made, at("9900-01-01T00:00")) is None
    assert next_after(made, 10**18) is None
    assert next_after(schedule("* * * * *"), -(10**18)) == 0


@pytest.mark.parametrize("expression", ["*/90 * * * *", "0 */25 * * *", "0 0 * */13 *", "0 0 1-31/32 * *"])
def test_a_step_past_its_field_is_refused(expression):
    """Every ninety minutes is meant, and every hour would come of it."""
    with pytest.raises(BadExpression, match="has steps of"):
        schedule(expression)
    assert schedule("*/60 */24 */31 */12 */7").expression


@pytest.mark.parametrize("expression", ["0 0 30 2 *", "0 0 31 4,6,9,11 *", "0 0 */31 * 1#5", "0 0 31 2 */2"])
def test_a_day_that_no_year_has_is_refused(expression):
    """It would be deployed, listed, and wait for ever."""
    with pytest.raises(BadExpression):
        schedule(expression)


def test_a_schedule_whose_times_all_lie_in_a_gap_is_refused():
    """The fifth Sunday of March is always the one on which Berlin's clock jumps."""
    made = schedule("30 2 * 3 0#5", tz="Europe/Berlin", gap="skip")
    with pytest.raises(Invalid, match="never comes"):
        check(made, at("2026-01-01T00:00"))
    check(msgspec.structs.replace(made, gap="run-after"), at("2026-01-01T00:00"))


@pytest.mark.parametrize(
    ("expression", "fixed"),
    [("0 9 * * *", True), ("*/5 9 * * *", False), ("0 */2 * * *", False), ("0-59 1 * * 1", True)],
)
def test_only_a_named_time_of_day_can_be_missed_or_repeated(expression, fixed):
    """What means "every so often" goes by the clock as it runs."""
    assert cron.at_fixed_times(expression) is fixed


# --- what was missed ------------------------------------------------------------------------------------------------

HOURLY = schedule("0 * * * *", catch_up=3)


@pytest.mark.parametrize(
    ("catch_up", "now", "outcome"),
    [
        ("latest", "2026-11-30T10:00", Caught((at("2026-11-30T10:00"),), at("2026-11-30T10:00"))),
        ("none", "2026-11-30T10:00", Caught((at("2026-11-30T10:00"),), at("2026-11-30T10:00"))),
        ("latest", "2026-11-30T09:59", Caught((), at("2026-11-30T09:00"))),
        (
            "latest",
            "2026-11-30T14:30",
            Caught((at("2026-11-30T14:00"),), at("2026-11-30T14:00"), (at("2026-11-30T10:00"), at("2026-11-30T13:00"))),
        ),
        (
            "none",
            "2026-11-30T14:30",
            Caught((), at("2026-11-30T14:00"), (at("2026-11-30T10:00"), at("2026-11-30T14:00"))),
        ),
        (
            3,
            "2026-11-30T14:30",
            Caught(
                (at("2026-11-30T12:00"), at("2026-11-30T13:00"), at("2026-11-30T14:00")),
                at("2026-11-30T14:00"),
                (at("2026-11-30T10:00"), at("2026-11-30T11:00")),
            ),
        ),
        (
            3,
            "2026-11-30T11:30",
            Caught((at("2026-11-30T10:00"), at("2026-11-30T11:00")), at("2026-11-30T11:00")),
        ),
    ],
)
def test_missed_ticks_are_made_up_for_as_the_schedule_says(catch_up, now, outcome):
    """After a night without a host nobody wants every report of it, and somebody wants the last one."""
    made = msgspec.structs.replace(HOURLY, catch_up=catch_up)
    assert caught_up(made, at("2026-11-30T09:00"), at(now)) == outcome


def test_a_tick_that_is_a_little_late_is_not_missed():
    """A host takes a moment to start; a schedule without catching up must not lose its tick to that."""
    made, due = msgspec.structs.replace(HOURLY, catch_up="none"), at("2026-11-30T10:00")
    assert caught_up(made, due - 1, due + LATE - 1).fire == (due,)
    assert caught_up(made, due - 1, due + LATE).fire == ()


@pytest.mark.parametrize(("catch_up", "fire"), [("none", [14]), ("latest", [14]), (1, [14]), (2, [13, 14])], ids=str)
def test_a_tick_that_is_on_time_stands_for_those_that_were_missed_before_it(catch_up, fire):
    """Nobody wants two reports within a minute: of all that is due it is the latest so many, whatever their age."""
    made = msgspec.structs.replace(HOURLY, catch_up=catch_up)
    caught = caught_up(made, at("2026-11-30T09:00"), at("2026-11-30T14:00") + 10_000)
    assert caught.fire == tuple(at(f"2026-11-30T{hour}:00") for hour in fire)
    assert caught.left_out == (at("2026-11-30T10:00"), at(f"2026-11-30T{fire[0] - 1}:00"))


def test_a_clock_that_is_a_year_ahead_costs_no_more_than_one_that_is_right():
    """Half a million ticks lie between; they are neither fired nor counted one by one."""
    made = schedule("* * * * *", tz="Europe/Berlin", catch_up=2)
    begin, now = at("2026-01-01T00:00"), at("2027-01-01T00:00")
    caught = caught_up(made, begin, now)
    assert caught.fire == (now - 60_000, now)
    assert caught.left_out == (begin + 60_000, now - 120_000)


def test_the_latest_ticks_are_found_across_a_month_without_any():
    """Three this morning and one a month ago, where every minute of a day had one."""
    made = schedule("* * 1 * *", catch_up=4)
    caught = caught_up(made, at("2025-12-01T00:00"), at("2026-02-01T00:02"))
    assert shown(caught.fire) == ["2026-01-01T23:59Z", "2026-02-01T00:00Z", "2026-02-01T00:01Z", "2026-02-01T00:02Z"]
    assert caught.left_out == (at("2025-12-01T00:01"), at("2026-01-01T23:58"))


@pytest.mark.parametrize(
    ("last", "now", "goes_on_from"),
    [
        ("2026-11-30T10:00", "2026-11-30T09:30", "2026-11-30T10:00"),  # half an hour back: that one was fired
        ("2026-11-30T10:00", "2026-11-30T05:30", "2026-11-30T06:00"),  # hours back: only the next one is left out
        ("2036-11-30T10:00", "2026-11-30T05:30", "2026-11-30T06:00"),  # it had been wrong by years
    ],
)
def test_a_last_tick_in_the_future_holds_for_at_most_one_interval(last, now, goes_on_from):
    """A clock that was wrong for a moment must not silence a schedule for ten years."""
    assert caught_up(HOURLY, at(last), at(now)) == Caught((), at(goes_on_from), None, ahead=True)


def test_latest_finds_the_last_of_many():
    """It is how an outage of a year is looked at: from its end."""
    made = schedule("* * * * *")
    assert latest(made, 0, at("2026-11-30T10:00") + 1) == at("2026-11-30T10:00")
    assert latest(schedule("0 0 29 2 *"), 0, at("2026-11-30T10:00")) == at("2024-02-29T00:00")
    assert latest(made, 0, 59_999) is None


# --- making one -----------------------------------------------------------------------------------------------------


def test_a_schedule_without_a_name_has_one_of_its_own_that_stays():
    """It is how the last tick is found again after a restart; another blank or another case makes no other schedule."""
    made = schedule(" 0  9 * * mon-fri ", tz="Europe/Berlin")
    assert made == schedule("0 9 * * MON-FRI", tz="Europe/Berlin")
    assert made.id == "cron-ee43315706f1"
    assert made.id != schedule("0 9 * * MON-FRI", tz="Europe/Paris").id
    assert schedule("0 9 * * *", name="morning").id == "morning"


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"gap": "later"}, "gap='later' is none of 'run-after', 'skip'"),
        ({"repeat": "twice"}, "repeat='twice' is none of 'first', 'both'"),
        ({"overlap": "allow"}, "overlap='allow' is none of 'skip', 'queue', 'cancel'"),
        ({"overlap": ["skip"]}, "overlap="),
        ({"catch_up": "all"}, "catch_up='all' is neither"),
        ({"catch_up": 0}, "catch_up=0 is neither"),
        ({"catch_up": 101}, "catch_up=101 is neither"),
        ({"catch_up": True}, "catch_up=True is neither"),
        ({"catch_up": [1]}, "catch_up="),
        ({"name": "Morning"}, "'Morning' can't name a schedule"),
        ({"name": "../x"}, "can't name a schedule"),
        ({"name": "m" * 64}, "can't name a schedule"),
        ({"name": ""}, "can't name a schedule"),
        ({"name": 7}, "name is text, not 7"),
        ({"tz": None}, "tz is text, not None"),
        ({"expression": 9}, "the expression is text, not 9"),
    ],
)
def test_a_setting_that_can_not_be_is_refused_in_words(settings, text):
    """A misspelt policy that is taken for the default runs twice in October."""
    with pytest.raises(Invalid) as refused:
        schedule(**{"expression": "0 9 * * *", **settings})
    assert text in str(refused.value)


def test_a_schedule_is_stored_as_it_is_written_here():
    """It is part of the definition, in the history: a format for ever."""
    raw = (
        b'{"id":"morning","expression":"0 9 * * *","tz":"Europe/Berlin","gap":"run-after","repeat":"first",'
        b'"catch_up":"latest","overlap":"skip"}'
    )
    made = schedule("0 9 * * *", tz="Europe/Berlin", name="morning")
    assert msgspec.json.encode(made) == raw
    assert msgspec.json.decode(raw, type=Schedule) == made
    for other in (b'"catch_up":0', b'"catch_up":101', b'"catch_up":"all"', b'"catch_up":"latest","x":1'):
        with pytest.raises(msgspec.ValidationError):
            msgspec.json.decode(raw.replace(b'"catch_up":"latest"', other), type=Schedule)


def test_a_tick_is_named_by_its_schedule_and_its_time():
    """The id is what no restart can repeat, and what no mail from outside can have."""
    due = at("2026-11-30T09:00")
    assert tick_id("morning", due) == " tick:morning:2026-11-30T09:00:00.000Z"
    assert tick_of(tick_id("morning", due)) == Tick("morning", datetime(2026, 11, 30, 9, tzinfo=UTC))


@pytest.mark.parametrize(
    "text",
    [
        "tick:morning:2026-11-30T09:00:00.000Z",
        " tick:morning:2026-11-30T09:00:00.000Z ",
        " tick:Morning:2026-11-30T09:00:00.000Z",
        " tick:morning:2026-13-30T09:00:00.000Z",
        " tick:morning",
        " sha256:00",
        "<1@example.com>",
        "",
    ],
)
def test_no_other_id_is_a_tick(text):
    """A mail must not pass for the clock."""
    assert tick_of(text) is None


@pytest.mark.parametrize(
    "changed",
    [
        {"expression": "61 * * * *"},
        {"expression": "0 0"},
        {"expression": ""},
        {"expression": "0  9 * * *"},
        {"expression": "0 9 * * mon"},
        {"tz": "Nowhere"},
        {"id": "../x"},
        {"catch_up": 1000},
        {"overlap": "never"},
    ],
)
def test_what_no_author_has_written_is_refused_and_ends_nobody(changed):
    """What a child describes, and what a repository from elsewhere has, are other people's words."""
    odd = msgspec.structs.replace(schedule("0 9 * * *", name="morning"), **changed)
    with pytest.raises(Invalid):
        check(odd, 0)
    for ask in (next_after, lambda odd, at: caught_up(odd, at, at + DAY), lambda odd, at: latest(odd, at, at + DAY)):
        with contextlib.suppress(Invalid):
            ask(odd, at("2026-11-30T09:00"))

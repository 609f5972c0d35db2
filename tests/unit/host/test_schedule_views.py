"""`waypost schedule`: what is said of a schedule in each of its states, and what is foretold."""

import json
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from substrate.messages import Planned
from substrate.ticking import Ticked
from waypost.cli.scheduling import list_words, tick_words
from waypost.host.keeping_errors import NoSuchDeployment
from waypost.host.reading.explain import Situation
from waypost.host.reading.narrate import Narrator
from waypost.host.reading.schedules import listed, shown, tried
from waypost.model import events as ev
from waypost.model.ids import CallId, RunId
from waypost.model.schedule import schedule, tick_id
from waypost.model.times import unstamp
from waypost.model.why import Sentence
from waypost.testing.verbs import verb

NOW = unstamp("2026-11-30T10:30:00Z")
RUN = RunId("run_3_00112233445566aa")
ADDRESS = "digest@example.com"
UP = Situation(name="digest", address=ADDRESS, hosted=True, state="running")
DOWN = Situation(name="digest", address=ADDRESS, hosted=False)
HELD = Situation(
    name="digest",
    address=ADDRESS,
    hosted=True,
    state="held",
    why=Sentence(waits_for="somebody to let it go on", then="it goes on", command="waypost resume digest", needed=True),
)


def hourly(tz: str = "Europe/Berlin", **ticked: Any) -> Planned:
    """A schedule that is due every hour, and how far it has come: to ten, as a rule."""
    made = schedule("0 * * * *", tz="Europe/Berlin", name="hourly")
    file = Ticked(
        id="hourly",
        expression="0 * * * *",
        tz="Europe/Berlin",
        since="2026-11-01T00:00:00.000Z",
        last="2026-11-30T10:00:00.000Z",
        fate="sent",
        arrival=7,
        run=RUN,
    )
    return Planned(msgspec.structs.replace(made, tz=tz), msgspec.structs.replace(file, **ticked))


@pytest.mark.parametrize(
    ("situation", "plan", "state", "due", "why", "helps"),
    [
        (UP, hourly(), "due", "2026-11-30T11:00:00.000Z", "", ""),
        (UP, hourly(last="2026-11-30T09:00:00.000Z"), "late", "2026-11-30T10:00:00.000Z", "it was due at", "why"),
        (DOWN, hourly(), "stopped", "2026-11-30T11:00:00.000Z", "waits for a host", "waypost run"),
        (HELD, hourly(), "stopped", "2026-11-30T11:00:00.000Z", "somebody to let it go on", "resume digest"),
        (
            UP,
            hourly(last="2026-11-30T11:00:00.000Z"),
            "ahead",
            "2026-11-30T12:00:00.000Z",
            "it goes on after 2026-11-30T11:00:00.000Z",
            "",
        ),
        (
            UP,
            hourly(last="2036-11-30T11:00:00.000Z"),
            "ahead",
            "2026-11-30T12:00:00.000Z",
            "it goes on after 2026-11-30T11:00:00.000Z",
            "",
        ),
        (
            UP,
            hourly(fate="waiting", waiting=("2026-11-30T09:00:00.000Z", "2026-11-30T10:00:00.000Z")),
            "waiting",
            "2026-11-30T11:00:00.000Z",
            f"2 ticks wait for {RUN}",
            f"waypost why {RUN}",
        ),
        (UP, hourly(tz="US/Pacific-New"), "no-zone", "", "no time zone 'US/Pacific-New'", ""),
    ],
)
def test_a_schedule_says_how_it_is_and_what_helps(situation, plan, state, due, why, helps):
    """One that does nothing must not look like one that is waiting for nine o'clock."""
    row = shown(situation, plan, NOW, 1)
    assert row.state == state
    assert [tick.due for tick in row.next] == ([due] if due else [])
    assert why in row.why
    assert bool(why) == bool(row.why)
    assert helps in row.command


def test_what_was_missed_is_foretold_as_it_will_be_fired():
    """Ten hours were missed, and the latest of them comes when the host does."""
    row = shown(DOWN, hourly(last="2026-11-30T00:00:00.000Z"), NOW, 2)
    assert [tick.due[:16] for tick in row.next] == ["2026-11-30T10:00", "2026-11-30T11:00"]


def test_what_the_clock_does_to_a_tick_is_noted():
    """Whoever looks at the next ticks before a jump sees what will come of it."""
    several = tried(schedule("30 2 * * *", tz="Europe/Berlin"), unstamp("2026-03-28T12:00:00Z"), 2)
    assert [(tick.local, tick.note) for tick in several.schedules[0].next] == [
        ("2026-03-29T03:00+02:00", "the clock has jumped over its time"),
        ("2026-03-30T02:30+02:00", ""),
    ]
    both = tried(schedule("30 2 * * *", tz="Europe/Berlin", repeat="both"), unstamp("2026-10-24T12:00:00Z"), 3)
    assert [(tick.local, tick.note) for tick in both.schedules[0].next] == [
        ("2026-10-25T02:30+02:00", "the clock is set back: this time comes twice"),
        ("2026-10-25T02:30+01:00", "the second time: the clock was set back"),
        ("2026-10-26T02:30+01:00", ""),
    ]


class Plans:
    """What a ``Source`` knows of schedules; nobody runs any of them."""

    def __init__(self, **plans: tuple[Planned, ...]) -> None:
        self.plans = plans

    def situations(self) -> tuple[Situation, ...]:
        """Each deployment."""
        return tuple(Situation(name=name, address=ADDRESS, hosted=False) for name in self.plans)

    def schedules(self, deployment: str) -> tuple[Planned, ...]:
        """Those of one."""
        return self.plans[deployment]


def test_the_next_one_of_all_deployments_is_listed_first():
    """It is the one that somebody looks for."""
    source: Any = Plans(
        late=(hourly(last="2026-11-30T05:00:00.000Z"),), soon=(hourly(),), none=(), gone=(hourly(tz="Nowhere"),)
    )
    answer = listed(source, NOW)
    assert [(row.deployment, row.state) for row in answer.schedules] == [
        ("late", "stopped"),
        ("soon", "stopped"),
        ("gone", "no-zone"),
    ]
    assert [row.deployment for row in listed(source, NOW, name="soon", count=3).schedules] == ["soon"]
    with pytest.raises(NoSuchDeployment, match="nobody"):
        listed(source, NOW, name="nobody")


def test_a_list_has_a_line_for_each_and_a_word_for_what_is_wrong():
    """How the last tick went is in it; what a stranger wrote steers no terminal."""
    source: Any = Plans(soon=(hourly(fate="skipped"),), gone=(hourly(tz="No\x1b[2Jwhere"),))
    heading, first, second, *wrong = list_words(listed(source, NOW), ("--data", "here"))
    assert heading.startswith("schedule")
    assert "2026-11-30 11:00  2026-11-30 12:00+01:00  2026-11-30 10:00 (skipped)  0 * * * *   Europe/Berlin" in first
    assert second.startswith("gone/hourly  no-zone  never")
    assert wrong[0].endswith("next: waypost run --data here")
    assert "there is no time zone" in wrong[1]
    assert all(line.isprintable() for line in (first, second, *wrong))
    new: Any = Plans(new=(hourly(last=UNSET, fate=UNSET),))
    assert "  never  " in list(list_words(listed(new, NOW)))[1]
    none: Any = Plans(none=())
    assert list(list_words(listed(none, NOW))) == ["no schedule is deployed here: a workflow has one by @workflow.cron"]


def test_ticks_of_all_schedules_come_in_one_row():
    """Somebody wants to know what comes first, not of which schedule."""
    other = schedule("30 * * * *", name="half")
    plans = (hourly(), Planned(other, msgspec.structs.replace(hourly().ticked, id="half", expression="30 * * * *")))
    source: Any = Plans(digest=plans)
    lines = list(tick_words(listed(source, NOW, count=3), 3))
    assert [line.split()[-1] for line in lines[1:4]] == ["digest/half", "digest/hourly", "digest/half"]
    gone: Any = Plans(gone=(hourly(tz="Nowhere"),))
    assert next(tick_words(listed(gone, NOW), 3)) == "nothing is due"
    none: Any = Plans(none=())
    assert list(tick_words(listed(none, NOW), 3)) == ["nothing is due: no schedule is deployed"]
    assert tried(schedule("0 0 29 2 *"), unstamp("9900-03-01T00:00:00Z"), 2).schedules[0].next == ()


def test_a_clock_that_is_utc_is_not_shown_twice():
    """Where one goes by another, its rows alone have a second time."""
    plain = schedule("30 * * * *", name="half")
    here = Planned(plain, msgspec.structs.replace(hourly().ticked, id="half", expression="30 * * * *", tz="UTC"))
    both: Any = Plans(digest=(hourly(), here))
    heading, first, second, *_ = tick_words(listed(both, NOW, count=2), 2)
    assert heading.split() == ["UTC", "there", "schedule"]
    assert sorted(row.count("2026-11-30") for row in (first, second)) == [1, 2]
    one: Any = Plans(digest=(here,))
    assert "there" not in next(tick_words(listed(one, NOW, count=2), 2))
    heading, row, *_ = list_words(listed(one, NOW))
    assert "there" not in heading
    assert row.count("2026-11-30 ") == 2  # the next one, and the last


def test_a_run_that_the_clock_began_says_so_in_its_timeline():
    """Its mail has no sender, and "mail 7" alone says nothing."""
    mail = ev.Mailed(arrival=7, id=tick_id("hourly", NOW), sha256="0" * 64)
    received = ev.SignalReceived(call=CallId("r1#1"), signal="s", mail=mail)
    assert "mail 7, of schedule hourly" in Narrator().tell(received)


# --- without a deployment -------------------------------------------------------------------------------------------


def test_an_expression_can_be_tried_without_anything_being_deployed(tmp_path):
    """Nobody has a list of zones and their jumps in his head."""
    said = verb("schedule", "next", "--expression", "0 9 * * MON-FRI", "--tz", "Europe/Berlin", "--json", cwd=tmp_path)
    assert said.status == 0
    (row,) = json.loads(said.out)["schedules"]
    assert len(row["next"]) == 5
    assert all(tick["local"][11:16] == "09:00" for tick in row["next"])
    said = verb("schedule", "next", "--expression", "*/5 * * * *", "--count", "3", cwd=tmp_path)
    assert said.status == 0
    assert said.out.count("*/5 * * * * UTC") == 3


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (("--expression", "0 0 30 2 *"), "'0 0 30 2 *' can't be a schedule"),
        (("--expression", "0 9 * * *", "--tz", "europe/berlin"), "it is spelt 'Europe/Berlin'"),
        (("--expression", "0 9 * * *", "--gap", "later"), "gap='later' is none of"),
        (("--expression", "0 9 * * *", "digest"), "name a deployment, or give an --expression"),
        ((), "name a deployment, or give an --expression"),
        (("--expression", "0 9 * * *", "--count", "0"), "--count"),
    ],
)
def test_what_can_not_be_tried_is_a_mistake_in_words(arguments, says, tmp_path):
    """It is where an author finds out, so the words are those of the deploy."""
    said = verb("schedule", "next", *arguments, cwd=tmp_path)
    assert said.status == 64
    assert says in said.err
    assert said.out == ""

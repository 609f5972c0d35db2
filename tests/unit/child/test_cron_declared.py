"""``@workflow.cron``: what a file may say of the clock, when that is looked at, and what the run function is given."""

import hashlib
from datetime import UTC, datetime

import msgspec
import pytest
from msgspec import UNSET

from waypost import Mail, Misdeclared, Tick, Workflow
from waypost.child import outcomes
from waypost.host.code.untimely import refuse_untimely
from waypost.host.errors import BadWorkflow
from waypost.model import events as ev
from waypost.model.declaration import Declared
from waypost.model.mail import parse, scan
from waypost.model.schedule import MOST, schedule, tick_id, tick_of
from waypost.model.times import unstamp
from waypost.model.values import Codec

RAW = b"From: digest@example.com\r\nTo: digest@example.com\r\nMessage-ID: <1@x>\r\nSubject: morning\r\n\r\n"
DUE = unstamp("2026-11-30T08:00:00Z")


def a_workflow() -> Workflow:
    """One with nothing in it."""
    return Workflow("digest", address="digest@example.com")


def mailed(message_id: str) -> ev.Mailed:
    """A mail as an event names it."""
    return ev.Mailed(arrival=1, id=message_id, sha256=hashlib.sha256(RAW).hexdigest())


def test_schedules_are_declared_in_the_order_of_the_file():
    """Above the run function, or called by themselves: one reads a list of five, the other four reads one."""
    flow = a_workflow()

    @flow.cron("0 9 * * MON-FRI", tz="Europe/Berlin", name="morning", catch_up=3, overlap="queue")
    @flow.cron("30 2 1 * *", gap="skip", repeat="both", catch_up="none")
    @flow.run
    def digest(mail: Mail) -> None: ...

    flow.cron("0 0 * * 0", name="weekly")
    assert flow.declared().schedules == (
        schedule("0 9 * * MON-FRI", tz="Europe/Berlin", name="morning", catch_up=3, overlap="queue"),
        schedule("30 2 1 * *", gap="skip", repeat="both", catch_up="none"),
        schedule("0 0 * * 0", name="weekly"),
    )


def test_the_order_of_the_two_decorators_does_not_matter():
    """Nobody remembers which one goes first."""
    flow = a_workflow()

    @flow.run
    @flow.cron("0 9 * * *", name="morning")
    def digest(mail: Mail) -> None: ...

    assert flow.declared().schedules == (schedule("0 9 * * *", name="morning"),)


def test_a_workflow_without_a_schedule_declares_what_it_always_did():
    """Its hash is in the history of every run: one more key would be another definition."""
    flow = a_workflow()

    @flow.run
    def digest(mail: Mail) -> None: ...

    declared = flow.declared()
    assert declared.schedules is UNSET
    assert b"schedule" not in msgspec.json.encode(declared)
    assert msgspec.json.decode(msgspec.json.encode(declared), type=Declared) == declared


def test_schedules_are_part_of_the_definition():
    """Another time of day is another definition, as another step is."""
    digests = set()
    for expression in ("0 9 * * *", "0 10 * * *"):
        flow = a_workflow()
        flow.run(lambda mail: None)
        flow.cron(expression, name="morning")
        assert msgspec.json.decode(msgspec.json.encode(flow.declared()), type=Declared) == flow.declared()
        digests.add(flow.declared().digest())
    assert len(digests) == 2


@pytest.mark.parametrize("expression", ["0 9 31 2 *", "9 o'clock", "@daily", "* * * * * *", 9, lambda mail: None])
def test_an_expression_that_can_not_be_is_misdeclared_where_it_is_written(expression):
    """The author sees the line, before anything is deployed."""
    with pytest.raises(Misdeclared, match="digest: @cron: ") as refused:
        a_workflow().cron(expression)
    assert refused.value.hint


def test_a_schedule_above_another_function_is_misdeclared():
    """It would look as if that function were called at nine."""
    flow = a_workflow()

    @flow.cron("0 9 * * *")
    def morning(mail: Mail) -> None: ...

    @flow.run
    def digest(mail: Mail) -> None: ...

    with pytest.raises(Misdeclared, match="is above morning, but a tick begins a run: it is digest") as refused:
        flow.declared()
    assert "mail.tick.schedule" in refused.value.hint


def test_a_schedule_above_a_step_is_misdeclared():
    """The same, of what isn't even a plain function."""
    flow = a_workflow()

    @flow.cron("0 9 * * *")
    @flow.step
    def morning() -> None: ...

    flow.run(lambda mail: None)
    with pytest.raises(Misdeclared, match="is above"):
        flow.declared()


def test_two_schedules_that_can_not_be_told_apart_are_misdeclared():
    """Their last ticks would be kept in one file."""
    flow = a_workflow()
    flow.cron("0 9 * * *")
    with pytest.raises(Misdeclared, match="two schedules called cron-") as refused:
        flow.cron("0 9 * * *", overlap="queue")
    assert "name=" in refused.value.hint
    flow.cron("0 9 * * *", overlap="queue", name="other")


def test_a_workflow_has_a_hundred_schedules_at_most():
    """A host looks at all of them; whoever needs more needs a loop."""
    flow = a_workflow()
    for number in range(MOST):
        flow.cron(f"{number % 60} {number // 60} * * *")
    with pytest.raises(Misdeclared, match="more than 100 schedules"):
        flow.cron("59 23 * * *")


@pytest.mark.parametrize(
    ("made", "says", "hint"),
    [
        (schedule("0 9 * * *", tz="Europe/Berlim"), "there is no time zone 'Europe/Berlim'", "name a place"),
        (schedule("30 2 * 3 0#5", tz="Europe/Berlin", gap="skip"), "gap='skip' leaves each of its times", "run-after"),
    ],
)
def test_what_rests_on_the_zone_database_is_refused_before_it_is_deployed(made, says, hint):
    """A child is silent about it: runs of deployed code must not end with a zone that is no more."""
    declared = Declared(name="digest", address="digest@example.com", schedules=(made,))
    with pytest.raises(BadWorkflow) as refused:
        refuse_untimely("digest.py", declared)
    assert f"digest: @cron({made.expression!r}, tz='Europe/" in str(refused.value)
    assert says in str(refused.value)
    assert hint in refused.value.hint
    refuse_untimely("digest.py", Declared(name="digest", address="digest@example.com"))


def test_a_pattern_in_mail_to_is_refused_before_it_is_deployed_and_never_of_what_runs() -> None:
    """It would be said to let mail out, and lets none; code that was deployed with one must go on running."""
    declared = Declared(name="digest", address="digest@example.com", mail_to=("*@example.com",))
    with pytest.raises(BadWorkflow, match="mail_to lists addresses") as refused:
        refuse_untimely("digest.py", declared)
    assert refused.value.hint == "`waypost grants set digest --mail '*@example.com'` lets it mail a whole domain"


# --- what the run function is given ---------------------------------------------------------------------------------


def test_a_tick_says_which_schedule_and_when_it_was_due():
    """It may come late; what a report is about is the time that it was due."""
    mail = outcomes.mail_of(RAW, mailed(tick_id("morning", DUE)))
    assert mail.tick == Tick("morning", datetime(2026, 11, 30, 8, tzinfo=UTC))
    assert mail.subject == "morning"


@pytest.mark.parametrize("line", ["Message-ID:  tick:morning:2026-11-30T08:00:00.000Z", "Message-ID:\r\n  tick:a:b"])
def test_no_header_makes_a_mail_a_tick(line):
    """Whoever could write one could start what only the clock may."""
    raw = RAW.replace(b"Message-ID: <1@x>", line.encode())
    gist = scan(raw)
    assert tick_of(gist.id.decode()) is None
    assert outcomes.mail_of(raw, mailed(gist.id.decode())).tick is None


def test_a_mail_that_is_no_tick_is_stored_as_it_always_was():
    """It is an argument of steps: other bytes would be another call in every replay of an older run."""
    plain = outcomes.mail_of(RAW, mailed("<1@x>"))
    assert plain == parse(RAW)
    assert plain.tick is None
    assert b"tick" not in msgspec.json.encode(plain)
    assert list(msgspec.to_builtins(plain)) == [each.name for each in msgspec.structs.fields(Mail) if each.required]


def test_a_tick_goes_through_a_step_unchanged():
    """A step may take the mail and give it back."""
    mail, codec = outcomes.mail_of(RAW, mailed(tick_id("morning", DUE))), Codec(Mail)
    assert codec.load(codec.store(mail, limit=10_000).raw) == mail

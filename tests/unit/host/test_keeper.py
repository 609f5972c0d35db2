"""The keeper of credentials: who is given what and when, what a rotation does, and that everybody is answered."""

import pytest

from actors.credentials import AskAgain, Assembled, NotAssembled
from ipc.deliveries import DELIVERY, VALUE
from substrate.messages import Refused
from waypost.acting import Asked, Tell
from waypost.host.answers.credentials import Delivered
from waypost.host.credentials.errors import BadCredentials
from waypost.host.credentials.file import NOTHING, Configured, parse
from waypost.host.credentials.logic import AT_ONCE, LONGEST, PATIENCE
from waypost.host.credentials.messages import Forget, ListCredentials, LoadFile, Reloaded, TryCredentials, WasRead
from waypost.host.credentials.providers import Failed
from waypost.host.credentials.reloading import SHORT
from waypost.host.errors import NotNow
from waypost.model.ids import Deployment
from waypost.testing.keeping import (
    CONFIGURED,
    Bench,
    answers,
    credential,
    readings,
    replies,
    supplies,
    values,
    warnings,
)


def states(bench: Bench) -> dict[str, str]:
    """How each credential stands, as an operator sees it."""
    (shown,) = replies(bench.take(Asked(99, ListCredentials())))
    return {each.handle: each.state for each in shown.credentials}


# --- assembling ----------------------------------------------------------------------------------------------------


def test_a_value_is_read_when_it_is_wanted_first_and_then_kept() -> None:
    """A command that asks somebody for a password is run once, not for every run."""
    bench = Bench()
    assert readings(bench.want(pay=("github",))) == ["github"]
    (answer,) = answers(bench.read({"github": "v1"}))
    assert values(answer) == {"github": "v1"}
    effects = bench.want(pay=("github",))
    assert readings(effects) == []
    assert answers(effects) == [Assembled(2, answer.credentials, answer.sources)]  # type: ignore[union-attr]


def test_who_may_read_nothing_is_answered_at_once_and_has_the_sources_all_the_same() -> None:
    """The barrier is on the way of every run; most have no secret."""
    (answer,) = answers(Bench().want())
    assert isinstance(answer, Assembled)
    assert answer.credentials.materials == {}
    assert answer.sources is not None
    assert [source.id for source in answer.sources.sources] == ["main"]
    (bare,) = answers(Bench(NOTHING).want())
    assert isinstance(bare, Assembled)
    assert bare.sources is None


def test_two_who_want_one_value_wait_for_one_reading() -> None:
    """Both are answered by it."""
    bench = Bench()
    assert readings(bench.want("orders", pay=("github",))) == ["github"]
    assert readings(bench.want("billing", bill=("github",))) == []
    assert [values(each) for each in answers(bench.read({"github": "v1"}))] == [{"github": "v1"}] * 2


def test_one_that_cant_be_read_is_passing_and_is_tried_again_by_whoever_asks_again() -> None:
    """The vault may be locked at this moment. The log says so once, the answer each time."""
    bench = Bench()
    bench.want(pay=("github",))
    effects = bench.read({"github": Failed("the command 'pass' ended with status 1")})
    (answer,) = answers(effects)
    assert answer == NotAssembled(
        1, passing=True, why="the secret github can't be had: the command 'pass' ended with status 1"
    )
    assert len(warnings(effects)) == 1
    assert readings(bench.want(pay=("github",))) == ["github"]
    effects = bench.read({"github": Failed("the command 'pass' ended with status 1")})
    assert (len(answers(effects)), warnings(effects)) == (1, [])
    assert states(bench) == {"github": "failing", "db": "unread"}


@pytest.mark.parametrize(
    ("deployment", "handle", "why"),
    [("orders", "gitlab", "isn't listed in credentials.toml"), ("billing", "db", "doesn't let billing have")],
)
def test_one_that_isnt_listed_or_isnt_for_this_deployment_is_never_to_be_had(
    deployment: str, handle: str, why: str
) -> None:
    """No reading mends that; and nothing is read for somebody who may not have it."""
    bench = Bench()
    effects = bench.want(deployment, pay=(handle,))
    (answer,) = answers(effects)
    assert isinstance(answer, NotAssembled)
    assert not answer.passing
    assert why in answer.why


def test_what_no_frame_could_carry_is_refused_for_good() -> None:
    """A frame that is too large would end the channel, and the child with it, for ever again."""
    many = {f"h{n}": credential(f"h{n}") for n in range(DELIVERY // VALUE + 1)}
    bench = Bench(Configured(many))
    bench.want(pay=tuple(many))
    found = []
    while bench.state.reading:
        found += answers(bench.read(dict.fromkeys(many, "x" * VALUE)))
    (answer,) = found
    assert isinstance(answer, NotAssembled)
    assert not answer.passing
    bench.reload("orders")
    bench.file(Configured(many))
    effects = []
    while bench.state.reading:
        effects += bench.read(dict.fromkeys(many, "x" * VALUE))
    assert [values(each) for each in supplies(effects)] == [{}]


def test_only_so_many_are_read_at_once() -> None:
    """Each is a thread, and mostly a process."""
    many = {f"h{n}": credential(f"h{n}") for n in range(2 * AT_ONCE + 1)}
    bench = Bench(Configured(many))
    assert len(readings(bench.want(pay=tuple(many)))) == AT_ONCE
    bench.read({"h0": "v"})
    assert len(bench.state.reading) == AT_ONCE


def test_grants_that_were_taken_back_take_the_value_with_them() -> None:
    """The next delivery has neither the binding nor the value."""
    bench = Bench()
    bench.want(pay=("github",), look=("db",))
    bench.read({"github": "v1", "db": "v2"})
    effects = bench.want(look=("db",))
    (answer,) = answers(effects)
    assert values(answer) == {"db": "v2"}
    assert [values(each) for each in supplies(effects)] == [{"db": "v2"}], (
        "its supervisor keeps them for the next child"
    )


def test_grants_that_were_taken_back_are_gone_although_something_else_isnt_to_be_had() -> None:
    """The answer to dispatch has to wait; what the next child is given must not have the old value."""
    bench = Bench()
    bench.want(pay=("github",))
    bench.read({"github": "v1"})
    effects = bench.want(pay=("gitlab",))
    assert [values(each) for each in supplies(effects)] == [{}]
    assert isinstance(answers(effects)[0], NotAssembled)


# --- rotation ------------------------------------------------------------------------------------------------------


def test_a_value_whose_time_has_come_is_read_again_and_reaches_whoever_has_the_old_one() -> None:
    """By the supervisor, at once; with a higher number; and nobody else is told."""
    bench = Bench()
    bench.want("orders", pay=("db",))
    bench.want("billing", bill=("github",))
    (first,) = (a for a in answers(bench.read({"db": "v1", "github": "g"})) if "db" in values(a))
    assert readings(bench.wake(59)) == []
    assert readings(bench.wake(1)) == ["db"]
    (supply,) = supplies(bench.read({"db": "v2"}))
    assert supply.supervisor is bench.ref("orders")
    assert values(supply) == {"db": "v2"}
    assert isinstance(first, Assembled)
    assert supply.credentials.serial > first.credentials.serial
    assert readings(bench.wake(60)) == ["db"]
    assert supplies(bench.read({"db": "v2"})) == []


def test_a_value_that_nobody_has_any_more_is_not_read_again_when_its_time_has_come() -> None:
    """Its command ran every minute for nobody; whoever has it later has it as it is then."""
    bench = Bench()
    bench.want(pay=("db",))
    bench.read({"db": "v1"})
    bench.want()
    assert readings(bench.wake(60)) == []
    assert bench.state.entries == {}
    assert readings(bench.want(pay=("db",))) == ["db"]


def test_for_one_that_has_gone_nothing_is_read_until_it_asks_anew() -> None:
    """A deployment that slept had its command run every minute; once it is awake it has what holds then."""
    bench = Bench()
    bench.want(pay=("db",))
    bench.read({"db": "v1"})
    bench.take(Forget(Deployment("orders")))
    assert readings(bench.wake(60)) == []
    assert readings(bench.want(pay=("db",))) == ["db"]
    bench.take(Forget(Deployment("orders")))  # while it waits: nobody is there to be answered
    assert answers(bench.read({"db": "v2"})) == []
    assert [values(each) for each in answers(bench.want(pay=("db",)))] == [{"db": "v2"}]


def test_a_value_that_cant_be_read_again_stays_in_use_and_is_shown_to_be_old() -> None:
    """A vault that is away for an hour stops nobody."""
    bench = Bench()
    bench.want(pay=("db",))
    bench.read({"db": "v1"})
    bench.wake(60)
    effects = bench.read({"db": Failed("away")})
    assert (supplies(effects), len(warnings(effects))) == ([], 1)
    assert states(bench)["db"] == "stale"
    (answer,) = answers(bench.want(pay=("db",)))
    assert values(answer) == {"db": "v1"}
    bench.wake(60)
    assert [values(each) for each in supplies(bench.read({"db": "v2"}))] == [{"db": "v2"}]
    assert states(bench)["db"] == "ok"


def test_a_reading_that_never_ends_is_given_up_and_isnt_begun_again_beside_itself() -> None:
    """A file on a dead network disk: whoever waits is answered, and threads don't pile up behind it."""
    bench = Bench()
    bench.want(pay=("github",))
    (stuck,) = bench.state.reading
    (answer,) = answers(bench.wake(LONGEST))
    assert answer == NotAssembled(1, passing=True, why="the secret github can't be had: nothing came within 30 s")
    effects = bench.want(pay=("github",))
    assert readings(effects) == []
    (answer,) = answers(effects)
    assert isinstance(answer, NotAssembled)
    assert "an earlier try to read it still hangs" in answer.why
    bench.take(WasRead(stuck, Failed("at last")))
    assert readings(bench.want(pay=("github",))) == ["github"]


# --- reload --------------------------------------------------------------------------------------------------------


def test_a_reload_reads_the_file_then_what_is_in_use_then_delivers_and_only_then_answers() -> None:
    """Who is told that it is done can count on it."""
    bench = Bench()
    bench.want(pay=("github",))
    bench.read({"github": "v1"})
    assert LoadFile() in bench.reload("orders")
    assert readings(bench.file(CONFIGURED)) == ["github"]
    effects = bench.read({"github": "v2"})
    assert [values(each) for each in supplies(effects)] == [{"github": "v2"}]
    assert replies(effects) == []
    (done,) = replies(bench.answer())
    assert done.delivered == (Delivered(deployment="orders", state="delivered"),)
    assert {each.handle: each.state for each in done.credentials} == {"github": "ok", "db": "unread"}


def test_a_file_that_cant_be_used_changes_nothing_and_is_told_to_who_reloads() -> None:
    """A slip of the editor must not take anybody's secrets away."""
    bench = Bench()
    bench.want(pay=("github",))
    bench.read({"github": "v1"})
    bench.reload("orders")
    bad = BadCredentials("credentials.toml", 3, "this isn't TOML")
    assert replies(bench.file(bad)) == [bad]
    (answer,) = answers(bench.want(pay=("github",)))
    assert values(answer) == {"github": "v1"}
    assert LoadFile() in bench.reload("orders")


def test_what_is_listed_at_another_place_is_the_old_value_until_it_was_read_there() -> None:
    """And says so; a mistake in the new place stops nobody who runs."""
    bench = Bench()
    bench.want(pay=("github",))
    bench.read({"github": "v1"})
    bench.reload("orders")
    bench.file(Configured({"github": credential("github", "ELSEWHERE")}))
    assert states(bench) == {"github": "stale"}
    (supply,) = supplies(bench.read({"github": Failed("no ELSEWHERE")}))
    assert values(supply) == {"github": "v1"}
    (done,) = replies(bench.answer())
    assert [(each.state, each.why) for each in done.credentials] == [("stale", "no ELSEWHERE")]


def test_what_isnt_listed_any_more_is_gone() -> None:
    """The next delivery is without it, and the keeper has forgotten the value."""
    bench = Bench()
    bench.want(pay=("github",))
    bench.read({"github": "v1"})
    bench.reload("orders")
    effects = bench.file(NOTHING)
    (supply,) = supplies(effects)
    assert (values(supply), supply.sources and supply.sources.sources) == ({}, ())
    assert bench.state.entries == {}


def test_what_is_granted_to_nobody_at_a_reload_is_read_anew_for_whoever_has_it_later() -> None:
    """It was replaced while no step had it, and then granted again: the old value was given, and listed as good."""
    bench = Bench()
    bench.want(pay=("github",))
    bench.read({"github": "v1"})
    bench.want()
    bench.reload("orders")
    bench.file(CONFIGURED)
    assert states(bench)["github"] == "unread"
    assert readings(bench.want(pay=("github",))) == ["github"]
    (answer,) = answers(bench.read({"github": "v2"}))
    assert values(answer) == {"github": "v2"}


def test_a_reading_of_before_the_reload_says_nothing_after_it() -> None:
    """It is of a place where the secret no longer is; who waits for it waits for the new one."""
    bench = Bench()
    bench.want(pay=("github",))
    (old,) = bench.state.reading
    bench.reload("orders")
    bench.file(Configured({"github": credential("github", "ELSEWHERE")}))
    assert old not in bench.state.reading
    (answer,) = answers(bench.read({"github": "v2"}))
    assert values(answer) == {"github": "v2"}


def test_a_deployment_that_was_never_given_anything_is_told_of_the_sources_and_answers() -> None:
    """It may be held: then the operator who named it is told so."""
    bench = Bench()
    bench.reload("stock")
    (supply,) = supplies(bench.file(CONFIGURED))
    assert supply.supervisor is bench.ref("stock")
    assert supply.sources is not None
    (done,) = replies(bench.answer(Refused("held", "it is held: after drain")))
    assert done.delivered == (Delivered(deployment="stock", state="refused", why="it is held: after drain"),)


def test_after_a_reload_whoever_was_denied_is_told_to_ask_again() -> None:
    """An operator who has listed what was missing sends the mail again at once, not half a minute later."""
    bench = Bench(NOTHING)
    (denied,) = answers(bench.want(pay=("github",)))
    assert isinstance(denied, NotAssembled)
    bench.reload("orders")
    effects = bench.file(CONFIGURED)
    effects += bench.read({"github": "v1"})
    assert Tell(bench.ref("orders"), AskAgain()) in effects


def test_a_second_reload_is_told_to_come_back() -> None:
    """One at a time: of two files only one can hold."""
    bench = Bench()
    bench.reload("orders", token=1)
    (later,) = replies(bench.reload("orders", token=2))
    assert isinstance(later, NotNow)


def test_whoever_reloads_is_answered_although_a_command_hangs_and_a_supervisor_is_silent() -> None:
    """With what there is; the rest follows by itself."""
    bench = Bench()
    bench.want(pay=("github", "db"))
    bench.read({"github": "v1", "db": "d1"})
    bench.reload("orders")
    bench.file(CONFIGURED)
    bench.read({"github": "v2"})
    assert replies(bench.wake(PATIENCE)) == []
    (done,) = replies(bench.wake(SHORT))
    assert isinstance(done, Reloaded)
    assert done.delivered == (Delivered(deployment="orders", state="refused", why="it hasn't answered yet"),)
    (supply,) = supplies(bench.read({"db": "d2"}))
    assert values(supply) == {"github": "v2", "db": "d2"}


def test_a_file_that_cant_be_read_in_time_is_told_too() -> None:
    """A disk that hangs must not take the operator's shell with it."""
    bench = Bench()
    bench.reload("orders")
    (late,) = replies(bench.wake(PATIENCE))
    assert isinstance(late, NotNow)
    assert bench.file(CONFIGURED) == []


# --- trying --------------------------------------------------------------------------------------------------------


def test_trying_reads_all_and_keeps_nothing() -> None:
    """Whoever only wants to know whether it works must not rotate anything."""
    bench = Bench()
    bench.want(pay=("github",))
    bench.read({"github": "v1"})
    bench.take(Asked(5, TryCredentials()))
    effects = bench.read({"github": "v2", "db": Failed("no DB")})
    (found,) = replies(effects)
    assert {each.handle: (each.state, each.why) for each in found.credentials} == {
        "github": ("ok", ""),
        "db": ("failing", "no DB"),
    }
    assert supplies(effects) == []
    (answer,) = answers(bench.want(pay=("github",)))
    assert values(answer) == {"github": "v1"}
    assert states(bench)["db"] == "unread"


def test_trying_where_there_is_nothing_is_answered_and_one_that_hangs_is_named() -> None:
    """In time, either way."""
    (nothing,) = replies(Bench(NOTHING).take(Asked(5, TryCredentials())))
    assert nothing.credentials == ()
    bench = Bench()
    bench.take(Asked(5, TryCredentials()))
    bench.read({"github": "v1"})
    (found,) = replies(bench.wake(PATIENCE))
    assert {each.handle: each.why for each in found.credentials} == {"github": "", "db": "it is still being read"}
    assert replies(bench.read({"db": "late"})) == []


def test_no_repr_of_the_keeper_shows_a_value() -> None:
    """It stands in tracebacks and logs of ours, should something fail."""
    bench = Bench(parse(b"[credentials.a]\nenv='A'\n", "x"))
    bench.want(pay=("a",))
    bench.read({"a": "hunter2hunter2"})
    bench.reload("orders")
    shown = repr((bench.state, bench.effects))
    assert "hunter2" not in shown

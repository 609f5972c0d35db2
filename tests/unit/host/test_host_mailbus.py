"""The door's answer is what is durable; the way out forgets nobody; the spool loses nothing."""

from pathlib import Path
from typing import cast

import pytest

from actors.messages import Woken
from substrate.messages import Accepted, Done, Enqueue, Outcome, Ref, Refused, Result, Withheld
from waypost.acting import WakeAt
from waypost.host.answers.records import MailTaken
from waypost.host.errors import HostError, MalformedMail, NoSuchAddress, NotNow, RefusedByRule
from waypost.host.mail import maildir
from waypost.host.mail.bus_logic import advance
from waypost.host.mail.bus_states import (
    Complain,
    Discard,
    Hand,
    LookIntoSpools,
    SetAside,
    Shelve,
    State,
    Unrouted,
)
from waypost.host.mail.spool import Spooled
from waypost.host.messages import BusMessage, Carried, Carry, Deliver, Reroute, Route, Routes, Shelved, SpoolFound
from waypost.model.ids import CallId, Deployment, RunId, message_key
from waypost.model.limits import Limits
from waypost.model.queue import Outgoing
from waypost.model.times import Now
from waypost.shell import Asked, Reply, Tell

NOW = Now(wall=1_000_000, mono=50.0)
RUN = RunId("run_1_0000000000000000")
RAW = b"From: ann@example.com\r\nSubject: x\r\n\r\nhello\r\n"
FIRST, SECOND, ANEW, COURIER = (cast(Ref, name) for name in ("first", "second", "anew", "courier"))
EXPENSES, ORDERS = Route(Deployment("expenses"), FIRST), Route(Deployment("orders"), SECOND)
ROUTES = Routes({"expenses@example.com": EXPENSES, "orders@example.com": ORDERS})
SPOOLED = Spooled("expenses", Path("/spool/new/1"))
POLL = WakeAt(Woken(0), mono=NOW.mono + Limits().spool_poll)


def after(*messages: BusMessage) -> list[object]:
    """Every effect of these messages, after the routes were told, and the first look has found nothing."""
    bus: State = advance(advance(Unrouted(Limits()), ROUTES, NOW).state, SpoolFound(()), NOW).state
    effects: list[object] = []
    for message in messages:
        following = advance(bus, message, NOW)
        bus = following.state
        effects += following.effects
    return effects


def knock(address: str = "expenses@example.com", raw: bytes = RAW) -> Asked:
    return Asked(7, Deliver(address, raw))


def answered(*messages: BusMessage) -> object:
    """What the one who knocked is answered."""
    reply = after(*messages)[-1]
    assert isinstance(reply, Reply)
    assert reply.token == 7
    return reply.value


@pytest.mark.parametrize("address", ["expenses@example.com", "expenses@EXAMPLE.com"])
def test_a_mail_goes_to_the_deployment_with_its_address(address: str) -> None:
    """Domains have no case; local parts are their owner's business."""
    assert after(knock(address)) == [Hand(FIRST, Enqueue(RAW), 1)]


def test_who_knocks_while_the_host_starts_waits_a_moment() -> None:
    """An address that isn't known yet must not be called nobody's."""
    early = advance(Unrouted(Limits()), knock(), NOW)
    assert early.effects == ()
    routed = advance(early.state, ROUTES, NOW)
    assert routed.effects == (LookIntoSpools((EXPENSES.name, ORDERS.name)),)
    assert Hand(FIRST, Enqueue(RAW), 1) in advance(routed.state, SpoolFound(()), NOW).effects


def test_what_was_left_while_no_host_ran_goes_ahead_of_what_comes_by_the_socket() -> None:
    """Whoever has sent two mails, one before the host's start and one after it, sees them in that order."""
    looking = advance(Unrouted(Limits()), ROUTES, NOW)
    waits = advance(looking.state, knock(), NOW)
    assert waits.effects == ()
    found = advance(waits.state, SpoolFound(((SPOOLED, RAW + b"left"),)), NOW)
    assert found.effects == (Hand(FIRST, Enqueue(RAW + b"left"), 1), Hand(FIRST, Enqueue(RAW), 2))


def test_while_the_first_look_is_under_way_deployments_come_and_go() -> None:
    """What is found afterwards goes where its deployment is by then."""
    looking = advance(Unrouted(Limits()), ROUTES, NOW)
    moved = advance(looking.state, Reroute("expenses@example.com", Route(EXPENSES.name, ANEW)), NOW)
    found = advance(moved.state, SpoolFound(((SPOOLED, RAW),)), NOW)
    assert found.effects == (Hand(ANEW, Enqueue(RAW), 1),)


@pytest.mark.parametrize("address", ["nobody@example.com", "Expenses@example.com", "no address", "", "a@b\r\nc: d"])
def test_an_address_that_nobody_has_is_refused_with_those_that_exist(address: str) -> None:
    """The sender can correct it at once."""
    value = answered(knock(address))
    assert isinstance(value, NoSuchAddress)
    assert value.known == ("expenses@example.com", "orders@example.com")


@pytest.mark.parametrize("raw", [b"", b"hello", b"x" * (Limits().mail + 1)])
def test_what_is_no_mail_is_refused_at_the_door(raw: bytes) -> None:
    """Nothing of it reaches a repository."""
    assert isinstance(answered(knock(raw=raw)), MalformedMail)


@pytest.mark.parametrize(
    ("result", "answer"),
    [
        (Refused("malformed", "no"), MalformedMail),
        (Refused("queue-full", "no"), RefusedByRule),
        (Withheld("the disk is full"), NotNow),
    ],
)
def test_what_is_not_durable_is_not_accepted(result: Result, answer: type[HostError]) -> None:
    """The sender keeps the mail and tries again, or is told why that is no use."""
    assert isinstance(answered(knock(), Outcome(1, result)), answer)


@pytest.mark.parametrize("outcome", ["enqueued", "already-present"])
def test_accepted_names_run_and_place(outcome: str) -> None:
    """A redelivery is accepted, too: the mail is there."""
    done = Done(3, Accepted(outcome, RUN, 12))
    assert answered(knock(), Outcome(1, done)) == MailTaken(
        deployment="expenses", outcome=outcome, run=RUN, arrival=12, place="inbox"
    )


def test_a_sender_whose_deployment_is_made_anew_is_told_to_try_again() -> None:
    """The answer was lost with the supervisor; nobody may wait for it for ever."""
    anew = Routes({**ROUTES.by_address, "expenses@example.com": Route(EXPENSES.name, ANEW)})
    assert isinstance(answered(knock(), anew), NotNow)
    assert after(knock(), ROUTES) == [Hand(FIRST, Enqueue(RAW), 1)]


def carry(*to: str, again: bool = False) -> Carry:
    outgoing = Outgoing(ordinal=4, run=RUN, call=CallId("r1#1"), message_id="<m@w>", to=to, sha256="")
    return Carry(deployment=Deployment("expenses"), outgoing=outgoing, message=RAW, courier=COURIER, again=again)


def test_mail_for_the_world_goes_to_the_maildir() -> None:
    """Under the key of its Message-ID, so that a repeat finds it."""
    shelve = Shelve(2, message_key(b"<m@w>"), RAW, again=False)
    assert after(carry("boss@example.com"), Shelved(2)) == [shelve, Tell(COURIER, Carried(4))]
    assert after(carry("boss@example.com"), Shelved(2, "disk full"))[-1] == Tell(COURIER, Carried(4, "disk full"))


def test_mail_for_a_deployment_of_this_host_is_enqueued_there_first() -> None:
    """Only when it is durable there does it count as sent here."""
    hand = Hand(SECOND, Enqueue(RAW), 2)
    done = Done(1, Accepted("enqueued", RUN, 1))
    assert after(carry("orders@example.com"), Outcome(2, done)) == [hand, Tell(COURIER, Carried(4))]
    assert after(carry("orders@example.com"), Outcome(2, Withheld("full")))[-1] == Tell(
        COURIER, Carried(4, "full", blocked=ORDERS.name)
    )
    refused = Outcome(2, Refused("malformed", "too large"))
    assert after(carry("orders@example.com"), refused)[-1] == Tell(
        COURIER, Carried(4, "too large", final=True, blocked=ORDERS.name)
    )


def test_a_mail_to_several_is_done_when_all_have_it() -> None:
    """One refusal for good beside one passing failure is tried again: all recognise what they have."""
    both = carry("orders@example.com", "boss@example.com", "orders@EXAMPLE.com")
    done = Outcome(2, Done(1, Accepted("enqueued", RUN, 1)))
    assert after(both, done) == [Hand(SECOND, Enqueue(RAW), 2), Shelve(3, message_key(b"<m@w>"), RAW, again=False)]
    assert after(both, done, Shelved(3))[-1] == Tell(COURIER, Carried(4))
    refused = Outcome(2, Refused("malformed", "no"))
    assert after(both, refused, Shelved(3))[-1] == Tell(COURIER, Carried(4, "no", final=True, blocked=ORDERS.name))
    assert after(both, refused, Shelved(3, "full"))[-1] == Tell(COURIER, Carried(4, "no; full", blocked=ORDERS.name))
    assert after(both, Shelved(3, "full"), refused)[-1] == Tell(COURIER, Carried(4, "full; no", blocked=ORDERS.name))


def test_the_first_look_into_the_spools_is_at_once() -> None:
    """What was sent while no host ran has waited long enough."""
    assert advance(Unrouted(Limits()), ROUTES, NOW).effects == (LookIntoSpools((EXPENSES.name, ORDERS.name)),)
    assert after(Woken(0)) == [LookIntoSpools((EXPENSES.name, ORDERS.name))]


def test_a_spooled_mail_is_removed_only_when_it_is_enqueued() -> None:
    """And the spool is not looked into while one is on its way: it would be found twice."""
    found = SpoolFound(((SPOOLED, RAW),))
    assert after(found) == [Hand(FIRST, Enqueue(RAW), 1)]
    done = Outcome(1, Done(1, Accepted("enqueued", RUN, 1)))
    assert after(found, done)[1:] == [Discard(SPOOLED), POLL]
    assert after(found, Outcome(1, Withheld("full")))[1:] == [POLL]
    assert after(found, Outcome(1, Refused("x", "never")))[1:] == [SetAside(SPOOLED, "never"), POLL]
    anew = Routes({"expenses@example.com": Route(EXPENSES.name, ANEW)})
    assert after(found, anew)[1:] == [POLL]


def test_a_spooled_file_that_is_no_mail_is_set_aside() -> None:
    """It is kept, and holds nothing up."""
    effects = after(SpoolFound(((SPOOLED, b""), (Spooled("gone", Path("/x")), RAW))))
    assert isinstance(effects[0], SetAside)
    assert effects[1:] == [POLL]


def test_what_cannot_be_read_is_said_once_and_not_at_every_look() -> None:
    """The log of a host that runs for months is for what happens, not for one file's permissions."""
    bad, worse = "/spool/new/1: Permission denied", "/spool/new/2: Permission denied"
    looks = (SpoolFound((), (bad,)), SpoolFound((), (bad,)), SpoolFound((), (bad, worse)))
    said = [effect for effect in after(*looks) if isinstance(effect, Complain)]
    assert said == [Complain(bad), Complain(worse)]
    mended = [effect for effect in after(*looks, SpoolFound(()), looks[0]) if isinstance(effect, Complain)]
    assert mended == [Complain(bad), Complain(worse), Complain(bad)]


@pytest.fixture
def out(tmp_path: Path) -> Path:
    for folder in ("tmp", "new", "cur"):
        (tmp_path / folder).mkdir()
    return tmp_path


def test_a_repeated_delivery_leaves_one_file(out: Path) -> None:
    """A host that died before it recorded the delivery makes it again."""
    assert maildir.deliver(out, "key", b"mail", again=False)
    assert not maildir.deliver(out, "key", b"mail", again=True)
    (out / "new" / "key").rename(out / "cur" / "key:2,S")
    assert not maildir.deliver(out, "key", b"mail", again=True)
    assert [p.name for p in out.rglob("*") if p.is_file()] == ["key:2,S"]


def test_a_failed_delivery_leaves_nothing(out: Path) -> None:
    """Half a mail in new/ would be read."""
    (out / "new").rmdir()
    (out / "new").touch()
    with pytest.raises(NotADirectoryError):
        maildir.deliver(out, "key", b"mail", again=False)
    assert [p.name for p in out.rglob("*") if p.is_file()] == ["new"]

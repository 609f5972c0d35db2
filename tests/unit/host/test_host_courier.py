"""An outbox is emptied without a mail that was never durable and without one that is forgotten."""

from typing import cast

import pytest

from actors.messages import Woken
from substrate.messages import (
    Committed,
    Done,
    Durable,
    Fact,
    MailDelivered,
    MailUndeliverable,
    OutboxAdded,
    OutboxRemoved,
    Outcome,
    Ref,
    Refused,
    Snapshot,
    Withheld,
)
from waypost.acting import WakeAt
from waypost.host.mail.courier_logic import (
    Deferred,
    Idle,
    OnTheWay,
    Record,
    Recording,
    State,
    TakeOut,
    Tidings,
    Warn,
    Working,
    advance,
)
from waypost.host.mail.stuck import Stuck
from waypost.host.messages import Carried, CourierMessage, Serve
from waypost.model.ids import CallId, Deployment, Generation, RunId
from waypost.model.limits import Limits
from waypost.model.queue import Outgoing
from waypost.model.times import Now

NOW = Now(wall=1_000_000, mono=50.0)
SUPERVISOR, BUS, OTHER = (cast(Ref, name) for name in ("supervisor", "bus", "another bus"))


def mail(ordinal: int) -> OutboxAdded:
    outgoing = Outgoing(
        ordinal=ordinal,
        run=RunId("run_1_0000000000000000"),
        call=CallId("r1#1"),
        message_id=f"<{ordinal}@w>",
        to=("a@b",),
        sha256="",
    )
    return OutboxAdded(outgoing, b"raw")


def snapshot(*outbox: OutboxAdded) -> Snapshot:
    return Snapshot(position=9, repository="r", generation=Generation(1), runs=(), queue=(), outbox=outbox)


def committed(position: int, *facts: Fact) -> Committed:
    return Committed(position, position, facts)


def after(*messages: CourierMessage) -> tuple[State, list[object]]:
    """The state after these messages, and every effect on the way."""
    state: State = Idle(Limits())
    effects: list[object] = []
    for message in messages:
        following = advance(state, message, NOW)
        state = following.state
        effects += following.effects
    return state, effects


SERVED = (Serve(SUPERVISOR, BUS), snapshot())


def test_a_mail_leaves_when_it_is_durable_and_not_before() -> None:
    """A power cut may take a visible mail back; nobody outside may have seen it then."""
    _, early = after(*SERVED, committed(10, mail(1)), Durable(9))
    assert early == []
    _, effects = after(*SERVED, committed(10, mail(1)), Durable(10))
    assert effects == [TakeOut(BUS, mail(1), again=False)]


def test_an_outbox_found_at_the_start_goes_out_as_a_repeat() -> None:
    """An earlier host may have died between handing it over and recording that."""
    _, effects = after(Serve(SUPERVISOR, BUS), snapshot(mail(1), mail(2)))
    assert effects == [TakeOut(BUS, mail(1), again=True), TakeOut(BUS, mail(2), again=True)]


SENT = (*SERVED, committed(10, mail(1)), Durable(10))


@pytest.mark.parametrize(
    ("messages", "effect"),
    [
        ((Carried(1),), Record(SUPERVISOR, MailDelivered(1))),
        ((Carried(1, "no such user", final=True),), Record(SUPERVISOR, MailUndeliverable(1, "no such user"))),
        ((Carried(1, "disk full"),), WakeAt(Woken(1), mono=51.0)),
        ((Carried(1, "disk full"), Woken(1)), TakeOut(BUS, mail(1), again=True)),
        ((Carried(1, "x"), Woken(1), Carried(1, "x")), WakeAt(Woken(1), mono=52.0)),
        ((Carried(1), Outcome(1, Withheld("disk full"))), WakeAt(Woken(1), mono=51.0)),
        ((Serve(SUPERVISOR, OTHER),), TakeOut(OTHER, mail(1), again=True)),
    ],
)
def test_each_answer_has_its_consequence(messages: tuple[CourierMessage, ...], effect: object) -> None:
    """Arrived is recorded, refused for good is recorded, everything else is tried again."""
    _, effects = after(*SENT, *messages)
    assert effects[-1] == effect


@pytest.mark.parametrize("result", [Done(11), Refused("outbox", "no such entry")])
def test_a_recorded_mail_is_forgotten(result: Done | Refused) -> None:
    """What the repository says is the truth, also when it says that there is no such entry any more."""
    state, _ = after(*SENT, Carried(1), Outcome(1, result))
    assert isinstance(state, Working)
    assert state.parcels == {}


def test_an_entry_that_is_removed_is_not_sent_again() -> None:
    """The removal is in the log; whatever was under way for it has no one to tell."""
    state, effects = after(*SENT, committed(11, OutboxRemoved(1)), Carried(1), Woken(1), Outcome(1, Done(3)))
    assert isinstance(state, Working)
    assert (state.parcels, effects) == ({}, [TakeOut(BUS, mail(1), again=False)])


def test_late_news_changes_nothing() -> None:
    """An answer to an attempt that was repeated, a wake-up that is no longer needed."""
    state, effects = after(*SENT, Woken(1), Outcome(1, Done(3)))
    assert isinstance(state, Working)
    assert isinstance(state.parcels[1], OnTheWay)
    assert len(effects) == 1
    state, _ = after(*SENT, Carried(1), Carried(1, "late"))
    assert isinstance(state, Working)
    assert isinstance(state.parcels[1], Recording)


def test_a_deferred_mail_does_not_hold_the_next() -> None:
    """One address that is unreachable is no reason for silence."""
    state, effects = after(*SENT, Carried(1, "x"), committed(11, mail(2)), Durable(11), Carried(2))
    assert isinstance(state, Working)
    assert isinstance(state.parcels[1], Deferred)
    assert effects[-1] == Record(SUPERVISOR, MailDelivered(2))


def test_a_mail_that_cant_leave_is_told_of_once() -> None:
    """Whoever waits for it can't know; the host's log says what to see to, and not once a minute."""
    _, effects = after(*SENT, Carried(1, "disk full"), Woken(1), Carried(1, "disk full"), Woken(1), Carried(1))
    assert [effect for effect in effects if isinstance(effect, Warn)] == [Warn(1, "disk full")]
    _, withheld = after(*SENT, Carried(1), Outcome(1, Withheld("it is made anew")))
    assert not [effect for effect in withheld if isinstance(effect, Warn)], "it has left"


def stuck(ordinal: int, why: str, *, since: int = NOW.wall, pause: int, blocked: Deployment | None = None) -> Tidings:
    """What the root is told."""
    return Tidings(Stuck(ordinal=ordinal, to=("a@b",), why=why, since=since, until=NOW.wall + pause, blocked=blocked))


def test_the_root_knows_which_mail_cannot_leave_since_when_and_when_it_is_tried_again() -> None:
    """So that `why` has it: nobody who waits for a mail looks into a log of the host's for it."""
    sent = (Serve(SUPERVISOR, BUS), snapshot(mail(1), mail(2)), Durable(9))
    failing = (Carried(1, "disk full"), Carried(2, "no place"), Woken(1), Carried(1, "disk is full"))
    _, effects = after(*sent, *failing)
    told = [effect for effect in effects if isinstance(effect, Tidings)]
    assert told == [stuck(1, "disk full", pause=1000), stuck(1, "disk is full", pause=2000)]
    _, effects = after(*sent, *failing, Woken(1), Carried(1), Outcome(1, Done(9)))
    assert [effect for effect in effects if isinstance(effect, Tidings)][2:] == [stuck(2, "no place", pause=1000)]
    _, effects = after(*sent, *failing, committed(10, OutboxRemoved(1)), committed(11, OutboxRemoved(2)))
    assert [effect for effect in effects if isinstance(effect, Tidings)][2:] == [
        stuck(2, "no place", pause=1000),
        Tidings(None),
    ]


def test_a_mail_that_is_tried_again_says_since_when_it_fails() -> None:
    """Since the first time, and not since the last one."""
    state, _ = after(*SENT, Carried(1, "disk full"), Woken(1))
    later = Now(wall=NOW.wall + 1000, mono=NOW.mono + 1)
    effects = advance(state, Carried(1, "disk full", blocked=Deployment("orders")), later).effects
    assert stuck(1, "disk full", pause=3000, blocked=Deployment("orders")) in effects


def test_pauses_grow_up_to_their_cap() -> None:
    """A full disk isn't asked a thousand times."""
    state: State = after(*SENT)[0]
    pauses = []
    for _ in range(10):
        following = advance(state, Carried(1, "x"), NOW)
        *_, wake = following.effects
        assert isinstance(wake, WakeAt)
        assert wake.mono is not None
        pauses.append(wake.mono - NOW.mono)
        state = advance(following.state, Woken(1), NOW).state
    assert pauses[:4] == [1, 2, 4, 8]
    assert pauses[-1] == Limits().retry_cap


def test_nothing_is_taken_before_it_knows_whom_it_serves() -> None:
    """A stream can only come from a supervisor that it was introduced to."""
    assert after(snapshot(mail(1)), Durable(9)) == (Idle(Limits()), [])

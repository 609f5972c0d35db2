"""What a courier decides: when each mail of one deployment's outbox goes out, and what is recorded of it.

A mail leaves when its outbox entry is durable, never before; MailDelivered is asked for when it has arrived. Both may
be repeated after any crash: whoever receives it recognises the mail by its Message-ID. Each mail goes its own way, so
one that is deferred doesn't hold the next.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias, assert_never

from actors.messages import Woken
from substrate.messages import (
    Committed,
    Done,
    Durable,
    MailDelivered,
    MailUndeliverable,
    OutboxAdded,
    OutboxRemoved,
    Outcome,
    Refused,
    Snapshot,
    Withheld,
)
from waypost.acting import Next, Ref, WakeAt
from waypost.host.mail.stuck import Stuck
from waypost.host.messages import Carried, CourierMessage, Serve
from waypost.model.ids import Deployment
from waypost.model.limits import Limits
from waypost.model.times import Now

# --- effects -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class TakeOut:
    """Give the mail to the bus."""

    bus: Ref
    mail: OutboxAdded
    again: bool


@dataclass(frozen=True, slots=True)
class Record:
    """Have its fate recorded; the Outcome has the ordinal as its correlation."""

    supervisor: Ref
    operation: MailDelivered | MailUndeliverable


@dataclass(frozen=True, slots=True)
class Tidings:
    """Tell the root which mail can't leave, the oldest one; None: all go out."""

    stuck: Stuck | None


@dataclass(frozen=True, slots=True)
class Warn:
    """Tell whoever keeps the host that a mail doesn't get out, once for each mail."""

    ordinal: int
    why: str


# --- states of one mail --------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Visible:
    """Committed, not durable yet: it may still come to nothing."""

    mail: OutboxAdded
    position: int


@dataclass(frozen=True, slots=True)
class OnTheWay:
    """The bus has it."""

    mail: OutboxAdded
    failures: int
    stuck: Stuck | None = None
    """How it failed last, where it did."""


@dataclass(frozen=True, slots=True)
class Deferred:
    """It goes out again when the clock says so."""

    mail: OutboxAdded
    failures: int
    stuck: Stuck


@dataclass(frozen=True, slots=True)
class Recording:
    """Its fate is known and being recorded."""

    mail: OutboxAdded
    failures: int
    stuck: Stuck | None = None


Parcel: TypeAlias = Visible | OnTheWay | Deferred | Recording


@dataclass(frozen=True, slots=True)
class Idle:
    """Not told yet whom it serves."""

    limits: Limits


@dataclass(frozen=True, slots=True)
class Working:
    """``parcels`` by ordinal, in the order in which they came."""

    limits: Limits
    supervisor: Ref
    bus: Ref
    parcels: Mapping[int, Parcel] = field(default_factory=dict)
    told: Stuck | None = None
    """What the root knows."""


State: TypeAlias = Idle | Working


def advance(state: State, message: CourierMessage, now: Now) -> Next[State]:
    """One message."""
    match state:
        case Idle():
            # The supervisor subscribes it after it was told whom it serves; anything earlier is another's.
            return Next(Working(state.limits, message.supervisor, message.bus) if isinstance(message, Serve) else state)
        case Working():
            following = _working(state, message, now)
            assert isinstance(following.state, Working)
            return _told(following.state, following.effects)
        case _:
            assert_never(state)


def _told(state: Working, effects: tuple[object, ...]) -> Next[State]:
    """The root hears of the oldest mail that can't leave, when that is another one or has failed again."""
    known = state.told
    if known is None or _trouble(state, known.ordinal) != known:
        stuck = next(filter(None, (_trouble(state, ordinal) for ordinal in state.parcels)), None)
        if stuck != known:
            return Next(replace(state, told=stuck), (Tidings(stuck), *effects))
    return Next(state, effects)


def _trouble(state: Working, ordinal: int) -> Stuck | None:
    parcel = state.parcels.get(ordinal)
    return None if parcel is None or isinstance(parcel, Visible) else parcel.stuck


def _working(state: Working, message: CourierMessage, now: Now) -> Next[State]:  # noqa: PLR0911 - one arm per message
    match message:
        case Serve():
            return _served(state, message)
        case Snapshot():
            fresh = replace(state, parcels={each.outgoing.ordinal: Visible(each, 0) for each in message.outbox})
            return _release(fresh, message.position, again=True)
        case Committed():
            return Next(replace(state, parcels=_changed(state.parcels, message)))
        case Durable():
            return _release(state, message.up_to, again=False)
        case Carried():
            return _carried(state, message, now)
        case Outcome():
            return _recorded(state, message, now)
        case Woken():
            return _again(state, message.token)
        case _:
            assert_never(message)


def _served(state: Working, message: Serve) -> Next[State]:
    """A new bus knows nothing of what the old one carried: all of that goes out again."""
    again = Working(state.limits, message.supervisor, message.bus, state.parcels)
    if message.bus == state.bus:
        return Next(again)
    return Next(
        again,
        tuple(TakeOut(message.bus, p.mail, again=True) for p in state.parcels.values() if isinstance(p, OnTheWay)),
    )


def _changed(parcels: Mapping[int, Parcel], message: Committed) -> Mapping[int, Parcel]:
    after = dict(parcels)
    for fact in message.facts:
        match fact:
            case OutboxAdded():
                after[fact.outgoing.ordinal] = Visible(fact, message.last)
            case OutboxRemoved():
                after.pop(fact.ordinal, None)
            case _:
                pass
    return after


def _release(state: Working, up_to: int, *, again: bool) -> Next[State]:
    due = {n: p.mail for n, p in state.parcels.items() if isinstance(p, Visible) and p.position <= up_to}
    if not due:
        return Next(state)
    parcels = {**state.parcels, **{n: OnTheWay(mail, 0) for n, mail in due.items()}}
    return Next(replace(state, parcels=parcels), tuple(TakeOut(state.bus, mail, again) for mail in due.values()))


def _carried(state: Working, message: Carried, now: Now) -> Next[State]:
    parcel = state.parcels.get(message.ordinal)
    if not isinstance(parcel, OnTheWay):
        return Next(state)  # an answer to an attempt that was repeated meanwhile
    if message.failure and not message.final:
        following = _defer(state, parcel, message.failure, message.blocked, now)
        warned = () if parcel.failures else (Warn(message.ordinal, message.failure),)
        return Next(following.state, (*warned, *following.effects))
    fate = MailUndeliverable(message.ordinal, message.failure) if message.failure else MailDelivered(message.ordinal)
    recording = Recording(parcel.mail, parcel.failures, parcel.stuck)
    return Next(_with(state, message.ordinal, recording), (Record(state.supervisor, fate),))


def _recorded(state: Working, message: Outcome, now: Now) -> Next[State]:
    parcel = state.parcels.get(message.correlation)
    if not isinstance(parcel, Recording):
        return Next(state)
    match message.result:
        case Done() | Refused():
            # Refused: the entry is gone already; what is in the repository is the truth.
            return Next(replace(state, parcels={n: p for n, p in state.parcels.items() if n != message.correlation}))
        case Withheld():
            return _defer(state, parcel, message.result.reason, None, now)
        case _:
            assert_never(message.result)


def _defer(state: Working, parcel: OnTheWay | Recording, why: str, blocked: Deployment | None, now: Now) -> Next[State]:
    limits, ordinal = state.limits, parcel.mail.outgoing.ordinal
    pause = min(limits.retry_cap, limits.retry_first * 2 ** min(parcel.failures, 16))
    stuck = Stuck(
        ordinal=ordinal,
        to=parcel.mail.outgoing.to,
        why=why,
        since=now.wall if parcel.stuck is None else parcel.stuck.since,
        until=now.wall + round(pause * 1000),
        blocked=blocked,
    )
    deferred = Deferred(parcel.mail, parcel.failures + 1, stuck)
    return Next(_with(state, ordinal, deferred), (WakeAt(Woken(ordinal), mono=now.mono + pause),))


def _again(state: Working, ordinal: int) -> Next[State]:
    parcel = state.parcels.get(ordinal)
    if not isinstance(parcel, Deferred):
        return Next(state)
    on_the_way = OnTheWay(parcel.mail, parcel.failures, parcel.stuck)
    return Next(_with(state, ordinal, on_the_way), (TakeOut(state.bus, parcel.mail, again=True),))


def _with(state: Working, ordinal: int, parcel: Parcel) -> Working:
    return replace(state, parcels={**state.parcels, ordinal: parcel})

"""What the mail bus decides: whose a mail is, what its sender is answered, and where outgoing mail goes.

An answer at the door says what is durable in the deployment's repository, never what is hoped for (storage §5). Mail
between two deployments of this host is enqueued at the one before it counts as sent at the other. What was left in the
spools while no host ran goes ahead of what comes by the socket of the next one, as far as its first look reads.
"""

from dataclasses import replace
from typing import assert_never

from actors.messages import Woken
from substrate.messages import Accepted, Done, Enqueue, Outcome, Refused, Result, Withheld
from waypost.acting import Asked, Next, Reply, Tell, WakeAt
from waypost.host.answers.records import MailTaken
from waypost.host.errors import HostError, MalformedMail, NoSuchAddress, NotNow, RefusedByRule
from waypost.host.mail.bus_states import (
    AtTheDoor,
    Bus,
    Complain,
    Discard,
    FromSpool,
    GiveBack,
    Hand,
    Leg,
    Letter,
    Looking,
    LookIntoSpools,
    Open,
    SetAside,
    Shelve,
    State,
    Unrouted,
    Wake,
)
from waypost.host.mail.spool import Spooled
from waypost.host.messages import (
    BusMessage,
    Carried,
    Carry,
    Deliver,
    Reroute,
    Route,
    Routes,
    Shelved,
    SpoolFound,
    WorkerBroke,
)
from waypost.model.ids import Deployment, message_key
from waypost.model.mail import BadAddress, address, malformed
from waypost.model.queue import Outgoing
from waypost.model.times import Now

KEPT = 256
"""Mails that wait for one deployment to be awake; what comes after them is withheld."""


def advance(state: State, message: BusMessage, now: Now) -> Next[State]:
    """One message."""
    match state:
        case Unrouted():
            return _unrouted(state, message)
        case Looking():
            return _looking(state, message, now)
        case Bus():
            following = _routed(state, message, now)
            return Next(following.state, following.effects)
        case _:
            assert_never(state)


def _unrouted(state: Unrouted, message: BusMessage) -> Next[State]:
    match message:
        case Asked():
            return Next(replace(state, early=(*state.early, message)))
        case Routes():
            bus = Bus(state.limits, dict(message.by_address))
            # The first look is at once: what was sent while no host ran has waited long enough.
            return Next(Looking(bus, state.early), (_look(bus),))
        case _:
            return Next(state)  # nothing else can be meant for a bus that has done nothing yet


def _looking(state: Looking, message: BusMessage, now: Now) -> Next[State]:
    if isinstance(message, Asked):
        return Next(replace(state, early=(*state.early, message)))
    routed = _routed(state.bus, message, now)
    if not isinstance(message, SpoolFound):
        return Next(replace(state, bus=routed.state), routed.effects)
    bus, effects = routed.state, routed.effects
    for asked in state.early:
        following = _asked(bus, asked)
        bus, effects = following.state, (*effects, *following.effects)
    return Next(bus, effects)


def _routed(bus: Bus, message: BusMessage, now: Now) -> Next[Bus]:  # noqa: PLR0911 - one arm per message
    match message:
        case Asked():
            return _asked(bus, message)
        case Routes():
            return _rerouted(bus, message, now)
        case Reroute():
            return _moved(bus, message)
        case Carry():
            return _carry(bus, message)
        case Outcome():
            return _answered(bus, message.correlation, message.result, now)
        case Shelved():
            return _leg_done(bus, message.correlation, message.failure, final=False)
        case SpoolFound():
            return _spooled(bus, message, now)
        case WorkerBroke():
            raise RuntimeError(message.reason)
        case Woken():
            return Next(bus, (_look(bus),))
        case _:
            assert_never(message)


def where(bus: Bus, text: str) -> Route | None:
    """The route of an address as people write it; None for one that nobody here has."""
    try:
        return bus.routes.get(address(text))
    except BadAddress:
        return None


def _rerouted(bus: Bus, message: Routes, now: Now) -> Next[Bus]:
    after = replace(bus, routes=dict(message.by_address))
    by_name = {route.name: route for route in message.by_address.values()}
    there = frozenset(message.by_address.values())
    kept = {number for several in bus.kept.values() for number, _ in several}
    effects: tuple[object, ...] = ()
    for correlation, waiting in bus.open.items():
        route = waiting.route
        if route is None or route in there or (correlation in kept and route.name in by_name):
            continue
        # Its supervisor has gone and took the answer along.
        lost = _answered(after, correlation, Withheld("the deployment was made anew meanwhile"), now)
        after, effects = lost.state, (*effects, *lost.effects)
    after = replace(after, kept={name: several for name, several in after.kept.items() if name in by_name})
    for name in tuple(after.kept):
        handed = _handed(after, by_name[name])
        after, effects = handed.state, (*effects, *handed.effects)
    return Next(after, effects)


def _moved(bus: Bus, message: Reroute) -> Next[Bus]:
    """The routes have changed; mail that was handed to a supervisor stays with its deployment, asleep or awake."""
    handed = _handed(replace(bus, routes={**bus.routes, message.address: message.route}), message.route)
    behind = () if message.behind is None else (message.behind,)
    return Next(handed.state, (*handed.effects, *behind))


def _handed(bus: Bus, route: Route) -> Next[Bus]:
    """What is under way to this deployment has another route; and what was kept for it goes there, in order."""
    waiting = {
        number: replace(each, route=route) if each.route is not None and each.route.name == route.name else each
        for number, each in bus.open.items()
    }
    if route.supervisor is None:
        return Next(replace(bus, open=waiting))
    hands = tuple(Hand(route.supervisor, what, number) for number, what in bus.kept.get(route.name, ()))
    kept = {name: several for name, several in bus.kept.items() if name != route.name}
    return Next(replace(bus, open=waiting, kept=kept), hands)


def _keep(bus: Bus, name: Deployment, number: int, what: Enqueue) -> Next[Bus]:
    """Keep a mail until the deployment that it is for is awake."""
    several = bus.kept.get(name, ())
    size = sum(len(each.raw) for every in bus.kept.values() for _, each in every)
    if len(several) >= KEPT or size + len(what.raw) > bus.limits.bodies:
        return Next(bus, (GiveBack(number),))
    return Next(replace(bus, kept={**bus.kept, name: (*several, (number, what))}), (Wake(name),))


# --- in ------------------------------------------------------------------------------------------------------------


def _asked(bus: Bus, message: Asked) -> Next[Bus]:
    if not isinstance(message.body, Deliver):
        raise TypeError(f"the mail bus has no answer to {message.body!r}")
    route = where(bus, message.body.address)
    if route is None:
        return Next(bus, (Reply(message.token, NoSuchAddress(message.body.address, tuple(sorted(bus.routes)))),))
    why = malformed(message.body.raw, limit=bus.limits.mail)
    if why is not None:
        return Next(bus, (Reply(message.token, MalformedMail(why)),))
    return _hand(bus, route, message.body.raw, AtTheDoor(message.token, route))


def _hand(bus: Bus, route: Route, raw: bytes, waiting: Open) -> Next[Bus]:
    number = bus.issued + 1
    after = replace(bus, issued=number, open={**bus.open, number: waiting})
    what = Enqueue(raw)
    if route.supervisor is None:
        return _keep(after, route.name, number, what)
    return Next(after, (Hand(route.supervisor, what, number),))


def _answered(bus: Bus, correlation: int, result: Result, now: Now) -> Next[Bus]:
    match bus.open.get(correlation):
        case None:
            return Next(bus)
        case AtTheDoor(token, route):
            return Next(_closed(bus, correlation), (Reply(token, _door_answer(route.name, result)),))
        case FromSpool(mail):
            return _spool_next(_closed(bus, correlation), _spool_answer(mail, result), now)
        case Leg():
            failure = "" if isinstance(result, Done) else result.reason if isinstance(result, Withheld) else result.why
            return _leg_done(bus, correlation, failure, final=isinstance(result, Refused))
        case other:
            assert_never(other)


def _door_answer(deployment: Deployment, result: Result) -> MailTaken | HostError:
    match result:
        case Done(value=Accepted() as accepted):
            return MailTaken(
                deployment=deployment,
                outcome=accepted.outcome,
                run=accepted.run,
                arrival=accepted.arrival,
                place=accepted.place,
            )
        case Done():
            raise TypeError(f"an enqueue was answered with {result.value!r}")
        case Refused("malformed"):
            return MalformedMail(result.why)
        case Refused():
            return RefusedByRule(result.code, result.why, result.hint)
        case Withheld():
            return NotNow(result.reason)
        case _:
            assert_never(result)


# --- spool ---------------------------------------------------------------------------------------------------------


def _look(bus: Bus) -> LookIntoSpools:
    return LookIntoSpools(tuple(sorted(route.name for route in bus.routes.values())))


def _spooled(bus: Bus, message: SpoolFound, now: Now) -> Next[Bus]:
    by_name = {route.name: route for route in bus.routes.values()}
    effects: list[object] = [Complain(fault) for fault in message.faults if fault not in bus.faults]
    bus = replace(bus, faults=frozenset(message.faults))
    for mail, raw in message.mails:
        why = malformed(raw, limit=bus.limits.mail)
        route = by_name.get(Deployment(mail.deployment))
        if why is not None:
            effects.append(SetAside(mail, why))
        elif route is not None:
            handed = _hand(bus, route, raw, FromSpool(mail, route))
            bus, effects = handed.state, [*effects, *handed.effects]
    return _spool_next(bus, tuple(effects), now)


def _spool_answer(mail: Spooled, result: Result) -> tuple[object, ...]:
    match result:
        case Done():
            return (Discard(mail),)
        case Refused():
            return (SetAside(mail, result.why),)
        case Withheld():
            return ()  # it lies where it is safe, and is found again
        case _:
            assert_never(result)


def _spool_next(bus: Bus, effects: tuple[object, ...], now: Now) -> Next[Bus]:
    """Look again in a while, but only when nothing found before is still on its way: it would be found twice."""
    if any(isinstance(waiting, FromSpool) for waiting in bus.open.values()):
        return Next(bus, effects)
    return Next(bus, (*effects, WakeAt(Woken(0), mono=now.mono + bus.limits.spool_poll)))


# --- out -----------------------------------------------------------------------------------------------------------


def _carry(bus: Bus, message: Carry) -> Next[Bus]:
    routes = [where(bus, to) for to in message.outgoing.to]
    local = {route.name: route for route in routes if route is not None}
    abroad = any(route is None for route in routes)
    number = bus.issued + 1
    letter = Letter(message.courier, message.outgoing.ordinal, len(local) + abroad)
    bus = replace(bus, issued=number, letters={**bus.letters, number: letter})
    effects: list[object] = []
    for route in local.values():
        handed = _hand(bus, route, message.message, Leg(number, route))
        bus, effects = handed.state, [*effects, *handed.effects]
    if abroad:
        leg = bus.issued + 1
        bus = replace(bus, issued=leg, open={**bus.open, leg: Leg(number, None)})
        effects.append(Shelve(leg, _key(message.outgoing), message.message, message.again))
    return Next(bus, tuple(effects))


def _key(outgoing: Outgoing) -> str:
    return message_key(outgoing.message_id.encode())


def _leg_done(bus: Bus, correlation: int, failure: str, *, final: bool) -> Next[Bus]:
    leg = bus.open.get(correlation)
    if not isinstance(leg, Leg):
        return Next(bus)
    bus = _closed(bus, correlation)
    letter = bus.letters[leg.letter]
    letter = replace(
        letter,
        legs=letter.legs - 1,
        failures=(*letter.failures, failure) if failure else letter.failures,
        # One leg that may still succeed is worth another try of all: each recognises what it has.
        final=final if failure and not letter.failures else letter.final and (final or not failure),
        blocked=leg.route.name if failure and leg.route and letter.blocked is None else letter.blocked,
    )
    if letter.legs:
        return Next(replace(bus, letters={**bus.letters, leg.letter: letter}))
    rest = {number: each for number, each in bus.letters.items() if number != leg.letter}
    carried = Carried(letter.ordinal, "; ".join(letter.failures), letter.final, letter.blocked)
    return Next(replace(bus, letters=rest), (Tell(letter.courier, carried),))


def _closed(bus: Bus, correlation: int) -> Bus:
    return replace(bus, open={number: each for number, each in bus.open.items() if number != correlation})

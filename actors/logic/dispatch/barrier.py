"""The barrier before each run's start and resume (storage §5): what the steps may do, and what they may read.

A child that comes up is told what is granted, with the hash that every ``run.start`` names. Then the keeper of
credentials is asked for what its steps may read, and the child gets what comes back; until then no run begins and none
is given to it, and mail stays in the inbox. So on its one channel come ``grants-updated``, ``credentials-updated``,
``run.start``, in this order, for every child, whatever the one before ended of. What an operator changes goes to a
running child as soon as that is durable, and the keeper is asked again.

Where a credential isn't to be had for the moment, all waits, and the keeper is asked again, later and later. Where it
isn't for good, a run that a mail begins fails in the commit that begins it, with the reason; one that has begun waits
for somebody to mend that, as nothing is lost by it.

Promise: no run is given to a child that doesn't hold what ``run.start`` names; none is kept back without the
supervisor knowing why.
"""

from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

from actors.credentials import Assembled, Barred, NotAssembled
from actors.effects import ToKeeper
from actors.logic.dispatch.card import Up, Waning
from actors.logic.dispatch.turn import Turn
from actors.messages import Woken
from ipc.messages import GrantsUpdated
from substrate.messages import InForce
from waypost.acting import WakeAt
from waypost.model.events import Fault
from waypost.model.grants import lacking, missing, readable
from waypost.model.ids import Generation

CREDENTIAL_MISSING = "CredentialMissing"
GRANTS_UNREADABLE = "GrantsUnreadable"
"""Types of the errors with which a run fails here."""
PATIENCE = 60.0
"""Seconds that the keeper has to answer; a command of an operator's has ten."""
SOON = 1.0
"""Seconds of them in which nobody need hear of it: what is kept already is there in none."""
READING = "the secrets that were granted are still being read"
UNANSWERED = f"who keeps credentials hasn't answered within {PATIENCE:g} s"


@dataclass(frozen=True, slots=True)
class Closed:
    """There is no child that takes runs; in every other state of the gate there is."""


@dataclass(frozen=True, slots=True)
class Assembling:
    """The keeper was asked; ``tries``: how often it failed before. ``token``: of the wake-up at which that is over."""

    correlation: int
    tries: int = 0
    token: int = 0


@dataclass(frozen=True, slots=True)
class Lingering:
    """The keeper hasn't answered soon, and the supervisor knows. The fields are those of Assembling."""

    correlation: int
    tries: int
    token: int


@dataclass(frozen=True, slots=True)
class Clear:
    """The child holds what is granted, and what its steps may read."""


@dataclass(frozen=True, slots=True)
class Deferred:
    """A credential isn't to be had now; ``token`` is that of the wake-up at which the keeper is asked again."""

    token: int
    tries: int
    why: str


@dataclass(frozen=True, slots=True)
class TurnedAway:
    """A credential isn't to be had: what a mail begins fails; the keeper is asked again for those that have begun."""

    token: int
    tries: int
    why: str


Gate: TypeAlias = Closed | Assembling | Lingering | Clear | Deferred | TurnedAway


@dataclass(frozen=True, slots=True, kw_only=True)
class Barrier:
    """What is granted, durably; what will be; and where the gate stands for the present child."""

    granted: InForce
    coming: tuple[int, InForce] | None = None
    """A change that is committed, and the position that must be durable before it holds here."""
    gate: Gate = Closed()
    told: Barred | None = None
    """What its supervisor was told of the present child."""


# --- what happens ---------------------------------------------------------------------------------------------------


def up(turn: Turn) -> None:
    """A child that takes runs is there."""
    _tell(turn)
    _assemble(turn)


def down(turn: Turn) -> None:
    """It has gone; its supervisor knows."""
    turn.barrier = replace(turn.barrier, gate=Closed(), told=None)


def changed(now: InForce, position: int, turn: Turn) -> None:
    """An operator's change was committed."""
    turn.barrier = replace(turn.barrier, coming=(position, now))


def durable(up_to: int, turn: Turn) -> None:
    """Whatever waited for this position holds."""
    coming = turn.barrier.coming
    if coming is None or coming[0] > up_to:
        return
    turn.barrier = replace(turn.barrier, granted=coming[1], coming=None)
    if not isinstance(turn.barrier.gate, Closed):
        _tell(turn)
        _assemble(turn)


def answered(message: Assembled | NotAssembled, turn: Turn) -> bool:
    """The keeper's answer; whether the gate moved. One to an earlier question is ignored."""
    gate = turn.barrier.gate
    if not isinstance(gate, Assembling | Lingering) or gate.correlation != message.correlation:
        return False
    match message:
        case Assembled():
            turn.send(message.credentials)
            if message.sources is not None:
                turn.send(message.sources)
            _stand(Clear(), turn)
        case NotAssembled():
            tries = gate.tries + 1
            token = _wake(tries, turn)
            made = Deferred if message.passing else TurnedAway
            _stand(made(token, tries, message.why), turn)
        case _:
            assert_never(message)
    return True


def again(turn: Turn) -> None:
    """The keeper has more than it had: whoever was denied asks at once, not when their pause is over."""
    gate = turn.barrier.gate
    if isinstance(gate, Deferred | TurnedAway):
        _assemble(turn, gate.tries)


def woken(token: int, turn: Turn) -> bool:
    """Whether this wake-up was for the gate."""
    match turn.barrier.gate:
        case Assembling(correlation, tries, mine) if mine == token:
            turn.counter += 1
            turn.effects.append(WakeAt(Woken(turn.counter), mono=turn.now.mono + PATIENCE - SOON))
            _stand(Lingering(correlation, tries, turn.counter), turn)
            return True
        case Lingering(correlation, token=mine) if mine == token:
            return answered(NotAssembled(correlation, passing=True, why=UNANSWERED), turn)
        case Deferred(mine, tries) | TurnedAway(mine, tries) if mine == token:
            _assemble(turn, tries)
            return True
        case _:
            return False


# --- what follows ---------------------------------------------------------------------------------------------------


def begins(turn: Turn) -> bool:
    """Whether a mail may begin a run now, be it only to fail."""
    return isinstance(turn.barrier.gate, Clear | TurnedAway)


def gives(turn: Turn) -> bool:
    """Whether a run may be given to the child."""
    return isinstance(turn.barrier.gate, Clear)


def turned_away(turn: Turn) -> Fault | None:
    """Why what begins now fails; None where it doesn't, or where the repository itself knows."""
    gate = turn.barrier.gate
    return Fault(type=CREDENTIAL_MISSING, message=gate.why) if isinstance(gate, TurnedAway) else None


def unreadable(turn: Turn) -> Fault | None:
    """Why a run that has begun can't go on, for good."""
    why = turn.barrier.granted.why_unreadable
    return Fault(type=GRANTS_UNREADABLE, message=f"what the steps may do can't be read: {why}") if why else None


def _tell(turn: Turn) -> None:
    granted = turn.barrier.granted
    turn.send(GrantsUpdated(grants=granted.raw, sha256=granted.sha256))


def _assemble(turn: Turn, tries: int = 0) -> None:
    """Ask the keeper; where there is none, nothing is to be had from it, and nothing is missing."""
    if not turn.setup.keeper:
        _stand(Clear(), turn)
        return
    correlation, token = turn.counter + 1, turn.counter + 2
    turn.counter = token
    turn.effects.append(ToKeeper(correlation, readable(turn.barrier.granted.taken, turn.setup.steps)))
    turn.effects.append(WakeAt(Woken(token), mono=turn.now.mono + SOON))
    _stand(Assembling(correlation, tries, token), turn)


def _stand(gate: Gate, turn: Turn) -> None:
    """Where the gate stands from now on; the supervisor is told why, whenever that is something else."""
    told = turn.barrier.told
    if isinstance(turn.child, Up | Waning) and not _as_it_was(gate, told):
        told = _news(gate, turn.child.generation, turn)
        if told != (turn.barrier.told or Barred(told.generation, "")):
            turn.tell_supervisor(told)
    turn.barrier = replace(turn.barrier, gate=gate, told=told)


def _as_it_was(gate: Gate, told: Barred | None) -> bool:
    """Whether what was told is the best that is known: until the keeper answers, but for what grants have mended."""
    match gate:
        case Assembling():
            return told is None or not (told.lacks or told.file)
        case Lingering(tries=tries):
            return tries > 0
        case _:
            return False


def _news(gate: Gate, generation: Generation, turn: Turn) -> Barred:
    since = turn.now.wall
    if isinstance(gate, Deferred | TurnedAway):
        return Barred(generation, gate.why, unlisted=isinstance(gate, TurnedAway), since=since)
    fault = unreadable(turn)
    if fault is not None:
        return Barred(generation, fault.message, file=next(iter(turn.barrier.granted.unreadable)), since=since)
    lacks = missing(turn.barrier.granted.taken, turn.setup.start.secrets)
    if isinstance(gate, Lingering) and not lacks:
        return Barred(generation, READING, reading=True, since=since)
    return Barred(generation, lacking(lacks), lacks, since=since)


def _wake(tries: int, turn: Turn) -> int:
    limits = turn.setup.limits
    turn.counter += 1
    delay = min(limits.backoff_first * 2 ** min(tries - 1, 32), limits.backoff_cap)
    turn.effects.append(WakeAt(Woken(turn.counter), mono=turn.now.mono + delay))
    return turn.counter

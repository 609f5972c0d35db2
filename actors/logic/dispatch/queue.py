"""The errand: which mail of a run is claimed, taken up or put back next (storage §5). One request at a time.

Level-triggered: what to ask for follows from the run's state, its mails and the child; a refusal is remembered with the
state it was given for, so that the same thing isn't asked twice of the same state. A mail that can't be taken up is
never left in processing and holds up nothing behind it.
"""

from dataclasses import dataclass, replace
from typing import TypeAlias, assert_never

from actors.logic.dispatch import barrier
from actors.logic.dispatch.card import (
    BEGINNING,
    IDLE,
    Answered,
    Broken,
    Card,
    Denial,
    Free,
    Later,
    Over,
    Requested,
    Up,
    Verb,
)
from actors.logic.dispatch.routing import Accepted, accepting_wait, no_answer_to
from actors.logic.dispatch.turn import Turn
from substrate.messages import Claim, Done, NoAnswer, Queued, Refused, Release, Result, TakeUp, Withheld
from waypost.model import run as fold
from waypost.model.child_mail import spawner
from waypost.model.ids import CallId


@dataclass(frozen=True, slots=True)
class Begin:
    """The mail starts its run."""


@dataclass(frozen=True, slots=True)
class Reroute:
    """The mail's run has ended meanwhile: it starts a new one that names the old."""


Way: TypeAlias = Begin | Reroute | Accepted


def settle(card: Card, turn: Turn) -> Card:
    """Ask for what comes next, if nothing is under way. The card after it."""
    match card.errand:
        case Answered(position) if position <= turn.position:
            return settle(replace(card, errand=Free()), turn)
        case Requested() | Answered() | Later():
            return card
        case Free():
            return _next(card, turn)
        case _:
            assert_never(card.errand)


def answered(card: Card, asked: Requested, result: Result, turn: Turn) -> Card:
    """The request's answer has come. The card after it, not settled yet."""
    match result:
        case Done(position=position):
            return replace(card, errand=Answered(position))
        case Withheld():
            turn.retry_later()
            return replace(card, errand=Later())
        case Refused(code="not-ended") if isinstance(card.run, Over):
            return replace(card, errand=Free(), run=fold.Absent())
        case Refused(code="ended") if isinstance(card.run, fold.Absent):
            return replace(card, errand=Free(), run=Over())
        case Refused():
            return replace(card, errand=Free(), denials={**card.denials, asked.arrival: asked.basis})
        case _:
            assert_never(result)


def way(card: Card, mail: Queued, turn: Turn) -> Way | None:
    """What taking up this mail would do now; None when it has to wait."""
    starts = (
        isinstance(turn.child, Up)
        # A child run is part of one that has begun: a deployment that lets those go on begins it, too.
        and (turn.child.takes in BEGINNING or spawner(mail.entry.id) is not None)
        and barrier.begins(turn)
        and card.first == mail.entry.arrival
    )
    match card.run:
        case fold.Absent():
            return Begin() if starts else None
        case Over():
            return Reroute() if starts else None
        case fold.Paused():
            return None
        case fold.Driven(ledger) | fold.Parked(ledger):
            return accepting_wait(ledger, mail.gist)
        case _:
            assert_never(card.run)


def _next(card: Card, turn: Turn) -> Card:
    child = turn.child
    # A claim made now would go back with the next generation; or it isn't this deployment's turn.
    if isinstance(child, IDLE) or (isinstance(child, Up) and child.takes == "nothing"):
        return card
    for mail in card.claimed:
        going = None if _denied(card, mail, child, "take-up", "release") else way(card, mail, turn)
        if going is not None:
            return _ask(card, mail, child, "take-up", _take_up(mail, going, turn), turn)
        if not _denied(card, mail, child, "release"):
            return _ask(card, mail, child, "release", Release(mail.entry.arrival), turn)
    for mail in card.inbox:
        if not _denied(card, mail, child, "claim", "take-up", "release") and way(card, mail, turn) is not None:
            return _ask(card, mail, child, "claim", Claim(mail.entry.arrival), turn)
    for mail in card.inbox:
        call = None if _denied(card, mail, child, "tell") else _untold(card, mail)
        if call is not None:
            return _ask(card, mail, child, "tell", NoAnswer(mail.entry.arrival, call), turn)
    return card


def _untold(card: Card, mail: Queued) -> CallId | None:
    """The open approval that this mail is no answer to, if nobody was told so about it yet."""
    if not isinstance(card.run, fold.Driven | fold.Parked):
        return None
    call = no_answer_to(card.run.ledger, mail.gist)
    told = {each.entry.told for each in (*card.inbox, *card.claimed)}
    return None if call in told or mail.entry.told else call


def _take_up(mail: Queued, going: Way, turn: Turn) -> TakeUp:
    arrival = mail.entry.arrival
    match going:
        case Begin():
            return TakeUp(arrival=arrival, start=turn.setup.start, barred=barrier.turned_away(turn))
        case Reroute():
            barred = barrier.turned_away(turn)
            return TakeUp(arrival=arrival, start=turn.setup.start, reroute=True, barred=barred)
        case Accepted(call, decision):
            return TakeUp(arrival=arrival, wait=call, decision=decision)
        case _:
            assert_never(going)


def _ask(
    card: Card, mail: Queued, child: Up | Broken, verb: Verb, operation: Claim | TakeUp | Release | NoAnswer, turn: Turn
) -> Card:
    correlation = turn.ask(card.id, operation)
    basis = Denial(verb, card.seq, child.generation)
    return replace(card, errand=Requested(correlation, mail.entry.arrival, basis))


def _denied(card: Card, mail: Queued, child: Up | Broken, *verbs: Verb) -> bool:
    denial = card.denials.get(mail.entry.arrival)
    if denial is None or denial.verb not in verbs:
        return False
    return (denial.seq, denial.generation) == (card.seq, child.generation)

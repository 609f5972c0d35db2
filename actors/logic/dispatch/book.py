"""The cards while one message is folded into them: what each fact of the stream means for them.

Local to one call of ``advance``, which is given frozen state and gives frozen state back.
"""

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import assert_never

from actors.logic.dispatch import barrier as dispatch_barrier
from actors.logic.dispatch import grace as dispatch_grace
from actors.logic.dispatch import reading as dispatch_reading
from actors.logic.dispatch import session as dispatch_session
from actors.logic.dispatch.card import Away, Card, Live, Over
from actors.logic.dispatch.turn import Turn
from actors.logic.ordinals import NONE, Ordinals
from substrate.messages import (
    Appended,
    Claimed,
    Consumed,
    Fact,
    GenerationBegun,
    GrantsChanged,
    Held,
    OutboxAdded,
    OutboxRemoved,
    Queued,
    ScheduleMoved,
    Snapshot,
)
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.ids import RunId, run_ordinal


class Book:
    """Cards by run, the run of each unconsumed mail by arrival, and the runs that rest with the child."""

    def __init__(self, cards: Mapping[RunId, Card], homes: Mapping[int, RunId], resting: Ordinals) -> None:
        self.cards = dict(cards)
        self.homes = dict(homes)
        self.resting = resting

    @classmethod
    def of(cls, snapshot: Snapshot) -> "Book":
        """The cards of a repository that was just opened."""
        book = cls({run.ledger.run: Card(id=run.ledger.run, run=run) for run in snapshot.runs}, {}, NONE)
        for queued in snapshot.queue:
            book._queued(queued)
        return book

    def fold(self, fact: Fact, position: int, turn: Turn) -> Iterable[RunId]:  # noqa: PLR0911 - a table
        """Take a fact in, which was committed up to ``position``; the runs that it concerns."""
        match fact:
            case Appended():
                return self._appended(fact, position, turn)
            case Queued():
                return self._queued(fact)
            case Claimed():
                return self._claimed(fact)
            case Consumed():
                return self._leaves(fact.arrival)
            case Held():
                return self._leaves(fact.entry.arrival)
            case GrantsChanged():
                dispatch_barrier.changed(fact.now, position, turn)
                return ()
            case GenerationBegun(generation):
                dispatch_reading.begun(generation, self.cards, turn)
                return ()
            case OutboxAdded() | OutboxRemoved() | ScheduleMoved():
                return ()
            case _:
                assert_never(fact)

    def _appended(self, fact: Appended, position: int, turn: Turn) -> Iterable[RunId]:
        dispatch_grace.note(fact, turn)
        dispatch_reading.grown(fact.run, fact.events, turn)
        card = self.cards.get(fact.run) or self._awakened(fact.run, _seq(fact.state) - len(fact.events))
        if isinstance(fact.state, fold.Ended):
            turn.fresh.pop(fact.run, None)
            if card is not None:
                dispatch_session.committed(card, fact.events, turn)
                self.cards[fact.run] = replace(card, run=Over(), session=Away())
            return (fact.run,)
        card = Card(id=fact.run, run=fact.state) if card is None else replace(card, run=fact.state)
        if any(isinstance(recorded.event, ev.RunStarted | ev.RunResumed) for recorded in fact.events):
            turn.fresh[fact.run] = position
        self.cards[fact.run] = dispatch_session.committed(card, fact.events, turn)
        return (fact.run,)

    def _queued(self, fact: Queued) -> Iterable[RunId]:
        """A mail is in the inbox: a new one, a claim that went back, or one that follows its thread to another run."""
        arrival, run = fact.entry.arrival, fact.entry.run
        left = self._take(arrival)
        card = self.cards.get(run)
        if card is None:
            seq = 0 if fact.live is None else fact.live.ledger.seq
            card = replace(self._awakened(run, seq) or Card(id=run, run=Over()), run=fact.live or Over())
        inbox = tuple(sorted((*card.inbox, fact), key=_arrival))
        begins = fact.entry.starts and isinstance(card.run, Over)
        self.cards[run] = replace(card, inbox=inbox, run=fold.Absent() if begins else card.run)
        self.homes[arrival] = run
        return (*left, run)

    def put_away(self, run: RunId) -> None:
        """Keep no card of a run that doesn't need one now: if something comes to it, its state comes along."""
        card = self.cards[run]
        if card.idle:
            del self.cards[run]
        elif card.rests:
            del self.cards[run]
            self.resting = self.resting.with_(run_ordinal(run))

    def _awakened(self, run: RunId, seq: int) -> Card | None:
        """The card of a run that rested: the child has been sent all of it, up to ``seq``."""
        ordinal = run_ordinal(run)
        if ordinal not in self.resting:
            return None
        self.resting = self.resting.without(ordinal)
        return Card(id=run, run=Over(), session=Live(seq))

    def _claimed(self, fact: Claimed) -> Iterable[RunId]:
        run = self.homes.get(fact.arrival)
        if run is None:
            return ()
        card = self.cards[run]
        mine = (replace(mail, attempt=fact.attempt) for mail in card.inbox if _arrival(mail) == fact.arrival)
        self.cards[run] = replace(
            card,
            inbox=tuple(mail for mail in card.inbox if _arrival(mail) != fact.arrival),
            claimed=tuple(sorted((*card.claimed, *mine), key=_arrival)),
        )
        return (run,)

    def _leaves(self, gone: int) -> Iterable[RunId]:
        """A mail is consumed or on hold: nothing of it is left here."""
        left = self._take(gone)
        for run in left:
            card = self.cards[run]
            denials = {arrival: denial for arrival, denial in card.denials.items() if arrival != gone}
            self.cards[run] = replace(card, denials=denials)
        return left

    def _take(self, arrival: int) -> tuple[RunId, ...]:
        """Take a mail off its card; the card's run, or nothing when the mail is new."""
        run = self.homes.pop(arrival, None)
        if run is None:
            return ()
        card = self.cards[run]
        self.cards[run] = replace(
            card,
            inbox=tuple(mail for mail in card.inbox if _arrival(mail) != arrival),
            claimed=tuple(mail for mail in card.claimed if _arrival(mail) != arrival),
        )
        return (run,)


def _seq(run: fold.Live | fold.Ended) -> int:
    return run.seq if isinstance(run, fold.Ended) else run.ledger.seq


def _arrival(mail: Queued) -> int:
    return mail.entry.arrival

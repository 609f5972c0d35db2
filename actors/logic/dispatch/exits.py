"""An exit that nobody expected: against whom it counts, and that it is counted before another child comes.

The supervisor tells of the exit (``GenerationDown``) and waits; what was driven is asked to be counted, durably, and
the answer (``ExitCounted``) is told back. So the next generation begins after the count is in the logs, and a host that
is killed at any later moment finds it there. A host that is killed before it is there, or together with its child, has
counted nothing: such an end is the host's, and no run is charged with it.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from actors.exits import ExitCounted
from actors.logic.dispatch.card import GIVEN, Card, Counting, NoChild, Tally, Uncounted
from actors.logic.dispatch.turn import PORTION, Turn
from actors.messages import GenerationDown
from substrate.messages import Done, Interrupt, Refused, Result, Stage, Withheld
from waypost.model import run as fold
from waypost.model.attempts import is_suspect
from waypost.model.ids import RunId


def tally(cards: Iterable[Card], down: GenerationDown, turn: Turn) -> Tally:
    """Whom an exit is to be counted against: every run that the child drove.

    But for suspects that the child drove for long: while another suspect is on trial, it is that one's exit.
    """
    driven = [card for card in cards if isinstance(card.session, GIVEN) and isinstance(card.run, fold.Driven)]
    spared: set[RunId] = set()
    if turn.trial is not None and any(card.id == turn.trial.run and _suspect(card, turn) for card in driven):
        spared = {card.id for card in driven if card.id != turn.trial.run and _suspect(card, turn)}
    left = tuple(card.id for card in driven if card.id not in spared)
    return Tally(generation=down.generation, reason=down.reason, left=left, beside=len(spared))


def count(tally: Tally, turn: Turn) -> Counting | NoChild:
    """Have the next portion counted; where none is left, tell the supervisor."""
    if not tally.left:
        turn.tell_supervisor(ExitCounted(generation=tally.generation, runs=tally.counted, beside=tally.beside))
        return NoChild()
    what = Interrupt(generation=tally.generation, reason=tally.reason, runs=tally.left[:PORTION])
    return Counting(tally, turn.ask_for_all(what, Stage.DURABLE))


def answered(counting: Counting, result: Result, turn: Turn) -> Counting | Uncounted | NoChild:
    """The answer for a portion has come."""
    tally = counting.tally
    match result:
        case Done(value=value):
            return count(replace(tally, left=tally.left[PORTION:], counted=(*tally.counted, *value)), turn)
        case Refused():  # another generation is at work: there is nothing to be counted any more
            return count(replace(tally, left=()), turn)
        case Withheld():
            turn.retry_later()
            return Uncounted(tally)
        case _:
            assert_never(result)


def _suspect(card: Card, turn: Turn) -> bool:
    return isinstance(card.run, fold.Driven) and is_suspect(card.run.ledger, turn.setup.limits)

"""Suspects: runs that one more exit would set aside are resumed one at a time, after the others (storage §5, Attempts).

The next one is let in when nobody is at work any more, the one before it included: a step that it has finished clears
it of what it was suspected of, and the step after that may be the one that ends the child. So it is known whose exit it
was, and nobody else is taken along. Nobody waits for ever: once a child has run for a stable time the suspects no
longer wait for the others, and none is on trial for longer than that.
"""

from collections.abc import Mapping

from actors.logic.dispatch.card import Answered, Card, Denied, Requested, Trial, Up
from actors.logic.dispatch.turn import Turn
from waypost.model import run as fold
from waypost.model.attempts import is_suspect
from waypost.model.ids import RunId
from waypost.model.limits import Limits


def let_in(cards: Mapping[RunId, Card], turn: Turn) -> RunId | None:
    """The suspect whose turn it is now, marked as the one on trial; None where all that there are have to wait."""
    if not turn.suspects or not isinstance(turn.child, Up):
        return None
    until = _waits_until(cards, turn, turn.child)
    if turn.now.mono < until:
        turn.look_again(until)
        return None
    suspect = next(iter(turn.suspects))
    del turn.suspects[suspect]
    turn.trial = Trial(suspect, turn.now.mono)
    return suspect


def on_trial(card: Card | None, limits: Limits) -> bool:
    """Whether a suspect still has to show that it doesn't end its child: by a finished step, by a park."""
    if card is None or not isinstance(card.run, fold.Driven) or isinstance(card.session, Denied):
        return False
    return is_suspect(card.run.ledger, limits)


def _waits_until(cards: Mapping[RunId, Card], turn: Turn, child: Up) -> float:
    """Until when at most (monotonic seconds) the next suspect waits; what has passed: it need not."""
    limits, trial = turn.setup.limits, turn.trial
    if trial is not None and on_trial(cards.get(trial.run), limits):
        return trial.since + limits.stable_after
    if turn.now.mono < child.since + limits.stable_after and _somebody(cards, turn):
        return child.since + limits.stable_after
    return turn.now.mono


def _somebody(cards: Mapping[RunId, Card], turn: Turn) -> bool:
    """Whether anybody else is at work; looked for again only when who was found before no longer is."""
    if turn.ahead is None or not _at_work(cards.get(turn.ahead), turn):
        turn.ahead = next((run for run, card in cards.items() if _at_work(card, turn)), None)
    return turn.ahead is not None


def _at_work(card: Card | None, turn: Turn) -> bool:
    if card is None or card.id in turn.suspects:
        return False
    if isinstance(card.errand, Requested | Answered):
        return True  # a mail that is about to begin a run, or to wake one
    return isinstance(card.run, fold.Driven) and not isinstance(card.session, Denied)

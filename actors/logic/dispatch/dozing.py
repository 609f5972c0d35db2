"""Whether there is nothing to do: no run is at work or on its way to the child, and no mail can be taken up.

Mail that waits for a credential is something to do: dispatch asks for it again, later and later, and nobody else does.
Only dispatch can say so of the mail, and it says up to which commit it has judged: what is committed after that is seen
by whoever asks for the position again, when nobody is left who could commit. Pure.
"""

from collections.abc import Iterable

from actors.draining import Doze, Rested, StillExecuting
from actors.logic.dispatch import barrier
from actors.logic.dispatch.card import Away, Card, Free, Live, Up, Waning
from actors.logic.dispatch.turn import Turn
from waypost.model import run as fold


def settle(cards: Iterable[Card], message: Doze, turn: Turn) -> bool:
    """Answer; and if all is at rest, begin nothing more from now on. Whether that is so."""
    child = turn.child
    resting = isinstance(child, Up) and child.generation == message.generation and _at_rest(cards, turn)
    turn.tell_supervisor(Rested(message.generation, turn.position if resting else None))
    if resting:
        assert isinstance(child, Up)
        turn.child = Waning(child.generation, child.ref, StillExecuting(child.generation, ()))
        turn.drop_suspects()
    return resting


def _at_rest(cards: Iterable[Card], turn: Turn) -> bool:
    waits = turn.asked or turn.graces or turn.suspects or turn.retry_wake is not None
    waits_for_others = isinstance(turn.child, Up) and turn.child.takes == "nothing"
    kept_back = waits_for_others or not barrier.gives(turn)
    return not waits and all(_rests(card, kept_back=kept_back) for card in cards)


def _rests(card: Card, *, kept_back: bool) -> bool:
    """What could be done for it has been asked, and was refused: that isn't asked again while nothing changes."""
    still = isinstance(card.errand, Free) and isinstance(card.session, Away | Live) and not (kept_back and card.inbox)
    return still and not card.claimed and not isinstance(card.run, fold.Driven)

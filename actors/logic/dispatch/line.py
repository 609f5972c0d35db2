"""The first mail of a deployment that mail has woken: taken up when it is told to, and then that is told.

Whoever else waits for its turn waits for this (``host/root/line.py``), so it is told when what could be taken up is,
and what that began is durable: at once where nothing can be. A credential that is being fetched is waited for. Pure.
"""

from collections.abc import Iterable
from dataclasses import replace

from actors.draining import TakeUpMail, TookUp
from actors.logic.dispatch import barrier
from actors.logic.dispatch.card import Answered, Broken, Card, Requested, Up
from actors.logic.dispatch.turn import Turn


def begin(message: TakeUpMail, turn: Turn) -> bool:
    """Take up mail from now on. Whether there is any that wasn't before."""
    child = turn.child
    match child:
        case Up(takes="nothing") if child.generation == message.generation:
            turn.child = replace(child, takes="first")
            return True
        case Up() | Broken() if child.generation == message.generation:
            turn.tell_supervisor(TookUp(message.generation))
        case _:
            pass  # a child that is given nothing more, or is gone: its supervisor knows
    return False


def report(cards: Iterable[Card], turn: Turn) -> None:
    """Tell the supervisor when nothing is left that could be taken up."""
    child = turn.child
    if not isinstance(child, Up) or child.takes != "first":
        return
    held = not barrier.begins(turn)
    if turn.fresh or any(isinstance(card.errand, Requested | Answered) or (held and card.inbox) for card in cards):
        return
    turn.child = replace(child, takes="all")
    turn.tell_supervisor(TookUp(child.generation))

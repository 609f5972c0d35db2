"""A drain, as dispatch sees it: nothing is claimed and nothing given any more, and whoever comes to rest is let go of.

A run that the child follows and that is at work goes on until it parks, is paused or ends; from then on the child hears
nothing more of it. What wakes it meanwhile is in its log, for the child that comes next, so a drain comes to its end
however busy the timers and the mail are. Pure.
"""

from collections.abc import Iterable
from dataclasses import replace

from actors.draining import StillExecuting
from actors.logic.dispatch.card import Away, Card, Live, Waning
from actors.logic.dispatch.turn import Turn
from actors.logic.executing import named
from waypost.model import run as fold


def at_work(card: Card) -> bool:
    """Whether the child works on this run."""
    return isinstance(card.session, Live) and isinstance(card.run, fold.Driven)


def let_go(card: Card) -> Card:
    """Give the child nothing more of a run that isn't at work; one that was on its way to it goes no further."""
    return card if at_work(card) else replace(card, session=Away())


def report(cards: Iterable[Card], turn: Turn) -> None:
    """Tell the supervisor who is still at work, if that has changed."""
    child = turn.child
    if not isinstance(child, Waning):
        return
    runs, more = named(card.run for card in cards if at_work(card) and isinstance(card.run, fold.Driven))
    news = StillExecuting(child.generation, runs, more)
    if news != child.told:
        turn.child = replace(child, told=news)
        turn.tell_supervisor(news)

"""How long a cancelled run has to clean up and end by itself: then it is ended here, whatever its code is at.

The time counts from when the cancellation is known here, and once more, in full, from when the child was told. So a
child that comes late is given its time, and a child that never comes, or a clean-up that never ends, holds up nobody.
While the child drains nobody new is given to it, and another one follows, or nobody is to run: that counts as no time.
What then still works in the child is ended with it, and no run is charged for that.
"""

import math
from collections.abc import Mapping
from dataclasses import replace

from actors.draining import RecycleRequested
from actors.logic.dispatch.card import Card, Grace, Live, Up, Waning
from actors.logic.dispatch.turn import Turn
from substrate.messages import Append, Appended, Result, Stage, Supervisor, Withheld
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.ids import RunId
from waypost.model.ledger import Ledger

_STILL = math.inf
"""The end of a time that stands still."""


def begin(runs: tuple[fold.Driven, ...], turn: Turn) -> None:
    """At the start: the runs that were being cancelled when there was no dispatch."""
    for run in runs:
        _note(run.ledger, turn)


def note(fact: Appended, turn: Turn) -> None:
    """A run has moved: its time begins, or it needs none any more."""
    ledger = fold.ledger(fact.state)
    if ledger is None:
        turn.graces.pop(fact.run, None)
    else:
        _note(ledger, turn)


def look(cards: Mapping[RunId, Card], turn: Turn) -> None:
    """Begin the time anew of those whose child has just been told, or drains no more; see to a wake-up.

    Nobody is woken for a time that stands still: a drain may take as long as it likes.
    """
    for run, grace in turn.graces.items():
        card = cards.get(run)
        if not grace.told and card is not None and _told(card):
            turn.graces[run] = replace(grace, told=True, until=_later(turn))
        elif _stands_still(grace, turn):
            turn.graces[run] = replace(grace, until=_STILL)
        elif grace.until == _STILL:
            turn.graces[run] = replace(grace, until=_later(turn))
    waiting = [grace.until for grace in turn.graces.values() if grace.asked is None and grace.until != _STILL]
    if waiting:
        turn.wake_for_grace(min(waiting))


def woken(cards: Mapping[RunId, Card], due: float, turn: Turn) -> None:
    """End the runs whose time is up; and the child, if one of them still works in it: a thread can't be stopped.

    ``due``: for when the wake-up was. One that comes later was put off, because the host stood still: that is charged
    to nobody, so whose time wasn't up by then is put off as well.
    """
    late = turn.now.mono - due
    for run, grace in turn.graces.items():
        if due < grace.until < _STILL:
            turn.graces[run] = replace(grace, until=min(grace.until + late, _later(turn)))
        elif grace.asked is None and grace.until <= due:
            end = ev.RunCancelled(code="past-grace", detail=_words(grace, turn))
            append = Append(by=Supervisor(), run=run, events=(end,))
            turn.graces[run] = replace(grace, asked=turn.ask_for_all(append, Stage.COMMITTED))
            if isinstance(turn.child, Up) and _works(cards.get(run)):
                why = f"{run} was cancelled, and still works {turn.setup.limits.cancel_grace:g} s later"
                turn.tell_supervisor(RecycleRequested(turn.child.generation, why))


def answered(correlation: int, result: Result, turn: Turn) -> bool:
    """Whether this is the answer to an end that was asked for; that it is so comes by the stream."""
    run = next((run for run, grace in turn.graces.items() if grace.asked == correlation), None)
    if run is None:
        return False
    if isinstance(result, Withheld):
        later = turn.now.mono + turn.setup.limits.backoff_first
        turn.graces[run] = replace(turn.graces[run], asked=None, until=later)
    return True


def _note(ledger: Ledger, turn: Turn) -> None:
    if ledger.cancel is not None and ledger.run not in turn.graces:
        turn.graces[ledger.run] = Grace(_later(turn))


def _stands_still(grace: Grace, turn: Turn) -> bool:
    return not grace.told and grace.asked is None and isinstance(turn.child, Waning)


def _told(card: Card) -> bool:
    match card:
        case Card(run=fold.Driven(ledger), session=Live(sent)) if ledger.cancel is not None:
            return sent >= ledger.cancel.seq
        case _:
            return False


def _works(card: Card | None) -> bool:
    """Whether the child has the run, and it does anything else than to wait for what the log would bring."""
    match card:
        case Card(run=fold.Driven(ledger), session=Live()):
            return bool(ledger.steps) or ledger.seen < ledger.drive or not (ledger.waits or ledger.timers)
        case _:
            return False


def _later(turn: Turn) -> float:
    return turn.now.mono + turn.setup.limits.cancel_grace


def _words(grace: Grace, turn: Turn) -> str:
    seconds = f"{turn.setup.limits.cancel_grace:g} s"
    if grace.told:
        return f"its code had not ended {seconds} after it was told"
    return f"no process took it up within {seconds}, so its code could not clean up"

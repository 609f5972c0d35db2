"""What is done for the next child before it is there: its runs' logs are read, and that they are resumed is written.

Once it is ready every moment counts, and in the pause before it, and while it starts, nobody waits. So when an exit
has been counted, the logs of the runs that come first are read, a few at a time, so that nobody else waits long for
the repository; and as soon as the next generation has begun, RunResumed of these runs is made durable. ``run.start``
is sent when the barrier lets it pass, as ever, and no sooner. Of so many runs, and so much of each, that it is 4 MiB
at most; and once for each exit: where one child after the other can't be had, they leave no more in the logs than one.

What is committed meanwhile is put behind what was read. Where that isn't all that the run's code needs, what was read
is forgotten, and the log is read as ever. Nothing depends on any of this: what isn't done by then is done then.
"""

import itertools
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from actors.logic.dispatch import barrier
from actors.logic.dispatch.card import Away, Card, Pending
from actors.logic.dispatch.turn import PORTION, Turn
from substrate.messages import Done, LogPage, ReadLog, Recorded, Result, ResumeRuns, Stage
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.attempts import is_suspect
from waypost.model.ids import Generation, RunId

MOST = 128
"""Runs that it is done for; the others have their turn when the child is there."""
ROOM = 32 * 1024
"""Bytes of one run's events and mails; a longer log is read when it is needed."""
UNDER_WAY = 8
"""Questions at a time."""


@dataclass(frozen=True, slots=True)
class Reading:
    """``runs`` that it is done for; ``wanted``: those of them whose logs aren't asked for yet, in order.

    ``asked``: the questions under way, by correlation; ``pages``: what was read.
    """

    runs: tuple[RunId, ...] = ()
    wanted: tuple[RunId, ...] = ()
    asked: Mapping[int, RunId] = field(default_factory=dict)
    pages: Mapping[RunId, LogPage] = field(default_factory=dict)


NOTHING = Reading()


def begin(cards: Iterable[Card], turn: Turn) -> None:
    """A child has ended, and another one follows."""
    runs = tuple(itertools.islice((card.id for card in cards if _comes_first(card, turn)), MOST))
    turn.reading = Reading(runs=runs, wanted=runs)
    _ask(turn)


def begun(generation: Generation, cards: Mapping[RunId, Card], turn: Turn) -> None:
    """The next generation has begun: its child is on the way."""
    if barrier.unreadable(turn) is not None:
        return
    due = [run for run in turn.reading.runs if run in cards and _comes_first(cards[run], turn)]
    turn.reading = replace(turn.reading, runs=())
    for at in range(0, len(due), PORTION):
        resume = ResumeRuns(generation=generation, runs=tuple(due[at : at + PORTION]))
        turn.ask_for_all(resume, Stage.DURABLE)


def enough(turn: Turn) -> None:
    """The child is there: nothing more is begun."""
    turn.reading = replace(turn.reading, runs=(), wanted=())


def answered(correlation: int, result: Result, cards: Mapping[RunId, Card], turn: Turn) -> bool:
    """Whether this answers one of these questions; then the next one is asked."""
    run = turn.reading.asked.get(correlation)
    if run is None:
        return False
    asked = {key: each for key, each in turn.reading.asked.items() if key != correlation}
    turn.reading = replace(turn.reading, asked=asked)
    card = cards.get(run)
    if card is not None and isinstance(card.session, Away | Pending) and isinstance(result, Done):
        _keep(result.value, turn)
    _ask(turn)
    return True


def grown(run: RunId, events: Sequence[Recorded], turn: Turn) -> None:
    """Events of the run were committed: they follow what was read, unless a mail came with them."""
    page = turn.reading.pages.get(run)
    if page is None:
        return
    _forget(page, turn)
    news = tuple(recorded for recorded in events if recorded.event.seq > page.last)
    bring = any(isinstance(recorded.event, ev.SignalReceived) for recorded in news)
    if not bring and all(recorded.event.seq == page.last + n for n, recorded in enumerate(news, 1)):
        longer = (*page.events, *(recorded.raw for recorded in news))
        _keep(replace(page, events=longer, last=page.last + len(news)), turn)


def take(run: RunId, turn: Turn) -> LogPage | None:
    """The page that was read, once; None where there is none."""
    page = turn.reading.pages.get(run)
    if page is not None:
        _forget(page, turn)
    return page


def _ask(turn: Turn) -> None:
    reading = turn.reading
    room = UNDER_WAY - len(reading.asked)
    now = reading.wanted[:room]
    asked = {turn.ask_for_all(ReadLog(run=run, after=0, limit=ROOM, mails=ROOM), Stage.COMMITTED): run for run in now}
    turn.reading = replace(reading, wanted=reading.wanted[room:], asked={**reading.asked, **asked})


def _keep(page: LogPage, turn: Turn) -> None:
    """Whole logs only, and those whose first mail is with them."""
    size = sum(map(len, page.events)) + sum(map(len, page.mails))
    if len(page.events) == page.last and page.mails and size <= ROOM:
        turn.reading = replace(turn.reading, pages={**turn.reading.pages, page.run: page})


def _forget(page: LogPage, turn: Turn) -> None:
    pages = {run: each for run, each in turn.reading.pages.items() if run != page.run}
    turn.reading = replace(turn.reading, pages=pages)


def _comes_first(card: Card, turn: Turn) -> bool:
    """Whether the next child is given the run at once; suspects wait their turn."""
    return isinstance(card.run, fold.Driven) and not is_suspect(card.run.ledger, turn.setup.limits)

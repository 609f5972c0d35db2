"""The session: giving a run to the child and keeping it fed (design §8, storage §2).

Once the barrier lets it pass: RunResumed durable, then ``run.start`` (once per run and generation), the log in pages on
credit, then ``run.live``, and from there every committed event in seq order without a gap. What is committed while
pages are under way is not kept here: reading goes on until the log's end is reached.
"""

from collections.abc import Sequence
from dataclasses import replace
from typing import assert_never

from actors.errors import LogUnreadable
from actors.logic.dispatch import barrier as dispatch_barrier
from actors.logic.dispatch import reading as dispatch_reading
from actors.logic.dispatch.card import (
    Away,
    Broken,
    Card,
    Counting,
    Denied,
    Feeding,
    Full,
    Live,
    NoChild,
    Opening,
    Pending,
    Postponed,
    Uncounted,
    Up,
    Waning,
)
from actors.logic.dispatch.draining import let_go
from actors.logic.dispatch.turn import Turn, chunks
from ipc.messages import EventsCommitted, RunLive, RunLog, RunStart
from substrate.messages import (
    Append,
    Done,
    LogPage,
    Pause,
    ReadLog,
    Recorded,
    Refused,
    Result,
    Stage,
    Supervisor,
    Withheld,
)
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.attempts import is_suspect
from waypost.model.ids import Generation, RunId


def settle(card: Card, turn: Turn) -> Card:
    """Take the run one move further towards the present child, where it has to go there. The card after it."""
    if isinstance(turn.child, Waning):
        return let_go(card)
    match card.session:
        case Denied(seq) if card.seq != seq:
            return settle(replace(card, session=Away()), turn)
        case Pending() if _came(card, turn):
            return settle(replace(card, session=Away()), turn)
        case Away():
            return _begin(card, turn)
        case Pending() | Denied() | Postponed() | Opening() | Feeding() | Full() | Live():
            return card
        case _:
            assert_never(card.session)


def answered(card: Card, correlation: int, result: Result, turn: Turn) -> Card:
    """An answer for this card's session has come; one for an earlier session is ignored. Raises LogUnreadable."""
    match card.session:
        case Pending(expected, seq) if expected == correlation:
            left_out = isinstance(result, Done) and isinstance(result.value, tuple) and card.id not in result.value
            following = Denied(seq) if left_out else _pending(card.session, Denied(seq), result, turn)
            return replace(card, session=following)
        case Opening(expected) if expected == correlation:
            if not isinstance(result, Done):
                return replace(card, session=_pending(card.session, Denied(card.seq), result, turn))
            return _open(card, result.value, turn)
        case Feeding(expected, sent, credits_) if expected == correlation:
            if not isinstance(result, Done):
                raise LogUnreadable(card.id, sent, str(result))
            return _feed(card, result.value, sent, credits_, turn)
        case _:
            return card


def credited(card: Card, turn: Turn) -> Card:
    """The child has taken a page in."""
    match card.session:
        case Full(sent):
            return _read_on(card, sent, 1, turn)
        case Feeding(correlation, sent, credits_):
            more = min(turn.setup.limits.page_credit, credits_ + 1)
            return replace(card, session=Feeding(correlation, sent, more))
        case _:
            return card  # of a page that was the last one


def committed(card: Card, events: Sequence[Recorded], turn: Turn) -> Card:
    """Events of the run were committed: a child that follows is told, up to the run's end."""
    if not isinstance(card.session, Live):
        return card
    sent = card.session.sent
    news: list[bytes] = []
    for recorded in events:
        if recorded.event.seq <= sent:
            continue  # it was in a page that was read after its commit
        if recorded.event.seq != sent + 1:
            raise LogUnreadable(card.id, sent, f"event {recorded.event.seq} came next")
        news.append(recorded.raw)
        sent += 1
        if isinstance(recorded.event, ev.TERMINAL):
            break
    for chunk in chunks(news, turn.setup.limits.page):
        turn.send(EventsCommitted(run=card.id, events=chunk))
    return replace(card, session=Live(sent))


def lost(card: Card) -> Card:
    """The child has gone."""
    return replace(card, session=Away())


def _begin(card: Card, turn: Turn) -> Card:
    if not isinstance(card.run, fold.Driven):
        return card
    match turn.child:
        case NoChild() | Counting() | Uncounted() | Waning():
            return card
        case Broken(why=why):
            pause = Pause(run=card.id, code="code-missing", detail=why)
            return replace(card, session=Pending(turn.ask(card.id, pause, Stage.DURABLE), card.seq))
        case Up(generation=generation):
            return _give(card, card.run.ledger, generation, turn)
        case _:
            assert_never(turn.child)


def _give(card: Card, ledger: fold.Ledger, generation: Generation, turn: Turn) -> Card:
    if not dispatch_barrier.gives(turn):
        return card
    if ledger.generation == generation:
        if card.id in turn.fresh:
            return card
        page = dispatch_reading.take(card.id, turn)
        return replace(card, session=Opening(_read(card.id, 0, turn))) if page is None else _open(card, page, turn)
    if ledger.generation > generation or (is_suspect(ledger, turn.setup.limits) and not turn.admits(card.id)):
        return card  # for a child that is still to come; or in its turn
    barred = dispatch_barrier.unreadable(turn)
    if barred is None:
        return replace(card, session=Pending(turn.resume(card.id, generation), card.seq))
    end: ev.AnyEvent = ev.RunFailed(error=barred)
    if ledger.cancel is not None:  # the end of one that is being cancelled is that
        end = ev.RunCancelled(code="past-grace", detail=barred.message)
    append = Append(by=Supervisor(), run=card.id, events=(end,))
    return replace(card, session=Pending(turn.ask(card.id, append, Stage.DURABLE), card.seq))


def _came(card: Card, turn: Turn) -> bool:
    """Whether what was asked for has come by the stream."""
    match turn.child:
        case Up(generation=generation) if isinstance(card.run, fold.Driven | fold.Parked | fold.Paused):
            return card.run.ledger.generation >= generation
        case _:
            return not isinstance(card.run, fold.Driven)


def _pending(
    session: Pending | Opening, denied: Denied, result: Result, turn: Turn
) -> Pending | Opening | Denied | Postponed:
    match result:
        case Done():
            return session  # the stream brings it
        case Refused():
            return denied
        case Withheld():
            turn.retry_later()
            return Postponed()
        case _:
            assert_never(result)


def _open(card: Card, page: LogPage, turn: Turn) -> Card:
    if not isinstance(card.run, fold.Driven | fold.Parked):
        return replace(card, session=Away())  # paused meanwhile: not to be started
    turn.send(
        RunStart(
            run=card.id,
            definition=card.run.ledger.started.definition,
            last_seq=page.last,
            grants=turn.barrier.granted.sha256,
            repository=turn.repository,
        )
    )
    return _feed(card, page, 0, turn.setup.limits.page_credit, turn)


def _feed(card: Card, page: LogPage, sent: int, credits_: int, turn: Turn) -> Card:
    end = max(page.last, card.seq)
    if not page.events:  # a page is asked for only where there is more
        raise LogUnreadable(card.id, sent, f"no event was found up to {end}")
    turn.send(RunLog(run=card.id, events=page.events, mails=page.mails))
    sent, credits_ = sent + len(page.events), credits_ - 1
    if sent < end:
        return _read_on(card, sent, credits_, turn)
    turn.send(RunLive(run=card.id))
    return replace(card, session=Live(sent))


def _read_on(card: Card, sent: int, credits_: int, turn: Turn) -> Card:
    if credits_ < 1:
        return replace(card, session=Full(sent))
    return replace(card, session=Feeding(_read(card.id, sent, turn), sent, credits_))


def _read(run: RunId, after: int, turn: Turn) -> int:
    return turn.ask(run, ReadLog(run=run, after=after, limit=turn.setup.limits.page, mails=turn.setup.limits.page))

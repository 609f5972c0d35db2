"""Which mail goes to which run and which run goes to the child: the decision of the DispatchActor.

It is fed by the substrate's stream, by the child's coming and going, and by the answers to what it asked. Each message
is folded into the cards that it concerns; then these are settled: what a card needs next follows from the card, never
from the message. A claim and its take-up are two requests, and a crash between them loses nothing, because
BeginGeneration puts claims back.

    dispatch_state     what is kept between two messages
    dispatch_card      one run: its state, its mails, its errand and its session
    dispatch_book      what a fact means for the cards
    dispatch_routing   which open wait takes a mail
    dispatch_queue     the errand: claim, take up, put back
    dispatch_session   the session: resume, start, feed, follow
    dispatch_reading   logs that are read before there is a child to send them to
    dispatch_suspects  who is resumed alone, and when
    dispatch_grace     how long a cancelled run has to end by itself
    dispatch_exits     an exit that is counted against those that were driven
    dispatch_draining  who is let go of, and who is still at work
    dispatch_dozing    whether there is nothing to do
    dispatch_line      the first mail of one that mail has woken
    dispatch_barrier   what its steps may do and read, before a child is given a run
    dispatch_turn      one message being worked on
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from actors.credentials import AskAgain, Assembled, NotAssembled
from actors.draining import Close, Doze, Quiesce, Rested, StillExecuting, TakeUpMail
from actors.effects import ToSupervisor
from actors.errors import OutOfTurn
from actors.exits import ExitCounted
from actors.logic.dispatch import barrier as dispatch_barrier
from actors.logic.dispatch import dozing as dispatch_dozing
from actors.logic.dispatch import draining as dispatch_draining
from actors.logic.dispatch import exits as dispatch_exits
from actors.logic.dispatch import grace as dispatch_grace
from actors.logic.dispatch import line as dispatch_line
from actors.logic.dispatch import queue as dispatch_queue
from actors.logic.dispatch import reading as dispatch_reading
from actors.logic.dispatch import session as dispatch_session
from actors.logic.dispatch import suspects as dispatch_suspects
from actors.logic.dispatch.barrier import Barrier
from actors.logic.dispatch.book import Book
from actors.logic.dispatch.card import (
    ABSENT,
    Answered,
    Away,
    Broken,
    Counting,
    Free,
    Later,
    NoChild,
    Postponed,
    Requested,
    Uncounted,
    Up,
    Waning,
)
from actors.logic.dispatch.reading import NOTHING
from actors.logic.dispatch.state import Open, State, Unopened, kept, turn_of
from actors.logic.ordinals import NONE
from actors.messages import DispatchMessage, GenerationDown, GenerationUp, Woken
from ipc.messages import RunLogCredit
from substrate.messages import Committed, Durable, Outcome, Snapshot
from waypost.acting import Next
from waypost.model.ids import RunId
from waypost.model.times import Now


def advance(state: State, message: DispatchMessage, now: Now) -> Next[State]:
    """The next state and the effects. Raises OutOfTurn and LogUnreadable; then the state is as before."""
    match state:
        case Unopened():
            return _unopened(state, message, now)
        case Open():
            work = _Work(state, now)
            work.take(message)
            return work.done()
        case _:
            assert_never(state)


def _unopened(state: Unopened, message: DispatchMessage, now: Now) -> Next[State]:
    match message:
        case Snapshot():
            book = Book.of(message)
            # Should a run have been given to the child that is to come, then not before all of this is durable.
            fresh = {run.ledger.run: message.position for run in message.runs}
            work = _Work(
                Open(
                    setup=state.setup,
                    repository=message.repository,
                    position=message.position,
                    child=NoChild(),
                    cards=book.cards,
                    homes=book.homes,
                    fresh=fresh,
                    barrier=Barrier(granted=message.granted),
                ),
                now,
            )
            work.begin(message)
            return work.done()
        case GenerationDown(generation=generation, unexpected=unexpected):  # it was given nothing
            counted = ToSupervisor(ExitCounted(generation=generation, runs=()))
            return Next(state, (counted,) if unexpected else ())
        case Doze(generation):
            return Next(state, (ToSupervisor(Rested(generation, None)),))
        case AskAgain():
            return Next(state)  # nothing has been asked for yet
        case Committed() | Durable() | RunLogCredit() | Outcome() | Woken() | Assembled() | NotAssembled():
            raise OutOfTurn("dispatch", "unopened", type(message).__name__)
        case GenerationUp() | TakeUpMail() | Quiesce() | Close():
            raise OutOfTurn("dispatch", "unopened", type(message).__name__)
        case _:
            assert_never(message)


class _Work:
    """One message folded in and the cards settled; local to ``advance``."""

    def __init__(self, state: Open, now: Now) -> None:
        self._state = state
        self._book = Book(state.cards, state.homes, state.resting)
        self._cards = self._book.cards
        self._owed = dict(state.owed)
        self._turn = turn_of(state, now)

    def begin(self, snapshot: Snapshot) -> None:
        """Take up what was under way before this dispatch: runs that are being cancelled."""
        dispatch_grace.begin(snapshot.runs, self._turn)
        dispatch_grace.look(self._cards, self._turn)

    def take(self, message: DispatchMessage) -> None:  # noqa: C901, PLR0912 - one case per message
        """Fold the message in, and settle what it may have changed."""
        match message:
            case Committed():
                self._settle(self._committed(message))
            case Durable():
                dispatch_barrier.durable(message.up_to, self._turn)
                self._settle(_due(self._turn.fresh, message.up_to))
            case Assembled() | NotAssembled():
                if dispatch_barrier.answered(message, self._turn):
                    self._settle(tuple(self._cards))
            case AskAgain():
                dispatch_barrier.again(self._turn)
            case Outcome():
                self._settle(self._outcome(message))
            case RunLogCredit():
                self._credit(RunId(message.run))
            case GenerationUp():
                self._up(message)
            case GenerationDown():
                self._down(message)
            case TakeUpMail():
                if dispatch_line.begin(message, self._turn):
                    self._settle(tuple(self._cards))
            case Quiesce():
                self._quiesce(message)
            case Close():
                self._close(message)
            case Doze():
                self._doze(message)
            case Woken():
                self._settle(self._woken(message))
            case Snapshot():
                raise OutOfTurn("dispatch", "open", "Snapshot")
            case _:
                assert_never(message)

    def done(self) -> Next[State]:
        """The new state, frozen, and the effects."""
        turn = self._turn
        dispatch_draining.report(self._cards.values(), turn)
        dispatch_line.report(self._cards.values(), turn)
        return Next(kept(self._state, turn, self._book, self._owed), tuple(turn.effects))

    def _committed(self, message: Committed) -> Iterable[RunId]:
        touched: dict[RunId, None] = {}
        for fact in message.facts:
            touched.update(dict.fromkeys(self._book.fold(fact, message.last, self._turn)))
        self._turn.position = message.last
        return (*touched, *_due(self._owed, message.last))

    def _outcome(self, message: Outcome) -> Iterable[RunId]:
        child = self._turn.child
        if isinstance(child, Counting) and child.correlation == message.correlation:
            self._count(dispatch_exits.answered(child, message.result, self._turn))
            return ()
        if dispatch_reading.answered(message.correlation, message.result, self._cards, self._turn):
            return ()
        if dispatch_grace.answered(message.correlation, message.result, self._turn):
            return ()
        runs = tuple(run for run in self._turn.asked.pop(message.correlation, ()) if run in self._cards)
        for run in runs:
            card = self._cards[run]
            if isinstance(card.errand, Requested) and card.errand.correlation == message.correlation:
                card = dispatch_queue.answered(card, card.errand, message.result, self._turn)
            else:
                card = dispatch_session.answered(card, message.correlation, message.result, self._turn)
            self._cards[run] = card
        return runs

    def _credit(self, run: RunId) -> None:
        if run in self._cards:
            self._cards[run] = dispatch_session.credited(self._cards[run], self._turn)

    def _up(self, message: GenerationUp) -> None:
        self._leave()
        dispatch_reading.enough(self._turn)
        generation, now = message.generation, self._turn.now.mono
        up = Up(generation, message.child, now, message.takes)
        self._turn.child = Broken(generation, message.broken) if message.broken else up
        if not message.broken:
            dispatch_barrier.up(self._turn)
        self._settle(tuple(self._cards))

    def _down(self, message: GenerationDown) -> None:
        child, turn = self._turn.child, self._turn
        if isinstance(child, ABSENT) or child.generation > message.generation:
            if message.unexpected and isinstance(child, NoChild):
                turn.tell_supervisor(ExitCounted(generation=message.generation, runs=()))
            return
        tally = dispatch_exits.tally(self._cards.values(), message, turn)
        self._leave()
        turn.reading = NOTHING
        if message.unexpected:
            self._count(dispatch_exits.count(tally, turn))

    def _count(self, child: Counting | Uncounted | NoChild) -> None:
        """The state of an exit's count; once it is counted, prepare for the next child."""
        self._turn.child = child
        if isinstance(child, NoChild):
            dispatch_reading.begin(self._cards.values(), self._turn)

    def _quiesce(self, message: Quiesce) -> None:
        child, turn = self._turn.child, self._turn
        match child:
            case Up(generation, ref) if generation == message.generation:
                turn.child = Waning(generation, ref)
                turn.drop_suspects()
                self._book.resting = NONE
                self._settle(tuple(self._cards))
            case Broken(generation=generation) if generation == message.generation:
                turn.tell_supervisor(StillExecuting(message.generation, ()))  # no run was given to it
            case _:
                pass  # of a child that is gone: that is told by itself

    def _close(self, message: Close) -> None:
        child = self._state.child
        if isinstance(child, Up) and child.generation == message.generation:
            self._turn.child = replace(child, takes="begun")
            if child.takes == "nothing":  # what has begun needn't wait for others any more
                self._settle(tuple(self._cards))

    def _doze(self, message: Doze) -> None:
        if dispatch_dozing.settle(self._cards.values(), message, self._turn):
            self._book.resting = NONE

    def _leave(self) -> None:
        """No child any more. Requests about mail go on: their answers come, whichever generation there is."""
        turn = self._turn
        turn.child = NoChild()
        turn.drop_suspects()
        dispatch_barrier.down(turn)
        self._book.resting = NONE
        for run, card in self._cards.items():
            self._cards[run] = dispatch_session.lost(card)

    def _woken(self, message: Woken) -> Iterable[RunId]:
        turn = self._turn
        if dispatch_barrier.woken(message.token, turn):
            return tuple(self._cards)  # there may be no keeper to ask any more
        if message.token == turn.suspects_wake:
            turn.suspects_wake = None
            return ()
        if turn.grace_wake is not None and message.token == turn.grace_wake[0]:
            (_, due), turn.grace_wake = turn.grace_wake, None
            dispatch_grace.woken(self._cards, due, turn)
            return ()
        if message.token != turn.retry_wake:
            return ()
        turn.retry_wake = None
        if isinstance(turn.child, Uncounted):
            self._count(dispatch_exits.count(turn.child.tally, turn))
        waiting = [c for c in self._cards.values() if isinstance(c.errand, Later) or isinstance(c.session, Postponed)]
        for card in waiting:
            self._cards[card.id] = replace(
                card,
                errand=Free() if isinstance(card.errand, Later) else card.errand,
                session=Away() if isinstance(card.session, Postponed) else card.session,
            )
        return tuple(card.id for card in waiting)

    def _settle(self, runs: Iterable[RunId]) -> None:
        for run in runs:
            self._settle_one(run)
        while (suspect := dispatch_suspects.let_in(self._cards, self._turn)) is not None:
            self._settle_one(suspect)
        dispatch_grace.look(self._cards, self._turn)

    def _settle_one(self, run: RunId) -> None:
        card = self._cards.get(run)
        if card is None:
            return
        card = dispatch_queue.settle(dispatch_session.settle(card, self._turn), self._turn)
        self._cards[run] = card
        if isinstance(card.errand, Answered):
            self._owed[run] = card.errand.position
        self._book.put_away(run)


def _due(waiting: dict[RunId, int], position: int) -> list[RunId]:
    """Remove and return the runs whose position has been reached."""
    due = [run for run, expected in waiting.items() if expected <= position]
    for run in due:
        del waiting[run]
    return due

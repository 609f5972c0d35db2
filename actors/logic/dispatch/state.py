"""What dispatch keeps between two messages: its states, what a turn is made of, and what is kept of it afterwards.

Records, and the two ways between them: a field that a new mail, child or wake-up needs is added here and nowhere else.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from actors.logic.dispatch.barrier import Barrier
from actors.logic.dispatch.book import Book
from actors.logic.dispatch.card import Card, Child, Grace, Trial
from actors.logic.dispatch.reading import NOTHING, Reading
from actors.logic.dispatch.turn import Setup, Turn
from actors.logic.ordinals import NONE, Ordinals
from waypost.model.ids import RunId
from waypost.model.times import Now


@dataclass(frozen=True, slots=True)
class Unopened:
    """The repository's present isn't known yet."""

    setup: Setup


@dataclass(frozen=True, slots=True, kw_only=True)
class Open:
    """Everything that waits: a card for each run that is driven, and for each run that has mail queued."""

    setup: Setup
    repository: str
    position: int
    child: Child
    cards: Mapping[RunId, Card]
    homes: Mapping[int, RunId]
    """The run of each unconsumed mail, by arrival."""
    barrier: Barrier
    reading: Reading = NOTHING
    resting: Ordinals = NONE
    """Runs without a card that the child follows: parked, sent to their end, with no mail."""
    fresh: Mapping[RunId, int]
    """Runs whose RunStarted or RunResumed isn't durable yet, and the position that must be."""
    owed: Mapping[RunId, int] = field(default_factory=dict)
    """Runs with an answer whose facts are still on the way, and up to which position."""
    counter: int = 0
    asked: Mapping[int, tuple[RunId, ...]] = field(default_factory=dict)
    """The runs of requests under way, by correlation."""
    suspects: tuple[RunId, ...] = ()
    trial: Trial | None = None
    ahead: RunId | None = None
    retry_wake: int | None = None
    suspects_wake: int | None = None
    graces: Mapping[RunId, Grace] = field(default_factory=dict)
    """The runs that are being cancelled, and how long each has."""
    grace_wake: tuple[int, float] | None = None


State: TypeAlias = Unopened | Open


def turn_of(state: Open, now: Now) -> Turn:
    """A turn that begins: its own copy of what may change in it."""
    return Turn(
        setup=state.setup,
        now=now,
        child=state.child,
        repository=state.repository,
        position=state.position,
        counter=state.counter,
        asked=dict(state.asked),
        fresh=dict(state.fresh),
        suspects=dict.fromkeys(state.suspects),
        trial=state.trial,
        ahead=state.ahead,
        retry_wake=state.retry_wake,
        suspects_wake=state.suspects_wake,
        graces=dict(state.graces),
        grace_wake=state.grace_wake,
        barrier=state.barrier,
        reading=state.reading,
    )


def kept(state: Open, turn: Turn, book: Book, owed: Mapping[RunId, int]) -> Open:
    """What is kept of a turn that is over."""
    return replace(
        state,
        position=turn.position,
        child=turn.child,
        cards=book.cards,
        homes=book.homes,
        resting=book.resting,
        fresh=turn.fresh,
        owed=owed,
        counter=turn.counter,
        asked=turn.asked,
        suspects=tuple(turn.suspects),
        trial=turn.trial,
        ahead=turn.ahead,
        retry_wake=turn.retry_wake,
        suspects_wake=turn.suspects_wake,
        graces=turn.graces,
        grace_wake=turn.grace_wake,
        barrier=turn.barrier,
        reading=turn.reading,
    )

"""What dispatch keeps of one run: its state, its mails, and where two small machines stand.

The *errand* is what is being asked of the queue on the run's behalf (claim, take up, put back); the *session* is how
far the present child has been given the run. Both follow from facts: a card holds nothing that log and queue couldn't
give again.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from actors.draining import StillExecuting, Takes
from substrate.messages import Interrupted, Queued
from waypost.acting import Ref
from waypost.model import run as fold
from waypost.model.ids import Generation, RunId

# --- the child ------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class NoChild:
    """Nobody to give a run to: mail and runs wait."""


@dataclass(frozen=True, slots=True)
class Up:
    """A child that takes runs; ``since``, in monotonic seconds."""

    generation: Generation
    ref: Ref
    since: float = 0.0
    takes: Takes = "all"
    """Which mail is taken up."""


@dataclass(frozen=True, slots=True)
class Broken:
    """A child whose code doesn't load: what should run is paused, nothing is started."""

    generation: Generation
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Tally:
    """An exit that nobody expected, while it is being counted against the runs that the child drove."""

    generation: Generation
    reason: str
    left: tuple[RunId, ...]
    """Not counted yet, oldest first."""
    counted: tuple[Interrupted, ...] = ()
    beside: int = 0
    """Runs that were driven, too, and are spared: they had their trial, and another one was on trial."""


@dataclass(frozen=True, slots=True)
class Counting:
    """The child has gone; its exit is being counted, durably, and until it is there is no other child."""

    tally: Tally
    correlation: int


@dataclass(frozen=True, slots=True)
class Uncounted:
    """It couldn't be written; the next wake-up tries again."""

    tally: Tally


@dataclass(frozen=True, slots=True)
class Waning:
    """A child that is given nothing more; ``told``: who is at work, as the supervisor was told."""

    generation: Generation
    ref: Ref
    told: StillExecuting | None = None


Child: TypeAlias = NoChild | Up | Broken | Waning | Counting | Uncounted
ABSENT = (NoChild, Counting, Uncounted)
"""Where there is no child."""
IDLE = (NoChild, Counting, Uncounted, Waning)
"""Where nothing is claimed."""


BEGINNING = ("all", "first")
"""What a child takes with which runs begin, whatever began them."""


@dataclass(frozen=True, slots=True)
class Trial:
    """The suspect that was resumed last; ``since``, in monotonic seconds."""

    run: RunId
    since: float


# --- the errand: one request about the run's mail at a time --------------------------------------------------------

Verb = Literal["claim", "take-up", "release", "tell"]


@dataclass(frozen=True, slots=True)
class Denial:
    """The substrate refused ``verb`` when the run stood at ``seq``; while it stands there, it isn't asked again."""

    verb: Verb
    seq: int
    generation: Generation


@dataclass(frozen=True, slots=True)
class Free:
    """Nothing is under way."""


@dataclass(frozen=True, slots=True)
class Requested:
    """A request is under way; ``basis`` is what will be remembered if it is refused."""

    correlation: int
    arrival: int
    basis: Denial


@dataclass(frozen=True, slots=True)
class Answered:
    """Done at ``position``, whose facts may still be on the way."""

    position: int


@dataclass(frozen=True, slots=True)
class Later:
    """It couldn't be written; the next wake-up tries again."""


Errand: TypeAlias = Free | Requested | Answered | Later


# --- the session: the run and the present child --------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Away:
    """The child hasn't been given the run."""


@dataclass(frozen=True, slots=True)
class Pending:
    """RunResumed (or RunPaused, if the code is broken) was asked for when the run stood at ``seq``."""

    correlation: int
    seq: int


@dataclass(frozen=True, slots=True)
class Denied:
    """It was refused when the run stood at ``seq``; it is asked for again when the run has moved."""

    seq: int


@dataclass(frozen=True, slots=True)
class Postponed:
    """It couldn't be written; the next wake-up tries again."""


@dataclass(frozen=True, slots=True)
class Opening:
    """RunStarted or RunResumed is durable; the first page has been asked for, ``run.start`` goes out with it."""

    correlation: int


@dataclass(frozen=True, slots=True)
class Feeding:
    """The log has been sent up to ``sent``, the next page is asked for."""

    correlation: int
    sent: int
    credits: int


@dataclass(frozen=True, slots=True)
class Full:
    """The log has been sent up to ``sent``; the child has as many pages as it may have."""

    sent: int


@dataclass(frozen=True, slots=True)
class Live:
    """The child follows: every event after ``sent`` goes to it when it is committed."""

    sent: int


Session: TypeAlias = Away | Pending | Denied | Postponed | Opening | Feeding | Full | Live
GIVEN = (Feeding, Full, Live)
"""Sessions in which ``run.start`` has been sent."""


@dataclass(frozen=True, slots=True)
class Grace:
    """The time that a cancelled run has to end by itself: ``until`` when (monotonic seconds).

    ``told``: whether its child was told, so that this is the second time it was given.
    """

    until: float
    told: bool = False
    asked: int | None = None
    """Correlation of the end that was asked for."""


# --- the card -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Over:
    """A run that isn't live and that no queued mail starts: it has ended, as far as is known here."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Card:
    """One run: live, about to begin, or gone with mail left for it. Mails are in arrival order."""

    id: RunId
    run: fold.Live | fold.Absent | Over
    inbox: tuple[Queued, ...] = ()
    claimed: tuple[Queued, ...] = ()
    errand: Errand = Free()
    session: Session = Away()
    denials: Mapping[int, Denial] = field(default_factory=dict)
    """What was refused, by arrival."""

    @property
    def seq(self) -> int:
        """Of the run's newest event; 0 when it isn't live."""
        return 0 if isinstance(self.run, fold.Absent | Over) else self.run.ledger.seq

    @property
    def first(self) -> int | None:
        """Arrival of the oldest mail that isn't consumed."""
        return min((queued.entry.arrival for queued in (*self.inbox[:1], *self.claimed[:1])), default=None)

    @property
    def idle(self) -> bool:
        """Whether there is nothing left to remember."""
        return self._quiet and isinstance(self.session, Away)

    @property
    def rests(self) -> bool:
        """Whether that the child follows is all there is to remember; it has been sent all there is."""
        return self._quiet and self.session == Live(self.seq)

    @property
    def _quiet(self) -> bool:
        still = not isinstance(self.run, fold.Driven) and isinstance(self.errand, Free | Later)
        return still and not self.inbox and not self.claimed

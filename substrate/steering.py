"""What is done to a run from outside: it is answered, signalled, paused, let go on, cancelled; and what it asks people.

Part of ``substrate.messages``, by whose name it is imported. The value of each operation is in its docstring.
"""

from dataclasses import dataclass, field

from substrate.beginning import Start
from waypost.model.event_parts import Origin
from waypost.model.events import Decision
from waypost.model.ids import CallId, Generation, RunId
from waypost.model.run import Driven


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The operator answers an approval; ``call`` may be None when exactly one is open. Value: the answered CallId.

    A second answer is refused with code ``already-decided`` and says who decided, and when.
    """

    run: RunId
    call: CallId | None
    decision: Decision


@dataclass(frozen=True, slots=True, kw_only=True)
class Pause:
    """RunPaused; a run that is paused or ended already is left alone. Value: None.

    One that is being cancelled has no code to wait for then: it ends, with RunCancelled.
    """

    run: RunId
    code: str
    detail: str
    generation: Generation | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Unpause:
    """RunUnpaused, by an operator. Value: None."""

    run: RunId
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Cancel:
    """CancelRequested; of a paused run, whose code doesn't run, RunCancelled with it. Value: ``CancelTaken``.

    ``generation``: of the child whose run's own code asks, at ``call``. ``start``: what a run records that hasn't begun
    yet; then its first mail is consumed, by RunStarted, CancelRequested and RunCancelled.
    """

    run: RunId
    reason: str
    origin: Origin
    by: str = ""
    call: CallId | None = None
    generation: Generation | None = None
    start: Start | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CancelTaken:
    """Who asked first, and when; ``fresh``: it was this one. Otherwise nothing has changed."""

    fresh: bool
    at: str
    origin: str
    by: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """SignalReceived with a name: the oldest wait for it takes it, or it is kept for the next. Value: ``SignalTaken``.

    ``payload`` is JSON in one line (``waypost.model.signals``); ``id`` makes a repetition known.
    """

    run: RunId
    name: str
    id: str
    payload: bytes = field(repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class SignalTaken:
    """``received`` by the wait at ``call``, ``kept`` for the next wait, or ``already-present``: nothing has changed."""

    outcome: str
    call: CallId | None = None


# --- questions -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadLive:
    """The runs that haven't ended: those whose code has something to do, and how many rest. Value: ``LiveRuns``."""

    limit: int = 1000
    """Up to which those that rest are counted."""


@dataclass(frozen=True, slots=True)
class LiveRuns:
    """``resting``: parked or paused; as many as there are, or as were counted."""

    driven: tuple[Driven, ...]
    resting: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ReadApprovals:
    """The open approvals of the runs behind ``after``, oldest run first, a portion of them. Value: ``Approvals``."""

    after: RunId | None = None
    limit: int
    """Runs that are looked at."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval:
    """An open approval. ``request``: Message-ID of the mail that asks; ``deadline``: Unix ms; ``snapshot``: JSON."""

    run: RunId
    call: CallId
    at: str
    title: str
    who: tuple[str, ...]
    request: str
    deadline: int | None
    snapshot: bytes | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class Approvals:
    """``next``: the last run that was looked at, where others follow it."""

    found: tuple[Approval, ...]
    next: RunId | None

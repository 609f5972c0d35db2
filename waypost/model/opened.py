"""What may be open in a live run, one record for each kind: a try, a pause between two, a timer, a wait, a child.

Part of ``waypost.model.ledger``, which opens and closes them.
"""

from dataclasses import dataclass

import msgspec

from waypost.model.ids import CallId, RunId


class OpenStep(msgspec.Struct, frozen=True):
    """A try under way."""

    step: str
    attempt: int
    arguments: str
    since: str


@dataclass(frozen=True, slots=True)
class Retry:
    """A step between two tries; the next begins when the timer has fired."""

    step: str
    attempt: int
    arguments: str
    error: str


@dataclass(frozen=True, slots=True)
class Timer:
    """A pending timer; ``fire_at`` in Unix milliseconds."""

    call: CallId
    fire_at: int


@dataclass(frozen=True, slots=True)
class Wait:
    """An open park; ``timeout_at`` in Unix milliseconds, None for an explicit "no deadline"."""

    park: str
    title: str
    who: tuple[str, ...]
    request: str
    timeout_at: int | None
    since: str
    name: str = ""
    """Of the signal that is waited for."""
    seq: int = 0
    """Of its SignalAwaited."""


@dataclass(frozen=True, slots=True)
class Cancel:
    """Who asked for the run's end, when and why; ``seq`` is that of CancelRequested."""

    origin: str
    reason: str
    by: str
    at: str
    seq: int


@dataclass(frozen=True, slots=True)
class ChildRun:
    """A child run that hasn't ended, as its parent knows it."""

    child: RunId
    workflow: str
    arguments: str
    since: str
    cancelling: bool = False
    """Whether its end was asked for: then no code of the parent awaits it."""

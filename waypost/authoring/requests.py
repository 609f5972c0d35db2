"""What a run's code can ask of its host: one frozen record per kind of durable call.

Data only; the child runtime turns them into events and brings the outcomes back.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from waypost.model.values import Codec


@dataclass(frozen=True, slots=True, kw_only=True)
class StepSpec:
    """A declared step. ``retries``: further tries after the first; ``raises``: types that are rebuilt when raised."""

    name: str
    function: Callable[..., Any]
    asynchronous: bool
    codec: Codec
    retries: int = 0
    raises: tuple[type[Exception], ...] = ()


@dataclass(frozen=True, slots=True)
class CallStep:
    """Run a step; the outcome is what it returned. ``digest``: of its arguments, SHA-256 in hex."""

    spec: StepSpec
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    digest: str


@dataclass(frozen=True, slots=True)
class Sleep:
    """Wait for a time to pass, in seconds; the outcome is None."""

    delay: float


@dataclass(frozen=True, slots=True)
class AwaitMail:
    """Wait for the run's next mail; ``timeout`` in seconds. The outcome is the mail."""

    timeout: float | None


@dataclass(frozen=True, slots=True)
class AwaitDecision:
    """Wait for a person's decision, which the mail ``request`` (a Message-ID) asked for; the outcome is that decision.

    ``who``: addresses, any one of which may answer; ``timeout`` in seconds.
    """

    title: str
    who: tuple[str, ...]
    request: str
    timeout: float | None


@dataclass(frozen=True, slots=True)
class Enclosure:
    """An attachment of an outgoing mail."""

    name: str
    content_type: str
    content: bytes


@dataclass(frozen=True, slots=True)
class Send:
    """Send a mail; the outcome is its Message-ID.

    ``reply_to``: SHA-256 of a mail of this run, to answer in its thread.
    """

    to: tuple[str, ...]
    subject: str
    text: str
    reply_to: str | None = None
    attachments: tuple[Enclosure, ...] = ()


Request: TypeAlias = CallStep | Sleep | AwaitMail | AwaitDecision | Send


def describe(request: Request) -> str:
    """The request in words, as a message shows it."""
    match request:
        case CallStep():
            return f"step {request.spec.name}"
        case Sleep():
            return "a sleep or timeout"
        case AwaitMail():
            return "receive()"
        case AwaitDecision():
            return f"approve(who={', '.join(request.who)})"
        case Send():
            return "send()"

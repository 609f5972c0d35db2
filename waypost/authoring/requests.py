"""What a run's code can ask of its host: one frozen record per kind of durable call.

Data only; the child runtime turns them into events and brings the outcomes back. Structs here and in waypost.child,
not dataclasses: fifty of those cost a starting child 25 ms.
"""

from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

import msgspec

from waypost.model.values import Codec


class StepSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A declared step. ``retries``: further tries after the first; ``raises``: types that are rebuilt when raised."""

    name: str
    function: Callable[..., Any]
    asynchronous: bool
    codec: Codec
    retries: int = 0
    raises: tuple[type[Exception], ...] = ()
    on_drain: str = "wait"
    secrets: tuple[str, ...] = ()


class CallStep(msgspec.Struct, frozen=True):
    """Run a step; the outcome is what it returned. ``digest``: of its arguments, SHA-256 in hex."""

    spec: StepSpec
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    digest: str


class ChildSpec(msgspec.Struct, frozen=True, kw_only=True):
    """A declared child: a function that runs as a run of its own. ``parameters``: the codec of each, by name."""

    name: str
    function: Callable[..., Any]
    asynchronous: bool
    codec: Codec
    parameters: Mapping[str, Codec]


class CallChild(msgspec.Struct, frozen=True):
    """Start a child run and wait for its end; the outcome is what it returned.

    ``input``: its arguments, as a JSON object by the names of the parameters, the same bytes in every process;
    ``digest``: SHA-256 of these in hex.
    """

    spec: ChildSpec
    input: bytes
    digest: str


class Sleep(msgspec.Struct, frozen=True):
    """Wait for a time to pass, in seconds; the outcome is None."""

    delay: float


class AwaitMail(msgspec.Struct, frozen=True):
    """Wait for the run's next mail; ``timeout`` in seconds. The outcome is the mail."""

    timeout: float | None


class AwaitDecision(msgspec.Struct, frozen=True):
    """Wait for a person's decision, which the mail ``request`` (a Message-ID) asked for; the outcome is that decision.

    ``who``: addresses, any one of which may answer; ``timeout`` in seconds.
    """

    title: str
    who: tuple[str, ...]
    request: str
    timeout: float | None
    snapshot: bytes | None = None
    """JSON that whoever decides should see."""


class AwaitSignal(msgspec.Struct, frozen=True):
    """Wait for the signal of this name; ``timeout`` in seconds. The outcome is its payload, as JSON."""

    name: str
    timeout: float | None


class Quit(msgspec.Struct, frozen=True):
    """Ask for the end of this very run. There is no outcome: the run is cancelled while it waits for one."""

    reason: str


class Enclosure(msgspec.Struct, frozen=True):
    """An attachment of an outgoing mail."""

    name: str
    content_type: str
    content: bytes


class Send(msgspec.Struct, frozen=True):
    """Send a mail; the outcome is its Message-ID.

    ``reply_to``: SHA-256 of a mail of this run, to answer in its thread.
    """

    to: tuple[str, ...]
    subject: str
    text: str
    reply_to: str | None = None
    attachments: tuple[Enclosure, ...] = ()


Request: TypeAlias = CallStep | CallChild | Sleep | AwaitMail | AwaitDecision | AwaitSignal | Quit | Send


def topic(request: Request) -> str | None:
    """What else could take the answer to this wait, if its task was cancelled meanwhile; None for no such wait."""
    match request:
        case AwaitMail():
            return "mail"
        case AwaitSignal():
            return f"signal {request.name}"
        case _:
            return None


def describe(request: Request) -> str:  # noqa: PLR0911 - one arm per kind of request
    """The request in words, as a message shows it."""
    match request:
        case CallStep():
            return f"step {request.spec.name}"
        case CallChild():
            return f"child {request.spec.name}"
        case Sleep():
            return "a sleep or timeout"
        case AwaitMail():
            return "receive()"
        case AwaitDecision():
            return f"approve(who={', '.join(request.who)})"
        case AwaitSignal():
            return f"signal({request.name!r})"
        case Quit():
            return "cancel()"
        case Send():
            return "send()"

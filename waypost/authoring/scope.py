"""Where code is running: in a run, in a step's body, or outside of both.

The runtime sets the scope, the authoring API reads it; neither knows more of the other than the two classes here.
"""

from collections.abc import Awaitable, Callable, Coroutine
from contextvars import ContextVar
from typing import Any, Protocol, TypeAlias, TypeVar

import msgspec

from waypost.authoring.requests import Request

T = TypeVar("T")
Ask: TypeAlias = Callable[[Request], Awaitable[Any]]
"""Make one durable call and wait for its outcome; what comes back depends on the kind of request."""


class Engine(Protocol):
    """A run, as its own code sees it."""

    def perform(self, operation: Callable[[Ask], Coroutine[Any, Any, T]]) -> Coroutine[Any, Any, T] | T:
        """Carry out an operation made of durable calls.

        In an ``async def`` run it comes back as a coroutine; in a ``def`` run the call blocks and gives the result.
        """
        ...


class Recall:
    """Whether a step's body is called off: said by the run's own thread, heard by the body's, and never taken back."""

    __slots__ = ("said",)

    def __init__(self) -> None:
        self.said = False


def _nobody(_reason: str) -> None:
    """Who would renew a process that is no child."""


def _no_secret(handle: str) -> str:
    from waypost.authoring.errors import SecretRefused

    raise SecretRefused(handle, f"{handle!r:.80} wasn't given to this process")


class InStep(msgspec.Struct, frozen=True):
    """The body of one try of a step.

    ``key``: its idempotency key, 64 hex digits; ``report`` takes a line of progress; ``recall`` says when to stop;
    ``renew`` takes why the process wants a successor; ``secret`` gives the credential of a handle, as text, or raises
    SecretRefused; ``sources`` gives structs with the fields of ``waypost.authoring.secrets.Source``.
    """

    key: str
    report: Callable[[str], None]
    recall: Recall = msgspec.field(default_factory=Recall)
    renew: Callable[[str], None] = _nobody
    secret: Callable[[str], str] = _no_secret
    sources: Callable[[], tuple[Any, ...]] = tuple  # of structs; the wire's, which nothing here may know


class Nowhere(msgspec.Struct, frozen=True):
    """Neither run nor step: a plain Python process, such as a test or a shell."""


class Stray(msgspec.Struct, frozen=True):
    """A child process, but no run's own task or thread: a durable call here has no place in any program."""


Scope: TypeAlias = Engine | InStep | Nowhere | Stray

_scope: ContextVar[Engine | InStep | None] = ContextVar("waypost_scope", default=None)


class _Process:
    """What code without a scope is: set once, when a process becomes a child."""

    without: Nowhere | Stray = Nowhere()


def current() -> Scope:
    """The scope of the calling code."""
    return _scope.get() or _Process.without


def enter(scope: Engine | InStep) -> None:
    """Set the scope of the calling context; every task made from it inherits the scope."""
    _scope.set(scope)


def become_child() -> None:
    """From here on code outside runs and steps is stray. For the child runtime alone."""
    _Process.without = Stray()

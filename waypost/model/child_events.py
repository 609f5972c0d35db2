"""The events of child runs: one was started, refused, its end was asked for, it has ended; and whose child a run is.

A child run is a run of the same deployment that another run, its parent, has started and awaits; each has a log of its
own, and these stand in the parent's. What the child came to lies in the parent's log, so a replay of the parent needs
nothing of the child. Part of ``waypost.model.events``, by whose name they are imported.
"""

from typing import Annotated, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from waypost.model.event_parts import Call, Event, Fault, Line, Sha256, Text, Value
from waypost.model.ids import RunId

ChildOutcome: TypeAlias = Literal["completed", "failed", "cancelled"]
"""How a child run ends, as any run does."""


class Parent(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """Whose child a run is: the run and its call, which of the workflow's children it is, and how deep it lies."""

    run: RunId
    call: Call
    workflow: Line
    depth: Annotated[int, msgspec.Meta(ge=1)]
    """1 for the child of a run that is nobody's child."""


class ChildSpawned(Event, frozen=True, kw_only=True):
    """The call has a child run; in one commit with the mail that starts it. ``seen`` as in TimerSet."""

    call: Call
    child: RunId
    workflow: Line
    """Name of the child function."""
    arguments: Sha256
    """Digest of the JSON input; a replay that comes with another is a mismatch."""
    seen: int


class ChildRefused(Event, frozen=True, kw_only=True):
    """The call may not start a child run; it has started nothing, and this is its outcome."""

    call: Call
    workflow: Line
    reason: Text


class ChildCompleted(Event, frozen=True, kw_only=True):
    """The call's child run has ended; in the commit of its end.

    ``result``: of one that completed, and of no other. ``error``: of any other.
    """

    call: Call
    outcome: ChildOutcome
    result: Value | UnsetType = UNSET
    error: Fault | UnsetType = UNSET


class CodeRested(Event, frozen=True, kw_only=True):
    """The code has acted on every event up to ``seen``, and waits on; where no other event says so.

    A run with several children is told of one after the other, and has nothing to ask for in between.
    """

    seen: int


class ChildCancelRequested(Event, frozen=True, kw_only=True):
    """The code no longer awaits this call: its child run is told, in the same commit, to end.

    The child may have been quicker; then there is nothing left to cancel.
    """

    call: Call

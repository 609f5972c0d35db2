"""The function that a run begins with: the workflow's own, given its mail; or one of its children, given arguments.

Which of them it is, is in RunStarted and nowhere else, so a replay calls the same one.
"""

from collections.abc import Callable
from functools import partial
from typing import Any

import msgspec
from msgspec import UNSET

from waypost.authoring.children import arguments
from waypost.authoring.workflow import Workflow
from waypost.child.errors import CodeMissing, HostBroke, Mismatch
from waypost.child.outcomes import mail_of
from waypost.model import events as ev
from waypost.model.errors import Invalid
from waypost.model.values import Codec, ValueNotStorable


class Entry(msgspec.Struct, frozen=True):
    """What is called, and how what it returns is recorded."""

    body: Callable[[], Any]
    asynchronous: bool
    result: Codec

    def __call__(self) -> Any:
        """Call it: a coroutine, or in a ``def`` run what it returns."""
        return self.body()


def entry(workflow: Workflow, started: ev.RunStarted, mail: bytes) -> Entry:
    """The run's function, ready to be called. ``mail``: raw, of RunStarted.

    Raises CodeMissing for a child that isn't declared any more, Mismatch where it doesn't take what it was given.
    """
    parent = started.parent
    if parent is UNSET:
        return Entry(workflow.body(mail_of(mail, started.mail)), workflow.asynchronous, workflow.result)
    child = workflow.child_named(parent.workflow)
    if child is None:
        raise CodeMissing(workflow.name, parent.workflow)
    try:
        given = arguments(child.spec, _input(mail))
    except ValueNotStorable as changed:
        raise Mismatch("the start", f"arguments for child {parent.workflow}", f"others ({changed})") from None
    return Entry(partial(child.function, **given), child.spec.asynchronous, child.spec.codec)


def _input(mail: bytes) -> bytes:
    from waypost.model.child_mail import input_of  # a child that has none does without

    try:
        return input_of(mail)
    except Invalid as bad:
        raise HostBroke(f"the mail of a child run has no arguments: {bad.message}") from None

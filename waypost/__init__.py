"""Waypost: durable workflows that mail starts and resumes. This is the only name a workflow's author imports.

authoring/   what is re-exported here    child/   the spawned program that runs it
host/, cli/  the host and the command    model/   what host and child share    testing/   the test kit

The names below are loaded when they are first used: the host, the command and the wire import parts of this package
all the time and never pay for the authoring API.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from waypost.authoring.calls import Verdict, approve, cancel, receive, send, signal, sleep
    from waypost.authoring.children import Child
    from waypost.authoring.errors import (
        BadSignal,
        ChildFailed,
        ChildRefused,
        DeadlinePassed,
        Misdeclared,
        NotReplayable,
        RunCancelled,
        SecretRefused,
        SendRefused,
        StepError,
    )
    from waypost.authoring.secrets import Secret, Source, secret, sources
    from waypost.authoring.steps import Step, cancelled, idempotency_key, progress, recycle
    from waypost.authoring.workflow import Workflow
    from waypost.model.errors import Invalid, WaypostError
    from waypost.model.mail_record import Attachment, Mail
    from waypost.model.schedule import Tick
    from waypost.model.values import ValueNotStorable

__version__ = "0.1.0"

_HOME = {
    "Attachment": "waypost.model.mail_record",
    "BadSignal": "waypost.authoring.errors",
    "Child": "waypost.authoring.children",
    "ChildFailed": "waypost.authoring.errors",
    "ChildRefused": "waypost.authoring.errors",
    "DeadlinePassed": "waypost.authoring.errors",
    "Invalid": "waypost.model.errors",
    "Mail": "waypost.model.mail_record",
    "Misdeclared": "waypost.authoring.errors",
    "NotReplayable": "waypost.authoring.errors",
    "RunCancelled": "waypost.authoring.errors",
    "Secret": "waypost.authoring.secrets",
    "SecretRefused": "waypost.authoring.errors",
    "SendRefused": "waypost.authoring.errors",
    "Source": "waypost.authoring.secrets",
    "Step": "waypost.authoring.steps",
    "StepError": "waypost.authoring.errors",
    "Tick": "waypost.model.schedule",
    "ValueNotStorable": "waypost.model.values",
    "Verdict": "waypost.authoring.calls",
    "WaypostError": "waypost.model.errors",
    "Workflow": "waypost.authoring.workflow",
    "approve": "waypost.authoring.calls",
    "cancel": "waypost.authoring.calls",
    "cancelled": "waypost.authoring.steps",
    "idempotency_key": "waypost.authoring.steps",
    "progress": "waypost.authoring.steps",
    "receive": "waypost.authoring.calls",
    "recycle": "waypost.authoring.steps",
    "secret": "waypost.authoring.secrets",
    "send": "waypost.authoring.calls",
    "signal": "waypost.authoring.calls",
    "sleep": "waypost.authoring.calls",
    "sources": "waypost.authoring.secrets",
}

__all__ = [
    "Attachment",
    "BadSignal",
    "Child",
    "ChildFailed",
    "ChildRefused",
    "DeadlinePassed",
    "Invalid",
    "Mail",
    "Misdeclared",
    "NotReplayable",
    "RunCancelled",
    "Secret",
    "SecretRefused",
    "SendRefused",
    "Source",
    "Step",
    "StepError",
    "Tick",
    "ValueNotStorable",
    "Verdict",
    "WaypostError",
    "Workflow",
    "approve",
    "cancel",
    "cancelled",
    "idempotency_key",
    "progress",
    "receive",
    "recycle",
    "secret",
    "send",
    "signal",
    "sleep",
    "sources",
]


def __getattr__(name: str) -> Any:
    """Load a public name on first use."""
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module 'waypost' has no attribute {name!r}")
    value = globals()[name] = getattr(import_module(home), name)
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})

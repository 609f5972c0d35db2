"""What a workflow file declares, as the host needs to know it: read once, without keys, by ``--describe``.

Shared by the child, which prints it, and the host, which reads it: user code is never imported by the host.
"""

import hashlib
from typing import Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from waypost.model.errors import Invalid
from waypost.model.schedule import Schedule

Runs: TypeAlias = Literal["thread", "message", "deployment"]
"""Which mails share a run (storage §5)."""
OnCrashLoop: TypeAlias = Literal["wait", "fail"]
"""What becomes of live runs when their children end again and again (design §10)."""


OnDrain: TypeAlias = Literal["wait", "cancel"]
"""What becomes of a step when its deployment is taken out of service."""


class StepDeclared(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A step; ``raises`` are the names of the exception types that are rebuilt when it raises them."""

    name: str
    asynchronous: bool
    retries: int = 0
    raises: tuple[str, ...] = ()
    on_drain: Literal["cancel"] | UnsetType = UNSET
    """What becomes of it when its deployment is taken out of service; as a rule it is waited for."""
    secrets: tuple[str, ...] | UnsetType = UNSET
    """Handles of the secrets that it asks for; an operator grants them (``waypost.model.grants``)."""


class ChildDeclared(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A function that a run may start as a child run."""

    name: str
    asynchronous: bool
    """Whether it is ``async def``."""


class Declared(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A Workflow: its settings, and its steps in the order of the file."""

    name: str
    address: str
    mail_to: tuple[str, ...] = ()
    runs: Runs = "thread"
    env: tuple[str, ...] = ()
    files: tuple[str, ...] = ()
    """Data files that belong to the code, from the workflow file's folder."""
    on_crash_loop: OnCrashLoop = "wait"
    warm: Literal[True] | UnsetType = UNSET
    """Whether it keeps its process where there is nothing to do; as a rule it lets it go."""
    asynchronous: bool = True
    """Whether the run function is ``async def``."""
    steps: tuple[StepDeclared, ...] = ()
    secrets: tuple[str, ...] | UnsetType = UNSET
    """Handles of the secrets that it asks for on behalf of all its steps."""
    schedules: tuple[Schedule, ...] | UnsetType = UNSET
    """In the order of the file; left out where there are none."""
    children: tuple[ChildDeclared, ...] | UnsetType = UNSET
    """In the order of the file; left out where there are none."""

    def digest(self) -> str:
        """The definition hash: SHA-256 (hex) of this record's JSON."""
        return hashlib.sha256(msgspec.json.encode(self)).hexdigest()

    def asked(self) -> tuple[tuple[str, str], ...]:
        """Every secret that is asked for, in the order of the file: the step (``@run`` for all of them), the handle."""
        several = (("@run", self.secrets), *((step.name, step.secrets) for step in self.steps))
        return tuple((step, handle) for step, handles in several for handle in handles or ())


class Description(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The answer of ``--describe FILE``: the declaration, and where its code lies.

    ``root``: the folder that goes on the import path; ``module``: the file's name in it; ``sha256``: of the tree of
    code that it lies in, or of the file; ``distributions``: digest of what is installed, each as ``name==version``.
    """

    workflow: Declared
    definition: str
    root: str
    module: str
    sha256: str
    python: str
    waypost: str
    distributions: str


class NotDescribed(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """The other answer: why the file can't be used. ``code`` is one of waypost.child.errors.NotLoadable's.

    ``wanted``: a module that was imported and wasn't there, by its dotted name.
    """

    error: str
    code: str
    path: str
    hint: str = ""
    wanted: str = ""


def read(raw: bytes) -> Description | NotDescribed:
    """Decode what ``--describe`` printed. Raises Invalid for anything else."""
    try:
        if raw.lstrip().startswith(b'{"error"'):
            return msgspec.json.decode(raw, type=NotDescribed)
        return msgspec.json.decode(raw, type=Description)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as bad:
        raise Invalid(f"the workflow's description can't be read: {bad}") from None

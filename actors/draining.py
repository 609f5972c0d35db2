"""Planned ends: draining, a fresh process, rest, sleep; who wants it, and what is still waited for.

Records only; part of ``actors.messages``, which carry them.
"""

from dataclasses import dataclass
from typing import Literal, TypeAlias

from waypost.model.ids import Generation, RunId

Origin: TypeAlias = Literal["operator", "policy", "self", "crash"]
"""Who wants a fresh process: a person, a bound of the host's, the process itself, or its end that nobody wanted."""
Takes: TypeAlias = Literal["all", "begun", "nothing", "first"]
"""Which mail is taken up: all of it; that of runs that have begun; none yet; all, and ``TookUp`` is owed."""
Line: TypeAlias = Literal["", "waits", "called"]
"""Of a deployment that mail has woken: its mail waits for others', or is to be taken up now; empty: it is, as ever."""
SHOWN = 20
"""Runs that are named at most; the others are counted."""


@dataclass(frozen=True, slots=True)
class Executing:
    """A run whose code is at work. ``step``: what it does, in words; ``since``: ISO 8601 UTC, empty where unknown."""

    run: RunId
    step: str
    since: str


@dataclass(frozen=True, slots=True)
class Renewed:
    """How the present process came to follow another one. ``at``: Unix ms."""

    origin: Origin
    reason: str
    at: int
    generation: Generation


# --- to a supervisor -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Recycle:
    """Asked: give the deployment a fresh process. The answer is Done (it has begun), or Refused with a code."""

    reason: str


@dataclass(frozen=True, slots=True)
class RecycleRequested:
    """The child itself asks for a fresh process."""

    generation: Generation
    reason: str


@dataclass(frozen=True, slots=True)
class StillExecuting:
    """From dispatch while it drains, whenever it changes: the runs that execute, and how many more. None: drained."""

    generation: Generation
    runs: tuple[Executing, ...]
    more: int = 0


@dataclass(frozen=True, slots=True)
class ChildWeighed:
    """Resident memory of the child's process group, in bytes; and whether somebody has stopped it (`ipc.stopped`)."""

    generation: Generation
    size: int
    halted: bool = False


@dataclass(frozen=True, slots=True)
class Rested:
    """From dispatch, which was told ``Doze``: all is at rest as of ``position``, and it begins nothing more.

    None: something is to be done, and it goes on as ever.
    """

    generation: Generation
    position: int | None


@dataclass(frozen=True, slots=True)
class GiveWay:
    """From the host: others wait for a place. The child is let go as soon as there is nothing for it to do."""


@dataclass(frozen=True, slots=True)
class Depart:
    """From the host: whoever sleeps isn't needed any more, nothing more comes this way. Who is awake ignores it."""


@dataclass(frozen=True, slots=True)
class GoAhead:
    """From the host: whoever mail has woken before has taken its own up, or isn't waited for. It may take up mail."""


@dataclass(frozen=True, slots=True)
class TookUp:
    """From dispatch, which was told ``TakeUpMail``: what could be taken up is, and a run that it begins is durable."""

    generation: Generation


# --- to dispatch, to a child ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Quiesce:
    """Claim no more, give the child nothing more; let go of each run that comes to rest, and say who executes."""

    generation: Generation


@dataclass(frozen=True, slots=True)
class TakeUpMail:
    """Take up mail from now on, with the child of this generation; answered with ``TookUp``, once nothing is left."""

    generation: Generation


@dataclass(frozen=True, slots=True)
class Close:
    """Begin no run any more with the child of this generation; those that have begun go on, with their mail."""

    generation: Generation


@dataclass(frozen=True, slots=True)
class Doze:
    """If all is at rest, begin nothing more with the child of this generation; answered with ``Rested``."""

    generation: Generation


@dataclass(frozen=True, slots=True)
class Weigh:
    """Tell the supervisor what the kernel says of the child's process group: ``ChildWeighed``.

    ``memory``: how much it has, too; else it is told as 0.
    """

    memory: bool = True

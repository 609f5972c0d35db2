"""What a deployment is made of: what its file declares, the parts that its actors play, and who starts them.

Records only; part of ``actors.messages``, by whose name they are imported.
"""

import enum
from dataclasses import dataclass
from typing import Protocol

from waypost.acting import Ref
from waypost.model.declaration import OnCrashLoop
from waypost.model.ids import Deployment, Generation


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentSpec:
    """A deployment as data: what its file declares, and where it lies. No field is secret."""

    name: Deployment
    address: str
    definition: str
    """SHA-256 of what the file declares."""
    code: str
    """Hash of its tree of code."""
    file: str
    steps: tuple[str, ...]
    mail_to: tuple[str, ...]
    runs: str
    """``thread``, ``message`` or ``deployment``."""
    env: tuple[str, ...]
    """Names of environment variables that the child may see."""
    python: str
    waypost: str
    distributions: str = ""
    """Digest of what is installed beside them."""
    isolation: str = "none"
    on_crash_loop: OnCrashLoop = "wait"
    """At the latch live runs wait for an operator, or those that aren't parked ``fail``."""
    cut_short: tuple[str, ...] = ()
    """Steps that a deployment which is taken out of service doesn't wait for to their end."""
    secrets: tuple[tuple[str, str], ...] = ()
    """What its steps ask for: the step (``@run`` for all), the handle."""
    warm: bool = False
    """Whether it keeps its process also where there is nothing to do."""
    children: tuple[str, ...] = ()
    """Functions that a run may start as child runs."""


class Role(enum.StrEnum):
    """A part in a deployment's crew. The actor that plays it is named ``<deployment>/<role>``."""

    SUBSTRATE = "substrate"
    BROADCASTER = "broadcaster"
    DISPATCH = "dispatch"
    SCHEDULER = "scheduler"
    CHILD = "child"


class Crew(Protocol):
    """Starts a supervisor's actors. ``waypost.host`` provides it: the five actors don't import each other.

    Each gets ``parent`` as its parent, the name that ``Role`` says and the incarnation (the child: its generation):
    by these its supervisor knows whose end an ``ActorEnded`` tells of.
    """

    def substrate(self, parent: Ref, incarnation: int) -> Ref:
        """A SubstrateActor, not opened yet."""
        ...

    def dispatch(self, parent: Ref, incarnation: int, substrate: Ref) -> Ref:
        """A DispatchActor; it is subscribed by its supervisor."""
        ...

    def scheduler(self, parent: Ref, incarnation: int, substrate: Ref) -> Ref:
        """A SchedulerActor; it is subscribed by its supervisor."""
        ...

    def broadcaster(self, parent: Ref, incarnation: int) -> Ref:
        """A TerminalBroadcasterActor; it is subscribed by its supervisor."""
        ...

    def child(self, parent: Ref, generation: Generation, peers: "Peers") -> Ref:
        """A ChildProcessActor for this generation, not launched yet."""
        ...


@dataclass(frozen=True, slots=True)
class Peers:
    """Whom a ChildProcessActor talks to. As a message: one of them was replaced."""

    substrate: Ref
    dispatch: Ref
    broadcaster: Ref

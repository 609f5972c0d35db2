"""How credentials and model sources come to a deployment: what dispatch asks for, and what a supervisor passes on.

Before a run is started or resumed, dispatch asks the keeper of credentials (``waypost.host``) for what the deployment's
steps may read, by ``AssembleCredentials``, and sends the child what comes back: ``grants-updated``,
``credentials-updated``, ``run.start``, in this order. What changes later, by a rotation, goes by the supervisor.

Records only; part of ``actors.messages``. No repr of any of them shows a value.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TypeAlias

from ipc.deliveries import CredentialsUpdated, SourcesUpdated
from waypost.acting import Ref
from waypost.model.grants import Asked
from waypost.model.ids import Deployment, Generation

# --- dispatch and the keeper ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True, kw_only=True)
class AssembleCredentials:
    """To the keeper: the values of these handles. The answer, ``Assembled`` or ``NotAssembled``, goes to ``reply_to``.

    ``bindings``: step to handles, as granted at this moment (``waypost.model.grants.readable``); they replace what was
    asked for before. ``supervisor``: who passes on what changes later.
    """

    correlation: int
    deployment: Deployment
    bindings: Mapping[str, tuple[str, ...]]
    reply_to: Ref
    supervisor: Ref | None = None


@dataclass(frozen=True, slots=True)
class Assembled:
    """To be sent to the child in this order. ``sources``: None where there are none."""

    correlation: int
    credentials: CredentialsUpdated
    sources: SourcesUpdated | None = None


@dataclass(frozen=True, slots=True)
class NotAssembled:
    """One that is wanted isn't to be had: ``passing`` says whether trying again may help.

    ``why`` names the handle and says what failed, without a word of what a command or a file said.
    """

    correlation: int
    passing: bool
    why: str


@dataclass(frozen=True, slots=True)
class Barred:
    """Dispatch, to its supervisor: why no run is given to this generation's child, or none begins there but to fail.

    Empty where that isn't so any more. ``lacks``: what isn't granted, the step and the handle; ``file``: grants that
    can't be read; ``unlisted``: a credential isn't to be had until somebody lists it; ``reading``: it isn't known yet
    whether all are to be had; ``since``: Unix ms.
    """

    generation: Generation
    why: str
    lacks: tuple[Asked, ...] = ()
    file: str = ""
    unlisted: bool = False
    reading: bool = False
    since: int = field(default=0, compare=False)


@dataclass(frozen=True, slots=True)
class AskAgain:
    """From the keeper to dispatch: what wasn't to be had may be by now."""


# --- to a supervisor -----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class DeliverCredentials:
    """These hold from now on: for the child that is there, at once, and for the next one.

    Asked, the answer is Done (with whether a child has them now), or Refused where there can be no child; told, the
    same goes to ``reply_to`` as ``Outcome(correlation, …)``.
    """

    credentials: CredentialsUpdated
    reply_to: Ref | None = None
    correlation: int = 0


@dataclass(frozen=True, slots=True)
class DeliverSources:
    """The same of the model sources."""

    sources: SourcesUpdated
    reply_to: Ref | None = None
    correlation: int = 0


Deliver: TypeAlias = DeliverCredentials | DeliverSources

"""What the keeper of credentials is told and what it answers: frozen records, none of which shows a value."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

from actors.credentials import AssembleCredentials
from actors.messages import Woken
from ipc.deliveries import CredentialsUpdated, SourcesUpdated
from substrate.messages import Outcome
from waypost.acting import Asked, Ref
from waypost.host.answers.credentials import CredentialShown, Delivered
from waypost.host.credentials.errors import BadCredentials
from waypost.host.credentials.file import Configured, Credential
from waypost.host.credentials.providers import Reading
from waypost.model.ids import Deployment


@dataclass(frozen=True, slots=True)
class ListCredentials:
    """Asked: each credential, how its last reading went, and the sources: ``CredentialsShown``."""


@dataclass(frozen=True, slots=True)
class TryCredentials:
    """Asked: read each once more, and keep nothing of it. The answer is ``CredentialsShown``."""


@dataclass(frozen=True, slots=True)
class Reload:
    """Asked: read ``credentials.toml`` and what is in use anew, and deliver it to these deployments' supervisors.

    The answer, ``Reloaded``, comes when that is done. Raises BadCredentials and NotNow at the asker.
    """

    supervisors: Mapping[str, Ref]


@dataclass(frozen=True, slots=True)
class Reloaded:
    """What became of it."""

    credentials: tuple[CredentialShown, ...]
    delivered: tuple[Delivered, ...] = ()


@dataclass(frozen=True, slots=True)
class Forget:
    """Told: a deployment has no process, and gets none that hasn't asked anew. Nothing is read for it until then."""

    deployment: Deployment


# --- from its threads ----------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class WasRead:
    """A reading has ended, one way or the other."""

    correlation: int
    reading: Reading


@dataclass(frozen=True, slots=True)
class FileRead:
    """``credentials.toml`` was read, or why it can't be used."""

    found: Configured | BadCredentials


KeeperMessage: TypeAlias = Asked | AssembleCredentials | Forget | WasRead | FileRead | Outcome | Woken


# --- effects -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Read:
    """Effect: read this in a thread of its own; ``WasRead`` comes back."""

    correlation: int
    credential: Credential


@dataclass(frozen=True, slots=True)
class LoadFile:
    """Effect: read ``credentials.toml``; ``FileRead`` comes back."""


@dataclass(frozen=True, slots=True)
class Supply:
    """Effect: have a deployment's supervisor deliver these; its answer comes back as ``Outcome``."""

    correlation: int
    supervisor: Ref | None
    credentials: CredentialsUpdated
    sources: SourcesUpdated | None


@dataclass(frozen=True, slots=True)
class Warn:
    """Effect: say something in the host's log."""

    text: str

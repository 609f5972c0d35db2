"""What is granted to the steps of a deployment: how it is changed and asked for, and what is in force.

Part of ``substrate.messages``, by whose name it is imported. The records are ``waypost.model.grants``'.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property

from waypost.model import grants as model
from waypost.model.grants import NOTHING, GrantsSnapshot, StepGrants


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeGrants:
    """An operator gives a step something more, or takes it back. Value: the step's ``StepGrants`` after it.

    ``declared``: its mail is what the workflow declares again. Refused with code ``step`` (nothing that is deployed has
    it), ``mail`` (no step sends any: the run does) or ``too-large``.
    """

    by: str
    step: str
    give: StepGrants = NOTHING
    take: StepGrants = NOTHING
    declared: bool = False


@dataclass(frozen=True, slots=True)
class ReadGrants:
    """What is in force now. Value: ``InForce``."""


@dataclass(frozen=True)
class InForce:
    """What every step is granted; ``unreadable``: by path, what is wrong with a file, so that no run may begin."""

    steps: Mapping[str, StepGrants] = field(default_factory=dict)
    unreadable: Mapping[str, str] = field(default_factory=dict)

    @cached_property
    def taken(self) -> GrantsSnapshot:
        """The snapshot."""
        return model.snapshot(self.steps)

    @cached_property
    def raw(self) -> bytes:
        """Its canonical JSON."""
        return model.encode_snapshot(self.taken)

    @cached_property
    def sha256(self) -> str:
        """Of ``raw``: what ``run.start`` names."""
        return hashlib.sha256(self.raw).hexdigest()

    @property
    def why_unreadable(self) -> str:
        """The first file that can't be read, and why; empty where all can."""
        return next((f"{path}: {why}" for path, why in self.unreadable.items()), "")


NOTHING_GRANTED = InForce()


@dataclass(frozen=True, slots=True)
class GrantsChanged:
    """An operator has changed what is granted; ``now``: all that is in force."""

    now: InForce

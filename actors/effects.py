"""What a decision of this package wants of the substrate, as an effect."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from substrate.messages import Operation, Question, Stage


@dataclass(frozen=True, slots=True)
class Ask:
    """Effect: hand this to the substrate; the answer comes back to this actor as ``Outcome`` at ``stage``."""

    correlation: int
    what: Operation | Question
    stage: Stage


@dataclass(frozen=True, slots=True)
class ToKeeper:
    """Effect: ask the keeper of credentials for what these steps may read; the answer is a message to this actor."""

    correlation: int
    bindings: Mapping[str, tuple[str, ...]]


@dataclass(frozen=True, slots=True)
class ToSupervisor:
    """Effect: tell the supervisor that has started this actor."""

    message: Any

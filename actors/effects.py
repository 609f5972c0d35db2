"""What a decision of this package wants of the substrate, as an effect."""

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
class ToSupervisor:
    """Effect: tell the supervisor that has started this actor."""

    message: Any

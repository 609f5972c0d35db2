"""What a decision of this package wants of the substrate, as an effect."""

from dataclasses import dataclass

from substrate.messages import Operation, Question, Stage


@dataclass(frozen=True, slots=True)
class Ask:
    """Effect: hand this to the substrate; the answer comes back to this actor as ``Outcome`` at ``stage``."""

    correlation: int
    what: Operation | Question
    stage: Stage

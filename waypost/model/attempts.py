"""Unexpected exits of the child that drove a run, and what they lead to (storage §5, Attempts).

The count is in the run's own log: ``RunInterrupted`` raises it, a finished step or a park sets it back. One below the
bound a run is a suspect, and is resumed alone. At the bound its steps in flight fail as ``child-crashed``, so that the
workflow may handle that; where there is none, or it ends its child once more, it is paused as ``poison``.
"""

from typing import Literal, TypeAlias

from waypost.model.ledger import Ledger
from waypost.model.limits import Limits

Consequence: TypeAlias = Literal["resume", "step-failed", "poison"]


def is_suspect(ledger: Ledger, limits: Limits) -> bool:
    """Whether the run is to be resumed alone: with one more exit it is set aside."""
    return suspicious(ledger.attempts, limits)


def suspicious(attempts: int, limits: Limits) -> bool:
    """Whether so many exits make a suspect."""
    return attempts >= max(1, limits.attempts - 1)


def consequence(attempts: int, steps: int, limits: Limits) -> Consequence:
    """What follows for a run from its newest exit, the ``attempts``-th, with so many steps in flight."""
    if attempts < limits.attempts:
        return "resume"
    return "step-failed" if attempts == limits.attempts and steps else "poison"

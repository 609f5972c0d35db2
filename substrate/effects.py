"""What the writer wants done: whom to tell, and when to come back. Data; the SubstrateActor carries it out."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TypeAlias

import msgspec

from substrate.messages import Flush, FoldAway, Idle, Outcome, Ref, Result, Settle
from waypost.acting import Reply, Tell, WakeAt


@dataclass(frozen=True, slots=True)
class Again:
    """Effect: send this to yourself; what is in the mailbox before it comes first (and so joins a batch)."""

    message: Flush | FoldAway | Settle | Idle


@dataclass(frozen=True, slots=True)
class SpaceShort:
    """Effect, and what the parent is told then: ``why`` new mail is withheld, as the disk is full; empty: no more."""

    why: str
    incarnation: int = 0


class To(msgspec.Struct, frozen=True):
    """Where an answer goes: to an asker by its token, or to an actor with its correlation, or nowhere."""

    token: int | None = None
    ref: Ref | None = None
    correlation: int = 0


Effect: TypeAlias = Reply | Tell | WakeAt | Again | SpaceShort


def answered(to: To, result: Result) -> Iterator[Effect]:
    """Tell whoever asked."""
    if to.token is not None:
        yield Reply(to.token, result)
    elif to.ref is not None:
        yield Tell(to.ref, Outcome(to.correlation, result))

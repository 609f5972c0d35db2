"""A seat: where one who looks on is found, whichever incarnation it is that sits there.

Whoever looks on (the timeline, the sink of approvals, the followers of `tail`, the observer that counts, the library
that reads) holds nothing that the repositories don't, so one that fails is followed by another, which is told
everything anew. The root decides that; others have the seat, and tell whoever is there. A message that comes while
nobody is there is gone, as with any actor that has ended.
"""

from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pykka

from waypost.acting import Ref
from waypost.model.ids import RunId

NOTHING = RunId("nothing")
"""What whoever only answers watches of a deployment."""


class Seat(pykka.ActorRef[Any]):
    """``name``: of the actor. ``what`` it watches of every deployment, as of ``actors.messages.WatchRun``, or NOTHING.

    ``make``: the actor, from its parent and its incarnation. Only told, never asked.
    """

    def __init__(self, name: str, what: RunId | None, make: Callable[[Ref, int], Ref]) -> None:
        # Not of one actor: of those who sit here one after the other.
        self.name, self.what = name, what
        self._make = make
        self.occupant: Ref | None = None
        """Who sits here now; replaced by the root's thread alone."""

    def __repr__(self) -> str:
        return f"<Seat of the {self.name}>"

    __str__ = __repr__

    @property
    def watches(self) -> bool:
        """Whether supervisors are to be told of whoever sits here."""
        return self.what != NOTHING

    def take(self, parent: Ref, incarnation: int) -> None:
        """Have another one sit here."""
        self.occupant = self._make(parent, incarnation)

    def tell(self, message: Any) -> None:
        """Tell whoever sits here. Raises pykka.ActorDeadError."""
        if self.occupant is None:
            raise pykka.ActorDeadError(f"nobody sits here: {self.name}")
        self.occupant.tell(message)

    def leave(self, timeout: float) -> None:
        """Have it end, in its turn, and wait for that: so many seconds at most. Raises pykka.Timeout."""
        if self.occupant is not None:
            with suppress(pykka.ActorDeadError):
                self.occupant.stop(timeout=timeout)


def sitting(ref: Ref | None) -> Ref | None:
    """Who sits there now, where it is a seat: for whoever must notice that the one it told has gone."""
    return ref.occupant if isinstance(ref, Seat) else ref

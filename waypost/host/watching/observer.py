"""ObserverActor: adds up what the host's other actors mark, as ``observer_logic`` decides; and the ear it has for them.

Nobody waits for it, and nothing rests on it. Who marks puts a message into its mailbox, if there is room, and goes on.
Should it fail, another one follows (`root/seats.py`), which begins to count at nothing; where none does any more,
what is marked goes nowhere, and `waypost top` and the metrics say so.
"""

import itertools
from queue import SimpleQueue
from typing import Any, cast

import pykka

from actors.messages import Forward
from actors.watching import TURNS, Turned
from waypost.acting import Clock, Ref
from waypost.host.root.seats import Seat
from waypost.host.watching.observer_logic import PAUSE, Count, State, advance
from waypost.model.limits import DEFAULT, Limits
from waypost.observing import ClockSet, Enqueued, Flushed, Mark, Timed
from waypost.shell import Shell, tell

OBSERVER = "observer"
MOST = 4096
"""Messages that may wait for it; marks beyond them are dropped, and counted."""


class ObserverActor(Shell):
    """One for a host. Asked ``Figures`` it answers its ``State``."""

    def __init__(
        self, *, clock: Clock, limits: Limits = DEFAULT, parent: Ref | None = None, incarnation: int = 1
    ) -> None:
        pause = min(PAUSE, limits.idle / 4) if limits.idle else PAUSE
        super().__init__(OBSERVER, State(pause=pause), advance, clock=clock, parent=parent, incarnation=incarnation)

    def perform(self, effect: Any) -> None:
        """Ask a repository, or the clock."""
        match effect:
            case Count():
                tell(effect.supervisor, Forward(effect.what, self.actor_ref, effect.correlation))
            case _:
                super().perform(effect)


class Ear(pykka.ActorRef[Any]):
    """The observer's ref as others are given it: what can be done without is dropped where it doesn't keep up.

    Dropped are marks, and news that something has changed (what is counted then is counted at the next news). That a
    deployment is there, or in another state, is told in any case: that is seldom.
    """

    def __init__(self, observer: Ref, most: int = MOST) -> None:
        self.__dict__.update(vars(observer))  # a ref of the same actor
        self.dropped = 0
        """How many were; it may be a few behind while several threads drop."""
        self._most, self._drops = most, itertools.count(1)

    def tell(self, message: Any) -> None:
        """As of any ref. Raises pykka.ActorDeadError."""
        droppable = isinstance(message, Turned | Timed | Enqueued | Flushed | ClockSet)
        inbox = cast("SimpleQueue[Any]", self.actor_inbox)  # the shell's own kind of inbox
        if droppable and inbox.qsize() >= self._most:
            self.dropped = next(self._drops)
            return
        super().tell(message)

    def mark(self, what: Mark) -> None:
        """Take a mark, or drop it; an observer that has ended is no error."""
        tell(self, what)


class ObserverSeat(Seat):
    """Where the observer is found; who sits there is told through an ear of its own. Marks are taken here, too."""

    def __init__(self, clock: Clock, limits: Limits) -> None:
        self._clock, self._limits = clock, limits
        self._before = 0
        super().__init__(OBSERVER, TURNS, self._made)

    @property
    def dropped(self) -> int:
        """How many messages were, of all who sat here."""
        return self._before + (self.occupant.dropped if isinstance(self.occupant, Ear) else 0)

    def mark(self, what: Mark) -> None:
        """Take a mark, or drop it; that nobody sits here is no error."""
        tell(self, what)

    def _made(self, parent: Ref, incarnation: int) -> Ref:
        self._before = self.dropped
        made = ObserverActor.start(clock=self._clock, limits=self._limits, parent=parent, incarnation=incarnation)
        return Ear(made)

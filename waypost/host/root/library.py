"""LibraryActor: what others of a host want to know of deployments that sleep, read from the disk without waking them.

In a thread of its own, so that nobody waits for the disk who has other things to do. Nothing is written.

Promise: whoever has it look is told something, also if it fails over that, or over what it was asked before.
"""

from collections.abc import Callable
from dataclasses import dataclass
from queue import SimpleQueue
from typing import Any, cast

from substrate.messages import Approvals, Done, Outcome, ReadApprovals, Refused, Result, Withheld
from waypost.acting import Clock, Next, Ref
from waypost.host.reading.offline import Offline
from waypost.model.errors import WaypostError
from waypost.model.ids import Deployment
from waypost.model.times import Now
from waypost.shell import Shell, tell


@dataclass(frozen=True, slots=True)
class Look:
    """Tell ``reply_to`` the answer to a question, as its repository would: ``Outcome(correlation, result)``."""

    name: Deployment
    question: ReadApprovals
    reply_to: Ref
    correlation: int


class LibraryActor(Shell):
    """One for a host. ``opened`` gives what reads the repositories as they lie on the disk."""

    def __init__(
        self, opened: Callable[[], Offline], *, clock: Clock, parent: Ref | None = None, incarnation: int = 1
    ) -> None:
        super().__init__("library", None, advance, clock=clock, parent=parent, incarnation=incarnation)
        self._source = opened

    def perform(self, effect: Any) -> None:
        """Read, and answer; what can't be read is an answer, too."""
        if isinstance(effect, Look):
            try:
                tell(effect.reply_to, Outcome(effect.correlation, _answer(self._source(), effect)))
            except Exception:
                _lost(effect)
                raise
        else:
            super().perform(effect)

    def finish(self) -> None:
        """Tell whoever waits that nobody looks any more."""
        inbox = cast("SimpleQueue[Any]", self.actor_inbox)  # the shell's own kind of inbox
        for _ in range(inbox.qsize()):
            envelope = inbox.get()
            if isinstance(envelope.message, Look):
                _lost(envelope.message)
            else:
                inbox.put(envelope)


def advance(state: None, message: Look, _now: Now) -> Next[None]:
    """Each as it comes."""
    return Next(state, (message,))


def _lost(look: Look) -> None:
    tell(look.reply_to, Outcome(look.correlation, Withheld("whoever reads of deployments that sleep has failed")))


def _answer(source: Offline, look: Look) -> Result:
    try:
        # All of them at once: nobody else is kept waiting by that.
        return Done(0, Approvals(source.approvals(look.name), None))
    except WaypostError as failure:
        return Refused("unreadable", failure.message, failure.hint)
    except OSError as failure:
        return Withheld(str(failure))

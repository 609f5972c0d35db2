"""Whether the log knows that the code has nothing to do; where it can't, the code says so itself.

A log says how much of it the code has acted on (``seen``) where the code asks for something that takes time, and from
that follows whether a run is parked (``waypost.model.run``). One that awaits two decisions, or twenty child runs, asks
for nothing when the first of them is there, and would count as driven until the last one is: never dormant, waited for
by a drain, blamed for an exit. So it says CodeRested then, once for all that came together. Code that does one thing
after the other always asks for the next, or ends: its log has none.
"""

from waypost.model import events as ev
from waypost.model.ids import CallId

_DRIVING = (
    ev.RunStarted,
    ev.RunUnpaused,
    ev.StepCompleted,
    ev.TimerFired,
    ev.SignalReceived,
    ev.MailQueued,
    ev.MailFailed,
    ev.ChildRefused,
)
_SEEING = (ev.TimerSet, ev.SignalAwaited, ev.ChildSpawned, ev.CodeRested)


class Resting:
    """Of one run, from the events that its code was given."""

    def __init__(self) -> None:
        self._driven = 0
        """Seq of the newest event that gives the code something to do."""
        self._said = 0
        """The newest event that the code is known to have acted on."""
        self._let_go: set[CallId] = set()
        """Calls whose child run nobody awaits any more: its end gives the code nothing to do."""

    def took(self, event: ev.AnyEvent) -> None:
        """One more event of the log."""
        if isinstance(event, _SEEING):
            self._said = max(self._said, event.seen)
        elif isinstance(event, _DRIVING) or (isinstance(event, ev.StepFailed) and event.final):
            self._driven = event.seq
        elif isinstance(event, ev.ChildCancelRequested):
            self._let_go.add(event.call)
        elif isinstance(event, ev.ChildCompleted) and event.call not in self._let_go:
            self._driven = event.seq

    def woken(self, seq: int) -> None:
        """A wait, recorded at ``seq``, had its answer at once."""
        self._driven = seq

    def unsaid(self) -> bool:
        """Whether the code, now that it rests, should say so."""
        return self._driven > self._said

    def say(self, seq: int) -> ev.CodeRested:
        """It has acted on everything up to ``seq``."""
        self._said = seq
        return ev.CodeRested(seen=seq)

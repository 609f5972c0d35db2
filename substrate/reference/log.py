"""A run's new log in the making: each event numbered, chained and asked of our own fold, as every append is.

Nothing illegal gets in: events that may not follow are refused together, and the log is as it was.
"""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from substrate.messages import Recorded
from substrate.runlog import Known
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.errors import Invalid
from waypost.model.ids import RunId
from waypost.model.limits import Limits
from waypost.model.times import stamp


@dataclass(slots=True)
class NewLog:
    """What is known of a run, and the events that are to be committed next."""

    run: RunId
    known: Known
    """As of the last event that was added."""
    limits: Limits

    def add(self, events: Iterable[ev.AnyEvent], at: int, original: str | None) -> tuple[Recorded, ...] | None:
        """Add events of this time (Unix ms), the last of them made of ``original``. None where they may not follow."""
        proposed = list(events)
        if proposed and original is not None:
            proposed[-1] = msgspec.structs.replace(proposed[-1], original=original)
        known, made = self.known, list[Recorded]()
        for each in proposed:
            event, raw = ev.stored(each, seq=known.seq + 1, at=stamp(at), prev=known.prev)
            try:
                state = fold.evolve(known.run, event, run_id=self.run)
                ev.decode(raw)
            except (Invalid, fold.Illegal):
                return None
            if len(raw) > self.limits.event:
                return None
            made.append(Recorded(event, raw))
            known = Known(state, event.seq, ev.digest(raw), known.folded, event.at)
        self.known = known
        return tuple(made)

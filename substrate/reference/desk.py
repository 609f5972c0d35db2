"""The writer of a repository that is being made by an import: it decides for itself what it writes, in one thread.

Everything goes through the writer of any repository, so each commit is checked, flushed, signed and sealed as all
others are; what others would be told is told to nobody.
"""

from collections.abc import Iterable, Iterator

import msgspec

from substrate.effects import Again, Effect
from substrate.errors import RuleBroken
from substrate.messages import Claim, Idle
from substrate.operations import Change, Context, View
from substrate.operations.buckets import state_file
from substrate.operations.intake import claim
from substrate.reference import arrivals
from substrate.state import State
from substrate.writer import Writer
from waypost.model.ids import RunId
from waypost.model.limits import Limits
from waypost.model.queue import Entry
from waypost.model.times import Now, stamp

BATCH = 64
"""Commits between two flushes."""


class Desk(Writer):
    """To be opened by ``Desk.open``, then told ``begin``."""

    def begin(self, now: Now) -> None:
        """``now`` is the time of the import; every commit is dated so."""
        self._import, self._uncounted, self._filed_up_to = now, 0, 0

    @property
    def view(self) -> View:
        """What is there by now."""
        return self._index

    @property
    def limits(self) -> Limits:
        """The host's."""
        return self._limits

    def context(self, wall: int | None = None) -> Context:
        """What the world says to a decision, as of a time, Unix ms; of the import where none is given."""
        context = self._context(self._import)
        return context if wall is None else arrivals.at(context, min(wall, self._import.wall))

    def carry(self, change: Change) -> None:
        """Make a commit of it; every so often all of them are made durable. Raises SubstrateError."""
        self._heed(self._checked(change))
        self._uncounted += 1
        if self._uncounted >= BATCH:
            self.settle_down()

    def settle_down(self) -> None:
        """Make everything durable, and seal: the runs that have ended, and the journal where it is due.

        On a disk that is nearly full runs stay unsealed; the host will seal them. Raises SubstrateError.
        """
        self._uncounted, before = 0, -1
        self._heed(self.flush(self._import))
        while self._index.finished and self.position != before:
            before = self.position
            for _ in range(min(BATCH, len(self._index.finished))):
                self._heed(self.fold_away(self._import))
            self._heed(self.flush(self._import))

    def end(self) -> None:
        """Hold the deployment, bring all of it into packs, and let go of the repository. Raises SubstrateError."""
        held = msgspec.structs.replace(self.view.state, held="import", held_at=stamp(self._import.wall))
        self.carry(
            Change(
                author="hub",
                subject="hold the deployment: nothing begins before an operator says so",
                puts=state_file(held),
                state=held,
            )
        )
        self.settle_down()
        self._heed(self.seal(self._import))
        self._heed(self.close(self._import))

    # --- mail ---------------------------------------------------------------------------------------------------------

    def take_in(self, raw: bytes, run: RunId, state: State, received: int, *, starts: bool) -> Entry | None:
        """Take in a mail for a run and claim it, so that it can be consumed; None where the door wouldn't have it."""
        change = arrivals.enter(self.view, raw, run, state, self.context(received), starts=starts)
        if change is None:
            return None
        self.carry(change)
        arrival = change.value.arrival
        claimed = claim(self.view, Claim(arrival), self.context())
        assert isinstance(claimed, Change), claimed
        self.carry(claimed)
        return self.view.queue[arrival].queued.entry

    def consume(self, entry: Entry, when: int, event: Change) -> None:
        """Consume a claimed mail in one commit with the event that it caused. ``when``: Unix ms."""
        moved = arrivals.consumption(self.view, entry, 1, min(when, self._import.wall), self._filing(when))
        self.carry(
            msgspec.structs.replace(
                event,
                subject=f"take up imported mail {entry.arrival}: {event.subject}",
                puts={**moved.puts, **event.puts},
                deletes=(*moved.deletes, *event.deletes),
                facts=(*moved.facts, *event.facts),
                state=moved.state,
            )
        )

    def file(self, entry: Entry, code: str, when: int) -> None:
        """Consume a claimed mail that caused no event."""
        context = self._filing(when)
        self.carry(arrivals.rejection(self.view, entry, 1, code, min(when, self._import.wall), context))

    def _filing(self, when: int) -> Context:
        """Buckets close by a clock that never goes back, so no id is forgotten before its time."""
        self._filed_up_to = max(self._filed_up_to, min(when, self._import.wall))
        return self.context(self._filed_up_to)

    def _checked(self, change: Change) -> Iterator[Effect]:
        broken = yield from self._commit(change, self._import)
        if broken is not None:
            raise RuleBroken(broken.rule, broken.path, broken.value)

    def _heed(self, effects: Iterable[Effect]) -> None:
        """Seal when it is due. Runs are folded away as they end; merging is left to the host."""
        for effect in effects:
            if isinstance(effect, Again) and isinstance(effect.message, Idle):
                self._heed(self.idle(self._import))

"""A child on paper: takes what the host sends, holds it to the protocol, and knows its runs from that alone.

It raises AssertionError where a host breaks design §8: ``run.start`` twice, a gap, a page too many, an event before
``run.live``. It never writes by itself: a test makes it do so.
"""

from dataclasses import dataclass, field
from functools import reduce

from ipc.messages import EventsCommitted, GrantsUpdated, RunLive, RunLog, RunStart, ToChild
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.grants import NONE_GRANTED, read_snapshot
from waypost.model.ids import Generation, RunId
from waypost.model.limits import DEFAULT, Limits


@dataclass(slots=True)
class Followed:
    """One run as the child has it."""

    start: RunStart
    events: list[ev.AnyEvent] = field(default_factory=list)
    live: bool = False
    unacknowledged: int = 0
    """Pages for which no credit was given back."""

    def state(self, run: RunId) -> fold.Run:
        """The run, folded from what the child was sent."""
        nothing: fold.Run = fold.Absent()
        return reduce(lambda state, event: fold.evolve(state, event, run_id=run), self.events, nothing)


class PaperChild:
    """The child of one generation."""

    def __init__(self, generation: Generation, limits: Limits = DEFAULT) -> None:
        self.generation = generation
        self.runs: dict[RunId, Followed] = {}
        self.grants = ""
        self.granted = NONE_GRANTED
        self._limits = limits

    def take(self, payload: ToChild) -> None:
        """One message from the host. Raises AssertionError when it may not come now."""
        match payload:
            case GrantsUpdated(sha256=sha256, grants=grants):
                self.granted = read_snapshot(grants, sha256)
                self.grants = sha256
            case RunStart(run=run, grants=sha256):
                assert run not in self.runs, f"{run}: run.start twice in generation {self.generation}"
                assert self.grants == sha256, f"{run}: run.start without its grants"
                self.runs[RunId(run)] = Followed(payload)
            case RunLog(run=run, events=events):
                followed = self.runs[RunId(run)]
                assert not followed.live, f"{run}: a page after run.live"
                followed.unacknowledged += 1
                assert followed.unacknowledged <= self._limits.page_credit, f"{run}: more pages than credit"
                self._add(RunId(run), followed, events)
            case RunLive(run=run):
                followed = self.runs[RunId(run)]
                assert len(followed.events) >= followed.start.last_seq, f"{run}: live before its log was complete"
                followed.live = True
            case EventsCommitted(run=run, events=events):
                followed = self.runs[RunId(run)]
                assert followed.live, f"{run}: events.committed before run.live"
                self._add(RunId(run), followed, events)
            case _:
                raise AssertionError(f"a dispatch doesn't send {type(payload).__name__}")

    def give_credit(self, run: RunId) -> bool:
        """Take one page in; whether there was one."""
        followed = self.runs[run]
        if not followed.unacknowledged:
            return False
        followed.unacknowledged -= 1
        return True

    def _add(self, run: RunId, followed: Followed, events: tuple[bytes, ...]) -> None:
        assert events, f"{run}: a message without an event"
        for raw in events:
            event = ev.decode(raw)
            assert event.seq == len(followed.events) + 1, f"{run}: event {event.seq} after {len(followed.events)}"
            followed.events.append(event)

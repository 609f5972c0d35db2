"""One message being worked on: what the decision may look at, and the effects that it has gathered so far.

Local to one call of ``advance``, which hands out fresh frozen state; nobody keeps a turn.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from actors.credentials import Barred
from actors.draining import RecycleRequested
from actors.effects import Ask, ToSupervisor
from actors.logic.dispatch.card import Child, Grace, Trial, Up, Waning
from actors.messages import NewsOfDispatch, Send, Woken
from ipc.messages import ToChild
from substrate.messages import Operation, Question, ResumeRuns, Stage, Start
from waypost.acting import Tell, WakeAt
from waypost.model.ids import Generation, RunId
from waypost.model.limits import Limits
from waypost.model.times import Now

if TYPE_CHECKING:
    from actors.logic.dispatch.barrier import Barrier
    from actors.logic.dispatch.reading import Reading

PORTION = 64
"""Runs that one commit writes to."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """What a dispatch is made with: what RunStarted records, and the bounds."""

    start: Start
    limits: Limits
    steps: tuple[str, ...] = ()
    """Of the workflow, by name."""
    keeper: bool = False
    """Whether there is somebody who keeps credentials."""


@dataclass(slots=True, kw_only=True)
class Turn:
    """The view and the workbench of one call of ``advance``."""

    setup: Setup
    now: Now
    child: Child
    repository: str
    position: int
    """The newest commit whose facts are known."""
    counter: int
    """The last correlation or token that was given out."""
    asked: dict[int, tuple[RunId, ...]]
    """Requests under way, and for which runs."""
    fresh: dict[RunId, int]
    """Runs whose RunStarted or RunResumed isn't durable yet, and the position that must be."""
    suspects: dict[RunId, None]
    """Runs that wait to be resumed one at a time, in order."""
    trial: Trial | None
    """The suspect that was resumed last."""
    ahead: RunId | None
    """A run that suspects wait for, as far as is known."""
    retry_wake: int | None
    """Token of the wake-up that is under way, for what couldn't be written."""
    suspects_wake: int | None
    """Token of the wake-up that is under way, for the suspects."""
    graces: dict[RunId, Grace]
    """The runs that are being cancelled, and how long each has."""
    grace_wake: tuple[int, float] | None
    """Token of the wake-up that is under way for those, and its time."""
    barrier: "Barrier"
    """What is granted, and whether the child holds it."""
    reading: "Reading"
    """Logs that were read for the child that is to come."""
    effects: list[Any] = field(default_factory=list)

    def ask(self, run: RunId, what: Operation | Question, stage: Stage = Stage.COMMITTED) -> int:
        """Ask the substrate; the correlation of the answer."""
        self.counter += 1
        self.asked[self.counter] = (run,)
        self.effects.append(Ask(self.counter, what, stage))
        return self.counter

    def resume(self, run: RunId, generation: Generation) -> int:
        """Have the run resumed, in one commit with others of this turn; the correlation of the answer."""
        match self.effects[-1] if self.effects else None:
            case Ask(correlation, ResumeRuns(runs=runs), stage) if len(runs) < PORTION:
                runs = (*runs, run)
                self.effects[-1] = Ask(correlation, ResumeRuns(generation=generation, runs=runs), stage)
                self.asked[correlation] = runs
                return correlation
            case _:
                return self.ask(run, ResumeRuns(generation=generation, runs=(run,)), Stage.DURABLE)

    def ask_for_all(self, what: Operation | Question, stage: Stage) -> int:
        """Ask the substrate for what no card waits for; the correlation of the answer."""
        self.counter += 1
        self.effects.append(Ask(self.counter, what, stage))
        return self.counter

    def tell_supervisor(self, message: NewsOfDispatch | RecycleRequested | Barred) -> None:
        """Tell whoever has started this actor."""
        self.effects.append(ToSupervisor(message))

    def send(self, payload: ToChild) -> None:
        """Send the child a message, together with the one before it."""
        assert isinstance(self.child, Up | Waning), "a session is over when its child is gone"
        match self.effects[-1] if self.effects else None:
            case Tell(ref, Send(first, more)) if ref is self.child.ref:
                self.effects[-1] = Tell(ref, Send(first, (*more, payload)))
            case _:
                self.effects.append(Tell(self.child.ref, Send(payload)))

    def retry_later(self) -> None:
        """See to it that there is a wake-up."""
        if self.retry_wake is None:
            self.counter += 1
            self.retry_wake = self.counter
            self.effects.append(WakeAt(Woken(self.retry_wake), mono=self.now.mono + self.setup.limits.backoff_first))

    def look_again(self, mono: float) -> None:
        """See to it that the suspects are looked at again by then, whatever comes."""
        if self.suspects_wake is None:
            self.counter += 1
            self.suspects_wake = self.counter
            self.effects.append(WakeAt(Woken(self.suspects_wake), mono=mono))

    def wake_for_grace(self, mono: float) -> None:
        """See to it that the runs that are being cancelled are looked at by then."""
        if self.grace_wake is None or mono < self.grace_wake[1]:
            self.counter += 1
            self.grace_wake = (self.counter, mono)
            self.effects.append(WakeAt(Woken(self.counter), mono=mono))

    def drop_suspects(self) -> None:
        """The child is given nothing more: nobody waits for a trial with it."""
        self.trial = self.ahead = self.suspects_wake = None
        self.suspects.clear()

    def admits(self, suspect: RunId) -> bool:
        """Whether this suspect may be resumed now; otherwise it is remembered for its turn."""
        if self.trial is not None and self.trial.run == suspect:
            return True
        self.suspects[suspect] = None
        return False


def chunks(raws: Iterable[bytes], limit: int) -> Iterator[tuple[bytes, ...]]:
    """Cut stored events into runs of at most ``limit`` bytes, at least one event each, in order."""
    chunk: list[bytes] = []
    size = 0
    for raw in raws:
        if chunk and size + len(raw) > limit:
            yield tuple(chunk)
            chunk, size = [], 0
        chunk.append(raw)
        size += len(raw)
    if chunk:
        yield tuple(chunk)

"""A substrate on paper: the real rules over a dict, without a disk and without a thread, with the stream it publishes.

A ``Desk`` carries the operations out; what the SubstrateActor would publish is collected instead of sent. For tests of
the decisions that live on the stream: what they ask for is legal here only if it is legal there.
"""

from substrate import questions, runlog
from substrate.messages import (
    Committed,
    Done,
    Durable,
    Fact,
    Operation,
    Question,
    Queued,
    Refused,
    Result,
    Snapshot,
)
from substrate.operations import Change, Hold, Settled
from substrate.routing import Runs
from substrate.runlog import Known
from waypost.model import events as ev
from waypost.model.ids import Generation, RunId
from waypost.model.limits import DEFAULT, Limits
from waypost.model.times import Now
from waypost.testing.clock import START
from waypost.testing.desk import REPOSITORY, Desk, Files


class Paper:
    """One repository. ``now`` may be set; what is published waits in ``stream`` to be taken."""

    def __init__(self, *, runs: Runs = "thread", limits: Limits = DEFAULT, files: Files | None = None) -> None:
        self._desk = Desk(files, runs=runs, limits=limits)
        self.index = self._desk.index
        self.now = Now(START, 1000.0)
        self.position = self.durable = 0
        self.stream: list[Committed | Durable] = []

    def submit(self, what: Operation | Question) -> Result:
        """Carry out an operation or a question at once."""
        if isinstance(what, Question):
            value = questions.answer(self.index, what)
            return value if isinstance(value, Refused) else Done(self.position, value)
        self._desk.wall = self.now.wall
        decided = self._desk.do(what)
        match decided:
            case Change():
                self.position += 1
                facts = tuple(self.index.told(fact) if isinstance(fact, Queued) else fact for fact in decided.facts)
                self.stream.append(Committed(self.position, self.position, facts))
                return Done(self.position, decided.value)
            case Settled(value):
                return Done(self.position, value)
            case Hold():
                return Done(self.position)
            case Refused():
                return decided

    def flush(self) -> None:
        """Make everything durable."""
        if self.durable < self.position:
            self.durable = self.position
            self.stream.append(Durable(self.durable))

    def taken(self) -> tuple[Committed | Durable, ...]:
        """What was published since this was last called."""
        taken, self.stream = tuple(self.stream), []
        return taken

    def files(self) -> Files:
        """A copy of what is written."""
        assert isinstance(self._desk.tree, Files)
        return Files(self._desk.tree.files)

    def facts(self) -> tuple[Fact, ...]:
        """The facts in what was published since ``taken`` was last called; they stay there."""
        return tuple(fact for each in self.stream if isinstance(each, Committed) for fact in each.facts)

    def log(self, run: RunId) -> list[ev.AnyEvent]:
        """A run's events."""
        return self._desk.events(run)

    def runs(self) -> list[RunId]:
        """The runs that have begun, oldest first."""
        return runlog.run_ids(self.index)

    def live(self) -> dict[RunId, Known]:
        """The runs that have begun and not ended, oldest first."""
        return self._desk.live()

    def snapshot(self) -> Snapshot:
        """What a new subscriber is told."""
        return Snapshot(
            position=self.position,
            repository=REPOSITORY,
            generation=Generation(self.index.state.generation),
            runs=self.index.runs.driven(),
            queue=tuple(self.index.told(item.queued) for item in self.index.queue.values() if not item.claimed),
            outbox=tuple(self.index.outbox.values()),
            granted=self.index.granted,
        )

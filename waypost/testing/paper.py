"""A substrate on paper: the real rules over a dict, without a disk and without a thread.

Every operation is decided by ``substrate.operations`` and folded by ``substrate.index``, exactly as the SubstrateActor
does it; what it publishes is collected instead of sent. For tests of the decisions that live on the stream: what they
ask for is legal here only if it is legal there.
"""

from collections.abc import Mapping

from substrate import layout, questions
from substrate.index import Index
from substrate.messages import (
    Committed,
    Done,
    Durable,
    Fact,
    Operation,
    Question,
    ReadBlob,
    ReadLog,
    ReadRuns,
    Refused,
    Result,
    Snapshot,
)
from substrate.operations import Change, Context, Hold, Settled, decide
from substrate.routing import Runs
from substrate.state import VERSION, Format, State, encode
from waypost.model.ids import Generation
from waypost.model.limits import DEFAULT, Limits
from waypost.model.times import Now
from waypost.testing.clock import START

ADDRESS = "test@example.com"
REPOSITORY_ID = "0123456789abcdef"


class PaperTree:
    """Files in a dict."""

    def __init__(self, files: Mapping[str, bytes]) -> None:
        self.files = dict(files)

    def read(self, path: str) -> bytes | None:
        """A file's bytes; None where there is none."""
        return self.files.get(path)

    def entries(self, path: str) -> tuple[str, ...]:
        """The sorted names in a directory; empty where there is none."""
        below = f"{path}/" if path else ""
        names = {name[len(below) :].partition("/")[0] for name in self.files if name.startswith(below)}
        return tuple(sorted(names))


class Paper:
    """One repository. ``now`` may be set; what is published waits in ``stream`` to be taken."""

    def __init__(self, *, runs: Runs = "thread", limits: Limits = DEFAULT) -> None:
        known = Format(format=VERSION, repository=REPOSITORY_ID, epoch=1, deployment="test", address=ADDRESS)
        self.tree = PaperTree({layout.FORMAT: encode(known), layout.STATE: encode(State())})
        self.index = Index(self.tree, ADDRESS, limits)
        self.now = Now(START, 1000.0)
        self.position = self.durable = 0
        self.stream: list[Committed | Durable] = []
        self._runs, self._limits = runs, limits
        self._random = 0

    def submit(self, what: Operation | Question) -> Result:
        """Carry out an operation or a question at once."""
        if isinstance(what, ReadLog | ReadBlob | ReadRuns):
            value = questions.answer(self.index, what)
            return value if isinstance(value, Refused) else Done(self.position, value)
        decided = decide(self.index, what, self._context())
        match decided:
            case Change():
                self._commit(decided)
                return Done(self.position, decided.value)
            case Settled(value):
                return Done(self.position, value)
            case Hold():
                self.index.hold(decided)
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

    def facts(self) -> tuple[Fact, ...]:
        """The facts in what was published since ``taken`` was last called; they stay there."""
        return tuple(fact for each in self.stream if isinstance(each, Committed) for fact in each.facts)

    def snapshot(self) -> Snapshot:
        """What a new subscriber is told."""
        return Snapshot(
            position=self.position,
            repository=REPOSITORY_ID,
            generation=Generation(self.index.state.generation),
            runs=self.index.live_runs(),
            queue=tuple(item.queued for item in self.index.queue.values() if not item.claimed),
            outbox=tuple(self.index.outbox.values()),
        )

    def _commit(self, change: Change) -> None:
        for path in change.deletes:
            del self.tree.files[path]
        self.tree.files.update(change.puts)
        self.index.apply(change)
        self.position += 1
        self.stream.append(Committed(self.position, self.position, change.facts))

    def _context(self) -> Context:
        return Context(
            now=self.now,
            repository=REPOSITORY_ID,
            address=ADDRESS,
            runs=self._runs,
            limits=self._limits,
            message_id=lambda key: f"<{key[:32]}@waypost.example.com>",
            random=self._next_random,
        )

    def _next_random(self) -> bytes:
        self._random += 1
        return self._random.to_bytes(8)

"""A deployment's repository without its actor: operations are decided and applied at once, on a dict or a real store.

``Desk`` is what the SubstrateActor does between two flushes, in one call and one thread. ``check`` compares what is
kept in memory with a fresh fold of the tree, and looks for a directory that isn't bounded.
"""

import hashlib
import itertools
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

from substrate import layout, runlog
from substrate import state as files
from substrate.errors import Damaged
from substrate.indexing.covering import open_derived
from substrate.indexing.index import Index
from substrate.messages import (
    Append,
    BeginGeneration,
    Claim,
    Enqueue,
    Operation,
    Refused,
    Start,
    TakeUp,
    WorkflowProcess,
)
from substrate.operations import Change, Context, Decided, Hold, Settled, decide
from substrate.operations.buckets import drop, due, watermark
from substrate.operations.sealing import seal_run, thread_of
from substrate.routing import Runs, Threads
from substrate.rules import Ground, judge, proposed
from substrate.runlog import Known, Rooted, Tree
from substrate.settings import message_ids
from substrate.storage.store import Store
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.child_mail import spawner
from waypost.model.ids import CallId, Generation, RunId, run_ordinal
from waypost.model.limits import DEFAULT, Limits
from waypost.model.times import Now
from waypost.testing.clock import START
from waypost.testing.stores import BOUND

REPOSITORY = "0123456789abcdef"
ADDRESS = "expenses@example.com"
SENDER = "bob@example.com"
BOSS = "boss@example.com"
STARTED = Start(definition="d" * 64, code="c" * 64, python="3.11.7", waypost="0.1.0", mail_to=(BOSS,))


class Files:
    """A tree in a dict: what a store shows, without git."""

    def __init__(self, files: dict[str, bytes] | None = None) -> None:
        self.files = dict(files or {})

    def read(self, path: str) -> bytes | None:
        """A file's bytes."""
        return self.files.get(path)

    def entries(self, path: str) -> tuple[str, ...]:
        """The names in a directory."""
        prefix = f"{path}/" if path else ""
        return tuple(sorted({name[len(prefix) :].partition("/")[0] for name in self.files if name.startswith(prefix)}))

    def several(self, directory: str, names: Sequence[str]) -> list[bytes | None]:
        """Files of one directory."""
        return [self.read(f"{directory}/{name}") for name in names]

    def directory_id(self, path: str) -> str:
        """A directory's id: what git would name it by is what is below it, and so it is here."""
        below = sorted(item for item in self.files.items() if item[0].startswith(f"{path}/"))
        return hashlib.sha1(repr(below).encode(), usedforsecurity=False).hexdigest() if below else ""

    def directory(self, oid: bytes) -> bytes:
        """None is kept by its id."""
        raise Damaged(oid.hex(), "no directory is kept by its id")

    def apply(self, change: Change) -> None:
        """Take in a commit. Raises KeyError for a file that was to go and isn't there."""
        for path in change.deletes:
            for file in [name for name in self.files if name.startswith(path)] if path.endswith("/") else (path,):
                del self.files[file]
        self.files.update(change.puts)


class Refusal(AssertionError):
    """An operation that was expected to pass was refused."""


class Desk:
    """One deployment. ``tree`` may be a real store, whose files must be those of ``first``; see ``reopen``."""

    def __init__(
        self, tree: Files | Store | None = None, *, runs: Runs = "thread", limits: Limits = DEFAULT, wall: int = START
    ) -> None:
        self.tree = Files(first_files()) if tree is None else tree
        self.runs: Runs = runs
        self.limits, self.wall = limits, wall
        self.changes: list[Change] = []
        self.reopen(self.tree)

    def reopen(self, tree: Files | Store, derived: Path | None = None) -> None:
        """Forget everything but what is in the tree, and in the derived index, if there is a file for it."""
        self.tree = tree
        self.index = Index.open(derived, _as_tree(tree), ADDRESS, self.limits, REPOSITORY)

    def folded(self) -> Index:
        """What is in the tree, folded anew."""
        tree = _as_tree(self.tree)
        return Index(tree, ADDRESS, self.limits, open_derived(None, tree, REPOSITORY))

    def live(self) -> dict[RunId, Known]:
        """The runs that have begun and not ended, oldest first."""
        runs = runlog.run_ids(_as_tree(self.tree))
        return {run: self.index.known(run) for run in runs if self.index.standing(run) == "live"}

    def settle(self) -> None:
        """Write what was touched into the derived index, as the substrate does after a seal."""
        more = self.index.runs.begin_to_settle(REPOSITORY)
        while more:
            more = self.index.runs.settle(2)

    @property
    def context(self) -> Context:
        """What the world says to a decision now."""
        return Context(
            now=Now(self.wall, 0.0),
            deployment="expenses",
            repository=REPOSITORY,
            address=ADDRESS,
            runs=self.runs,
            limits=self.limits,
            message_id=message_ids(b"k" * 32, ADDRESS),
            random=_counting(self.index.state.run),
        )

    def decide(self, operation: Operation) -> Decided:
        """What it comes to; nothing is changed."""
        return decide(self.index, operation, self.context)

    def do(self, operation: Operation) -> Decided:
        """Carry it out."""
        decided = self.decide(operation)
        if isinstance(decided, Change):
            self._commit(decided)
        elif isinstance(decided, Hold):
            self.index.hold(decided)
        return decided

    def _commit(self, change: Change) -> None:
        """By the rule book, as the substrate does: what that refuses is a fault of ours. Raises AssertionError."""
        verdict = judge(
            self.index, proposed(change), Ground(repository=REPOSITORY, address=ADDRESS, limits=self.limits)
        )
        assert not verdict.broken, "\n".join(map(str, verdict.broken))
        assert all(verdict.known[run] == known for run, known in change.known.items())
        self.changes.append(change)
        if isinstance(self.tree, Store):
            self.tree.commit(
                author=f"{change.author} <{change.author}@deployment.waypost>",
                subject=change.subject,
                puts=change.puts,
                deletes=change.deletes,
                at=self.wall,
            )
        else:
            self.tree.apply(change)
        self.index.apply(change)

    def drop_old(self) -> int:
        """Drop what may go now, as the substrate does at its start and once a day; how many buckets that were."""
        count = left = due(watermark(self.index, ADDRESS), self.wall, self.limits.retention)
        while (change := drop(self.index, self.context, another=left > 0)) is not None:
            self._commit(change)
            left -= bool(change.value)
        return count

    def fold_away(self) -> RunId | None:
        """Seal the run that has been finished longest, as the substrate does between writes; None when there is none.

        A run with large values needs several calls, as it needs several commits.
        """
        run = next(iter(self.index.finished), None)
        if run is not None:
            change = seal_run(self.index, run)
            assert isinstance(change, Change), change
            self._commit(change)
        return run

    def must(self, operation: Operation) -> Any:  # Any: a value's type is its operation's
        """Carry it out and return its value. Raises Refusal."""
        decided = self.do(operation)
        if isinstance(decided, Refused):
            raise Refusal(f"{decided.code}: {decided.why}")
        return decided.value if isinstance(decided, Change | Settled) else None

    def code(self, operation: Operation) -> str:
        """The code with which it is refused. Raises AssertionError when it isn't."""
        decided = self.do(operation)
        assert isinstance(decided, Refused), decided
        return decided.code

    def check(self) -> None:
        """Memory is what the tree says, and no directory has more than 256 entries. Raises AssertionError."""
        fresh, kept = self.folded(), self.index
        assert kept.state == fresh.state
        assert kept.granted == fresh.granted
        runs = runlog.run_ids(_as_tree(self.tree))
        assert [kept.known(run) for run in runs] == [fresh.known(run) for run in runs]
        assert kept.runs.driven() == fresh.runs.driven()
        assert list(kept.runs.deadlines(None)) == list(fresh.runs.deadlines(None))
        assert kept.finished.keys() == fresh.finished.keys()
        self._check_threads(fresh.threads)
        assert kept.queue == fresh.queue
        assert list(kept.queue) == list(fresh.queue)
        assert kept.on_hold == fresh.on_hold
        assert kept.outbox == fresh.outbox
        assert [kept.queued_for(run) for run in runs] == [fresh.queued_for(run) for run in runs]
        for directory, names in directories(_as_tree(self.tree)):
            assert len(names) <= BOUND, f"{directory} has {len(names)} entries"

    def _check_threads(self, fresh: Threads) -> None:
        """Threads with an archive are those that remember everything."""
        tree, all_of_it = _as_tree(self.tree), Threads()
        sealed = [run for run in runlog.run_ids(tree, layout.SEALED) if runlog.is_sealed(tree, run)]
        runs = sorted((*runlog.run_ids(tree), *sealed), key=run_ordinal)
        told = [thread_of(run, runlog.events(tree, run)) for run in runs]
        for thread in told:
            child = fold.parent_of(runlog.load(tree, thread.run).run) is not None
            all_of_it.appears(thread.run, follows=thread.after, child=child)
            for key in thread.keys:
                all_of_it.belongs(key, thread.run)
        for item in sorted(self.index.queue.values(), key=lambda each: each.queued.entry.arrival):
            entry = item.queued.entry
            all_of_it.belongs(entry.key, entry.run)
            if entry.starts:
                child = spawner(entry.id) is not None
                all_of_it.appears(entry.run, follows=entry.old or None, child=child)
        assert fresh.latest == all_of_it.latest
        for thread in told:
            assert self.index.threads.root(thread.run) == all_of_it.root(thread.run)
            for key in thread.keys:
                assert fresh.find_key(key) == all_of_it.find_key(key)

    # --- steps that many tests begin with ---

    def begin(self) -> WorkflowProcess:
        """A new generation; its child as a principal."""
        return WorkflowProcess(Generation(self.must(BeginGeneration())))

    def enqueue(self, message: bytes) -> int:
        """Accept a mail; its arrival."""
        arrival: int = self.must(Enqueue(message)).arrival
        return arrival

    def start(self, message: bytes) -> RunId:
        """Accept a mail and start its run."""
        arrival = self.enqueue(message)
        self.must(Claim(arrival))
        run: RunId = self.must(TakeUp(arrival=arrival, start=STARTED))
        return run

    def append(self, run: RunId, *events: ev.AnyEvent) -> int:
        """Append as the child of the present generation; the run's last seq."""
        by = WorkflowProcess(Generation(self.index.state.generation))
        last: int = self.must(Append(by=by, run=run, events=events))
        return last

    def events(self, run: RunId) -> list[ev.AnyEvent]:
        """The run's log."""
        return [ev.decode(raw) for raw in runlog.events(_as_tree(self.tree), run)]


def directories(tree: Tree, path: str = "") -> Iterator[tuple[str, tuple[str, ...]]]:
    """Every directory with the names in it, from the root down."""
    names = tree.entries(path)
    if names:
        yield path, names
    for name in names:
        yield from directories(tree, f"{path}/{name}" if path else name)


def first_files() -> dict[str, bytes]:
    """What flush 1 of a deployment's repository holds."""
    known = files.Format(format=files.VERSION, repository=REPOSITORY, epoch=1, deployment="expenses", address=ADDRESS)
    return {layout.FORMAT: files.encode(known), layout.STATE: files.encode(files.State())}


def message(
    name: str, *, sender: str = SENDER, answers: str | None = None, references: str = "", text: str = "text"
) -> bytes:
    """A mail; ``name`` becomes its Message-ID, ``answers`` the In-Reply-To (both without angles)."""
    lines = [f"From: {sender}", f"To: {ADDRESS}", f"Subject: about {name}", f"Message-ID: <{name}>"]
    if answers is not None:
        lines.append(f"In-Reply-To: <{answers.strip('<>')}>")
    if references:
        lines.append(f"References: {references}")
    return "\r\n".join((*lines, "", text, "")).encode()


def call(number: int, lane: str = "r1") -> CallId:
    """The n-th call of a lane."""
    return CallId(f"{lane}#{number}")


def _as_tree(tree: Files | Store) -> Rooted:
    return tree


def _counting(first: int) -> Callable[[], bytes]:
    numbers = itertools.count(first)
    return lambda: next(numbers).to_bytes(8, "big")

"""A host that runs for long neither leaks descriptors nor grows: a writer held to docs/storage-bounds.md."""

import itertools
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import msgspec
from msgspec.structs import replace

from ipc.process import open_descriptors
from substrate.effects import Again, Effect, To
from substrate.files.disk import Disk
from substrate.messages import (
    Append,
    BeginGeneration,
    Claim,
    Done,
    Enqueue,
    Flush,
    FoldAway,
    Idle,
    ReadRuns,
    Settle,
    Submit,
    TakeUp,
    WorkflowProcess,
)
from substrate.settings import Settings, message_ids
from substrate.signing.keys import SigningKey
from substrate.writer import Writer
from waypost.acting import Reply
from waypost.model import events as ev
from waypost.model.ids import Generation, RunId
from waypost.model.limits import DEFAULT
from waypost.model.times import Now
from waypost.testing.clock import START
from waypost.testing.desk import ADDRESS, STARTED, call, message

KEY = SigningKey.generate()
FOLDS = 8
LIMITS = replace(DEFAULT, seal_bytes=64 * 1024, folds=FOLDS)
SETTINGS = Settings(deployment="expenses", address=ADDRESS, message_id=message_ids(b"k" * 32, ADDRESS))
NULL = ev.Value(inline=msgspec.Raw(b"null"))
CHILD = WorkflowProcess(Generation(1))
LIVES = 60


class Host:
    """A writer with its mailbox, in one thread; time goes on with every turn."""

    def __init__(self, path: Path) -> None:
        self.mono = 0.0
        self.writer = Writer.open(path, SETTINGS, key=KEY, disk=Disk(), limits=LIMITS, now=self.now)
        self.mailbox: deque[Any] = deque()
        self.answers: dict[int, Any] = {}
        self.tokens = itertools.count(1)

    @property
    def now(self) -> Now:
        """Ten milliseconds later."""
        self.mono += 0.01
        return Now(START, self.mono)

    def hear(self, effects: Iterable[Effect]) -> None:
        """Take down what comes of a turn."""
        for effect in effects:
            if isinstance(effect, Reply):
                self.answers[effect.token] = effect.value
            elif isinstance(effect, Again):
                self.mailbox.append(effect.message)

    def rest(self) -> None:
        """Until it has nothing more to tell itself, and no packs are to be merged."""
        while self.mailbox:
            match self.mailbox.popleft():
                case Flush():
                    self.hear(self.writer.flush(self.now))
                case FoldAway():
                    self.hear(self.writer.fold_away(self.now))
                case Settle():
                    self.hear(self.writer.settle())
                case Idle():
                    self.hear(self.writer.idle(self.now))
                case other:
                    raise AssertionError(other)
        while self.writer._store.merging:
            self.hear(self.writer.merge(self.now))

    def ask(self, what: Any) -> Any:
        """One operation or question, durably."""
        token = next(self.tokens)
        self.hear(self.writer.submit(Submit(what=what), To(token=token), self.now))
        self.rest()
        answer = self.answers.pop(token)
        assert isinstance(answer, Done), answer
        return answer.value

    def live(self, number: int) -> None:
        """One run that ends, and one that parks for ever."""
        for name in (f"ends{number}@x", f"parks{number}@x"):
            arrival = self.ask(Enqueue(message(name))).arrival
            self.ask(Claim(arrival))
            run: RunId = self.ask(TakeUp(arrival=arrival, start=STARTED))
            step = ev.StepStarted(call=call(1), step="s", arguments="0" * 64)
            self.ask(Append(by=CHILD, run=run, events=(step, ev.StepCompleted(call=call(1), output=NULL))))
            end: ev.AnyEvent = ev.RunCompleted(result=NULL)
            if name.startswith("parks"):
                end = ev.SignalAwaited(call=call(2), park="input", seen=3, timeout=60.0)
            self.ask(Append(by=CHILD, run=run, events=(end,)))

    def kept(self) -> dict[str, int]:
        """How much it keeps of each kind."""
        index = self.writer._index
        runs, threads = index.runs, index.threads
        return {
            "descriptors": len(open_descriptors()),
            "touched": len(runs._touched) + len(runs._settling),
            "recent": len(runs._recent),
            "named": len(runs._named),
            "ids": len(threads._runs),
            "threads": len(threads._before) + len(threads._root) + len(threads._newest),
            "queue": len(index.queue) + len(index._keys) + len(index._waiting),
            "finished": len(index.finished),
            "held": len(index._held),
            "directories": _directories(self.writer._store._trees._root),
        }


def _directories(node: Any) -> int:
    return 1 + sum(map(_directories, node.children.values()))


def test_what_a_writer_keeps_does_not_grow_with_what_it_has_done(tmp_path: Path) -> None:
    """Through many seals and merges: after four times as many runs it keeps as much as before."""
    host = Host(tmp_path / "r.git")
    host.ask(BeginGeneration())
    for number in range(LIVES // 4):
        host.live(number)
    early: dict[str, int] = {}
    late: dict[str, int] = {}
    for number in range(LIVES // 4, LIVES):
        host.live(number)
        most = early if number < LIVES // 2 else late
        for name, count in host.kept().items():
            most[name] = max(most.get(name, 0), count)
    packs = len(list((tmp_path / "r.git" / "objects" / "pack").glob("*.pack")))
    assert host.writer.flush_number > 10 * LIVES
    assert late["recent"] <= FOLDS
    assert late["queue"] == early["queue"]
    assert {name: count for name, count in late.items() if count > early[name] + max(5, early[name] // 4)} == {}
    assert late["descriptors"] <= early["descriptors"] + packs
    listed = host.ask(ReadRuns(limit=2 * LIVES))
    assert [line.state for line in listed].count("parked") == LIVES
    assert len(host.ask(ReadRuns(limit=1000))) == 2 * LIVES
    found = list(host.writer._index.runs.deadlines(None))
    assert len(found) == LIVES
    list(host.writer.close(host.now))


def test_a_start_keeps_nothing_of_runs_that_nobody_touches(tmp_path: Path) -> None:
    """However many are parked: only what is asked for comes into memory."""
    host = Host(tmp_path / "r.git")
    host.ask(BeginGeneration())
    for number in range(10):
        host.live(number)
    list(host.writer.close(host.now))
    again = Host(tmp_path / "r.git").writer
    runs, threads = again._index.runs, again._index.threads
    assert (len(runs._touched), len(runs._recent), len(threads._runs)) == (0, 0, 0)
    assert again.snapshot().runs == ()
    list(again.close(host.now))

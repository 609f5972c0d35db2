"""One durable, signed, checked append against SQLite doing the same insert (WAL, synchronous=FULL).

Three contestants, each in a loop of its own with a bare fdatasync (the calibration) and SQLite in turn, so that none
finds the caches warm from another: the engine (``Writer``: decision, checks, commit, signature, one sync; no thread),
the same through the SubstrateActor, and 16 events in one append, as one commit, against 16 inserts in one transaction.
The asker waits until its append is durable. In five rounds each: a round's ratio is that of its medians, and what is
judged is the median of the rounds, so that a minute in which the disk or a neighbour is another one decides nothing.
Prints p50, p99, the ratios and their limits; with ``--grown``, too, the same append on a repository with 20,000 events
in the run and 5,000 consumed mails against a fresh one. ``--young`` gives each round a SQLite of its own, whose log
still grows, as that of the trial behind the limits did. The figures by themselves mean nothing.

    python -m benchmarks.append [--count N] [--young] [--grown] [--folder DIR]
"""

import argparse
import gc
import os
import sqlite3
import statistics
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TypeAlias

import msgspec

from benchmarks.figures import BLOCK, Probe, quantile, steady
from benchmarks.served import as_in_a_host
from substrate.actor import SubstrateActor
from substrate.effects import Again, To
from substrate.files.disk import Disk
from substrate.messages import (
    Append,
    BeginGeneration,
    Claim,
    Done,
    Enqueue,
    Idle,
    Open,
    Operation,
    Reject,
    Result,
    Stage,
    Start,
    Submit,
    TakeUp,
    WorkflowProcess,
)
from substrate.settings import Settings, message_ids
from substrate.signing.keys import SigningKey
from substrate.writer import Writer
from waypost.acting import Reply
from waypost.model import events as ev
from waypost.model.ids import CallId, Generation, RunId
from waypost.model.limits import DEFAULT
from waypost.model.times import Now
from waypost.shell import Ref, request

ADDRESS = "bench@example.com"
SETTINGS = Settings(deployment="bench", address=ADDRESS, message_id=message_ids(b"k" * 32, ADDRESS))
BATCH = 16
ROUNDS = 5
CHECKPOINTED = 1500
"""Inserts after which SQLite has checkpointed once: it does at 1,000 pages of its log, and each insert writes one."""
ROW = 307
"""Bytes of a row of SQLite's: what an event here has, 254 and 359 in turn."""
Contestants: TypeAlias = dict[str, Callable[[], object]]
_IDLE = Again(Idle())
OUTPUT = ev.Value(inline=msgspec.Raw(b'{"amount":"12.50","purpose":"' + b"x" * 150 + b'"}'))


class RealClock:
    """The machine's clocks; nobody is woken, so nothing is sealed but by size."""

    def now(self) -> Now:
        """The time at this moment."""
        return Now(time.time_ns() // 1_000_000, time.monotonic())

    def wake(self, ref: Ref, message: object, *, mono: float | None = None, wall: int | None = None) -> None:
        """No."""


class Bench(ABC):
    """A deployment with one run, appended to; ``ask`` says how it is reached."""

    def __init__(self) -> None:
        self.submit(BeginGeneration())
        self.arrival = 0
        self.calls = 0
        self.started = False
        self.run = self.mail()
        start = Start(definition="d" * 64, code="c" * 64, python="3.11", waypost="0.1.0", mail_to=())
        self.submit(Claim(self.arrival))
        self.submit(TakeUp(arrival=self.arrival, start=start))

    @abstractmethod
    def ask(self, submit: Submit) -> Result:
        """One round trip: the answer, when the operation has come to its stage."""

    def submit(self, operation: Operation, stage: Stage = Stage.DURABLE) -> Done:
        """One operation, answered at this stage; it must succeed."""
        answer = self.ask(Submit(what=operation, stage=stage))
        assert isinstance(answer, Done), answer
        return answer

    def mail(self, stage: Stage = Stage.DURABLE) -> RunId:
        """Enqueue one more mail; its run."""
        self.arrival += 1
        raw = f"From: a@example.com\nTo: {ADDRESS}\nSubject: s\nMessage-ID: <{self.arrival}@example.com>\n\ntext\n"
        accepted: RunId = self.submit(Enqueue(raw.encode()), stage).value.run
        return accepted

    def event(self) -> ev.AnyEvent:
        """The next one: a step begins, or returns."""
        self.started = not self.started
        if not self.started:
            return ev.StepCompleted(call=CallId(f"r1#{self.calls}"), output=OUTPUT)
        self.calls += 1
        return ev.StepStarted(call=CallId(f"r1#{self.calls}"), step="read_claim", arguments="0" * 64)

    def append(self, stage: Stage = Stage.DURABLE, count: int = 1) -> None:
        """Some events in one append, so in one commit."""
        events = tuple(self.event() for _ in range(count))
        self.submit(Append(by=WorkflowProcess(Generation(1)), run=self.run, events=events), stage)

    def batch(self) -> None:
        """So many events as one commit."""
        self.append(count=BATCH)

    def grow(self, events: int, mails: int) -> None:
        """A long run and a long queue behind it."""
        for _ in range(events):
            self.append(Stage.COMMITTED)
        for _ in range(mails):
            self.mail(Stage.COMMITTED)
            self.submit(Claim(self.arrival), Stage.COMMITTED)
            self.submit(Reject(self.arrival, "benchmark"), Stage.COMMITTED)


class Through(Bench):
    """Through the mailbox of a SubstrateActor: another thread carries it out."""

    def __init__(self, path: Path) -> None:
        self.ref = SubstrateActor.start(path, SETTINGS, SigningKey.generate(), clock=RealClock())
        assert isinstance(request(self.ref, Open(), timeout=60.0), Done)
        super().__init__()

    def ask(self, submit: Submit) -> Result:
        """Ask the actor."""
        answer: Result = request(self.ref, submit, timeout=60.0)
        return answer

    def stop(self) -> None:
        """Seal, and end the thread."""
        self.ref.stop()


class Engine(Bench):
    """What the actor is made of, in this thread: nobody is handed anything."""

    def __init__(self, path: Path) -> None:
        self._now = RealClock().now
        self._writer = Writer.open(
            path, SETTINGS, key=SigningKey.generate(), disk=Disk(), limits=DEFAULT, now=self._now()
        )
        super().__init__()

    def ask(self, submit: Submit) -> Result:
        """Carry it out and make it durable in the same call; and seal there, where it is time."""
        now, to = self._now(), To(token=1)
        effects = [*self._writer.submit(submit, to, now), *self._writer.flush(now)]
        if _IDLE in effects:
            list(self._writer.idle(now))
        answer: Result = next(effect.value for effect in effects if isinstance(effect, Reply))
        return answer

    def stop(self) -> None:
        """Seal."""
        list(self._writer.close(self._now()))


def sqlite(path: Path, batch: int = 1, inserted: int = CHECKPOINTED) -> Callable[[], None]:
    """The same insert: one row of the same size for each event, keyed by run and seq; a batch in one transaction.

    After so many are ``inserted`` its log is as long as it gets when this returns: from then on it is overwritten. As
    long as it grows, each sync has the file's new length to write, too, and takes up to twice as long.
    """
    base = sqlite3.connect(path, isolation_level=None)
    base.execute("pragma journal_mode=wal")
    base.execute("pragma synchronous=full")
    base.execute("create table event(run text, seq integer, body blob, primary key(run, seq)) without rowid")
    rows = iter(range(1, 10_000_000))
    body = os.urandom(ROW)

    def insert() -> None:
        base.execute("insert into event values(?, ?, ?)", ("run_1_0000000000000000", next(rows), body))

    def transaction() -> None:
        base.execute("begin immediate")
        for _ in range(batch):
            insert()
        base.execute("commit")

    base.execute("pragma synchronous=off")
    for _ in range(inserted):
        insert()
    base.execute("pragma synchronous=full")
    return insert if batch == 1 else transaction


def interleaved(contestants: Mapping[str, Callable[[], object]], count: int) -> dict[str, list[float]]:
    """Each in turn, ``count`` times; microseconds."""
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(count):
        for name, act in contestants.items():
            begun = time.perf_counter()
            act()
            taken[name].append((time.perf_counter() - begun) * 1e6)
    return taken


def rounds(
    contestants: Mapping[str, Callable[[], object]], count: int, anew: Callable[[int], Contestants]
) -> list[dict[str, list[float]]]:
    """So many of each altogether, in rounds; ``anew`` gives those that begin each round as new ones."""
    return [interleaved({**contestants, **anew(number)}, max(2, count // ROUNDS)) for number in range(ROUNDS)]


def show(taken: Sequence[dict[str, list[float]]], against: str, limit: float) -> None:
    """A line for each; the last one's ratio at p50, the median of its rounds', has the limit."""
    *_, judged = taken[0]
    for name in taken[0]:
        ratios = sorted(statistics.median(each[name]) / statistics.median(each[against]) for each in taken)
        values = [value for each in taken for value in each[name]]
        at_most = f", at most {limit}" if name == judged else ""
        print(
            f"{name:22} p50 {quantile(values, 0.5):7.0f} us   p99 {quantile(values, 0.99):7.0f} us   "
            f"ratio to {against}: {statistics.median(ratios):.2f} ({ratios[0]:.2f} to {ratios[-1]:.2f}{at_most})"
        )


def _young(path: Path, batch: int, number: int) -> Contestants:
    return {"sqlite": sqlite(path.with_suffix(f".{number}.sqlite"), batch, inserted=1)}


def _nothing(_number: int) -> Contestants:
    return {}


def main() -> None:
    """Measure each contestant, one after the other."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--young", action="store_true", help="against a SQLite whose log grows")
    parser.add_argument("--grown", action="store_true")
    parser.add_argument("--folder", help="where to write; must be on a real disk")
    options = parser.parse_args()
    as_in_a_host()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        here = Path(folder)
        engine, through = Engine(here / "engine.git"), Through(here / "through.git")
        for name, act, batch, limit in (
            ("engine", engine.append, 1, 1.5),
            ("through the actor", through.append, 1, 1.7),
            (f"a batch of {BATCH}", through.batch, BATCH, 1.8),
        ):
            contestants: Contestants = {
                "fdatasync": Probe(here / "raw", BLOCK + 500 * (batch - 1)),
                "sqlite": sqlite(here / f"{name}.sqlite", batch),
                name: act,
            }
            interleaved(contestants, 200)
            gc.collect()
            anew = partial(_young, here / name, batch) if options.young else _nothing
            taken = rounds(contestants, options.count, anew)
            show(taken, "sqlite", limit)
            steady([value for each in taken for value in each["fdatasync"]])
        engine.stop()
        through.stop()
        if options.grown:
            grown, fresh = Through(here / "grown.git"), Through(here / "fresh.git")
            grown.grow(20_000, 5_000)
            show(rounds({"fresh": fresh.append, "grown": grown.append}, options.count, _nothing), "fresh", 1.3)
            grown.stop()
            fresh.stop()


if __name__ == "__main__":
    main()

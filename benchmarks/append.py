"""One durable, signed append through the SubstrateActor against SQLite doing the same insert, in one loop.

Prints p50 and p99 of both and their ratio (WAL, synchronous=FULL, one insert a transaction), with a bare fdatasync as
calibration; and with ``--grown``, the same append on a repository with 20,000 events in the run and 5,000 consumed
mails against a fresh one. Ratios within one run mean something, the figures by themselves don't.

    python benchmarks/append.py [--count N] [--grown] [--folder DIR]
"""

import argparse
import gc
import os
import sqlite3
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from substrate.actor import SubstrateActor
from substrate.keys import SigningKey
from substrate.messages import (
    Append,
    BeginGeneration,
    Claim,
    Done,
    Enqueue,
    Open,
    Operation,
    Reject,
    Stage,
    Start,
    Submit,
    TakeUp,
    WorkflowProcess,
)
from substrate.settings import Settings, message_ids
from waypost.model import events as ev
from waypost.model.ids import CallId, Generation, RunId
from waypost.model.times import Now
from waypost.shell import Ref, request

ADDRESS = "bench@example.com"
OUTPUT = ev.Value(inline=msgspec.Raw(b'{"amount":"12.50","purpose":"' + b"x" * 150 + b'"}'))


class RealClock:
    """The machine's clocks; nobody is woken, so nothing is sealed but by size."""

    def now(self) -> Now:
        """The time at this moment."""
        return Now(time.time_ns() // 1_000_000, time.monotonic())

    def wake(self, ref: Ref, message: object, *, mono: float | None = None, wall: int | None = None) -> None:
        """No."""


class Bench:
    """A deployment with one run, appended to one event at a time."""

    def __init__(self, path: Path) -> None:
        settings = Settings(deployment="bench", address=ADDRESS, message_id=message_ids(b"k" * 32, ADDRESS))
        self.ref = SubstrateActor.start(path, settings, SigningKey.generate(), clock=RealClock())
        self.ask(Open())
        self.submit(BeginGeneration())
        self.arrival = 0
        self.calls = 0
        self.started = False
        self.run = self.mail()
        start = Start(definition="d" * 64, code="c" * 64, python="3.11", waypost="0.1.0", mail_to=())
        self.submit(Claim(self.arrival))
        self.submit(TakeUp(arrival=self.arrival, start=start))

    def ask(self, body: object) -> Done:
        """One round trip; it must succeed."""
        answer = request(self.ref, body, timeout=60.0)
        assert isinstance(answer, Done), answer
        return answer

    def submit(self, operation: Operation, stage: Stage = Stage.DURABLE) -> Done:
        """One operation, answered at this stage."""
        return self.ask(Submit(what=operation, stage=stage))

    def mail(self, stage: Stage = Stage.DURABLE) -> RunId:
        """Enqueue one more mail; its run."""
        self.arrival += 1
        raw = f"From: a@example.com\nTo: {ADDRESS}\nSubject: s\nMessage-ID: <{self.arrival}@example.com>\n\ntext\n"
        accepted: RunId = self.submit(Enqueue(raw.encode()), stage).value.run
        return accepted

    def append(self, stage: Stage = Stage.DURABLE) -> None:
        """One event: a step begins, or returns."""
        event: ev.AnyEvent
        if self.started:
            event = ev.StepCompleted(call=CallId(f"r1#{self.calls}"), output=OUTPUT)
        else:
            self.calls += 1
            event = ev.StepStarted(call=CallId(f"r1#{self.calls}"), step="read_claim", arguments="0" * 64)
        self.started = not self.started
        by = WorkflowProcess(Generation(1))
        self.submit(Append(by=by, run=self.run, events=(event,)), stage)

    def grow(self, events: int, mails: int) -> None:
        """A long run and a long queue behind it."""
        for _ in range(events):
            self.append(Stage.COMMITTED)
        for _ in range(mails):
            self.mail(Stage.COMMITTED)
            self.submit(Claim(self.arrival), Stage.COMMITTED)
            self.submit(Reject(self.arrival, "benchmark"), Stage.COMMITTED)


def sqlite(path: Path) -> Callable[[], None]:
    """The same insert: one row of the same size, keyed by run and seq."""
    base = sqlite3.connect(path, isolation_level=None)
    base.execute("pragma journal_mode=wal")
    base.execute("pragma synchronous=full")
    base.execute("create table event(run text, seq integer, body blob, primary key(run, seq)) without rowid")
    rows = iter(range(1, 10_000_000))
    body = os.urandom(380)

    def insert() -> None:
        base.execute("insert into event values(?, ?, ?)", ("run_1_0000000000000000", next(rows), body))

    return insert


def raw_sync(path: Path) -> Callable[[], None]:
    """A write of the same size and one fdatasync, nothing else."""
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    os.posix_fallocate(descriptor, 0, 64 * 1024 * 1024)
    body, at = os.urandom(1100), iter(range(0, 60 * 1024 * 1024, 1100))

    def write() -> None:
        os.pwrite(descriptor, body, next(at))
        os.fdatasync(descriptor)

    return write


def interleaved(contestants: dict[str, Callable[[], None]], count: int) -> dict[str, list[float]]:
    """Each in turn, ``count`` times; microseconds."""
    taken: dict[str, list[float]] = {name: [] for name in contestants}
    for _ in range(count):
        for name, act in contestants.items():
            begun = time.perf_counter()
            act()
            taken[name].append((time.perf_counter() - begun) * 1e6)
    return taken


def show(taken: dict[str, list[float]], against: str) -> None:
    def p(values: list[float], q: float) -> float:
        return statistics.quantiles(values, n=1000)[int(q * 10) - 1]

    for name, values in taken.items():
        ratio, ratio99 = (p(values, q) / p(taken[against], q) for q in (50, 99))
        print(
            f"{name:28} p50 {p(values, 50):7.0f} us   p99 {p(values, 99):7.0f} us   "
            f"ratio to {against}: {ratio:.2f} (p50) {ratio99:.2f} (p99)"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=2000)
    parser.add_argument("--grown", action="store_true")
    parser.add_argument("--folder", help="where to write; must be on a real disk")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        here = Path(folder)
        bench = Bench(here / "bench.git")
        contestants = {
            "fdatasync": raw_sync(here / "raw"),
            "sqlite": sqlite(here / "base.sqlite"),
            "substrate": bench.append,
        }
        interleaved(contestants, 200)
        gc.collect()
        show(interleaved(contestants, options.count), "sqlite")
        if options.grown:
            grown, fresh = Bench(here / "grown.git"), Bench(here / "fresh.git")
            grown.grow(20_000, 5_000)
            show(interleaved({"fresh": fresh.append, "grown": grown.append}, options.count), "fresh")
            grown.ref.stop()
            fresh.ref.stop()
        bench.ref.stop()


if __name__ == "__main__":
    main()

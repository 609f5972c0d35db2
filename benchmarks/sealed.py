"""What finished runs weigh once they are sealed: a start, a list and an append, beside few of them and many.

Prints, for a repository with few sealed runs and one with many: the time to open it, to open it without its index
(which is then built again), to list 1,000 runs, and a durable append. Only ratios within one run mean something.

    python -m benchmarks.sealed [--count RUNS] [--folder DIR]
"""

import argparse
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from benchmarks.append import ADDRESS, RealClock
from substrate.actor import SubstrateActor
from substrate.files.folder import Folder
from substrate.messages import (
    Append,
    BeginGeneration,
    Claim,
    Done,
    Enqueue,
    Open,
    Operation,
    Question,
    ReadRuns,
    Seal,
    Stage,
    Start,
    Submit,
    TakeUp,
    WorkflowProcess,
)
from substrate.settings import Settings, message_ids
from substrate.signing.keys import SigningKey
from waypost.model import events as ev
from waypost.model.ids import CallId, Generation, RunId
from waypost.shell import Ref, request

FEW = 100
APPENDS = 500
PATIENCE = 600.0
NULL = ev.Value(inline=msgspec.Raw(b"null"))
START = Start(definition="d" * 64, code="c" * 64, python="3.11", waypost="0.1.0", mail_to=())


class Bench:
    """A repository, and the actor that has it open."""

    def __init__(self, path: Path) -> None:
        self.path, self.key = path, SigningKey.generate()
        self.mails = 0
        self.ref: Ref
        self.open()
        self.submit(BeginGeneration())

    def open(self) -> None:
        """Start an actor on it."""
        settings = Settings(deployment="bench", address=ADDRESS, message_id=message_ids(b"k" * 32, ADDRESS))
        self.ref = SubstrateActor.start(self.path, settings, self.key, clock=RealClock())
        assert isinstance(request(self.ref, Open(), timeout=PATIENCE), Done)

    def submit(self, what: Operation | Question, stage: Stage = Stage.COMMITTED) -> Done:
        """One operation or question; it must succeed."""
        answer = request(self.ref, Submit(what=what, stage=stage), timeout=PATIENCE)
        assert isinstance(answer, Done), answer
        return answer

    def begin(self) -> RunId:
        """A run."""
        self.mails += 1
        raw = f"From: a@example.com\nTo: {ADDRESS}\nSubject: s\nMessage-ID: <{self.mails}@example.com>\n\ntext\n"
        arrival = self.submit(Enqueue(raw.encode())).value.arrival
        self.submit(Claim(arrival))
        run: RunId = self.submit(TakeUp(arrival=arrival, start=START)).value
        return run

    def grow(self, runs: int) -> None:
        """Runs that end, and are sealed."""
        by = WorkflowProcess(Generation(1))
        for _ in range(runs):
            self.submit(Append(by=by, run=self.begin(), events=(ev.RunCompleted(result=NULL),)))
        while sum(line.state == "running" for line in self.submit(ReadRuns(limit=1)).value):
            pass
        request(self.ref, Seal(), timeout=PATIENCE)

    def reopen(self) -> None:
        """Stop, and open again."""
        self.ref.stop()
        self.open()

    def rebuild(self) -> None:
        """The same, without the derived index."""
        self.ref.stop()
        Path(Folder(str(self.path)).derived).unlink()
        self.open()

    def append(self) -> Callable[[], None]:
        """A durable append to a live run, to be called again and again."""
        run, by, numbers = self.begin(), WorkflowProcess(Generation(1)), iter(range(1, 1_000_000))

        def act() -> None:
            event = ev.StepStarted(call=CallId(f"r1#{next(numbers)}"), step="s", arguments="0" * 64)
            self.submit(Append(by=by, run=run, events=(event,)), Stage.DURABLE)

        return act


def took(act: Callable[[], object], times: int = 1) -> float:
    """Median milliseconds of a call."""
    taken: list[float] = []
    for _ in range(times):
        begun = time.perf_counter()
        act()
        taken.append((time.perf_counter() - begun) * 1e3)
    return statistics.median(taken)


def main() -> None:
    """Build both and compare."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=2000, help="sealed runs")
    parser.add_argument("--folder", help="where to write; must be on a real disk")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        few_runs = min(FEW, options.count)
        few, many = Bench(Path(folder) / "few.git"), Bench(Path(folder) / "many.git")
        few.grow(few_runs)
        many.grow(options.count)
        rows: list[tuple[str, Callable[[Bench], Callable[[], object]], int]] = [
            ("stop and open", lambda bench: bench.reopen, 5),
            ("list 1,000 runs", lambda bench: lambda: bench.submit(ReadRuns(limit=1000)), 1),
            ("durable append", lambda bench: bench.append(), min(APPENDS, options.count)),
            ("open without index", lambda bench: bench.rebuild, 1),
        ]
        for name, of, times in rows:
            small, large = took(of(few), times), took(of(many), times)
            print(
                f"{name:22} {few_runs} sealed runs: {small:8.2f} ms   {options.count} sealed runs: {large:8.2f} ms   "
                f"ratio {large / small:.2f}"
            )
        few.ref.stop()
        many.ref.stop()


if __name__ == "__main__":
    main()

"""What a durable append costs in a run of 100,000 events, against one in a run of 100: each in a process of its own.

Two processes, so that the big one alone pays for its heap and its merges. They take turns, 200 appends at a time
through a SubstrateActor, with a bare fdatasync beside each tenth. The big run is grown by real appends, a commit each.
CPU, which other work on the machine hardly changes, is beside the ratios of time.

    python -m benchmarks.growth [--count EVENTS] [--folder DIR]
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from contextlib import ExitStack
from pathlib import Path

import msgspec

from benchmarks.figures import Probe, load, quantile, say, seconds, show, steady
from benchmarks.served import Served, Steps, as_in_a_host
from substrate.messages import ReadLog
from substrate.signing.keys import SigningKey

SMALL = 100
BURST, BURSTS = 200, 20
UNASKED = 8
"""Appends under way while a run grows: it comes by often enough for the merges that this brings about."""


class Taken(msgspec.Struct):
    """Seconds of appends, of the bare syncs beside them, and of CPU in all."""

    appends: list[float] = []
    syncs: list[float] = []
    cpu: float = 0.0


def work(folder: Path, events: int) -> None:
    """The process: grow a run to so many events, then a burst of so many appends for each line of standard input."""
    as_in_a_host()
    served = Served(folder / f"{events}.git", SigningKey.generate())
    run = served.start("grown")
    steps = Steps(served.by, run)
    for number in range(2, events):
        (served.tell if number % UNASKED else served.ask)(steps.append())
    served.ask(steps.append())
    assert served.ask(ReadLog(run=run, after=events - 1, limit=1)).value.last == events
    served.rest()
    with Probe(folder / f"{events}.raw") as probe:
        print("ready", flush=True)
        for line in sys.stdin:
            taken, cpu = Taken(), time.process_time()
            for number in range(int(line)):
                append = steps.append()
                begun = time.perf_counter()
                served.ask(append)
                taken.appends.append(time.perf_counter() - begun)
                if number % 10 == 0:
                    taken.syncs.append(probe())
            taken.cpu = time.process_time() - cpu
            print(msgspec.json.encode(taken).decode(), flush=True)
    served.stop()


class Worker:
    """The other end of such a process."""

    def __init__(self, folder: Path, events: int) -> None:
        command = [sys.executable, "-m", "benchmarks.growth", "--work", json.dumps([str(folder), events])]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.taken = Taken()
        assert self._line() == "ready\n"

    def burst(self, appends: int, *, counts: bool = True) -> None:
        """Let it append, and keep what that took."""
        assert self._process.stdin is not None
        self._process.stdin.write(f"{appends}\n")
        self._process.stdin.flush()
        burst = msgspec.json.decode(self._line(), type=Taken)
        if counts:
            self.taken.appends += burst.appends
            self.taken.syncs += burst.syncs
            self.taken.cpu += burst.cpu

    def close(self) -> None:
        """Let it end."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.close()
        self._process.wait()
        self._process.stdout.close()

    def _line(self) -> str:
        assert self._process.stdout is not None
        return self._process.stdout.readline()


def main() -> None:
    """Print both, and their ratios."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=100_000, help="events of the big run")
    parser.add_argument("--folder", help="where to write; must be on a real disk")
    parser.add_argument("--work", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.work:
        folder, events = json.loads(options.work)
        work(Path(folder), events)
        return
    burst, small_run = min(BURST, options.count), min(SMALL, options.count)
    with tempfile.TemporaryDirectory(dir=options.folder) as name, ExitStack() as opened:
        begun = time.perf_counter()
        workers = {events: Worker(Path(name), events) for events in (small_run, max(options.count, small_run + 1))}
        for worker in workers.values():
            opened.callback(worker.close)
        print(f"grown in {time.perf_counter() - begun:.0f} s")
        for turn in range(BURSTS + 1 if options.count > BURST else 2):
            for worker in workers.values():
                worker.burst(burst, counts=turn > 0)
        small, big = (worker.taken for worker in workers.values())
    for events, worker in workers.items():
        seconds(worker.taken.syncs, "fdatasync beside it")
        seconds(worker.taken.appends, f"append after {events} events")
    for what, ratio, limit in (
        ("median", quantile(big.appends, 0.5) / quantile(small.appends, 0.5), 1.15),
        ("mean", statistics.fmean(big.appends) / statistics.fmean(small.appends), 1.4),
    ):
        show(f"growth to {options.count} events, {what}", ratio, limit, "x")
    say("  the same by CPU alone", big.cpu / small.cpu, "x")
    steady(big.syncs)
    say("  the bare fdatasync, big to small (p50)", quantile(big.syncs, 0.5) / quantile(small.syncs, 0.5), "x")
    load()


if __name__ == "__main__":
    main()

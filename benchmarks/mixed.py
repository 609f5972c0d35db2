"""A deployment's whole life, with every operation durable: mail in, claimed, taken up, runs of 24 events, sealed.

Eight runs live at a time, their operations in turn, each answered when it is durable; finished runs are sealed and
packs merged by themselves in between, as in a host. The last tenth is held against the first, by means; a bare
fdatasync beside each tenth operation says how much of a change was the disk's. ``--parked`` puts so many parked runs
into the repository first. Memory is this process's: the storage, all of a host's code, and what makes the load.

    python -m benchmarks.mixed [--count OPERATIONS] [--parked RUNS] [--folder DIR]
"""

import argparse
import itertools
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections import deque
from pathlib import Path

import msgspec

from benchmarks.figures import Probe, load, quantile, say, seconds, show, steady
from benchmarks.processes import memory
from benchmarks.served import START, Operations, Served, Steps, as_in_a_host, mail
from substrate.messages import Append, Claim, Enqueue, TakeUp, WorkflowProcess
from substrate.signing.keys import SigningKey
from waypost.model import events as ev

LIVE = 8
EVENTS = 24
"""Of a run: it starts, eleven steps begin and return, it completes."""
NULL = ev.Value(inline=msgspec.Raw(b"null"))
WINDOWS = 10


def life(by: WorkflowProcess, name: str) -> Operations:
    """All operations of one run, from its mail to its end."""
    accepted = (yield Enqueue(mail(name))).value
    yield Claim(accepted.arrival)
    yield TakeUp(arrival=accepted.arrival, start=START)
    steps = Steps(by, accepted.run)
    for _ in range(EVENTS - 2):
        yield steps.append()
    yield Append(by=by, run=accepted.run, events=(ev.RunCompleted(result=NULL),))


def play(served: Served, count: int, probe: Probe) -> tuple[list[float], list[float], list[float]]:
    """So many operations: seconds of each, of the bare syncs beside them, and of CPU in each window."""
    names = map("mixed-{}".format, itertools.count())
    lives = deque((each, next(each)) for each in (life(served.by, next(names)) for _ in range(LIVE)))
    taken, syncs, cpu = list[float](), list[float](), [time.process_time()]
    for number in range(1, count + 1):
        playing, operation = lives.popleft()
        begun = time.perf_counter()
        done = served.ask(operation)
        taken.append(time.perf_counter() - begun)
        try:
            lives.append((playing, playing.send(done)))
        except StopIteration:
            another = life(served.by, next(names))
            lives.append((another, next(another)))
        if number % 10 == 0:
            syncs.append(probe())
        if number % max(count // WINDOWS, 1) == 0:
            cpu.append(time.process_time())
    return taken, syncs, [after - before for before, after in itertools.pairwise(cpu)]


def main() -> None:
    """Print the windows, their ratio, the slowest operations and the memory."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=100_000)
    parser.add_argument("--parked", type=int, default=0, help="parked runs that are there before")
    parser.add_argument("--folder", help="where to write; must be on a real disk")
    options = parser.parse_args()
    as_in_a_host()
    with tempfile.TemporaryDirectory(dir=options.folder) as name, Probe(Path(name) / "raw") as probe:
        if options.parked:  # by a process of its own: its memory isn't a host's
            make = [sys.executable, "-m", "benchmarks.repositories", name, "--parked", str(options.parked)]
            subprocess.run(make, check=True)
        served = Served(Path(name) / "repo.git", SigningKey.load_or_create(Path(name) / "key"))
        _, before = memory(os.getpid())
        taken, syncs, cpu = play(served, options.count, probe)
        _, after = memory(os.getpid())
        served.stop()
    window = max(options.count // WINDOWS, 1)
    first, last = taken[:window], taken[-window:]
    around = max(window // 10, 1)
    beside = f" beside {options.parked} parked runs" if options.parked else ""
    print(f"{options.count} operations{beside}")
    seconds(syncs[:around], "fdatasync, first tenth")
    seconds(first, "operation, first tenth")
    seconds(syncs[-around:], "fdatasync, last tenth")
    seconds(last, "operation, last tenth")
    steady(syncs)
    show("mean of the last tenth to the first's", statistics.fmean(last) / statistics.fmean(first), 1.2, "x")
    say("  the same by CPU alone", cpu[-1] / cpu[0], "x")
    say(
        "  the bare fdatasync, last to first (mean)",
        statistics.fmean(syncs[-around:]) / statistics.fmean(syncs[:around]),
        "x",
    )
    show("99.9 % of operations take less than", quantile(taken, 0.999) * 1e3, 50, "ms")
    say("  the bare fdatasync, 99.9 %", quantile(syncs, 0.999) * 1e3, "ms")
    say("  the slowest operation", max(taken) * 1e3, "ms")
    show("memory at its peak (RSS)", resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024, 120, "MB")
    say("  when opened", before, "MB")
    say("  at the end", after, "MB")
    load()


if __name__ == "__main__":
    main()

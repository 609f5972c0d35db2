"""What a crash costs beside its pause, and how long a host with many deployments takes to stop.

A child with runs at work, 24 events each and a step in flight, is killed; timed from the kill until the code of every
run is at work again in the next child, less the pause between the two: the exit noticed and counted, a generation
begun, spawned, each run resumed durably and replayed. What is done in the pause costs nothing: ``--pause 0.001`` shows
what that is. Every further crash adds two events to each run. Beside it, in the same loop: a bare interpreter's start.

    python -m benchmarks.supervision [--count RUNS AND DEPLOYMENTS] [--crashes N] [--pause SECONDS] [--folder DIR]
"""

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from benchmarks.figures import load, say, show
from waypost.host.app import Config, Host
from waypost.host.code.describe import describe_all
from waypost.host.reading.live import Live
from waypost.host.reading.offline import Offline
from waypost.model.limits import DEFAULT, Limits

STEPS = 11
"""Two events each; with RunStarted and the step in flight a run has 24."""
PATIENCE = 120.0
NEVER = 10**6
MOMENTS = {"backing-off": "noticed", "starting": "pause over, not ready yet", "running": "ready"}
"""What a deployment's state says of the way."""
FLOW = """
import asyncio
import os

from waypost import Mail, Workflow

flow = Workflow("bench-{0}", address="bench-{0}@example.com", env=["AT_WORK"], runs="message")


@flow.step
def step(number: int) -> int:
    return number + 1


@flow.step
async def work() -> None:
    to = os.open(os.environ["AT_WORK"], os.O_WRONLY)
    os.write(to, b"x")
    os.close(to)
    await asyncio.Event().wait()


@flow.run
async def main(mail: Mail) -> None:
    number = 0
    for _ in range({1}):
        number = await step(number)
    await work()
"""


class Bench:
    """A host in this process, with so many deployments of the same kind."""

    def __init__(self, folder: Path, deployments: int, pause: float = 1.0) -> None:
        limits = Limits(  # all of them are up at once, and stay so: idle is never
            idle=0.0, backoff_first=pause, backoff_cap=pause, crash_exits=NEVER, crash_total=NEVER, attempts=NEVER
        )
        self._fifo = folder / "at-work"
        os.mkfifo(self._fifo)
        self._at_work = os.open(self._fifo, os.O_RDWR)
        environment = {**os.environ, "AT_WORK": str(self._fifo)}
        files = [folder / f"bench_{number}.py" for number in range(deployments)]
        for number, file in enumerate(files):
            file.write_text(FLOW.format(number, STEPS))
        described = describe_all(files, timeout=DEFAULT.ready_deadline, environment=environment)
        data = folder / "data"
        config = Config(data=data, described=described, command=("bench",), environment=environment, limits=limits)
        self.host = Host.start(config)
        self._live = Live(
            self.host.root, limits, lambda hosted: Offline(self.host.data, limits, hosted), self.host.data.out
        )

    def until_running(self) -> int:
        """Wait until each has its child; the pid of the first."""
        until = time.monotonic() + PATIENCE
        deployed = self._live.deployed()
        while not all(each.description.state == "running" for each in deployed):
            assert time.monotonic() < until, "a deployment didn't come up"
            time.sleep(0.005)  # nobody tells a benchmark; nothing is timed here
            deployed = self._live.deployed()
        return deployed[0].description.pid or 0

    @contextmanager
    def noted(self) -> Iterator[dict[str, float]]:
        """When the first deployment came into each state meanwhile, by the monotonic clock."""
        at: dict[str, float] = {}
        mark, over = self._live.follow("bench-0", "").mark, threading.Event()

        def follow(mark: str) -> None:
            while not over.is_set():
                now = self._live.follow("bench-0", mark)
                at.setdefault(now.status.state, time.perf_counter())
                mark = now.mark

        thread = threading.Thread(target=follow, args=(mark,), daemon=True)
        thread.start()
        yield at
        over.set()

    def begin(self, runs: int) -> None:
        """Start so many runs, and wait until the last step of each is at work."""
        for number in range(runs):
            raw = f"From: a@example.com\r\nMessage-ID: <{number}@example.com>\r\n\r\nhello\r\n".encode()
            self._live.deliver("bench-0@example.com", raw)
        self.until_at_work(runs)

    def until_at_work(self, runs: int) -> None:
        """Wait until so many steps have said that they are."""
        while runs > 0:
            runs -= len(os.read(self._at_work, runs))

    def close(self) -> float:
        """Stop the host; how long that took, in seconds."""
        begun = time.perf_counter()
        self.host.close()
        taken = time.perf_counter() - begun
        os.close(self._at_work)
        return taken


def crashes(folder: Path, runs: int, count: int, pause: float) -> None:
    """Kill the child so often."""
    bench = Bench(folder, 1, pause)
    bench.until_running()
    bench.begin(runs)
    taken, bare = list[float](), list[float]()
    way: dict[str, list[float]] = {}
    for _ in range(count):
        begun = time.perf_counter()
        subprocess.run([sys.executable, "-c", "pass"], check=True)
        bare.append((time.perf_counter() - begun) * 1e3)
        pid = bench.until_running()
        with bench.noted() as at:
            begun = time.perf_counter()
            os.kill(pid, signal.SIGKILL)
            bench.until_at_work(1)
            at["first run at work"] = time.perf_counter()
            bench.until_at_work(runs - 1)
            at["all"] = time.perf_counter()
        taken.append((at["all"] - begun - pause) * 1e3)
        for state, when in at.items():
            moment = MOMENTS.get(state, state)
            less = 0 if moment == "noticed" else pause
            way.setdefault(moment, []).append((when - begun - less) * 1e3)
    show(
        f"crash to resumed, {runs} unparked runs of 24 events, less the pause of {pause:g} s: first",
        taken[0],
        250.0,
        "ms",
    )
    show(f"the same, median of {count}, 2 events more in each", statistics.median(taken), 250.0, "ms")
    for moment, found in way.items():
        say(f"  {moment}, median, after", statistics.median(found), "ms")
    base = statistics.median(bare)
    say(
        f"a bare interpreter starts in; a crash to resumed takes {statistics.median(taken) / base:.1f} times that",
        base,
        "ms",
    )
    bench.close()


def stops(folder: Path, deployments: int) -> None:
    """Stop a host with so many deployments, each with its child."""
    bench = Bench(folder, deployments)
    bench.until_running()
    show(f"stop of {deployments} deployments", bench.close(), 5.0, "s")


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=100, help="runs of the crash, deployments of the stop")
    parser.add_argument("--crashes", type=int, default=5)
    parser.add_argument("--pause", type=float, default=DEFAULT.backoff_first, help="seconds, between two children")
    parser.add_argument("--folder", help="where to write; must be on a real disk")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        crashes(Path(name), options.count, options.crashes, options.pause)
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        stops(Path(name), options.count)
    load()


if __name__ == "__main__":
    main()

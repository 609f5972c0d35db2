"""A hundred thousand pending timers in one repository: the start, and a thousand of them that are due at once.

The repository is made first (``benchmarks.repositories``), and its index by a first start, which isn't counted. Then
its actors, as a host has them, on a clock that is turned by hand. Timed is how long the repository takes to open and
the scheduler to know what is next; and from the turn of the clock until every timer that is due is fired and durable.
At the end each is looked for in its run's log: none is lost, none is there twice. Beside the seconds stands the work,
because a busy machine shows in the one and not in the other.

    python -m benchmarks.timers [--count TIMERS] [--due N] [--per-run N] [--folder DIR]
"""

import argparse
import tempfile
import time
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import pykka

from actors.scheduler import SchedulerActor
from benchmarks.figures import load, say, show
from benchmarks.repositories import ADDRESS, AT, DAY, DEPLOYMENT, create, parked
from substrate import Settings, SigningKey, message_ids, runlog
from substrate.actor import SubstrateActor
from substrate.messages import Appended, Committed, Done, Durable, Open, Subscribe
from substrate.storage.readview import open_readonly
from waypost.acting import Ref
from waypost.model import events as ev
from waypost.model.deadlines import deadlines
from waypost.model.ids import Deployment, RunId
from waypost.shell import request
from waypost.testing.clock import ManualClock

HOUR = 3_600_000
PATIENCE = 600.0


class Stopwatch:
    """Seconds of the clock and of work since it was made."""

    def __init__(self) -> None:
        self._wall, self._cpu = time.perf_counter(), time.process_time()

    def show(self, what: str, limit: float) -> None:
        """Print both."""
        wall, cpu = time.perf_counter() - self._wall, time.process_time() - self._cpu
        show(what, wall, limit, "s", cpu)


class Follower(pykka.ThreadingActor):
    """Hears what is published."""

    def __init__(self, heard: SimpleQueue[Any]) -> None:
        super().__init__()
        self._heard = heard

    def on_receive(self, message: Any) -> None:
        """Pass it on."""
        self._heard.put(message)


class Crew:
    """The writer of a repository and its scheduler, at work."""

    def __init__(self, path: Path, key: SigningKey, clock: ManualClock) -> None:
        settings = Settings(deployment=DEPLOYMENT, address=ADDRESS, message_id=message_ids(b"k" * 32, ADDRESS))
        self.heard: SimpleQueue[Any] = SimpleQueue()
        self.substrate: Ref = SubstrateActor.start(path, settings, key, clock=clock)
        opened = request(self.substrate, Open(), timeout=PATIENCE)
        assert isinstance(opened, Done), opened
        self.scheduler: Ref = SchedulerActor.start(Deployment(DEPLOYMENT), self.substrate, clock=clock)
        self.follower: Ref = Follower.start(self.heard)
        for each in (self.scheduler, self.follower):
            self.substrate.tell(Subscribe(each))

    def stop(self) -> None:
        """End it as a host does."""
        for each in (self.scheduler, self.follower, self.substrate):
            each.stop(timeout=PATIENCE)


def waiting(clock: ManualClock) -> None:
    """Until the scheduler has asked to be woken for what is next."""
    begun = time.perf_counter()
    while not any(alarm.wall is not None for alarm in clock.deadlines):
        assert time.perf_counter() - begun < PATIENCE
        time.sleep(0.001)


def fired(crew: Crew, count: int) -> list[tuple[RunId, str]]:
    """The timers that were fired, once so many are durable."""
    found: list[tuple[int, RunId, str]] = []
    while True:
        try:
            message = crew.heard.get(timeout=PATIENCE)
        except Empty:
            raise SystemExit(f"{len(found)} of {count} timers fired, and then nothing more") from None
        match message:
            case Committed(_, last, facts):
                found += (
                    (last, fact.run, each.event.timer)
                    for fact in facts
                    if isinstance(fact, Appended)
                    for each in fact.events
                    if isinstance(each.event, ev.TimerFired)
                )
            case Durable(up_to) if len(found) >= count and found[count - 1][0] <= up_to:
                return [(run, timer) for _, run, timer in found]
            case _:
                pass


def measure(path: Path, key: SigningKey, runs: list[RunId], due: int) -> None:
    """Start, fire, look."""
    clock = ManualClock(wall=AT, mono=1000.0)
    first = Crew(path, key, clock)  # builds the index
    waiting(clock)
    first.stop()
    clock = ManualClock(wall=AT, mono=1000.0)
    watch = Stopwatch()
    crew = Crew(path, key, clock)
    waiting(clock)
    watch.show("open, and know what is due next, with the index", 1)
    watch = Stopwatch()
    clock.set_wall(AT + HOUR)
    found = fired(crew, due)
    watch.show(f"{due} timers that are due at once, fired and durable", 2)
    crew.stop()
    view = open_readonly(path, key.public)
    logged = [
        (run, event.timer)
        for run in runs
        for event in map(ev.decode, runlog.events(view, run))
        if isinstance(event, ev.TimerFired)
    ]
    left = sum(len(deadlines(runlog.load(view, run).run)) for run in runs[: due + 1])
    print(f"fired {len(found)}, in the logs {len(logged)}, twice {len(logged) - len(set(logged))}, open beside {left}")
    assert sorted(logged) == sorted(found)
    assert len(set(logged)) == due


def main() -> None:
    """Print all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=100_000, help="pending timers")
    parser.add_argument("--due", type=int, default=1_000, help="of these, due at once")
    parser.add_argument("--per-run", type=int, default=1, help="timers of each run, 60 at most")
    parser.add_argument("--folder", type=Path, help="where to write; must be on a real disk")
    options = parser.parse_args()
    each, due = min(options.per_run, 60), min(options.due, options.count)

    def until(ordinal: int) -> tuple[int, ...]:
        first = (ordinal - 1) * each
        return tuple(AT + HOUR if first + n < due else AT + 30 * DAY + first + n for n in range(each))

    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        path, key = Path(name) / "repo.git", SigningKey.generate()
        begun = time.perf_counter()
        store = create(path, key)
        runs = parked(store, options.count // each, until)
        store.close()
        say(f"making {options.count} timers in {len(runs)} runs", time.perf_counter() - begun, "s")
        measure(path, key, runs, due)
    load()


if __name__ == "__main__":
    main()

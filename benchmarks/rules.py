"""What the rule book costs: the check of each kind of write alone, and a whole history with its memory.

CPU time of this process, because the check does nothing else. The limit is that of the hot path, an append of one
event; the other figures are for whoever wonders. ``waypost fsck`` does what the second half does.

    python -m benchmarks.rules [--count COMMITS]
"""

import argparse
import resource
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

from substrate.checking.fsck import Looked, fsck
from substrate.messages import Append, Claim, Enqueue, Operation, TakeUp, WorkflowProcess
from substrate.operations import Change
from substrate.rules import Ground, judge, proposed
from substrate.signing.keys import SigningKey
from substrate.storage.store import Store
from waypost.model import events as ev
from waypost.model.ids import CallId, Generation, RunId
from waypost.testing.desk import ADDRESS, REPOSITORY, STARTED, Desk, first_files, message
from waypost.testing.stores import AT

LIMIT = 8.0
"""Microseconds for the check of an append of one event."""
ROUNDS, REPEATS = 5_000, 9
FLUSH = 16
TEXT = msgspec.Raw(b'"' + b"x" * 150 + b'"')


def step(number: int) -> tuple[ev.StepStarted, ev.StepCompleted]:
    """A step that begins and returns some 150 bytes."""
    call = CallId(f"r1#{number}")
    return (
        ev.StepStarted(call=call, step="read", arguments="0" * 64),
        ev.StepCompleted(call=call, output=ev.Value(inline=TEXT)),
    )


def microseconds(work: Callable[[], object], rounds: int) -> float:
    """CPU time of one call: the best of several rounds, because others use the machine."""
    best = float("inf")
    for _ in range(REPEATS):
        begin = time.process_time()
        for _ in range(rounds):
            work()
        best = min(best, time.process_time() - begin)
    return best / rounds * 1e6


def checks(desk: Desk, rounds: int) -> None:
    """The check of each kind of write, on what it would be decided on."""
    by = WorkflowProcess(Generation(desk.begin().generation))
    run = desk.start(message("first@x"))
    for number in range(1, 20):
        desk.append(run, *step(number))
    ground = Ground(repository=REPOSITORY, address=ADDRESS, limits=desk.limits)

    def check(name: str, operation: Operation, rounds: int, limit: str = "") -> float:
        decided = desk.decide(operation)
        assert isinstance(decided, Change), decided
        found = microseconds(lambda: judge(desk.index, proposed(decided), ground), rounds)
        print(f"  {name:24} {found:7.1f} us{limit}")
        return found

    one, two = step(50)
    took = check("append, one event", Append(by=by, run=run, events=(one,)), rounds, f"   limit {LIMIT:.0f}")
    check("append, two events", Append(by=by, run=run, events=(one, two)), rounds)
    check("enqueue", Enqueue(message("next@x")), rounds // 10 + 1)
    arrival = desk.enqueue(message("next@x"))
    check("claim", Claim(arrival), rounds // 10 + 1)
    desk.must(Claim(arrival))
    check("take up", TakeUp(arrival=arrival, start=STARTED), rounds // 10 + 1)
    print(f"  {'within its limit' if took <= LIMIT else 'OVER ITS LIMIT'}")


def create(path: Path) -> Store:
    """An empty repository, open."""
    return Store.create(path, repository_id=REPOSITORY, key=SigningKey.generate(), first=first_files(), at=AT)


def history(path: Path, commits: int) -> None:
    """A history of appends and mails, checked as ``waypost fsck`` checks it."""
    store = create(path)
    desk = Desk(store)
    desk.begin()
    runs: list[RunId] = []
    for number in range(commits):
        if number % 20 == 0:
            runs.append(desk.start(message(f"m{number}@x")))
        else:
            desk.append(runs[-1], *step(number))
        if number % FLUSH == 0:
            store.flush()
    store.close()
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    looked, begin = Looked(), time.process_time()
    assert list(fsck(path, looked)) == []
    took = time.process_time() - begin
    grown = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024
    print(f"  {looked.commits} commits in {took:.1f} s of CPU: {took / looked.commits * 1e3:.2f} ms each")
    print(f"  memory beyond what making them took: {grown:.0f} MB")


def main() -> None:
    """Print both halves."""
    options = argparse.ArgumentParser(description="What the rule book costs.")
    options.add_argument("--count", type=int, default=5_000, help="commits")
    chosen = options.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        print("the check alone")
        store = create(Path(folder) / "a.git")
        checks(Desk(store), min(ROUNDS, chosen.count))
        store.close()
        print("a whole history")
        history(Path(folder) / "r.git", chosen.count)


if __name__ == "__main__":
    main()

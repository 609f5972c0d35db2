"""Child runs on a real disk that dies at every point: each commit of a parent and its children whole, or not at all."""

import dataclasses
import shutil
from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from substrate import layout, runlog, verify
from substrate.files.disk import Disk
from substrate.messages import (
    Append,
    BeginGeneration,
    Claim,
    Deploy,
    Enqueue,
    Operation,
    Pause,
    ReadRuns,
    RunLine,
    SpawnChild,
    TakeUp,
    WorkflowProcess,
)
from substrate.state import decode_state
from substrate.storage.readview import open_readonly
from waypost.model import events as ev
from waypost.model.code import deployed, tree_hash
from waypost.model.declaration import ChildDeclared, Declared
from waypost.model.ids import Generation, RunId, run_ordinal
from waypost.testing.desk import ADDRESS, STARTED, call, message
from waypost.testing.disks import Died, DyingDisk
from waypost.testing.stores import fsck
from waypost.testing.writer_here import KEY, WriterHere

CODE = {"flow.py": b"x = 1\n"}
DECLARED = Declared(name="expenses", address=ADDRESS, children=(ChildDeclared(name="pay", asynchronous=True),))
BEGINS = dataclasses.replace(STARTED, code=tree_hash(CODE))
BY = WorkflowProcess(Generation(1))
LARGE = ev.RunCompleted(result=ev.Value(inline=msgspec.Raw(b'"' + b"x" * 70_000 + b'"')))
FAILED = ev.RunFailed(error=ev.Fault(type="ValueError", message="no"))


class Host(WriterHere):
    """A writer at rest, and its runs."""

    def __init__(self, path: Path, disk: Disk | None = None) -> None:
        super().__init__(path, disk)
        self.rest()

    def run(self, ordinal: int) -> RunId:
        """The run with this ordinal, queued or not."""
        lines: tuple[RunLine, ...] = self.done(ReadRuns())
        return next(line.run for line in lines if run_ordinal(line.run) == ordinal)


Act = Callable[[Host], Operation]


def always(operation: Operation) -> Act:
    """The same whatever there is."""
    return lambda _host: operation


def spawn(ordinal: int, number: int) -> Act:
    """A run starts a child."""
    return lambda host: SpawnChild(
        by=BY, run=host.run(ordinal), call=call(number), workflow="pay", input=b"[1]", seen=0
    )


def append(ordinal: int, event: ev.AnyEvent) -> Act:
    """A run's code says something."""
    return lambda host: Append(by=BY, run=host.run(ordinal), events=(event,))


ACTS: tuple[Act, ...] = (
    always(BeginGeneration()),
    always(Deploy(record=deployed(CODE, root="", module="flow", declared=DECLARED), files=CODE)),
    always(Enqueue(message("m1@x"))),
    always(Claim(1)),
    always(TakeUp(arrival=1, start=BEGINS)),
    *(spawn(1, number) for number in range(1, 5)),
    always(Claim(2)),
    always(TakeUp(arrival=2, start=BEGINS)),
    always(Claim(3)),
    always(TakeUp(arrival=3, start=BEGINS)),
    append(2, LARGE),
    append(1, ev.ChildCancelRequested(call=call(3))),
    always(Claim(5)),
    spawn(3, 1),
    lambda host: Pause(run=host.run(3), code="operator", detail=""),
    append(1, FAILED),
)
"""Child 2 completes, 4 is let go of while it is queued; the parent fails beside 3, paused with a child of its own, 6,
and 5, which is claimed."""

Told = list[tuple[int, tuple[str, ...]]]


def told(path: Path) -> Told:
    """Runs by ordinal, with the kinds of their events; mails that aren't consumed; what runs: as a reader sees it."""
    view = open_readonly(path, KEY.public)
    runs = dict.fromkeys((*runlog.run_ids(view), *runlog.run_ids(view, layout.SEALED)))
    found = [(run_ordinal(run), tuple(ev.kind(ev.decode(raw)) for raw in runlog.events(view, run))) for run in runs]
    for state in ("inbox", "processing", "hold"):
        for directory, name in runlog.leaves(view, layout.queue_dir(ADDRESS, state)):
            found.append((-(layout.place_of(f"{directory}/{name}").number or 0), (state,)))
    begun = decode_state(view.read(layout.STATE) or b"").generation
    return sorted([*found, (0, (f"generation {begun}", *view.entries(layout.CODE)))])


@pytest.mark.parametrize("stride", [23, pytest.param(1, marks=pytest.mark.torture)])
def test_parents_and_children_are_whole_after_death_at_any_point(tmp_path: Path, stride: int) -> None:
    """What was acknowledged is there; what wasn't is there in all logs and the queue, or in none; and it goes on."""
    whole = tmp_path / "whole.git"
    counting = Disk()
    host = Host(whole, counting)
    after = [told(whole)]
    for act in ACTS:
        host.done(act(host))
        after.append(told(whole))
    host.writer.void("over")
    kinds = dict(after[-1])
    assert kinds[1][-1] == "RunFailed"
    assert [kinds[ordinal][-1] for ordinal in range(2, 7)] == ["RunCompleted"] + ["RunCancelled"] * 4
    assert min(kinds) == 0, "no mail is left"
    for at in range(25, counting.points + 1, stride):
        path, done = tmp_path / "r.git", 0
        with pytest.raises(Died):  # noqa: PT012 - it dies somewhere in here
            host = Host(path, DyingDisk(at, half=at % 2 == 0))
            for act in ACTS:
                host.done(act(host))
                done += 1
            list(host.writer.close(host.now))
            raise Died("it got to the end")
        host = Host(path)
        found = told(path)
        assert found in after[done : done + 2], f"at {at}, after {done} acts"
        for act in ACTS[after.index(found, done) :]:
            host.done(act(host))
        assert told(path) == after[-1]
        list(host.writer.close(host.now))
        assert fsck(path) == ""
        assert verify(path, KEY.public).faults == ()
        shutil.rmtree(path)

"""A scheduler over a real disk, killed at every point of it: each tick has its mail once, and none is lost."""

import shutil
from collections import deque
from dataclasses import replace
from pathlib import Path
from typing import Any

import msgspec
import pytest

from actors.effects import Ask
from actors.logic.scheduler.decision import State, Unopened, advance
from substrate import Settings, SigningKey, layout, message_ids, runlog, verify
from substrate.checking.fsck import Looked, fsck
from substrate.effects import Again, To
from substrate.files.disk import Disk
from substrate.messages import (
    Append,
    BeginGeneration,
    Claim,
    Deploy,
    Done,
    Operation,
    Outcome,
    Refused,
    Submit,
    Supervisor,
    TakeUp,
    Withheld,
    WorkflowProcess,
)
from substrate.storage.readview import open_readonly
from substrate.ticking import decode
from substrate.writer import Writer
from waypost.acting import Reply, WakeAt
from waypost.model import events as ev
from waypost.model.code import deployed, tree_hash
from waypost.model.declaration import Declared
from waypost.model.ids import Generation, RunId
from waypost.model.limits import Limits
from waypost.model.schedule import Overlap, schedule, tick_of
from waypost.model.times import Now
from waypost.testing.clock import START
from waypost.testing.desk import ADDRESS, STARTED
from waypost.testing.disks import Died, DyingDisk

KEY = SigningKey.generate()
SETTINGS = Settings(deployment="expenses", address=ADDRESS, message_id=message_ids(b"k" * 32, ADDRESS))
CODE = {"flow.py": b"x = 1\n"}
MINUTE = 60_000
TICKS = 4
DONE = ev.RunCompleted(result=ev.Value(inline=msgspec.Raw(b"1")))


class Host:
    """A writer and a scheduler, in one thread."""

    def __init__(self, path: Path, wall: int, disk: Disk | None = None) -> None:
        self.now = Now(wall, 0.0)
        self.writer = Writer.open(path, SETTINGS, key=KEY, disk=disk or Disk(), limits=Limits(), now=self.now)
        self.wakes: list[WakeAt] = []
        self.state: State = Unopened(Limits())
        self.generation: Generation = self.must(BeginGeneration(blame=False))
        self.look()

    def look(self) -> None:
        """A scheduler begins."""
        self.state = Unopened(Limits())
        self._tell(self.writer.snapshot())

    def wake(self, minute: int) -> None:
        """It is so late, and the clock says so."""
        self.now = Now(START + minute * MINUTE, 0.0)
        for wake in tuple(self.wakes):
            self._tell(wake.message)

    def ask(self, what: Any) -> Done | Refused | Withheld:
        """One operation or question, durably."""
        answer: list[Any] = []
        effects = deque(self.writer.submit(Submit(what=what), To(token=1), self.now))
        while effects:
            match effects.popleft():
                case Reply(value=value):
                    answer.append(value)
                case Again(message) if type(message).__name__ == "Flush":
                    effects += self.writer.flush(self.now)
                case _:
                    pass
        assert len(answer) == 1
        result: Done | Refused | Withheld = answer[0]
        return result

    def must(self, what: Operation) -> Any:
        """The value of an operation that passes."""
        found = self.ask(what)
        assert isinstance(found, Done), found
        return found.value

    def run_all(self) -> None:
        """Every mail that waits begins its run, which ends at once; the scheduler looks anew."""
        resumed = ev.RunResumed(generation=self.generation)
        for driven in self.writer.snapshot().runs:
            self.must(Append(by=Supervisor(), run=driven.ledger.run, events=(resumed,)))
            self._end(driven.ledger.run)
        for entry in [each.entry for each in self.writer.snapshot().queue]:
            self.must(Claim(entry.arrival))
            run = self.must(TakeUp(arrival=entry.arrival, start=replace(STARTED, code=tree_hash(CODE))))
            self._end(run)
        self.look()

    def over(self) -> None:
        """It ends as it should."""
        for _ in self.writer.close(self.now):
            pass

    def _end(self, run: RunId) -> None:
        self.must(Append(by=WorkflowProcess(self.generation), run=run, events=(DONE,)))

    def _tell(self, message: Any) -> None:
        messages = deque([message])
        while messages:
            following = advance(self.state, messages.popleft(), self.now)
            self.state = following.state
            for effect in following.effects:
                if isinstance(effect, WakeAt):
                    self.wakes.append(effect)
                elif isinstance(effect, Ask):
                    messages.append(Outcome(effect.correlation, self.ask(effect.what)))


def made(path: Path, overlap: Overlap) -> Path:
    """A repository with a schedule of each minute."""
    host = Host(path, START)
    one = schedule("* * * * *", name="tick", overlap=overlap, catch_up=100)
    declared = Declared(name="expenses", address=ADDRESS, schedules=(one,))
    host.must(Deploy(record=deployed(CODE, root="", module="flow", declared=declared), files=CODE))
    host.over()
    return path


def work(path: Path, disk: Disk | None = None) -> None:
    """Three minutes of a host that is stopped after two ticks and started anew."""
    host = Host(path, START, disk)
    host.wake(1)
    host.wake(2)
    host.run_all()
    host.run_all()
    host.wake(3)
    host.over()


def ticks(path: Path) -> list[int]:
    """The ticks that have begun a run, in the order of their mails: minutes after START."""
    view = open_readonly(path, KEY.public)
    begun = [
        event
        for root in (layout.RUNS, layout.SEALED)
        for run in runlog.run_ids(view, root)
        if isinstance(event := ev.decode(next(iter(runlog.events(view, run)))), ev.RunStarted)
    ]
    found = [tick_of(event.mail.id) for event in sorted(begun, key=lambda each: each.mail.arrival)]
    return [(round(tick.due.timestamp() * 1000) - START) // MINUTE for tick in found if tick is not None]


@pytest.mark.parametrize("overlap", ["queue", "skip"])
@pytest.mark.parametrize("stride", [61, pytest.param(1, marks=pytest.mark.torture)])
def test_a_host_that_dies_at_any_point_loses_no_tick_and_repeats_none(
    tmp_path: Path, stride: int, overlap: Overlap
) -> None:
    """The mail and how far the schedule has come are one commit; the next host goes on from there."""
    start, counting = made(tmp_path / "start.git", overlap), Disk()
    shutil.copytree(start, tmp_path / "whole.git")
    work(tmp_path / "whole.git", counting)
    assert ticks(tmp_path / "whole.git") == ([1, 2] if overlap == "queue" else [1])
    for at in range(1, counting.points + 1, stride):
        path = tmp_path / "r.git"
        shutil.copytree(start, path)
        with pytest.raises(Died):
            work(path, DyingDisk(at))
        again = Host(path, START + TICKS * MINUTE)
        for _ in range(TICKS + 1):
            again.run_all()
        again.over()
        found = ticks(path)
        assert sorted(set(found)) == found, f"at point {at}"
        assert overlap == "skip" or found == [1, 2, 3, 4], f"at point {at}"
        stood = decode(open_readonly(path, KEY.public).read(layout.schedule_path("tick")) or b"")
        assert (stood.reached, stood.waiting) == (START + TICKS * MINUTE, ())
        assert not list(fsck(path, Looked()))
        assert verify(path, KEY.public).faults == ()
        shutil.rmtree(path)

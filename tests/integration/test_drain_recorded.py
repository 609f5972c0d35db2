"""A drain on a real disk: killed at every point of it, what somebody was told of is what the next host finds."""

import shutil
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from substrate import Reader, Settings, SigningKey, message_ids, verify
from substrate.effects import Again, To
from substrate.files.disk import Disk
from substrate.messages import (
    BeginGeneration,
    Done,
    Drain,
    DrainDeployment,
    HoldDeployment,
    NoteDrain,
    ResumeDeployment,
    Submit,
)
from substrate.reader import Facts
from substrate.storage.store import Store
from substrate.upkeep.rollback import begin_epoch
from substrate.writer import Writer
from waypost.acting import Reply
from waypost.model.limits import DEFAULT
from waypost.model.times import Now
from waypost.testing.clock import START
from waypost.testing.desk import ADDRESS
from waypost.testing.disks import Died, DyingDisk
from waypost.testing.stores import fsck

KEY = SigningKey.generate()
SETTINGS = Settings(deployment="expenses", address=ADDRESS, message_id=message_ids(b"k" * 32, ADDRESS))
NOW = Now(START, 0.0)
STORY: tuple[tuple[Any, tuple[str, str]], ...] = (
    (BeginGeneration(), ("", "")),
    (DrainDeployment("ann"), ("rest", "")),
    (HoldDeployment(), ("", "drain")),
    (ResumeDeployment("ann"), ("", "")),
    (DrainDeployment("ann", end=True), ("end", "")),
    (NoteDrain(7_500), ("end 7500", "")),
    (ResumeDeployment("ann"), ("", "")),
    (DrainDeployment("bob"), ("rest", "")),
)
"""What is asked, and what the repository says then: what is drained to, and what holds it."""


def play(path: Path, disk: Disk) -> Iterator[int]:
    """The story, until the disk dies; how many of its steps are acknowledged."""
    writer = Writer.open(path, SETTINGS, key=KEY, disk=disk, limits=DEFAULT, now=NOW)
    try:
        for number, (what, _) in enumerate(STORY, 1):
            mailbox = deque(writer.submit(Submit(what=what), To(token=number), NOW))
            while mailbox:
                match mailbox.popleft():
                    case Again(message=message) if type(message).__name__ == "Flush":
                        mailbox += writer.flush(NOW)
                    case Reply(value=value):
                        assert isinstance(value, Done), value
                        yield number
                    case _:
                        pass
        deque(writer.close(NOW), maxlen=0)
    except Died:
        writer.void("killed")
        raise


def said(path: Path) -> tuple[str, str]:
    facts: Facts = Reader.open(path, KEY.public).facts()
    return shown(facts.drain or None), facts.held


def shown(drain: Drain | None) -> str:
    """What it waits for, and what its clock has counted."""
    return "" if drain is None else f"{drain.to} {drain.spent or ''}".strip()


@pytest.fixture(scope="module")
def template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A repository without a history."""
    path = tmp_path_factory.mktemp("drain") / "template.git"
    writer = Writer.open(path, SETTINGS, key=KEY, disk=Disk(), limits=DEFAULT, now=NOW)
    deque(writer.close(NOW), maxlen=0)
    return path


def test_an_epoch_that_begins_ends_a_drain(template: Path, tmp_path: Path) -> None:
    """It holds, and an operator says when it goes on: nothing is left to be drained."""
    path = tmp_path / "r.git"
    shutil.copytree(template, path)
    assert list(play(path, Disk()))[-1] == len(STORY)
    assert said(path) == ("rest", "")
    store = Store.open(path, key=KEY, limits=DEFAULT)
    begin_epoch(store, "restore", lost=None, at=START)
    store.close()
    assert said(path) == ("", "restore")
    assert verify(path, KEY.public).faults == ()


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.torture) for part in range(1, 6))])
def test_a_death_at_any_point_leaves_what_was_said_and_the_next_host_goes_on(
    template: Path, tmp_path: Path, part: int
) -> None:
    """At most one step more than was acknowledged, never one less, and nothing in between; every second one tears."""
    shutil.copytree(template, tmp_path / "count.git")
    disk = Disk()
    assert list(play(tmp_path / "count.git", disk)) == [1, 2, 3, 4, 5, 6, 7, 8]
    states = [("", ""), *(after for _, after in STORY)]
    for at in range(1 + part, disk.points + 1, 6):
        path = tmp_path / "r.git"
        shutil.copytree(template, path)
        acknowledged: list[int] = []
        with pytest.raises(Died):
            acknowledged.extend(play(path, DyingDisk(at, half=at // 6 % 2 == 0)))
        done = len(acknowledged)
        assert said(path) in states[done : done + 2], f"point {at}: {done} were acknowledged"
        writer = Writer.open(path, SETTINGS, key=KEY, disk=Disk(), limits=DEFAULT, now=NOW)
        snapshot = writer.snapshot()
        assert (shown(snapshot.drain), snapshot.held) == said(path)
        deque(writer.close(NOW), maxlen=0)
        assert verify(path, KEY.public).faults == ()
        shutil.rmtree(path)
    assert fsck(tmp_path / "count.git") == ""

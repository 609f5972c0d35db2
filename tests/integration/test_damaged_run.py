"""One run's log is damaged on the disk: whoever asks for it is told so, and everybody else's work goes on."""

from pathlib import Path
from typing import Any

import msgspec
import pytest

from substrate import layout
from substrate.effects import To
from substrate.files.disk import Disk
from substrate.messages import (
    Append,
    Claim,
    Enqueue,
    Operation,
    Question,
    ReadLog,
    ReadRuns,
    Refused,
    Stage,
    Submit,
    TakeUp,
    Withheld,
    WorkflowProcess,
)
from substrate.packs.objects import Kind, object_id
from substrate.packs.packindex import PackIndex
from substrate.settings import Settings, message_ids
from substrate.signing.keys import SigningKey
from substrate.storage.store import Store
from substrate.writer import Writer
from waypost.acting import Reply
from waypost.model import events as ev
from waypost.model.ids import Generation, RunId
from waypost.model.limits import DEFAULT
from waypost.model.times import Now
from waypost.testing.clock import START
from waypost.testing.desk import ADDRESS, REPOSITORY, STARTED, Desk, call, first_files, message

KEY = SigningKey.generate()
NOW = Now(START, 0.0)
NULL = ev.Value(inline=msgspec.Raw(b"null"))
CHILD = WorkflowProcess(Generation(1))


def spoil(repository: Path, data: bytes) -> None:
    """Flip a bit of this file's content, wherever it lies in the packs."""
    oid = object_id(Kind.BLOB, data)
    for index in (repository / "objects" / "pack").glob("*.idx"):
        for entry in PackIndex(index.read_bytes()):
            if entry.oid == oid:
                pack = index.with_suffix(".pack")
                raw = bytearray(pack.read_bytes())
                raw[entry.offset + 20] ^= 1
                pack.chmod(0o600)
                pack.write_bytes(raw)


class World:
    """A repository with a run whose oldest events can't be read, and another one."""

    def __init__(self, path: Path) -> None:
        Store.create(path, repository_id=REPOSITORY, key=KEY, first=first_files(), at=START).close()
        desk = Desk(Store.open(path, key=KEY))
        desk.begin()
        self.broken, self.sound = desk.start(message("m1@x")), desk.start(message("m2@x"))
        for run in (self.broken, self.sound):
            steps = [ev.StepStarted(call=call(number), step="s", arguments="a" * 64) for number in range(1, 70)]
            desk.append(run, *steps)
        desk.append(self.broken, ev.RunCompleted(result=NULL))
        segment = desk.tree.read(layout.segment_path(self.broken, 1))
        assert segment is not None
        desk.settle()
        assert isinstance(desk.tree, Store)
        desk.tree.close()
        settings = Settings(deployment="expenses", address=ADDRESS, message_id=message_ids(b"k" * 32, ADDRESS))
        list(
            Writer.open(path, settings, key=KEY, disk=Disk(), limits=DEFAULT, now=NOW).close(NOW)
        )  # the index is there
        spoil(path, segment)
        self.writer = Writer.open(path, settings, key=KEY, disk=Disk(), limits=DEFAULT, now=NOW)

    def ask(self, what: Operation | Question) -> Any:  # Any: a result's value is its question's
        """One operation or question."""
        effects = self.writer.submit(Submit(what=what, stage=Stage.COMMITTED), To(token=1), NOW)
        (answer,) = (effect.value for effect in effects if isinstance(effect, Reply))
        return answer

    def step(self, run: RunId, number: int) -> Any:
        """A child's word."""
        event = ev.StepCompleted(call=call(number), output=NULL)
        return self.ask(Append(by=CHILD, run=run, events=(event,)))


@pytest.fixture(name="world")
def _world(tmp_path: Path) -> World:
    return World(tmp_path / "r.git")


def test_who_asks_for_a_damaged_run_is_told_so_and_the_others_go_on(world: World) -> None:
    """The writer lives: it serves the other run, takes mail, and lists both."""
    answer = world.ask(ReadLog(run=world.broken, limit=10**6))
    assert isinstance(answer, Refused)
    assert answer.code == "damaged"
    assert "waypost fsck" in answer.hint
    assert world.step(world.sound, 1).value == 71
    assert len(world.ask(ReadLog(run=world.sound, limit=10**6)).value.events) == 71
    arrival = world.ask(Enqueue(message("m3@x"))).value.arrival
    assert world.ask(Claim(arrival)).value == 1
    assert world.ask(TakeUp(arrival=arrival, start=STARTED)).value
    assert [line.state for line in world.ask(ReadRuns()).value] == ["running", "running", "completed"]


def test_a_finished_run_that_is_damaged_stays_where_it_is(world: World) -> None:
    """It isn't sealed, and keeps nobody from anything."""
    list(world.writer.fold_away(NOW))
    assert world.step(world.sound, 1).value == 71
    list(world.writer.close(NOW))


def test_new_mail_is_withheld_where_damage_stands_in_its_way(tmp_path: Path) -> None:
    """Whether it is a redelivery can't be told: its sender keeps it, and tries again."""
    path = tmp_path / "r.git"
    Store.create(path, repository_id=REPOSITORY, key=KEY, first=first_files(), at=START).close()
    desk = Desk(Store.open(path, key=KEY))
    desk.begin()
    desk.start(message("m1@x"))
    raw = message("m1@x")
    consumed = next(data for each, data in desk.changes[-1].puts.items() if "/consumed/" in each)
    assert isinstance(desk.tree, Store)
    desk.tree.close()
    spoil(path, consumed)
    settings = Settings(deployment="expenses", address=ADDRESS, message_id=message_ids(b"k" * 32, ADDRESS))
    writer = Writer.open(path, settings, key=KEY, disk=Disk(), limits=DEFAULT, now=NOW)
    effects = list(writer.submit(Submit(what=Enqueue(raw), stage=Stage.COMMITTED), To(token=1), NOW))
    (answer,) = (effect.value for effect in effects if isinstance(effect, Reply))
    assert isinstance(answer, Withheld)
    list(writer.close(NOW))

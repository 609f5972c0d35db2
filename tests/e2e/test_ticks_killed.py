"""A real host that catches up with half an hour of ticks, killed twenty times at it: each has its run, once."""

import os
import random
import shutil
from pathlib import Path

import pytest

from substrate import Reader, Settings, SigningKey, layout, message_ids, runlog, verify
from substrate.checking.fsck import Looked, fsck
from substrate.effects import To
from substrate.files.disk import Disk
from substrate.messages import Deploy, Submit
from substrate.storage.readview import open_readonly
from substrate.ticking import decode
from substrate.writer import Writer
from waypost.host.clock import read
from waypost.host.code.describe import describe_all
from waypost.host.datadir.directory import DataDir
from waypost.model import events as ev
from waypost.model.limits import DEFAULT
from waypost.model.schedule import tick_of
from waypost.model.times import Now, unstamp
from waypost.testing.mortal import MortalHost, Place
from waypost.testing.patience import PATIENCE

pytestmark = pytest.mark.e2e
MINUTE = 60_000
TICKS = 30
KILLS = 20
SCHEDULE = layout.schedule_path("minute")


def prepared(folder: Path, file: Path) -> Place:
    """A data directory whose deployment has had no host for half an hour."""
    books = folder / "books"
    books.mkdir()
    environment = {**os.environ, "BOOKS": str(books)}
    place = Place(data=folder / "data", file=file, environment=environment, complaints=folder / "complaints")
    host = MortalHost(place)  # makes the keys
    while not host.ready and host.alive:
        host.hear(PATIENCE)
    assert host.end() == 0
    data = DataDir(place.data)
    shutil.rmtree(data.repo("minutes"))
    data.head("minutes").unlink()
    (one,) = describe_all([file], timeout=DEFAULT.ready_deadline, environment=environment)
    settings = Settings(
        deployment="minutes",
        address=one.spec.address,
        message_id=message_ids(b"k" * 32, one.spec.address),
        heads=data.head("minutes"),
    )
    then = Now(read().wall - TICKS * MINUTE, 0.0)
    key = SigningKey.load(data.signing_key)
    writer = Writer.open(data.repo("minutes"), settings, key=key, disk=Disk(), limits=DEFAULT, now=then)
    for effects in (
        writer.submit(Submit(what=Deploy(record=one.record, files=one.files)), To(token=1), then),
        writer.close(then),
    ):
        for _ in effects:
            pass
    return place


def reached(place: Place, key: SigningKey) -> tuple[bool, list[int]]:
    """Whether all that was missed has been caught up, and the ticks that have begun a run, oldest mail first."""
    view = open_readonly(DataDir(place.data).repo("minutes"), key.public)
    ticked = decode(view.read(SCHEDULE) or b"")
    begun = [
        event
        for root in (layout.RUNS, layout.SEALED)
        for run in runlog.run_ids(view, root)
        if isinstance(event := ev.decode(next(iter(runlog.events(view, run)))), ev.RunStarted)
    ]
    found = [tick_of(event.mail.id) for event in sorted(begun, key=lambda each: each.mail.arrival)]
    ticks = [round(tick.due.timestamp() * 1000) for tick in found if tick is not None]
    since = unstamp(ticked.since) // MINUTE * MINUTE
    return len(ticks) >= TICKS and not ticked.waiting, [(each - since) // MINUTE for each in ticks]


@pytest.mark.torture
@pytest.mark.timeout(600)  # twenty-two starts of a host
def test_twenty_kills_lose_no_tick_and_repeat_none(tmp_path: Path, flows: Path, unmeasured: None) -> None:
    """Right after a flush, wherever that falls: the mail, its run, its step, its end, the next tick that waits."""
    place = prepared(tmp_path, flows / "by_the_clock.py")
    key = SigningKey.load(DataDir(place.data).signing_key)
    seed = random.randrange(1 << 30)
    chance = random.Random(seed)
    for kill in range(KILLS):
        host = MortalHost(place, ("--die-after-sync", str(chance.randrange(4, 16))))
        while host.alive and not reached(place, key)[0]:
            host.hear(0.5)
        host.kill()
        host.close()
        _, ticks = reached(place, key)
        assert ticks == list(range(1, len(ticks) + 1)), f"seed {seed}, after kill {kill}"
    host = MortalHost(place)
    while host.alive and not reached(place, key)[0]:
        host.hear(0.5)
    assert host.end() == 0
    _, ticks = reached(place, key)
    assert ticks == list(range(1, len(ticks) + 1)), f"seed {seed}"
    assert len(ticks) >= TICKS
    assert not list(fsck(DataDir(place.data).repo("minutes"), Looked()))
    assert verify(DataDir(place.data).repo("minutes"), key.public).faults == ()
    booked = (tmp_path / "books" / "ticks").read_text(encoding="utf-8").splitlines()
    assert len({line.split()[0] for line in booked}) == len(set(booked)) >= TICKS - 1  # a step may be done twice
    assert Reader.open(DataDir(place.data).repo("minutes"), key.public).facts().address == "minutes@example.com"

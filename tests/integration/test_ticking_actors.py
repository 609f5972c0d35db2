"""Writer and scheduler as actors, on a real disk and a clock that is turned: a tick comes by a message, once."""

from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from actors.scheduler import SchedulerActor
from substrate import Settings, SigningKey, message_ids
from substrate.actor import SubstrateActor
from substrate.messages import Committed, Deploy, Done, Durable, Open, Queued, ScheduleMoved, Submit, Subscribe
from waypost.acting import Ref
from waypost.model.code import deployed
from waypost.model.declaration import Declared
from waypost.model.ids import Deployment
from waypost.model.schedule import schedule, tick_id
from waypost.shell import request
from waypost.testing.clock import START, ManualClock
from waypost.testing.desk import ADDRESS
from waypost.testing.listener import Listener
from waypost.testing.patience import PATIENCE

CODE = {"flow.py": b"x = 1\n"}
HOURLY = schedule("0 * * * *", tz="Asia/Kolkata", name="hourly")
HALF = 30 * 60.0
HOUR = 3_600_000


class Noting(ManualClock):
    """Tells the test who wants to be woken, and when by the wall clock."""

    def __init__(self) -> None:
        super().__init__()
        self.asked: SimpleQueue[int] = SimpleQueue()

    def wake(self, ref: Ref, message: Any, *, mono: float | None = None, wall: int | None = None) -> None:
        """As any clock."""
        super().wake(ref, message, mono=mono, wall=wall)
        if wall is not None:
            self.asked.put(wall)


class Crew:
    """A repository whose schedule has begun, and whoever hears of it."""

    def __init__(self, path: Path) -> None:
        settings = Settings(deployment="expenses", address=ADDRESS, message_id=message_ids(b"k" * 32, ADDRESS))
        self.clock, self.heard = Noting(), Listener()
        self.substrate: Ref = SubstrateActor.start(path, settings, SigningKey.generate(), clock=self.clock)
        declared = Declared(name="expenses", address=ADDRESS, schedules=(HOURLY,))
        record = deployed(CODE, root="", module="flow", declared=declared)
        for body in (Open(), Submit(what=Deploy(record=record, files=CODE))):
            answer = request(self.substrate, body, timeout=PATIENCE)
            assert isinstance(answer, Done), answer
        self.scheduler: Ref = SchedulerActor.start(Deployment("expenses"), self.substrate, clock=self.clock)
        for each in (self.scheduler, self.heard.ref):
            self.substrate.tell(Subscribe(each))

    def tick(self) -> str:
        """The id of the next mail that is queued, once it is durable."""
        while True:
            committed = self.heard.next(Committed, timeout=PATIENCE)
            for fact in committed.facts:
                if isinstance(fact, Queued):
                    while self.heard.next(Durable, timeout=PATIENCE).up_to < committed.last:
                        pass
                    return fact.entry.id

    def close(self) -> None:
        """Stop all."""
        for each in (self.scheduler, self.substrate):
            each.stop(timeout=PATIENCE)
        self.heard.stop()


@pytest.fixture(name="crew")
def _crew(tmp_path: Path) -> Iterator[Crew]:
    made = Crew(tmp_path / "repo.git")
    yield made
    made.close()


def test_the_clock_turns_and_a_mail_is_there(crew: Crew) -> None:
    """Kolkata's hours begin at half past; nobody asks, and nobody waits in a loop."""
    assert crew.clock.asked.get(timeout=PATIENCE) == START + HALF * 1000
    crew.clock.advance(HALF)
    assert crew.tick() == tick_id("hourly", round(START + HALF * 1000))


def test_a_clock_that_is_set_back_is_told_and_the_next_tick_is_another(
    crew: Crew, caplog: pytest.LogCaptureFixture
) -> None:
    """The scheduler hears of it at once; what it holds back is in the log, for whoever wonders."""
    assert crew.clock.asked.get(timeout=PATIENCE) == START + HALF * 1000
    crew.clock.set_wall(START + 24 * HOUR)
    assert crew.tick() == tick_id("hourly", round(START + HALF * 1000) + 23 * HOUR)
    assert crew.clock.asked.get(timeout=PATIENCE) == START + HALF * 1000 + 24 * HOUR
    crew.clock.set_wall(START)
    moved = crew.heard.next(Committed, timeout=PATIENCE).facts
    assert moved == (ScheduleMoved("hourly"),), "the schedule alone was moved"
    assert crew.clock.asked.get(timeout=PATIENCE) == START + HALF * 1000 + HOUR
    assert "is due again after 2026-11-29T08:30:00.000Z: a clock set back" in caplog.text

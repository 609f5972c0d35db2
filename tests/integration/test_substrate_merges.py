"""The SubstrateActor merges packs by itself, between the appends, and goes on where a killed one left."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from substrate import Settings, SigningKey, SubstrateActor, message_ids
from substrate.messages import BeginGeneration, Done, Enqueue, Merge, Open, ReadRuns, Seal, Submit
from waypost.model.limits import Limits
from waypost.shell import Ref, request
from waypost.testing.clock import ManualClock
from waypost.testing.desk import ADDRESS, message
from waypost.testing.patience import PATIENCE
from waypost.testing.stores import fsck

LIMITS = Limits(seal_bytes=256 * 1024)
KEY = SigningKey.generate()


class Deployment:
    """An actor on one repository, and the clock that wakes it."""

    def __init__(self, path: Path) -> None:
        self.path, self.clock, self.refs, self.mails = path, ManualClock(), list[Ref](), 0

    def start(self) -> None:
        """Another actor, opened."""
        settings = Settings(deployment="expenses", address=ADDRESS, message_id=message_ids(b"k" * 32, ADDRESS))
        self.refs.append(SubstrateActor.start(self.path, settings, KEY, clock=self.clock, limits=LIMITS))
        assert isinstance(self.ask(Open()), Done)

    def ask(self, body: Any) -> Any:
        """One question to the newest actor."""
        return request(self.refs[-1], body, timeout=PATIENCE)

    def write(self, count: int) -> None:
        """So many mails, each sealed into a pack of its own."""
        for _ in range(count):
            self.mails += 1
            assert isinstance(self.ask(Submit(what=Enqueue(message(f"m{self.mails}@x")))), Done)
            self.ask(Seal())

    @property
    def packs(self) -> int:
        """How many there are."""
        return len(list((self.path / "objects" / "pack").glob("*.pack")))

    @property
    def merging(self) -> bool:
        """Whether the actor waits for its next step."""
        self.ask(Submit(what=ReadRuns()))
        return any(isinstance(alarm.message, Merge) for alarm in self.clock.deadlines)


@pytest.fixture(name="deployment")
def _deployment(tmp_path: Path) -> Iterator[Deployment]:
    made = Deployment(tmp_path / "expenses.git")
    yield made
    for ref in made.refs:
        ref.stop()


def test_packs_are_merged_by_themselves_while_mail_comes_in(deployment: Deployment) -> None:
    """One step each ten milliseconds, and none in between: an append never waits for more than one."""
    deployment.start()
    deployment.ask(Submit(what=BeginGeneration()))
    deployment.write(8)
    assert deployment.packs == 9
    steps = 0
    while deployment.merging:
        before = deployment.packs
        deployment.write(steps == 7)
        assert deployment.packs <= before + 1
        deployment.clock.advance(0.01)
        steps += 1
    assert steps > 20
    assert deployment.packs <= 4
    deployment.refs[-1].stop()
    assert fsck(deployment.path) == ""


def test_a_start_goes_on_with_what_is_unmerged(deployment: Deployment) -> None:
    """Hosts that never live long merge as well: nobody has to write for it."""
    deployment.start()
    deployment.write(8)
    deployment.refs[-1].stop()
    before = deployment.packs
    deployment.start()
    while deployment.merging:
        deployment.clock.advance(0.01)
    assert deployment.packs < before
    deployment.refs[-1].stop()
    assert fsck(deployment.path) == ""


def test_a_merge_step_before_its_time_does_nothing(deployment: Deployment) -> None:
    """Whatever is in the mailbox twice, the pause between two steps is kept."""
    deployment.start()
    deployment.write(8)
    before = deployment.packs
    for _ in range(2000):
        deployment.refs[-1].tell(Merge())
    assert deployment.merging
    assert deployment.packs == before

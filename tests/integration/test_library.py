"""Who reads of deployments that sleep answers each question, also when it fails over one; then another one reads on."""

import threading
from collections.abc import Iterator
from typing import Any, cast

import pytest

from substrate.messages import Approvals, Done, Outcome, ReadApprovals, Withheld
from waypost.acting import ActorEnded
from waypost.host.reading.offline import Offline
from waypost.host.root.library import LibraryActor, Look
from waypost.model.ids import Deployment
from waypost.testing.clock import ManualClock
from waypost.testing.listener import Listener


class Disk:
    """What reads the repositories; the first time it fails as nobody foresaw, once more questions are there."""

    def __init__(self) -> None:
        self.asked = 0
        self.more = threading.Event()

    def approvals(self, _name: str) -> tuple[()]:
        """None is open."""
        self.asked += 1
        if self.asked == 1:
            assert self.more.wait(20)
            raise ZeroDivisionError
        return ()


@pytest.fixture
def listener() -> Iterator[Listener]:
    made = Listener()
    yield made
    made.stop()


def test_a_library_that_fails_leaves_no_question_open(listener: Listener) -> None:
    """Whoever asked would say for ever that it is still being read."""
    disk: Any = Disk()
    looks = [Look(Deployment("a"), ReadApprovals(limit=9), listener.ref, number) for number in (1, 2, 3)]
    first = LibraryActor.start(lambda: cast(Offline, disk), clock=ManualClock(), parent=listener.ref)
    for look in looks:
        first.tell(look)
    disk.more.set()
    answers = [listener.next(Outcome) for _ in looks]
    assert [each.correlation for each in answers] == [1, 2, 3]
    assert all(isinstance(each.result, Withheld) for each in answers)
    assert listener.next(ActorEnded) == ActorEnded("library", 1, "ZeroDivisionError()")
    second = LibraryActor.start(lambda: cast(Offline, disk), clock=ManualClock(), incarnation=2)
    second.tell(looks[0])
    assert listener.next(Outcome) == Outcome(1, Done(0, Approvals((), None)))
    second.stop(timeout=20)

"""A deployment under its real supervisor and crew falls asleep, and wakes; whatever comes on the way is kept."""

from collections.abc import Iterator
from pathlib import Path

import pykka
import pytest

from actors.draining import Depart, GiveWay
from substrate.folder import Folder
from waypost.model.limits import Limits
from waypost.testing.child_stage import eventually
from waypost.testing.deployment import PATIENCE, SERVE, Deployment, by_count
from waypost.testing.scripted_child import scripted

SLEEPY = Limits(backoff_first=0.02, kill_grace=0.2, idle=0.05)


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    """A deployment that ends with the test."""
    deployment = Deployment(tmp_path / "data")
    yield deployment
    deployment.close()


def crew(deployment: Deployment) -> set[str]:
    """Who is alive beside the listeners and the clock."""
    alive = (ref for ref in pykka.ActorRegistry.get_all() if ref.is_alive())
    names = {getattr(ref._actor_weakref(), "name", "") for ref in alive}  # noqa: SLF001 - pykka's only way to the actor
    return {name for name in names if name.startswith("orders/")}


def test_what_has_nothing_to_do_sleeps_without_a_process_a_journal_or_anybody(deployment: Deployment) -> None:
    """And when the host has no use for its supervisor any more, that goes, too."""
    supervisor = deployment.start(scripted(SERVE), limits=SLEEPY)
    deployment.until("running")
    deployment.until("dozing")
    deployment.until("dormant")
    assert not deployment.wires.pids
    assert Folder(str(deployment.data.repo("orders"))).journal_numbers() == ()
    assert crew(deployment) == {"orders/supervisor"}
    supervisor.tell(Depart())
    eventually(lambda: not crew(deployment), "nobody is left")

"""A deployment under its real supervisor and crew falls asleep, and wakes; whatever comes on the way is kept."""

import gc
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pykka
import pytest

from actors.draining import Depart, GiveWay
from actors.messages import Describe, Forward
from substrate.files.folder import Folder
from substrate.messages import Done, ReadRuns, ReadSealed, Refused
from waypost.model.limits import Limits
from waypost.shell import request
from waypost.testing.deployment import READY, SERVE, Deployment
from waypost.testing.patience import PATIENCE, eventually
from waypost.testing.scripted_child import scripted

SLEEPY = Limits(backoff_first=0.02, kill_grace=0.2, idle=0.05)
UNGRATEFUL = (
    "import os, signal\nfrom ipc.messages import Shutdown\n"
    f"{READY}while not isinstance(child.hear(), Shutdown): pass\nos.kill(os.getpid(), signal.SIGSEGV)\n"
)
"""A child that crashes as soon as it is asked to leave."""


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    """A deployment that ends with the test."""
    deployment = Deployment(tmp_path / "data")
    yield deployment
    deployment.close()


def crew() -> set[str]:
    """Who is alive of the deployment."""
    alive = (ref._actor_weakref() for ref in pykka.ActorRegistry.get_all() if ref.is_alive())
    return {name for name in (getattr(actor, "name", "") for actor in alive) if name.startswith("orders/")}


def test_what_has_nothing_to_do_sleeps_without_a_process_a_journal_or_anybody(deployment: Deployment) -> None:
    """And when the host has no use for its supervisor any more, that goes, too."""
    supervisor = deployment.start(scripted(SERVE), limits=SLEEPY)
    deployment.until("running")
    deployment.until("dozing")
    deployment.until("dormant")
    assert not deployment.wires.pids
    assert Folder(str(deployment.data.repo("orders"))).journal_numbers() == ()
    assert crew() == {"orders/supervisor"}
    asleep = request(supervisor, Forward(ReadRuns()), timeout=PATIENCE)
    assert isinstance(asleep, Refused)
    assert asleep.code == "asleep"
    supervisor.tell(Depart())
    eventually(lambda: not crew(), "nobody is left")


def files_below(folder: Path) -> set[str]:
    """What this process has open, or mapped, of a folder."""
    found = {line.split(maxsplit=5)[-1] for line in Path("/proc/self/maps").read_text(encoding="utf-8").splitlines()}
    for link in Path("/proc/self/fd").iterdir():
        with suppress(FileNotFoundError):  # the listing's own
            found.add(str(link.readlink()))
    return {name for name in found if name.startswith(f"{folder.resolve()}/")}


def test_what_sleeps_has_no_file_open_whether_or_not_anybody_collects_garbage(deployment: Deployment) -> None:
    """Thousands sleep in one host, which may have a thousand descriptors: its packs are closed, and not forgotten."""
    gc.disable()
    try:
        deployment.start(scripted(SERVE), limits=SLEEPY)
        deployment.until("running")
        repository = deployment.data.repo("orders")
        assert files_below(repository), "what is looked for can be found"
        deployment.until("dormant")
        assert not files_below(repository)
    finally:
        gc.enable()


@pytest.mark.parametrize("moment", ["dozing", "dormant"])
def test_a_mail_at_any_moment_is_accepted_and_wakes_it(deployment: Deployment, moment: str) -> None:
    """Wherever on its way down that meets it: durable, and a child comes for it."""
    deployment.start(scripted(SERVE), limits=SLEEPY)
    before = deployment.until(moment).generation
    assert deployment.enqueue(1).arrival == 1
    assert deployment.until("running").generation == before + 1
    assert request(deployment.supervisors[-1], Describe(), timeout=PATIENCE).exited is None


@pytest.mark.torture
def test_a_child_that_crashes_when_it_is_asked_to_leave_is_no_crash(deployment: Deployment) -> None:
    """It was to end, and nothing was lost: however often, the deployment isn't latched."""
    supervisor = deployment.start(scripted(UNGRATEFUL), limits=SLEEPY)
    for _ in range(4):  # three crashes would latch it
        assert deployment.until("dormant").exited is None
        assert isinstance(request(supervisor, Forward(ReadSealed()), timeout=PATIENCE), Done)
    assert deployment.until("running").generation == 5


def test_whoever_has_to_give_way_sleeps_without_its_idle_time(deployment: Deployment) -> None:
    """Others wait for its place."""
    supervisor = deployment.start(scripted(SERVE), limits=Limits(idle=600.0))
    deployment.until("running")
    supervisor.tell(GiveWay())
    deployment.until("dormant")

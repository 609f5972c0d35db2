"""A thousand restarts, and children that are stopped for longer than anybody waits: nothing is left or lost."""

import os
import signal
import threading
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pykka
import pytest

from actors.messages import Describe, Forward
from ipc.process import open_descriptors
from substrate.messages import Done, ResetDeployment
from waypost.model.limits import Limits
from waypost.shell import request
from waypost.testing.child_stage import alive
from waypost.testing.deployment import READY, SERVE, Deployment
from waypost.testing.patience import PATIENCE, eventually
from waypost.testing.scripted_child import plain, scripted

pytestmark = pytest.mark.torture

RESTARTS = 1000
NEVER = 10**6
TIRELESS = Limits(
    backoff_first=0.001, backoff_cap=0.001, kill_grace=0.2, crash_exits=NEVER, crash_total=NEVER, ready_deadline=20.0
)


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    """A deployment that ends with the test."""
    deployment = Deployment(tmp_path / "data")
    yield deployment
    deployment.close()


def children() -> set[int]:
    """Processes whose parent is this one, zombies among them."""
    me, found = os.getpid(), set[int]()
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                parent = int((entry / "stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[1])
            except (OSError, IndexError):
                continue
            if parent == me:
                found.add(int(entry.name))
    return found


def held() -> tuple[int, int, int, int]:
    """How many descriptors, threads, actors and child processes there are."""
    return len(open_descriptors()), threading.active_count(), len(pykka.ActorRegistry.get_all()), len(children())


def test_a_thousand_restarts_leave_nothing_behind(deployment: Deployment) -> None:
    """No descriptor, no thread, no actor, no process: what is lost with each would end the host in a week."""
    half = RESTARTS // 2
    supervisor = deployment.start(
        plain("raise SystemExit(3)"), limits=msgspec.structs.replace(TIRELESS, crash_total=half)
    )
    rests: list[tuple[int, int, int, int]] = []
    for latched in (half, 2 * half):
        while (down := deployment.until("down", "`waypost reset")).generation < latched:
            pass  # the latch before, which is told once more while it is being reset
        assert down.generation == latched
        eventually(lambda: not children(), "the last child is gone")
        rests.append(held())
        assert isinstance(request(supervisor, Forward(ResetDeployment("ann")), timeout=PATIENCE), Done)
    first, last = rests
    assert all(after <= before + 1 for before, after in zip(first, last, strict=True)), (first, last)
    deployment.enqueue(1)


def test_killed_children_that_had_been_ready_leave_nothing_either(deployment: Deployment) -> None:
    """With keys, channels and a session that was served: all of it goes with each."""
    deployment.start(scripted(SERVE), limits=TIRELESS)
    before: tuple[int, int, int, int] | None = None
    for _ in range(60):
        running = deployment.until("running")
        assert running.pid is not None
        before = before or held()
        os.kill(running.pid, signal.SIGKILL)
        deployment.until("backing-off", "SIGKILL")
    deployment.until("running")
    assert before is not None
    assert all(after <= was + 1 for was, after in zip(before, held(), strict=True)), (before, held())


def test_a_child_that_is_stopped_for_longer_than_every_watchdog_goes_on_as_if_nothing_had_been(
    deployment: Deployment,
) -> None:
    """A machine that sleeps, a debugger: whoever is ready has no deadline, and is served when it is back."""
    limits = Limits(
        ready_deadline=2.0, kill_grace=0.2, backoff_first=0.02, stable_after=0.1, stop_deadline=5.0, actor_window=0.1
    )
    deployment.start(scripted(SERVE), limits=limits)
    running = deployment.until("running")
    assert running.pid is not None
    os.kill(running.pid, signal.SIGSTOP)
    passed = threading.Event()
    threading.Timer(3.0, passed.set).start()
    number = 0
    while not passed.is_set():
        number += 1
        deployment.enqueue(number)
    os.kill(running.pid, signal.SIGCONT)
    assert request(deployment.supervisors[0], Describe(), timeout=PATIENCE) == running
    assert alive(running.pid)


def test_a_child_that_is_stopped_before_it_is_ready_is_followed_by_another_and_its_return_changes_nothing(
    deployment: Deployment, tmp_path: Path
) -> None:
    """The ladder's last rung needs no help of the process that it ends."""
    stopped = tmp_path / "stopped"
    script = (
        f"import os, pathlib, signal\nonce = pathlib.Path({str(stopped)!r})\n"
        "if not once.exists():\n    once.write_text(str(os.getpid()))\n    os.kill(os.getpid(), signal.SIGSTOP)\n"
    )
    limits = Limits(ready_deadline=3.0, kill_grace=0.2, backoff_first=0.02)
    deployment.start(scripted(script + READY + "child.serve()\n"), limits=limits)
    assert deployment.until("backing-off", "not ready within 3 s").generation == 1
    assert deployment.until("running").generation == 2
    pid = int(stopped.read_text(encoding="utf-8"))
    eventually(lambda: not alive(pid), "the stopped one is gone")
    if Path(f"/proc/{pid}").exists():
        os.kill(pid, signal.SIGCONT)
    assert request(deployment.supervisors[0], Describe(), timeout=PATIENCE).generation == 2

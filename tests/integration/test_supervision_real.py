"""A real supervisor with its whole real crew and scripted children: respawn, one for all, stop, and mail throughout."""

import errno
import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pykka
import pytest

from actors import DispatchActor, TerminalBroadcasterActor
from actors.messages import Describe, Forward, SeenQueued, Stop, WatchRun
from substrate.actor import SubstrateActor
from substrate.files.disk import Disk
from substrate.messages import Committed as Visible
from substrate.messages import (
    Done,
    Durable,
    Enqueue,
    GenerationBegun,
    Refused,
    ResetDeployment,
    Snapshot,
    Withheld,
)
from waypost.acting import ActorEnded, Ref
from waypost.model.limits import Limits
from waypost.shell import request
from waypost.testing.child_stage import alive
from waypost.testing.deployment import LIMITS, READY, SERVE, Deployment, by_count, mail
from waypost.testing.disks import LapsingDisk
from waypost.testing.listener import Listener
from waypost.testing.patience import PATIENCE, eventually
from waypost.testing.scripted_child import plain, scripted
from waypost.testing.supervision import a_spec


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    """A deployment that ends with the test."""
    deployment = Deployment(tmp_path / "data")
    yield deployment
    deployment.close()


def one(kind: type[pykka.Actor]) -> Ref | None:
    """The only actor of this class that lives at this moment; None where there isn't one."""
    refs = pykka.ActorRegistry.get_by_class(kind)
    assert len(refs) <= 1, "two of one role at once"
    return refs[0] if refs else None


def break_(kind: type[pykka.Actor]) -> Ref:
    """Have the only actor of this class fail, by a message that nobody may send it."""
    ref = one(kind)
    assert ref is not None
    ref.tell(object())
    return ref


def test_mail_is_accepted_from_the_first_moment_and_the_child_comes_up(deployment: Deployment) -> None:
    """Even before the repository is open: it is kept in order, and accepted once it is durable."""
    deployment.start(scripted(SERVE))
    assert deployment.enqueue(1).outcome == "enqueued"
    running = deployment.until("running")
    assert running.generation == 1
    assert running.pid is not None
    assert alive(running.pid)
    assert deployment.stream.next(Snapshot).generation == 0
    assert request(deployment.supervisors[0], Describe(), timeout=PATIENCE) == running


def test_a_child_that_is_killed_is_followed_by_the_next_generation(deployment: Deployment) -> None:
    """Kill -9: back-off, a durable generation, a new child; mail is accepted all the while."""
    deployment.start(scripted(SERVE))
    pid = deployment.until("running").pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    assert deployment.until("backing-off").reason == "ended by SIGKILL"
    deployment.enqueue(1)
    after = deployment.until("running")
    assert after.generation == 2
    assert after.pid != pid
    begun: list[int] = []
    while len(begun) < 2:
        facts = deployment.stream.next(Visible).facts
        begun += [fact.generation for fact in facts if isinstance(fact, GenerationBegun)]
    assert begun == [1, 2]


def test_a_bad_frame_costs_one_generation_and_nothing_else(deployment: Deployment, tmp_path: Path) -> None:
    """The host goes on, and so does the deployment (design §8, the violation rule)."""
    bad = READY + "child.raw(b'\\xff' * 64)\nimport time; time.sleep(600)\n"
    deployment.start(by_count(tmp_path, bad, SERVE))
    assert "announced" in deployment.until("backing-off").reason
    assert deployment.until("running").generation == 2
    deployment.enqueue(1)


def test_a_child_that_can_not_be_started_is_tried_again_and_again(deployment: Deployment) -> None:
    """It is nobody's crash: each time with the reason, each time a little later; mail is accepted."""
    deployment.start(("/etc/passwd",))
    for generation in (1, 2, 3, 4):
        assert deployment.until("backing-off", "Permission denied").generation == generation
    deployment.enqueue(1)


@pytest.mark.parametrize(
    ("prefix", "reason"),
    [(plain("import sys; sys.exit('no such flour')"), "exit status 1"), (plain("pass"), "exit status 0")],
    ids=["fails", "leaves"],
)
def test_children_that_end_again_and_again_latch_the_deployment_until_it_is_reset(
    deployment: Deployment, prefix: tuple[str, ...], reason: str
) -> None:
    """No third try follows, not by another host either; mail is accepted throughout, and the next command is named."""
    supervisor = deployment.start(prefix)
    for generation in (1, 2):
        assert deployment.until("backing-off", reason).generation == generation
    down = deployment.until("down", "`waypost reset orders`")
    assert (down.code, down.generation) == ("crash-looping", 3)
    assert f"3 exits within 60 s, the last one: {reason}" in down.reason
    assert down.exited is not None
    assert (down.exited.generation, "no such flour" in down.exited.reason.stderr) == (3, reason == "exit status 1")
    deployment.enqueue(1)
    request(supervisor, Stop(), timeout=PATIENCE)
    supervisor.stop(timeout=PATIENCE)
    again = deployment.start(scripted(SERVE))
    assert deployment.until("down").code == "crash-looping"
    assert request(again, Describe(), timeout=PATIENCE).pid is None
    deployment.enqueue(2)
    assert isinstance(request(again, Forward(ResetDeployment("ann")), timeout=PATIENCE), Done)
    assert deployment.until("running").generation == 4
    refused = request(again, Forward(ResetDeployment("ann")), timeout=PATIENCE)
    assert isinstance(refused, Refused)
    assert refused.code == "not-latched"


def test_an_actor_that_fails_while_it_is_latched_changes_nothing_about_it(deployment: Deployment) -> None:
    """One for all, and no child: the latch is in the repository."""
    deployment.start(plain("pass"))
    deployment.until("down", "`waypost reset")
    break_(DispatchActor)
    deployment.until("starting", "dispatch failed")
    assert deployment.until("down").code == "crash-looping"
    assert not deployment.wires.pids


def test_a_child_that_hangs_before_ready_is_evicted(deployment: Deployment) -> None:
    """The deadline is a message, not a wait."""
    deployment.start(plain("import time; time.sleep(600)"), limits=Limits(ready_deadline=0.2, backoff_first=0.02))
    assert "not ready within 0.2 s" in deployment.until("backing-off").reason
    assert deployment.until("starting").generation in {1, 2}


def test_a_changed_file_takes_the_child_away_and_leaves_the_mail(deployment: Deployment) -> None:
    """Runs recorded with one code must not be continued by another; the message says what to do."""
    deployment.start(scripted(SERVE), code="e" * 64)
    down = deployment.until("down", "code-changed")
    assert "start the host again" in down.reason
    deployment.enqueue(1)
    eventually(lambda: not deployment.wires.pids, "the child was ended")


def test_a_file_that_does_not_load_leaves_the_deployment_running_broken(deployment: Deployment) -> None:
    """The reason is shown; nothing is respawned for it."""
    deployment.start(scripted("child.broken('SyntaxError in line 3')\nchild.serve()\n"))
    assert deployment.until("running").reason == "SyntaxError in line 3"


def test_one_for_all_when_an_actor_fails(deployment: Deployment) -> None:
    """The dispatch fails: child and crew end, all are made anew from the log, and the mail is still there."""
    deployment.start(scripted(SERVE))
    before = deployment.until("running")
    deployment.enqueue(1)
    dispatch = break_(DispatchActor)
    assert "dispatch failed" in deployment.until("starting", "failed").reason
    after = deployment.until("running")
    assert after.generation == 2
    assert before.pid is not None
    assert not alive(before.pid)
    assert one(DispatchActor) != dispatch
    again = request(deployment.supervisors[0], Forward(mail(1)), timeout=PATIENCE)
    assert again.value.outcome == "already-present"


def test_the_broadcaster_is_replaced_under_a_running_child(deployment: Deployment) -> None:
    """Same child, same generation; whoever watched goes on watching, without asking again."""
    supervisor = deployment.start(scripted(SERVE))
    before = deployment.until("running")
    watcher = Listener()
    try:
        supervisor.tell(WatchRun(None, watcher.ref))
        deployment.enqueue(1)
        assert watcher.next(SeenQueued).arrival == 1
        broadcaster = break_(TerminalBroadcasterActor)
        eventually(lambda: one(TerminalBroadcasterActor) not in {None, broadcaster}, "it was replaced")
        deployment.enqueue(2)
        assert watcher.next(SeenQueued).arrival == 2
    finally:
        watcher.stop()
    assert request(supervisor, Describe(), timeout=PATIENCE) == before


def test_three_failures_in_a_minute_leave_it_down(deployment: Deployment) -> None:
    """Starting again doesn't repair the host's own code; whoever sends mail is told why it is withheld."""
    deployment.start(scripted(SERVE))
    for _ in range(3):
        deployment.until("running")
        break_(DispatchActor)
    down = deployment.until("down", "host-fault")
    assert "3 actors failed" in down.reason
    eventually(lambda: not pykka.ActorRegistry.get_by_class(DispatchActor), "the crew has ended")
    answer = request(deployment.supervisors[0], Forward(mail(1)), timeout=PATIENCE)
    assert isinstance(answer, Withheld)
    assert "host-fault" in answer.reason
    deployment.supervisors[0].stop(timeout=PATIENCE)
    deployment.start(scripted(SERVE))
    assert deployment.until("running").generation == 4, "a new host is another one"


def test_a_disk_that_fails_twice_leaves_the_storage_failed(deployment: Deployment, tmp_path: Path) -> None:
    """The first failed sync costs a restart and nothing acknowledged; the second one is an operator's to judge."""
    disk = LapsingDisk(tmp_path / "record")
    supervisor = deployment.start(scripted(SERVE), disk=disk)
    deployment.until("running")
    first = deployment.enqueue(1)
    disk.armed = True
    assert isinstance(request(supervisor, Forward(mail(2)), timeout=PATIENCE), Withheld)
    deployment.until("running")
    second = deployment.enqueue(2)
    assert (second.outcome, second.arrival) == ("enqueued", first.arrival + 1)
    disk.armed = True
    assert isinstance(request(supervisor, Forward(mail(3)), timeout=PATIENCE), Withheld)
    assert "storage-failed: the disk failed again" in deployment.until("down").reason
    answer = request(supervisor, Forward(mail(4)), timeout=PATIENCE)
    assert isinstance(answer, Withheld)
    assert "storage-failed" in answer.reason
    disk.close()


def test_a_stop_ends_everything_in_order_and_a_new_start_finds_all_of_it(deployment: Deployment) -> None:
    """What was accepted is durable, and nothing of the deployment is left: no process, no actor."""
    supervisor = deployment.start(scripted(SERVE))
    pid = deployment.until("running").pid
    deployment.enqueue(1)
    request(supervisor, Stop(), timeout=PATIENCE)
    assert pid is not None
    assert not alive(pid)
    assert {type(ref) for ref in pykka.ActorRegistry.get_by_class(DispatchActor)} == set()
    assert isinstance(request(supervisor, Forward(mail(2)), timeout=PATIENCE), Withheld)
    supervisor.stop(timeout=PATIENCE)
    deployment.start(scripted(SERVE))
    assert deployment.until("running").generation == 2
    assert deployment.enqueue(2).arrival > 0


@pytest.mark.parametrize("moment", ["at once", "starting", "backing-off"])
def test_a_stop_works_at_any_moment(deployment: Deployment, moment: str) -> None:
    """Also while the repository opens, while the child starts, and between two children."""
    waits: dict[str, tuple[tuple[str, ...], Callable[[], Any]]] = {
        "at once": (scripted(SERVE), lambda: None),
        "starting": (plain("import time; time.sleep(600)"), lambda: deployment.stream.next(Durable)),
        "backing-off": (plain("pass"), lambda: deployment.until("backing-off")),
    }
    prefix, wait = waits[moment]
    supervisor = deployment.start(prefix)
    wait()
    request(supervisor, Stop(), timeout=PATIENCE)
    assert request(supervisor, Describe(), timeout=PATIENCE).state == "stopped"
    eventually(lambda: not deployment.wires.pids, "the child was ended")


def test_a_supervisor_that_fails_leaves_no_crew_behind(deployment: Deployment) -> None:
    """Its host starts another one, which must find the repository free and no child at work."""
    supervisor = deployment.start(scripted(SERVE))
    pid = deployment.until("running").pid
    supervisor.tell(object())
    assert deployment.host.next(ActorEnded).failure
    assert not pykka.ActorRegistry.get_by_class(DispatchActor)
    assert not pykka.ActorRegistry.get_by_class(SubstrateActor)
    assert pid is not None
    eventually(lambda: not alive(pid), "its child ended")
    deployment.start(scripted(SERVE))
    assert deployment.until("running").generation == 2


def test_a_repository_that_is_no_repository_is_down_in_words(deployment: Deployment) -> None:
    """Nothing is guessed, nothing is overwritten."""
    path = deployment.data.repo(a_spec().name)
    path.mkdir(parents=True)
    (path / "HEAD").write_text("what?", encoding="utf-8")
    deployment.start(scripted(SERVE))
    down = deployment.until("down")
    assert down.reason
    assert (path / "HEAD").read_text(encoding="utf-8") == "what?"


class Full(Disk):
    """A disk that has no space for another file while it is ``full``."""

    full = False

    def reserve(self, descriptor: int, path: str, size: int) -> None:
        """Refuse."""
        if self.full:
            raise OSError(errno.ENOSPC, "No space left on device", path)
        super().reserve(descriptor, path, size)


def test_a_full_disk_is_said_while_the_child_runs_on_and_no_more_when_there_is_space(deployment: Deployment) -> None:
    """Mail is withheld then, and whoever wonders why is told: by the description, and so by `waypost why`."""
    disk = Full()
    supervisor = deployment.start(scripted(SERVE), disk=disk, limits=msgspec.structs.replace(LIMITS, seal_idle=0.05))
    deployment.until("running")
    disk.full = True
    large = Enqueue(b"From: a@example.com\r\nMessage-ID: <large@x>\r\n\r\n" + b"x" * 3_500_000)
    assert isinstance(request(supervisor, Forward(large), timeout=PATIENCE), Done)
    assert isinstance(request(supervisor, Forward(mail(2)), timeout=PATIENCE), Withheld)
    short = deployment.until("running", "the disk is full")
    assert (short.code, short.why.needed) == ("disk-full", False)
    assert short.why.waits_for.startswith("space on its disk")
    disk.full = False
    again = deployment.until("running")
    assert (again.code, again.generation) == ("", short.generation)
    deployment.enqueue(2)

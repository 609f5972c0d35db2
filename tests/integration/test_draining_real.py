"""Draining and recycling under a real supervisor with its real crew: whatever the children do, one follows, or none."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from actors.draining import Recycle
from actors.messages import Describe, Forward, Stop
from substrate.messages import Done, DrainDeployment, LogPage, ReadLog, Refused, ResumeDeployment, Withheld
from waypost.model import events as ev
from waypost.model.limits import Limits
from waypost.shell import request
from waypost.testing.child_stage import alive
from waypost.testing.deployment import READY, SERVE, Deployment, by_count, mail
from waypost.testing.patience import PATIENCE, eventually
from waypost.testing.scripted_child import plain, scripted

QUICK = Limits(backoff_first=0.02, kill_grace=0.2, drain=0.3)


@pytest.fixture
def deployment(tmp_path: Path) -> Iterator[Deployment]:
    """A deployment that ends with the test."""
    deployment = Deployment(tmp_path / "data")
    yield deployment
    deployment.close()


def told(deployment: Deployment, what: Any) -> Any:
    return request(deployment.supervisors[-1], what, timeout=PATIENCE)


def test_a_recycle_gives_another_process_of_the_next_generation(deployment: Deployment) -> None:
    """The old one is gone before; who wanted it, and why, is said; mail is accepted all the while."""
    deployment.start(scripted(SERVE), limits=QUICK)
    before = deployment.until("running")
    assert before.pid is not None
    assert told(deployment, Recycle("it leaks")) == Done(0, 1)
    deployment.enqueue(1)
    after = deployment.until("running")
    assert (after.generation, after.pid != before.pid) == (2, True)
    assert not alive(before.pid)
    assert after.renewed is not None
    assert (after.renewed.origin, after.renewed.reason, after.renewed.generation) == ("operator", "it leaks", 1)
    assert told(deployment, Recycle("once more")) == Done(0, 2)
    assert deployment.until("running").generation == 3


def test_a_child_that_ignores_every_request_is_replaced_all_the_same(deployment: Deployment) -> None:
    """The ladder ends with SIGKILL for the whole group."""
    deaf = "import signal\nsignal.signal(signal.SIGTERM, signal.SIG_IGN)\n" + READY + "import time; time.sleep(600)\n"
    deployment.start(scripted(deaf), limits=QUICK)
    before = deployment.until("running")
    told(deployment, Recycle("deaf"))
    assert deployment.until("running").generation == 2
    assert before.pid is not None
    assert not alive(before.pid)


def test_a_recycle_that_fails_ends_stopped_and_is_started_by_hand(deployment: Deployment, tmp_path: Path) -> None:
    """No process is left and none follows; mail is withheld with the reason."""
    why = "exit status 3"
    deployment.start(by_count(tmp_path, SERVE, "import sys; sys.exit(3)", SERVE), limits=QUICK)
    deployment.until("running")
    told(deployment, Recycle("it leaks"))
    stopped = deployment.until("stopped", why)
    assert (stopped.code, stopped.pid) == ("recycle-failed", None)
    eventually(lambda: not deployment.wires.pids, "the new child was ended")
    answer = told(deployment, Forward(mail(1)))
    assert isinstance(answer, Withheld)
    assert why in answer.reason
    assert isinstance(told(deployment, Forward(ResumeDeployment("ann"))), Done)
    assert deployment.until("running").generation == 3
    deployment.enqueue(1)


def test_a_drained_deployment_is_held_for_the_next_host_too(deployment: Deployment) -> None:
    """Nothing runs; mail is accepted; an operator lets it go on."""
    supervisor = deployment.start(scripted(SERVE), limits=QUICK)
    deployment.until("running")
    assert isinstance(told(deployment, Forward(DrainDeployment("ann"))), Done)
    held = deployment.until("held")
    assert "`waypost resume orders`" in held.reason
    assert not deployment.wires.pids
    deployment.enqueue(1)
    again = told(deployment, Forward(DrainDeployment("bob")))
    assert isinstance(again, Refused)
    assert again.code == "held"
    told(deployment, Stop())
    supervisor.stop(timeout=PATIENCE)
    deployment.start(scripted(SERVE), limits=QUICK)
    deployment.until("held")
    deployment.enqueue(2)
    assert isinstance(told(deployment, Forward(ResumeDeployment("ann"))), Done)
    assert deployment.until("running").generation == 2


def test_a_deployment_without_runs_is_out_of_service_at_once(deployment: Deployment) -> None:
    """There is nobody to wait for."""
    deployment.start(scripted(SERVE), limits=QUICK)
    deployment.until("running")
    assert isinstance(told(deployment, Forward(DrainDeployment("ann", end=True))), Done)
    deployment.until("held")
    assert not deployment.wires.pids


def test_a_deployment_between_two_children_can_be_drained(deployment: Deployment) -> None:
    """An operator who takes away what ends again and again hasn't to catch it alive."""
    deployment.start(plain("pass"), limits=Limits(backoff_first=600.0))
    deployment.until("backing-off")
    assert isinstance(told(deployment, Forward(DrainDeployment("ann"))), Done)
    deployment.until("held")


def test_a_child_that_is_killed_while_it_drains_is_followed_by_one_and_counted_once(
    deployment: Deployment, tmp_path: Path
) -> None:
    """It asked for a successor itself. Not lost, and not counted twice: in the run's own log, which outlives us all."""
    asks = "while not isinstance(child.hear(), RunLive): pass\nchild.say(RecycleRequest(reason='it leaks'))\n"
    asking = f"from ipc.messages import RecycleRequest, RunLive\n{READY}{asks}child.serve()\n"
    deployment.start(by_count(tmp_path, asking, SERVE), limits=Limits(backoff_first=0.02, kill_grace=0.2))
    before = deployment.until("running")
    run = deployment.enqueue(1).run
    assert "self: it leaks" in deployment.until("draining", f"waits for {run}").reason
    assert before.pid is not None
    os.kill(before.pid, signal.SIGKILL)
    after = deployment.until("running")
    assert after.generation == 2
    assert after.renewed is not None
    assert after.renewed.origin == "crash"
    page: LogPage = told(deployment, Forward(ReadLog(run=run, limit=2**20))).value
    assert sum(isinstance(ev.decode(raw), ev.RunInterrupted) for raw in page.events) == 1


def test_a_patient_stop_of_what_does_nothing_is_at_once(deployment: Deployment) -> None:
    """Patience is a limit, not a delay."""
    supervisor = deployment.start(scripted(SERVE), limits=QUICK)
    deployment.until("running")
    told(deployment, Stop(600.0))
    assert told(deployment, Describe()).state == "stopped"
    assert not deployment.wires.pids
    supervisor.stop(timeout=PATIENCE)

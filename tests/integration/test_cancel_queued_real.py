"""Runs that are only queued are cancelled in a real host: held, and in a race with a child that takes them up."""

import json
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from waypost.cli.client import Said
from waypost.host.answers.records import CancelAsked, DeploymentDraining, DeploymentResumed, EventsPage, Runs, RunShown
from waypost.host.watching.timeline import short
from waypost.model import events as ev
from waypost.model.ids import RunId
from waypost.testing.host_here import HostHere


class Running(HostHere):
    """A host of the counting workflow."""

    def mail(self, number: int) -> str:
        """Send it a mail; its run."""
        raw = b"From: ann@example.com\r\nSubject: x\r\nMessage-ID: <m%d@x>\r\n\r\nhello\r\n" % number
        return self.send("counting@example.com", raw)

    def cancel(self, run: str) -> CancelAsked:
        """Ask for its end."""
        return self.client.post(CancelAsked, "runs", run, "cancel", body=b'{"reason": "enough"}')

    def log(self, run: str) -> list[str]:
        """The kinds of a run's events, in order."""
        page = self.client.get(EventsPage, "runs", run, "events")
        return [json.loads(bytes(raw))["type"] for raw in page.events]


@pytest.fixture
def running(tmp_path: Path, counting: Path) -> Iterator[Running]:
    """A host of its own for each test."""
    with Running(counting, data=tmp_path / "data") as made:
        made.wait_for("counting is running")
        yield made


def test_a_run_that_waits_in_a_held_deployment_is_cancelled_and_never_begins(running: Running) -> None:
    """Its mail is consumed; the timeline says that it hadn't begun; letting the deployment go on begins the others."""
    running.client.post(DeploymentDraining, "deployments", "counting", "drain")
    running.wait_for("counting is held")
    unwanted, wanted = running.mail(1), running.mail(2)
    assert running.cancel(unwanted).fresh
    assert not running.cancel(unwanted).fresh
    running.wait_for("cancelled: it had not begun")
    assert running.log(unwanted) == ["RunStarted", "CancelRequested", "RunCancelled"]
    assert running.client.get(RunShown, "runs", unwanted).state == "cancelled"
    running.client.post(DeploymentResumed, "deployments", "counting", "resume")
    running.wait_for("completed: 6")
    states = {row.run: row.state for row in running.client.get(Runs, "runs").runs}
    assert states == {unwanted: "cancelled", wanted: "completed"}


def test_a_cancel_that_races_the_take_up_has_one_winner(running: Running) -> None:
    """Whichever is first: each run ends once, as its log says, and no mail is left."""
    runs = []
    for number in range(1, 16):
        run = running.mail(number)
        with suppress(Said):  # it has completed already
            running.cancel(run)
        runs.append(run)
    last = running.mail(99)
    while "completed" not in running.wait_for(short(RunId(last)).strip()):
        pass
    ends = {ev.RunCompleted.__name__, ev.RunCancelled.__name__}
    for run in runs:
        kinds = running.log(run)
        assert kinds[-1] in ends, kinds
        assert sum(kind in ends for kind in kinds) == 1
        assert ("CancelRequested" in kinds) == (kinds[-1] == "RunCancelled")
    assert {row.state for row in running.client.get(Runs, "runs").runs} <= {"completed", "cancelled"}

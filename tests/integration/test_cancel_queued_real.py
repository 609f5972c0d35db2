"""Runs that are only queued are cancelled in a real host: held, and in a race with a child that takes them up."""

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import SimpleQueue

import pytest

from waypost.cli.client import Client, Said
from waypost.host.answers import (
    CancelAsked,
    DeploymentDraining,
    DeploymentResumed,
    EventsPage,
    MailTaken,
    Runs,
    RunShown,
)
from waypost.host.app import Config, Host
from waypost.host.describe import describe_all
from waypost.host.timeline import short
from waypost.model import events as ev
from waypost.model.ids import RunId
from waypost.model.limits import Limits

WORKFLOW = """
from waypost import Mail, Workflow

counting = Workflow("counting", address="counting@example.com")

@counting.step
def size(mail: Mail) -> int:
    return len(mail.text)

@counting.run
async def count(mail: Mail) -> int:
    return await size(mail)
"""


class Running:
    """A host in this process, and what it says."""

    def __init__(self, folder: Path) -> None:
        file = folder / "counting.py"
        file.write_text(WORKFLOW)
        self.lines: SimpleQueue[str] = SimpleQueue()
        self.host = Host.start(
            Config(
                data=folder / "data",
                described=describe_all([file], timeout=30, environment=os.environ),
                command=("test",),
                environment=dict(os.environ),
                limits=Limits(kill_grace=1.0),
                say=lambda _at, text: self.lines.put(text),
            )
        )
        self.client = Client(self.host.data.socket)
        self.wait_for("counting is running")

    def wait_for(self, text: str) -> str:
        """The next line that holds the text."""
        while text not in (line := self.lines.get(timeout=30)):
            pass
        return line

    def send(self, number: int) -> str:
        """A mail; its run."""
        raw = b"From: ann@example.com\r\nSubject: x\r\nMessage-ID: <m%d@x>\r\n\r\nhello\r\n" % number
        taken = self.client.post(MailTaken, "mail", "counting@example.com", body=raw, content_type="message/rfc822")
        return taken.run

    def cancel(self, run: str) -> CancelAsked:
        """Ask for its end."""
        return self.client.post(CancelAsked, "runs", run, "cancel", body=b'{"reason": "enough"}')

    def log(self, run: str) -> list[str]:
        """The kinds of a run's events, in order."""
        page = self.client.get(EventsPage, "runs", run, "events")
        return [json.loads(bytes(raw))["type"] for raw in page.events]


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """A host of its own for each test."""
    made = Running(tmp_path)
    yield made
    made.host.close()


def test_a_run_that_waits_in_a_held_deployment_is_cancelled_and_never_begins(running: Running) -> None:
    """Its mail is consumed; the timeline says that it hadn't begun; letting the deployment go on begins the others."""
    running.client.post(DeploymentDraining, "deployments", "counting", "drain")
    running.wait_for("counting is held")
    unwanted, wanted = running.send(1), running.send(2)
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
        run = running.send(number)
        with suppress(Said):  # it has completed already
            running.cancel(run)
        runs.append(run)
    last = running.send(99)
    while "completed" not in running.wait_for(short(RunId(last)).strip()):
        pass
    ends = {ev.RunCompleted.__name__, ev.RunCancelled.__name__}
    for run in runs:
        kinds = running.log(run)
        assert kinds[-1] in ends, kinds
        assert sum(kind in ends for kind in kinds) == 1
        assert ("CancelRequested" in kinds) == (kinds[-1] == "RunCancelled")
    assert {row.state for row in running.client.get(Runs, "runs").runs} <= {"completed", "cancelled"}

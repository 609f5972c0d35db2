"""Timeline, sink and followers fail in a real host: another one takes the place, and who listens is told anew."""

import json
import os
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pykka
import pytest

from waypost.cli.client import Client
from waypost.host.answers import MailTaken
from waypost.host.app import Config, Host
from waypost.host.describe import describe_all
from waypost.host.following import FollowersActor
from waypost.host.sink import SinkActor
from waypost.host.sink_logic import Connect
from waypost.model.limits import Limits
from waypost.testing.patience import eventually

WORKFLOW = """
from waypost import Mail, Workflow, approve

asking = Workflow("asking", address="asking@example.com", mail_to=["boss@example.com"])

@asking.run
async def ask(mail: Mail) -> str:
    verdict = await approve(f"{mail.subject}?", who="boss@example.com")
    return str(verdict.approved)
"""


class Running:
    """A host in this process; its terminal breaks on a line that holds ``breaks``, once."""

    def __init__(self, folder: Path) -> None:
        file = folder / "asking.py"
        file.write_text(WORKFLOW)
        self.lines: SimpleQueue[str] = SimpleQueue()
        self.breaks = ""
        self.host = Host.start(
            Config(
                data=folder / "data",
                described=describe_all([file], timeout=30, environment=os.environ),
                command=("test",),
                environment=dict(os.environ),
                limits=Limits(kill_grace=1.0),
                say=self.say,
            )
        )
        self.client = Client(self.host.data.socket)

    def say(self, _at: str, text: str) -> None:
        """Write a line, or fail as a terminal that has gone away does."""
        if self.breaks and self.breaks in text:
            self.breaks = ""
            raise OSError(5, "Input/output error")
        self.lines.put(text)

    def wait_for(self, text: str) -> str:
        """The next line that holds the text."""
        while text not in (line := self.lines.get(timeout=30)):
            pass
        return line

    def send(self, name: str) -> str:
        """A mail; its run."""
        raw = f"From: ann@example.com\r\nSubject: {name}\r\nMessage-ID: <{name}@x>\r\n\r\nhello\r\n".encode()
        taken = self.client.post(MailTaken, "mail", "asking@example.com", body=raw, content_type="message/rfc822")
        return taken.run


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """A host of its own for each test."""
    made = Running(tmp_path)
    made.wait_for("asking is running")
    yield made
    made.host.close()


def test_a_terminal_that_breaks_once_takes_no_later_line_along(
    running: Running, caplog: pytest.LogCaptureFixture
) -> None:
    """Each run goes on, and what comes next is told."""
    running.breaks = "mail 1 from"
    running.send("first")
    running.wait_for("waits for boss@example.com")
    running.send("second")
    running.wait_for("waits for boss@example.com")
    assert "the timeline has failed; another one takes its place" in caplog.text
    assert not running.breaks


def heard(lines: Iterator[bytes]) -> dict[str, Any]:
    """The next line that says something."""
    while not (line := next(lines).strip()):
        pass
    found: dict[str, Any] = json.loads(line)
    return found


class Broken:
    """A sink that can't be told anything."""

    def say(self, line: object) -> None:
        """Fail."""
        raise OSError(32, "Broken pipe")

    def end(self) -> None:
        """There is nobody to tell."""


def test_a_sink_that_fails_ends_its_connections_and_the_next_one_announces_everything_again(running: Running) -> None:
    """Whoever shows approvals comes back, and learns what is open from the log."""
    run = running.send("first")
    running.wait_for("waits for boss@example.com")
    lines = running.client.follow("approvals", "follow")
    assert heard(lines)["announced"]["run"] == run
    (before,) = pykka.ActorRegistry.get_by_class(SinkActor)
    before.tell(Connect(Broken()))
    assert list(filter(bytes.strip, lines))[1:] == [], "it ends, so that nobody listens to what says nothing more"
    eventually(lambda: pykka.ActorRegistry.get_by_class(SinkActor) not in ([], [before]), "nobody took its place")
    again = running.client.follow("approvals", "follow")
    assert heard(again)["announced"]["run"] == run
    assert heard(again) == {"listed": "asking"}
    second = running.send("second")
    assert heard(again)["announced"]["run"] == second


def test_who_passes_followers_on_is_followed_by_another_one(running: Running) -> None:
    """Who follows is told that it ends, and comes again from where it was."""
    run = running.send("first")
    running.wait_for("waits for boss@example.com")
    lines = running.client.follow("follow", run=run)
    assert heard(lines)["event"]["seq"] == 1
    (before,) = pykka.ActorRegistry.get_by_class(FollowersActor)
    before.tell("what nobody says")
    for _ in lines:
        pass
    eventually(lambda: pykka.ActorRegistry.get_by_class(FollowersActor) not in ([], [before]), "nobody took its place")
    again = running.client.follow("follow", run=run, after=1)
    assert heard(again)["event"]["seq"] == 2

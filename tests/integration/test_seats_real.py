"""Timeline, sink and followers fail in a real host: another one takes the place, and who listens is told anew."""

import asyncio
import json
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pykka
import pytest

from waypost.host.datadir.directory import lay_out, prepare
from waypost.host.exits import Exit
from waypost.host.root.seats import NOTHING, Seat
from waypost.host.watching import following, sink
from waypost.host.watching.following import FollowersActor
from waypost.host.watching.sink import SinkActor
from waypost.host.watching.sink_states import Connect
from waypost.testing.host_here import HostHere
from waypost.testing.patience import PATIENCE, eventually
from waypost.testing.verbs import verb

WORKFLOW = """
from waypost import Mail, Workflow, approve

asking = Workflow("asking", address="asking@example.com", mail_to=["boss@example.com"])

@asking.run
async def ask(mail: Mail) -> str:
    verdict = await approve(f"{mail.subject}?", who="boss@example.com")
    return str(verdict.approved)
"""


class Running(HostHere):
    """A host; its terminal breaks on a line that holds ``breaks``, once."""

    def __init__(self, file: Path, data: Path) -> None:
        self.breaks = ""
        super().__init__(file, data=data, echo=self.shown)

    def shown(self, line: str) -> None:
        """Fail as a terminal that has gone away does."""
        if self.breaks and self.breaks in line:
            self.breaks = ""
            raise OSError(5, "Input/output error")

    def mail(self, name: str) -> str:
        """Send it a mail; its run."""
        raw = f"From: ann@example.com\r\nSubject: {name}\r\nMessage-ID: <{name}@x>\r\n\r\nhello\r\n".encode()
        return self.send("asking@example.com", raw)


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """A host of its own for each test."""
    file = tmp_path / "asking.py"
    file.write_text(WORKFLOW)
    with Running(file, tmp_path / "data") as made:
        made.wait_for("asking is running")
        yield made


def test_a_terminal_that_breaks_once_takes_no_later_line_along(
    running: Running, caplog: pytest.LogCaptureFixture
) -> None:
    """Each run goes on, and what comes next is told."""
    running.breaks = "mail 1 from"
    running.mail("first")
    running.wait_for("waits for boss@example.com")
    running.mail("second")
    running.wait_for("waits for boss@example.com")
    assert "the timeline has failed; another one takes its place" in caplog.text
    assert not running.breaks


def followed_anew(running: "Running") -> tuple[Iterator[bytes], dict[str, Any]]:
    """Follow, and what is heard first: who comes while the failed one has its place is sent away, and comes again."""
    while True:
        lines = running.client.follow("approvals", "follow")
        with suppress(StopIteration):
            return lines, heard(lines)


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
    run = running.mail("first")
    running.wait_for("waits for boss@example.com")
    lines = running.client.follow("approvals", "follow")
    assert heard(lines)["announced"]["run"] == run
    (before,) = pykka.ActorRegistry.get_by_class(SinkActor)
    before.tell(Connect(Broken()))
    assert list(filter(bytes.strip, lines))[1:] == [], "it ends, so that nobody listens to what says nothing more"
    eventually(lambda: pykka.ActorRegistry.get_by_class(SinkActor) not in ([], [before]), "nobody took its place")
    again, told = followed_anew(running)
    assert told["announced"]["run"] == run
    assert heard(again) == {"listed": "asking"}
    second = running.mail("second")
    assert heard(again)["announced"]["run"] == second


def test_who_passes_followers_on_is_followed_by_another_one(running: Running) -> None:
    """Who follows is told that it ends, and comes again from where it was."""
    run = running.mail("first")
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


class FailsAtOnce(pykka.ThreadingActor):
    """One that ends at the first message that it gets, and makes nothing of it."""

    def on_receive(self, message: object) -> None:
        """Whatever it is."""
        self.stop()


@pytest.mark.parametrize("of", ["approvals", "tail"])
def test_who_tells_somebody_that_fails_of_that_comes_to_an_end(of: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """It isn't known there, so nobody ends it, and the one that follows there never hears of it."""
    for module in (sink, following):
        monkeypatch.setattr(module, "ALIVE", 0.01)
    seat = Seat(of, NOTHING, lambda _parent, _incarnation: FailsAtOnce.start())

    async def listens() -> None:
        if of == "approvals":
            lines = sink.Connection(seat).lines()
        else:
            lines = following.Follower(None, 0, None).lines(seat, lambda _deployment, _run, _after: None)
        async for line in lines:
            assert not line.strip()
            if seat.occupant is first and first is not None and not first.is_alive():
                seat.take(parent, 2)

    parent = FailsAtOnce.start()
    seat.take(parent, 1)
    first = seat.occupant
    try:
        asyncio.run(asyncio.wait_for(listens(), PATIENCE))
    finally:
        pykka.ActorRegistry.stop_all()


@pytest.mark.parametrize("what", [("approvals", "--follow"), ("tail",)])
def test_a_host_that_is_killed_in_the_middle_of_a_line_has_ended_for_who_follows(
    what: tuple[str, ...], tmp_path: Path
) -> None:
    """Nothing was asked of it but to tell: there is no request of which it isn't known whether it was taken."""
    data = prepare(tmp_path / "data")
    lay_out(data)

    def half_a_line() -> None:
        connection, _ = listening.accept()
        with connection:
            connection.recv(65_536)
            connection.sendall(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nff\r\n{")

    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind(str(data.socket))
        listening.listen()
        telling = threading.Thread(target=half_a_line)
        telling.start()
        done = verb(*what, data=data.path)
        telling.join()
    assert (done.status, "the host has ended" in done.err) == (Exit.NO_HOST, True)

"""A workflow's code breaks the wire, or kills its process or its host, from inside a step: everybody else goes on."""

import os
import time
from pathlib import Path

import pytest

from substrate.signing.keys import PublicKey
from waypost.host.datadir.directory import DataDir
from waypost.model import events as ev
from waypost.testing.driver import Played, live
from waypost.testing.errands import SendMail, mail
from waypost.testing.evidence import Evidence, bodies, check_bodies, check_consumed_once, check_repository
from waypost.testing.mortal import MortalHost, Place
from waypost.testing.patience import PATIENCE

pytestmark = pytest.mark.e2e

ENDS_THE_CHILD = (
    "rubbish",
    "a frame of 4 GiB",
    "an empty frame",
    "a frame that nobody signed",
    "rubbish for the watchers",
    "a channel that is shut down",
    "half a frame",
    "another file in place of a channel",
    "kill -9 of itself",
    "exit status 0",
)
CLOSES_A_CHANNEL = (
    "half a channel that is shut down",
    "the other half",
    "a channel that is closed",
    "another file in place of the events",
)
ENDS_THE_HOST = "kill -9 of the host"
ADDRESS = "misbehaves@example.com"


def claim(what: str) -> SendMail:
    """A mail that asks for a misbehaviour."""
    id_ = what.replace(" ", "-")
    raw = mail(sender="ann@example.com", to=ADDRESS, subject=what, message_id=f"<{id_}@example.com>", text=f"{what}\n")
    return SendMail(what, ADDRESS, raw)


@pytest.fixture
def place(tmp_path: Path, flows: Path, unmeasured: None) -> Place:
    """Where the host lives."""
    (tmp_path / "books").mkdir()
    environment = {**os.environ, "BOOKS": str(tmp_path / "books")}
    return Place(tmp_path / "data", flows / "misbehaves.py", environment, tmp_path / "stderr")


def check(place: Place, asked: tuple[str, ...]) -> Evidence:
    """Every run came to its end; only what was in flight ran again, with the same key, in another process."""
    data = DataDir(place.data)
    key = PublicKey.load(data.public_key)
    found = Evidence.read(data.repo("misbehaves"), key)
    results = {outcomes[""] for outcomes in found.outcomes.values()}
    assert results == {f'"no {what} any more"' for what in asked}
    book = bodies(Path(place.environment["BOOKS"]) / "bodies")
    for story in found.stories.values():
        ran = {call: [body for body in book if body.key == story.key(call)] for call in ("r1#1", "r1#2", "r1#3")}
        assert [len(tries) for tries in ran.values()] == [1, 2, 1]
        first, again = ran["r1#2"]
        assert first.pid != again.pid
        assert sum(isinstance(event, ev.StepStarted) for event in story.events) == 3
        assert any(isinstance(event, ev.RunResumed) for event in story.events)
    check_bodies(found, book)
    check_consumed_once(found)
    check_repository(data, "misbehaves", key)
    return found


@pytest.mark.parametrize("misdeeds", [ENDS_THE_CHILD, pytest.param(CLOSES_A_CHANNEL, marks=pytest.mark.torture)])
def test_a_child_that_breaks_the_wire_or_dies_is_replaced_and_its_host_goes_on(
    place: Place, misdeeds: tuple[str, ...]
) -> None:
    """One host meets them all, one after the other; the step in flight runs again with its key, the others don't."""
    host, played = MortalHost(place), Played()
    try:
        for number in range(1, len(misdeeds) + 1):
            errands = [claim(what) for what in misdeeds[:number]]
            assert live(host, errands, played, time.monotonic() + PATIENCE), misdeeds[number - 1]
    finally:
        status = host.end()
    assert status == 0
    log = (place.data / "logs" / "misbehaves.log").read_text()
    closed, ended = (1, 1) if misdeeds == ENDS_THE_CHILD else (2, 2)
    assert log.count("the workflow's code has closed or replaced descriptor") == closed
    assert log.count("nothing comes from the host any more") == ended
    found = check(place, misdeeds)
    assert found.generation == len(misdeeds) + 1


@pytest.mark.torture
def test_a_step_that_kills_the_host_runs_again_with_its_key(place: Place) -> None:
    """Both processes die in the middle of the body; the same command again goes on there."""
    played, until = Played(), time.monotonic() + PATIENCE
    first = MortalHost(place)
    assert not live(first, [claim(ENDS_THE_HOST)], played, until)
    second = MortalHost(place)
    try:
        assert live(second, [claim(ENDS_THE_HOST)], played, until)
    finally:
        second.end()
    assert check(place, (ENDS_THE_HOST,)).generation == 2

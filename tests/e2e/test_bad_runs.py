"""A few runs end their process whenever they are touched: all others end as if there were none, and nothing latches."""

import os
import signal
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from email.message import EmailMessage
from pathlib import Path

import pytest

from substrate.signing.keys import PublicKey
from waypost.cli.client import Client
from waypost.host.answers.records import KeptMails, Runs
from waypost.host.answers.why import Why
from waypost.host.datadir.directory import DataDir
from waypost.host.errors import NoHost, Unanswered
from waypost.model import events as ev
from waypost.model.ids import run_ordinal
from waypost.testing.driver import Errand, Played
from waypost.testing.errands import SendMail
from waypost.testing.evidence import Evidence, Story, bodies, check_bodies, check_consumed_once, check_repository
from waypost.testing.host_process import waypost
from waypost.testing.mortal import MortalHost, Place
from waypost.testing.patience import PATIENCE

pytestmark = pytest.mark.e2e

ADDRESS = "rows@example.com"
LIMITS = '{"backoff_first": 0.02, "backoff_cap": 0.02}'
"""The latch is as users have it, and so are the attempts."""
TWO = '{"backoff_first": 0.02, "backoff_cap": 0.02, "attempts": 2}'
"""For a shorter play."""
BAD = ("bad step", "bad body", "bad attachment")
PULSE = 0.1
"""Seconds between two looks at the runs: asking for hundreds of them at each line would be most of the work."""
OVER = {"completed", "failed", "paused"}


def row(number: int, kind: str, milliseconds: int) -> SendMail:
    """A mail that begins a run."""
    made = EmailMessage()
    made["From"], made["To"], made["Subject"] = "ann@example.com", ADDRESS, kind
    made["Message-ID"] = f"<{number}@example.com>"
    made.set_content(f"{milliseconds}\n")
    made.add_attachment(b"import ctypes\nctypes.string_at(0)\n", maintype="text", subtype="x-python", filename="x.py")
    return SendMail(str(number), ADDRESS, made.as_bytes())


def rows(count: int, milliseconds: int) -> list[SendMail]:
    """So many mails, the bad ones among them, far apart; every tenth of the others waits for a timer of its own."""
    kinds = ["patient" if number % 10 == 0 else "good" for number in range(count)]
    for at, kind in enumerate(BAD):
        kinds[(at * 2 + 1) * count // 6] = kind
    return [row(number, kind, milliseconds) for number, kind in enumerate(kinds)]


@pytest.fixture
def place(tmp_path: Path, flows: Path, unmeasured: None) -> Place:
    """Where the host lives."""
    (tmp_path / "books").mkdir()
    environment = {**os.environ, "BOOKS": str(tmp_path / "books")}
    return Place(tmp_path / "data", flows / "some_are_bad.py", environment, tmp_path / "stderr")


def live(host: MortalHost, errands: Sequence[Errand], played: Played, until: float) -> bool:
    """One life of a host: True once every run has ended or waits for an operator, False when it is dead."""
    client = Client(host.place.data / "host.sock")
    while host.alive:
        assert time.monotonic() < until, f"not done; the host's last words: {host.lines[-10:]}"
        if host.ready:
            with suppress(NoHost, Unanswered):
                for errand in errands:
                    if errand.name not in played.acknowledged:
                        answer = errand.attempt(client, host.place, played.acknowledged)
                        assert answer is not None
                        played.acknowledged[errand.name] = answer
                states = [each.state for each in client.get(Runs, "runs").runs]
                if len(states) == len(errands) and set(states) <= OVER:
                    return True
        look = time.monotonic() + PULSE
        while time.monotonic() < look:
            host.hear(PULSE)
    return False


def play(
    place: Place,
    errands: Sequence[Errand],
    lives: Callable[[int], Sequence[str]] = lambda _: (),
    limits: str = LIMITS,
) -> tuple[MortalHost, Played]:
    """Start the host again whenever it is dead, each life with options of its own, until all is done; it still runs."""
    played, until = Played(), time.monotonic() + 4 * PATIENCE
    while True:
        host = MortalHost(place, ("--limits", limits, *lives(played.lives)))
        played.lives += 1
        try:
            done = live(host, errands, played, until)
        except BaseException:
            host.kill()
            host.end()
            raise
        if done:
            return host, played
        assert host.end() == -signal.SIGKILL, (
            f"the host ended by itself: {place.complaints.read_text(encoding='utf-8')}"
        )
        played.lines.append(host.lines)


def around_each_count(moment: str, lives: int) -> Callable[[int], Sequence[str]]:
    """Options by which each of the first hosts dies before or after the count of its own child's exit is durable."""
    # Each host begins one generation: the n-th one's is the n-th.
    return lambda life: (moment, f"count the end of generation {life + 1} against") if life < lives else ()


def check(place: Place, count: int, attempts: int = 3) -> Evidence:
    """The good ones ended as if nothing had happened, the bad ones were set aside, each after exactly its attempts."""
    data = DataDir(place.data)
    key = PublicKey.load(data.public_key)
    found = Evidence.read(data.repo("rows"), key)
    assert len(found.stories) == count
    by_kind: dict[str, list[Story]] = {}
    for story in found.stories.values():
        kind = str(story.outcomes["r1#1"]).strip('"') if "r1#1" in story.outcomes else "?"
        by_kind.setdefault(kind, []).append(story)
    for kind in ("good", "patient"):
        for story in by_kind[kind]:
            assert story.outcomes[""] == f'"{kind}: done"', story.outcomes
            assert not any(isinstance(event, ev.StepFailed | ev.RunPaused) for event in story.events)
    assert len(by_kind["good"]) + len(by_kind["patient"]) == count - len(BAD)
    for kind in ("bad step", "bad attachment"):
        (story,) = by_kind[kind]
        assert story.outcomes[""] == f'"{kind}: ChildCrashed"'
        assert exits(story) == [*range(1, attempts + 1)]
    (story,) = by_kind["bad body"]
    assert exits(story) == [*range(1, attempts + 1)]
    assert isinstance(story.events[-1], ev.RunPaused)
    assert story.events[-1].code == "poison"
    order = sorted(found.stories.values(), key=lambda story: run_ordinal(story.run))
    assert [story.start.mail.arrival for story in order] == sorted(story.start.mail.arrival for story in order)
    check_bodies(found, bodies(Path(place.environment["BOOKS"]) / "bodies"))
    check_consumed_once(found)
    check_repository(data, "rows", key)
    return found


def exits(story: Story) -> list[int]:
    """How the exits of its last, fatal stretch were counted."""
    counts = [event.attempt for event in story.events if isinstance(event, ev.RunInterrupted)]
    return counts[len(counts) - counts[::-1].index(1) - 1 :]


@pytest.mark.torture
def test_three_bad_runs_among_twenty_are_set_aside_and_the_others_end_as_undisturbed(place: Place) -> None:
    """One segfaults in a step, one in the body, one over its attachment; the host is killed between two attempts.

    Whoever looks is told of the one that waits for somebody, and what to do.
    """
    dies = ("--die-after-sync-of", "count the end of generation 2 against")
    host, played = play(place, rows(20, 5), lambda life: () if life else dies, TWO)
    try:
        assert played.lives == 1 + 1
        client = Client(place.data / "host.sock")
        (held,) = client.get(KeptMails, "queue", "hold").runs
        (poison,) = client.get(Why, "runs", held.run, "why").waiting
        assert "(ended by SIGSEGV; ended by SIGSEGV)" in poison.detail
        assert poison.command == f"waypost resume {held.run}"
    finally:
        host.end()
    check(place, 20, attempts=2)
    assert not any("crash-looping" in line for lines in (*played.lines, host.lines) for line in lines)


@pytest.mark.torture
@pytest.mark.timeout(900)
def test_a_host_that_is_killed_between_any_two_attempts_forgets_none(place: Place) -> None:
    """Each count is durable, and its host dead before anybody is told: the runs are set aside after just as many.

    Whoever resumes the one that is poison gives it all its attempts anew.
    """
    errands = rows(20, 5)
    host, played = play(place, errands, around_each_count("--die-after-sync-of", 30))
    host.end()
    assert played.lives >= 1 + 2 + len(BAD)
    check(place, 20)
    host, played = play(place, errands)
    try:
        (held,) = Client(place.data / "host.sock").get(KeptMails, "queue", "hold").runs
        done = waypost("resume", held.run, data=place.data)
        assert done.returncode == 0, done
        assert live(host, errands, played, time.monotonic() + PATIENCE)
    finally:
        host.end()
    found = check(place, 20)
    (story,) = [story for story in found.stories.values() if story.run == held.run]
    counts = [event.attempt for event in story.events if isinstance(event, ev.RunInterrupted)]
    assert counts[-6:] == [1, 2, 3, 1, 2, 3]
    checked = waypost("fsck", "rows", data=place.data)
    assert checked.returncode == 0, checked


@pytest.mark.torture
@pytest.mark.timeout(900)
def test_two_hundred_runs_three_of_them_bad(place: Place) -> None:
    """The other 197 end as undisturbed, and nothing latches."""
    host, _ = play(place, rows(200, 10))
    host.end()
    check(place, 200)
    assert not any("crash-looping" in line for line in host.lines)


@pytest.mark.torture
@pytest.mark.timeout(900)
@pytest.mark.parametrize("moment", ["--die-after-sync-of", "--die-before-sync-of"])
def test_two_hundred_runs_whose_host_dies_around_each_count(place: Place, moment: str) -> None:
    """After it, nothing is forgotten; before it, that exit was the host's own: nobody is charged with it."""
    host, _ = play(place, rows(200, 10), around_each_count(moment, 60 if moment == "--die-after-sync-of" else 6))
    host.end()
    check(place, 200)


@pytest.mark.torture
@pytest.mark.timeout(900)
@pytest.mark.parametrize("part", [1, 3])
def test_bad_runs_whose_host_dies_after_every_so_many_flushes(place: Place, part: int) -> None:
    """At whatever moment between two attempts the host is killed, the others end as undisturbed."""
    host, _ = play(
        place, rows(30, 5), lambda life: ("--die-after-sync", str(6 + 2 * part + 8 * life)) if life < 10 else ()
    )
    host.end()
    check(place, 30)

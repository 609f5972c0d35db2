"""A run, its children and theirs, on a real host that is killed, or whose child process is: each result once."""

import json
import os
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from waypost.cli.client import Client
from waypost.host.answers.records import Runs
from waypost.host.errors import NoHost, Unanswered
from waypost.model import events as ev
from waypost.testing.family_check import check_effects, check_family, check_history, logs
from waypost.testing.host_process import HostProcess, waypost
from waypost.testing.mortal import MortalHost, Place
from waypost.testing.patience import PATIENCE
from waypost.testing.reaper import Kill, Reaper, kill_child, kill_host

pytestmark = pytest.mark.e2e
OVER = {"completed", "failed", "cancelled"}


def mail(children: int) -> bytes:
    """The mail that begins a family."""
    return f"Message-ID: <family@x>\r\nFrom: ann@example.com\r\nSubject: {children}\r\n\r\nplease\r\n".encode()


def expected(children: int) -> list[object]:
    """What the first run returns."""
    came = [f"ValueError: {n} fails" if f"{n}".endswith("3") else len(f"{n}") for n in range(children)]
    return ["given up", *({"first": f"child-{n}", "grand": f"grand-{n}", "length": came[n]} for n in range(children))]


def check(data: Path, effects: Path, children: int) -> None:
    """All of it, when everything has ended."""
    check_history(data, "family")
    runs = logs(data, "family")
    check_family(runs)
    assert len(runs) == 2 + 3 * children
    (root,) = (log for log in runs.values() if isinstance(log[0], ev.RunStarted) and not log[0].parent)
    end = root[-1]
    assert isinstance(end, ev.RunCompleted)
    assert json.loads(bytes(end.result.inline or b"")) == expected(children)
    done = check_effects(effects)
    assert set(done) - {"waits", "waits-cleaned"} == {
        f"{kind}-{n}" for kind in ("child", "grand", "plain") for n in range(children)
    }


def all_over(client: Client, runs: int) -> bool:
    """Whether so many runs are there, and have ended."""
    states = [each.state for each in client.get(Runs, "runs").runs]
    return len(states) == runs and set(states) <= OVER


def play(place: Place, children: int, reaper: Reaper) -> int:
    """Hosts, one after the other, until all has ended; how many there were."""
    until, lives, sent = time.monotonic() + PATIENCE, 0, False
    try:
        while True:
            host = MortalHost(place)
            lives += 1
            reaper.watch(host)
            client = Client(place.data / "host.sock")
            over = False
            while host.alive and not over:
                assert time.monotonic() < until, f"not done; the host's last words: {host.lines[-10:]}"
                if host.ready:
                    try:
                        sent = (
                            sent
                            or waypost("send", "family@example.com", data=place.data, stdin=mail(children)).returncode
                            == 0
                        )
                        over = sent and all_over(client, 2 + 3 * children)
                    except (NoHost, Unanswered):
                        pass
                host.hear(0.1)
            if over:
                reaper.close()
                assert host.end() in {0, -9}
                return lives
            host.end()
    finally:
        reaper.close()


@pytest.mark.torture
@pytest.mark.timeout(600)
@pytest.mark.parametrize(("kill", "kills"), [(kill_host, 12), (kill_child, 25)])
@pytest.mark.parametrize("seed", [1, 2])
def test_a_family_of_sixty_survives_kills_at_random_moments(
    tmp_path: Path, flows: Path, unmeasured: None, kill: Kill, kills: int, seed: int
) -> None:
    """Twenty children with two grandchildren each: one outcome for each call, one key for each effect."""
    effects = tmp_path / "effects"
    effects.touch()
    environment = {**os.environ, "EFFECTS": str(effects)}
    place = Place(tmp_path / "data", flows / "with_children.py", environment, tmp_path / "stderr")
    play(place, 20, Reaper.seeded(kill, seed, kills=kills, span=1.5 if kill is kill_child else 3.0))
    check(place.data, effects, 20)


@pytest.mark.torture
def test_a_killed_host_loses_no_child_run(hosts: Callable[..., HostProcess], flows: Path, tmp_path: Path) -> None:
    """The parent waits, its children are under way: all go on where they were."""
    effects = tmp_path / "effects"
    effects.touch()
    environment = {"EFFECTS": str(effects)}
    first = hosts(flows / "with_children.py", env=environment).start()
    run = first.send("family@example.com", mail(1))
    first.wait_for("child waits", "is started")
    first.kill()
    with hosts(flows / "with_children.py", env=environment) as second:
        second.wait_for(run[:10], "completed")
    check(second.data, effects, 1)

"""A workflow's process that somebody has stopped: `why` says so and what lets it go on."""

import json
import os
import signal
from collections.abc import Callable
from pathlib import Path

import pytest

from waypost.testing.errands import mail
from waypost.testing.host_process import HostProcess
from waypost.testing.mortal import workers_of

pytestmark = [pytest.mark.e2e, pytest.mark.torture]

ADDRESS = "sleeper@example.com"


def first_below(pid: int) -> int:
    """The first process that this one has begun."""
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


@pytest.mark.parametrize(("mode", "depth"), [("none", 0), ("namespace", 0), ("namespace", 1), ("namespace", 2)])
def test_why_says_that_a_process_is_stopped_and_its_command_lets_it_go_on(
    mode: str, depth: int, flows: Path, hosts: Callable[..., HostProcess]
) -> None:
    """Whichever of its processes it is: it was said to be at work, by both verbs, for as long as one cared to look."""
    with hosts(flows / "sleeps.py", options=("--isolation", mode)) as host:
        run = host.send(ADDRESS, a_mail())
        (child,) = workers_of(host.pid)
        for _ in range(depth):
            child = first_below(child)
        os.kill(child, signal.SIGSTOP)
        for words in ((run,), ("sleeper",)):
            why = json.loads(host.verb("why", *words, "--json").stdout)
            assert why["command"] == f"kill -CONT {child}"
            assert why["needed"]
        assert "has been stopped" in host.verb("runs").stdout
        os.kill(child, signal.SIGCONT)
        assert json.loads(host.verb("why", run, "--json").stdout)["command"] != f"kill -CONT {child}"


def a_mail() -> bytes:
    """It begins a run."""
    return mail(sender="ann@example.com", to=ADDRESS, subject="go", message_id="<1@x>", text="signal")

"""Parts of a host that fail at any message: the deployment recovers by itself, every run ends, and as it should."""

import re
import sys
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import ClassVar

import pytest

from waypost.host.app import Config, Host
from waypost.host.clock import SystemClock
from waypost.host.code.describe import describe_all
from waypost.model.limits import Limits
from waypost.model.times import Now
from waypost.testing.patience import PATIENCE
from waypost.testing.verbs import verb

pytestmark = [pytest.mark.e2e, pytest.mark.torture]

PARTS = (
    *("orders/substrate", "orders/dispatch", "orders/scheduler", "orders/broadcaster", "orders/child"),
    *("orders/supervisor", "orders/courier", "mail-bus"),
)
"""But for the root, whose end is the host's own, and is said."""
LIVES = 12
"""The n-th incarnation of the part that fails does so at its n-th message; the one after these lives."""
MAILS = 12
LIMITS = Limits(
    backoff_first=0.01, backoff_cap=0.01, actor_failures=10**6, crash_exits=10**6, crash_total=10**6, attempts=10**6
)
WORKFLOW = """
from waypost import Mail, Workflow, sleep

orders = Workflow("orders", address="orders@example.com")

@orders.step
def one(number: int) -> int:
    return number + 1

@orders.run
async def order(mail: Mail) -> int:
    number = await one(0)
    await sleep("50ms")
    return await one(number)
"""


class Injected(RuntimeError):
    """What the part fails of."""


class FailingClock(SystemClock):
    """Every part of a host asks for the time at each of its messages, first of all; its thread has its name."""

    part = ""
    heard: ClassVar[Counter[str]] = Counter()
    failed = 0

    def now(self) -> Now:
        """The time, unless it is this part's turn to fail."""
        name, _, incarnation = threading.current_thread().name.rpartition("/")
        if name == self.part:
            key = f"{name}/{incarnation}"
            FailingClock.heard[key] += 1
            if FailingClock.failed < LIVES and FailingClock.heard[key] == FailingClock.failed + 1:
                FailingClock.failed += 1
                FailingClock.heard.clear()
                raise Injected(key)
        return super().now()


@pytest.fixture
def host(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Iterator[Host]:
    """A whole host in this process, one part of which fails."""
    file = tmp_path / "orders.py"
    file.write_text(WORKFLOW)
    monkeypatch.setattr("waypost.host.app.SystemClock", FailingClock)
    monkeypatch.setattr(FailingClock, "part", request.param)
    monkeypatch.setattr(FailingClock, "heard", Counter())
    monkeypatch.setattr(FailingClock, "failed", 0)
    environment = {"PATH": "/usr/bin:/bin"}
    described = describe_all([file], timeout=30, environment=environment)
    config = Config(
        data=tmp_path / "data",
        described=described,
        command=("test", *sys.argv[:1]),
        environment=environment,
        limits=LIMITS,
    )
    with Host.start(config) as host:
        yield host


def eventually(fact: Callable[[], bool], what: str) -> None:
    """Wait for it as long as a busy machine may need."""
    until = time.monotonic() + PATIENCE
    while not fact():
        assert time.monotonic() < until, f"never: {what}, after {FailingClock.failed} failures"


def sent(data: Path, number: int) -> str:
    """A mail, sent until it is accepted; its run."""
    raw = f"From: ann@example.com\r\nSubject: x\r\nMessage-ID: <{number}@x>\r\n\r\nhello\r\n".encode()
    said: list[str] = []

    def accepted() -> bool:
        done = verb("send", "orders@example.com", data=data, stdin=raw)
        said.append(done.out + done.err)
        return done.status == 0

    eventually(accepted, f"mail {number} was accepted")
    (run,) = re.findall(r"run_[0-9]+_[0-9a-f]{16}", said[-1])
    return str(run)


@pytest.mark.parametrize("host", PARTS, indirect=True)
def test_whatever_fails_at_whatever_message_every_run_ends_as_it_should(host: Host) -> None:
    """One for all, from the log: nobody has to look, nothing is lost and nothing is done twice."""
    data = host.data.path
    runs = {sent(data, number) for number in range(MAILS)}

    def ended() -> bool:
        listed = verb("runs", data=data)
        return listed.status == 0 and listed.out.count("completed") == MAILS

    eventually(ended, "every run has ended")
    assert len(runs) == MAILS
    assert FailingClock.failed > 2
    for run in runs:
        log = verb("log", run, data=data).out
        assert log.count('"StepCompleted"') == 2, log
        assert log.count('"RunCompleted"') == 1, log
    assert verb("fsck", data=data).status == 0

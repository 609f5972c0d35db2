"""A host is killed while it drains: the next one goes on with that, and says so; what had begun is not lost."""

import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from substrate import Reader
from waypost.host.datadir.directory import DataDir
from waypost.host.exits import Exit
from waypost.host.reading.offline import public_key
from waypost.testing.background import Background
from waypost.testing.host_process import HostProcess
from waypost.testing.mortal import workers_of
from waypost.testing.patience import eventually

pytestmark = [pytest.mark.e2e, pytest.mark.torture]

ADDRESS = "slow@example.com"
MakeHost = Callable[..., AbstractContextManager[HostProcess]]


@pytest.fixture
def host(hosts: Callable[..., HostProcess], flows: Path, books: Path) -> MakeHost:
    """Makes a host of a workflow whose bodies wait at their gates, started; it is killed in the end."""

    @contextmanager
    def make(ready: str = " is running") -> Iterator[HostProcess]:
        one = hosts(flows / "takes_its_time.py", env={"BOOKS": str(books)}).start(ready=ready)
        yield one
        one.kill()

    return make


def mail(number: int, text: str, *, to: int | None = None) -> bytes:
    thread = "" if to is None else f"In-Reply-To: <m{to}@x>\r\n"
    return f"Message-ID: <m{number}@x>\r\nFrom: ann@example.com\r\n{thread}\r\n{text}\r\n".encode()


def killed_while_it_drains(one: HostProcess, *options: str) -> str:
    """A run executes, a drain has begun, the host is killed; the run."""
    run = one.send(ADDRESS, mail(1, "north"))
    one.wait_for("step work begins")
    with Background("drain", "slow", *options, data=one.data, together=True) as looking:
        looking.wait_for("slow is draining")
        one.kill()
        looking.wait_for("slow: the host has ended; that slow is to be drained is recorded")
        assert "waypost drain slow" in looking.wait_for("waypost run")
        assert looking.wait() == Exit.NO_HOST
    return run


def test_a_host_that_starts_holds_what_was_to_rest(host: MakeHost) -> None:
    """Nothing executes any more; the step is run again when somebody says so, and not before."""
    with host() as one:
        run = killed_while_it_drains(one)
        offline = one.verb("why", "slow").stdout
    assert "which goes on draining it" in offline
    assert "draining" in offline
    with host(ready="slow is held") as after:
        assert "held" in after.verb("why", "slow").stdout
        assert after.verb("resume", "slow", "--yes").returncode == 0
        after.wait_for(run[:10], "resumed in generation 2")
    assert "unexpected" not in after.verb("show", run).stdout


def test_a_host_that_starts_goes_on_to_the_end(host: MakeHost, books: Path) -> None:
    """What has begun goes on, with its mail; what comes stays queued; when all have ended, it is held."""
    with host() as one:
        run = killed_while_it_drains(one, "--end")
    with host(ready="slow is draining") as after:
        new = after.send(ADDRESS, mail(2, "south"))
        assert "every run to end" in after.verb("why", "slow").stdout
        assert "draining" in after.verb("top", "--once").stdout
        with Background("drain", "slow", "--end", data=after.data, together=True) as looking:
            looking.wait_for(run)
            (books / "north").write_bytes(b"")
            after.wait_for(run[:10], "waits for the next mail")
            after.send(ADDRESS, mail(3, "thanks", to=1))
            looking.wait_for("slow is drained and held")
            assert looking.wait() == 0
        states = {line.split()[0]: line.split()[2] for line in after.verb("runs").stdout.splitlines() if "run_" in line}
        assert (states[run], states[new]) == ("completed", "queued")


def test_a_drain_that_a_killed_host_has_left_behind_is_called_off_by_resume(host: MakeHost, books: Path) -> None:
    """The same verb, under whatever host."""
    with host() as one:
        run = killed_while_it_drains(one, "--end")
    with host(ready="slow is draining") as after:
        new = after.send(ADDRESS, mail(2, "south"))
        assert after.verb("resume", "slow").returncode == 0
        (books / "north").write_bytes(b"")
        after.wait_for(run[:10], "waits for the next mail")
        after.wait_for(new[:10], "step work begins")
        (books / "south").write_bytes(b"")


def noted(one: HostProcess) -> int:
    """What the repository says that the clock has counted, in ms."""
    data = DataDir(one.data)
    drain = Reader.open(data.repo("slow"), public_key(data)).facts().drain
    return 0 if drain is None else drain.spent or 0


def killed_once_more_is_noted(one: HostProcess, before: int) -> int:
    """A host that drains; what it has noted."""
    eventually(lambda: noted(one) > before, "its clock goes on")
    one.kill()
    return noted(one)


@pytest.mark.parametrize(("mode", "depth"), [("none", 0), ("namespace", 2)])
def test_the_clock_of_a_drain_stands_still_with_the_process(
    mode: str, depth: int, hosts: Callable[..., HostProcess], flows: Path, books: Path
) -> None:
    """Its step is open, and executes no more than a run that waits: nobody is cancelled for the time of a SIGSTOP."""
    bound = ("--limit", "drain_end=2", "--limit", "drain_look=0.1", "--isolation", mode, "--writes", str(books))
    one = hosts(flows / "takes_its_time.py", env={"BOOKS": str(books)}, options=bound[: None if depth else 6]).start()
    run = one.send(ADDRESS, mail(1, "watch"))
    one.wait_for("step watch begins")
    (child,) = workers_of(one.pid)
    for _ in range(depth):
        child = int(Path(f"/proc/{child}/task/{child}/children").read_text().split()[0])
    os.kill(child, signal.SIGSTOP)
    with Background("drain", "slow", "--end", data=one.data, together=True) as looking:
        looking.wait_for("slow is draining")
        begun = time.monotonic()
        eventually(lambda: time.monotonic() > begun + 4, "twice its limit is over")
        assert "cancel was asked for" not in one.verb("show", run).stdout
        os.kill(child, signal.SIGCONT)
        looking.wait_for("slow is drained and held")
    assert "supervisor-drain" in one.verb("show", run).stdout
    assert "past" not in one.verb("show", run).stdout
    one.kill()


def test_the_clock_of_a_drain_goes_on_where_a_killed_host_has_noted_it(
    hosts: Callable[..., HostProcess], flows: Path, books: Path
) -> None:
    """Each is killed as soon as it has noted more; the run whose step may be cut short is cancelled all the same."""
    bound = ("--limit", "drain_end=4", "--limit", "drain_look=0.1")
    first, second, last = (
        hosts(flows / "takes_its_time.py", env={"BOOKS": str(books)}, options=bound) for _ in range(3)
    )
    first.start()
    run = first.send(ADDRESS, mail(1, "watch"))
    first.wait_for("step watch begins")
    with Background("drain", "slow", "--end", data=first.data, together=True) as looking:
        looking.wait_for("slow is draining")
        spent = killed_once_more_is_noted(first, 0)
        looking.wait()
    second.start(ready="slow is draining")
    assert noted(second) >= spent
    spent = killed_once_more_is_noted(second, spent)
    last.start(ready="slow is draining")
    last.wait_for(run[:10], "cancelled")
    last.wait_for("slow is held")
    assert "supervisor-drain" in last.verb("show", run).stdout
    assert last.verb("fsck").returncode == 0
    last.kill()

"""What operators do, and what goes wrong, with parents and children on a real host: each is judged by itself."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from waypost.testing.background import Background
from waypost.testing.family_check import check_family, check_history, logs
from waypost.testing.host_process import HostProcess

pytestmark = [pytest.mark.e2e, pytest.mark.torture]
MakeHost = Callable[..., HostProcess]
QUICK = ("--limit", "idle=0.3", "--limit", "stable_after=0.3", "--limit", "backoff_first=0.02")


def mail(subject: str, number: int = 1, *, to: int | None = None) -> bytes:
    """A mail that says what the family does."""
    thread = "" if to is None else f"In-Reply-To: <m{to}@x>\r\n"
    return f"Message-ID: <m{number}@x>\r\nFrom: ann@example.com\r\n{thread}Subject: {subject}\r\n\r\nx\r\n".encode()


def short(run: str) -> str:
    """A run as lines of the timeline name it."""
    return run[: run.rindex("_") + 5]


def waiting(host: HostProcess) -> list[str]:
    """The four children that wait for a signal, oldest first."""
    for _ in range(4):
        host.wait_for("waits for signal go")
    return sorted(re.findall(r"child waits, (run_\w+), is started", "\n".join(host.said)))


def go(host: HostProcess, run: str, times: int) -> None:
    """Let a child go on."""
    assert host.verb("signal", run, "go", stdin=b"%d" % times).returncode == 0


def test_a_child_that_ends_its_process_takes_neither_its_siblings_nor_its_parent_along(
    hosts: MakeHost, flows: Path
) -> None:
    """It is resumed alone, and fails at last; the parent handles that, and was never suspected."""
    with hosts(flows / "kinship.py", options=("--limit", "backoff_first=0.02")) as host:
        run = host.send("kin@example.com", mail("crash"))
        line = host.wait_for(short(run), "completed: [")
        assert '"0", "1", "child crashes (' in line
        assert "ChildCrashed" in host.verb("show", run).stdout
        assert "nothing is on hold" in host.verb("queue", "hold").stdout
        data = host.data
    check_history(data, "kin")
    check_family(logs(data, "kin"))


def test_a_family_that_waits_sleeps_drains_and_is_recycled(hosts: MakeHost, flows: Path) -> None:
    """A parent that waits is at rest; what wakes it is the end of a child, and the next process is given both."""
    with hosts(flows / "kinship.py", options=QUICK) as host:
        run = host.send("kin@example.com", mail("wait"))
        first, second, third, fourth = waiting(host)
        host.wait_for("is dormant")
        assert host.verb("why", run).stdout.count("it waits for its child run (waits, as run_") == 4
        assert host.verb("drain", "kin").returncode == 0
        assert host.verb("resume", "kin", "--yes").returncode == 0
        go(host, first, 1)
        host.wait_for(short(run), "has completed")
        assert host.verb("recycle", "kin", "--reason", "it leaks").returncode == 0
        go(host, second, 2)
        host.wait_for(short(run), "has completed")
        assert host.verb("cancel", third, "--reason", "enough").returncode == 0
        host.wait_for(short(run), "was cancelled", "enough")
        host.kill()
    with hosts(flows / "kinship.py", options=QUICK) as host:
        go(host, fourth, 3)
        line = host.wait_for(short(run), "completed: [")
        assert '["x", "xx", "child waits (' in line
        data = host.data
    check_history(data, "kin")
    check_family(logs(data, "kin"))


def test_a_cancelled_parent_takes_its_children_along(hosts: MakeHost, flows: Path) -> None:
    """Each is told by itself, and may clean up."""
    with hosts(flows / "kinship.py", options=QUICK) as host:
        run = host.send("kin@example.com", mail("wait"))
        children = waiting(host)
        assert host.verb("cancel", run, "--reason", "enough").returncode == 0
        for each in children:
            host.wait_for(short(each), "cancel was asked for (parent)")
        host.wait_for("is dormant")
        assert host.verb("runs").stdout.count("cancelled") == 5
        data = host.data
    check_history(data, "kin")
    check_family(logs(data, "kin"))


def test_a_child_whose_function_is_gone_waits_for_code_that_has_it(
    hosts: MakeHost, flows: Path, tmp_path: Path
) -> None:
    """Its parent goes on waiting, and both go on when it is there again."""
    folder = tmp_path / "new"
    folder.mkdir()
    source = (flows / "kinship.py").read_text(encoding="utf-8")
    other = re.sub(r"\bwaits\b", "lingers", source)
    with hosts(flows / "kinship.py", options=QUICK) as host:
        run = host.send("kin@example.com", mail("wait"))
        first, *rest = waiting(host)
        (folder / "kinship.py").write_text(other, encoding="utf-8")
        assert host.verb("deploy", str(folder / "kinship.py")).returncode == 0
        go(host, first, 1)
        host.wait_for(short(first), "paused (code-missing)", "kin has no child waits any more")
        refused = host.verb("resume", first)
        assert refused.returncode == 1
        assert "deploy it" in refused.stderr
        assert first in host.verb("why", run).stdout
        assert host.verb("deploy", str(flows / "kinship.py")).returncode == 0
        assert host.verb("resume", first).returncode == 0
        host.wait_for(short(run), "has completed")
        for each in rest:
            go(host, each, 1)
        host.wait_for(short(run), "completed: [")
        data = host.data
    check_history(data, "kin")
    check_family(logs(data, "kin"))


def test_a_deployment_that_is_taken_out_of_service_lets_a_parent_have_its_child(hosts: MakeHost, flows: Path) -> None:
    """Its mail begins a run, but of one that has begun."""
    with hosts(flows / "kinship.py") as host:
        run = host.send("kin@example.com", mail("late"))
        host.wait_for("waits for the next mail")
        with Background("drain", "--end", "kin", data=host.data, together=True) as looking:
            looking.wait_for("rests")
            other = host.send("kin@example.com", mail("late", 2))
            host.send("kin@example.com", mail("go on", 3, to=1))
            (child,) = re.findall(
                r"run_\w+", host.wait_for(short(run), "child waits", "is started").split("waits, ")[1]
            )
            host.wait_for(short(child), "waits for signal go")
            go(host, child, 2)
            host.wait_for(short(run), 'completed: "xx"')
            assert looking.wait() == 0
        assert "queued" in host.verb("why", other).stdout


@pytest.mark.parametrize(
    ("subject", "said"),
    [
        ("deep", "16: child runs may lie 16 deep, and this run is 16 deep"),
        ("many", "a run may have 256 child runs at a time"),
        ("big", "its arguments have 1100011 bytes; at most 1048576 are taken"),
    ],
)
def test_a_bound_is_said_plainly(hosts: MakeHost, flows: Path, subject: str, said: str) -> None:
    """As an error that the workflow may handle, with the number that it went over."""
    with hosts(flows / "kinship.py") as host:
        run = host.send("kin@example.com", mail(subject))
        assert said in host.wait_for(short(run), "completed: ")

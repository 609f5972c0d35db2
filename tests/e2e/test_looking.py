"""`waypost top` as people and programs have it: real processes, a real terminal, a host that is killed meanwhile."""

import contextlib
import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import termios
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Self

import pytest
from prometheus_client.parser import text_string_to_metric_families

from waypost.cli.fitting import width
from waypost.host.exits import Exit
from waypost.testing.background import COMMAND, Background
from waypost.testing.host_process import HostProcess
from waypost.testing.killing import kill_children
from waypost.testing.patience import PATIENCE
from waypost.testing.verbs import verb

pytestmark = pytest.mark.e2e

OPTIONS = ("--isolation", "none", "--metrics", "0")
FLOW = """
from waypost import Mail, Workflow, approve, sleep

asking = Workflow("asking", address="asking@example.com", mail_to=["boss@example.com"])


@asking.step
def size(mail: Mail) -> int:
    if mail.subject == "bad":
        raise ValueError("bad")
    if mail.subject == "wide":
        raise ValueError("\N{CJK UNIFIED IDEOGRAPH-6F22}" * 90 + " \x1b[2J\x9b2J and " * 9)
    return len(mail.text)


@asking.run
async def ask(mail: Mail) -> str:
    found = await size(mail)
    if mail.subject == "nap":
        await sleep("30d")
    verdict = await approve(f"{found} characters?", who="boss@example.com", deadline="3d")
    return f"{verdict.approved}"
"""


def mail(subject: str) -> bytes:
    """A mail that starts a run."""
    return f"From: ann@example.com\r\nSubject: {subject}\r\nMessage-ID: <{subject}@x>\r\n\r\nhello\r\n".encode()


@pytest.fixture(name="host")
def _host(tmp_path: Path) -> Iterator[HostProcess]:
    file = tmp_path / "asking.py"
    file.write_text(FLOW)
    with HostProcess(file, data=tmp_path / "data", options=OPTIONS) as host:
        yield host


def top(data: Path) -> dict[str, Any]:
    """The one deployment, as a program sees it."""
    said = verb("top", "--json", data=data)
    assert said.status == 0, said
    (line,) = said.out.splitlines()
    found: dict[str, Any] = json.loads(line)
    return found


def until(data: Path, holds: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
    """Ask again and again: what is shown may be a second old."""
    while not holds(found := top(data)):
        pass
    return found


class Terminal:
    """A verb at a terminal of 80 columns and 24 lines; it has ended when its ``with`` ends."""

    def __init__(self, *arguments: str) -> None:
        self._ours, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 80, 0, 0))
        environment = {**os.environ, "TERM": "xterm", "PYTHONUNBUFFERED": "1"}
        for name in ("COLUMNS", "LINES"):
            environment.pop(name, None)
        self.process = subprocess.Popen(
            [*COMMAND, *arguments], stdin=theirs, stdout=theirs, stderr=theirs, env=environment
        )
        os.close(theirs)
        self.said = ""

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        os.close(self._ours)

    def wait_for(self, text: str) -> None:
        """Read until this was written; fails with what was, when nothing more comes."""
        while text not in self.said:
            assert select.select([self._ours], [], [], PATIENCE)[0], (text, self.said)
            self.said += os.read(self._ours, 65536).decode()

    def end(self) -> int:
        """Read to its end; its exit status."""
        with contextlib.suppress(OSError):  # the other side is closed
            self.wait_for("what it never says")
        return self.process.wait(PATIENCE)


def test_what_runs_wait_on_is_shown_and_what_they_do_is_told(host: HostProcess) -> None:
    """By `top`, the metrics and `tail`, of one host: a start of one is dear."""
    shown(host)
    followed(host)
    for name in ("nobody", "run_77"):
        assert verb("tail", name, data=host.data).status == Exit.USAGE


def shown(host: HostProcess) -> None:
    """A run that asks is one that waits on an approval; answered, it has ended."""
    first = host.send("asking@example.com", mail("first"))
    host.wait_for("waits for boss@example.com")
    row = until(host.data, lambda row: row["waiting"] == {"approval": 1})
    assert (row["deployment"], row["state"], row["live"]) == ("asking", "running", 1)
    assert (row["queued"], row["crash_budget"], row["generation"]) == (0, 3, 1)
    assert row["deadline"] > "2026"
    said = verb("top", data=host.data)
    assert "1 approval" in said.out
    assert "\x1b" not in said.out
    assert verb("approve", first, data=host.data).status == 0
    row = until(host.data, lambda row: not row["live"])
    assert (row["waiting"], row["deadline"]) == ({}, None)
    while top(host.data)["flush_p99"] is None:
        pass
    measured(host)


def measured(host: HostProcess) -> None:
    """The same by the metrics, on the command line and for whoever scrapes."""
    page = verb("metrics", data=host.data)
    assert page.status == 0
    samples = {
        (sample.name, *sample.labels.values()): sample.value
        for family in text_string_to_metric_families(page.out)
        for sample in family.samples
    }
    assert samples["waypost_runs_ended_total", "asking", "completed"] == 1
    assert samples["waypost_mails_served_total",] == 1
    assert samples["waypost_mail_leg_seconds_count", "enqueue"] == 1
    assert samples["waypost_flush_seconds_count",] > 0
    line = next(line for line in host.said if "metrics at" in line)
    where = line.split()[2].removesuffix(",")
    with urllib.request.urlopen(where, timeout=PATIENCE) as answer:
        served = answer.read().decode()
    assert {family.name for family in text_string_to_metric_families(served)} == {
        family.name for family in text_string_to_metric_families(page.out)
    }


@pytest.mark.torture
def test_at_a_terminal_top_shows_itself_anew_and_a_host_that_is_killed_is_said_to_be_gone(host: HostProcess) -> None:
    """The terminal is left as it was, whatever ends it."""
    with Terminal("top", "--every", "0.2", "--data", str(host.data)) as shown:
        shown.wait_for("0 live runs")
        host.send("asking@example.com", mail("first"))
        shown.wait_for("1 approval")
        frames = shown.said.split("\x1b[H")[1:-1]
        assert all(width(line.removesuffix("\x1b[K")) <= 80 for frame in frames for line in frame.split("\r\n")[:-1])
        host.kill()
        assert shown.end() == Exit.NO_HOST
    assert shown.said.count("\x1b[?1049l") == 1
    assert "waypost run" in shown.said.rsplit("\x1b[?1049l", 1)[1]


@pytest.mark.torture
def test_ctrl_c_ends_top_and_is_no_failure(host: HostProcess) -> None:
    """It is how one stops looking."""
    with Terminal("top", "--data", str(host.data)) as shown:
        shown.wait_for("asking")
        shown.process.send_signal(signal.SIGINT)
        assert shown.end() == 0
    assert shown.said.endswith("\x1b[?25h\x1b[?1049l")


@pytest.mark.torture
@pytest.mark.parametrize("ending", [signal.SIGTERM, signal.SIGHUP])
def test_top_that_is_told_to_end_leaves_the_terminal_as_it_was(host: HostProcess, ending: signal.Signals) -> None:
    """A screen without a cursor, where nothing is kept, is no way to leave one."""
    with Terminal("top", "--data", str(host.data)) as shown:
        shown.wait_for("asking")
        shown.process.send_signal(ending)
        assert shown.end() == 128 + ending
    assert shown.said.endswith("\x1b[?25h\x1b[?1049l")


def test_without_a_host_top_says_how_to_start_one(tmp_path: Path) -> None:
    """Nothing is known then but what `waypost runs` reads."""
    (tmp_path / "data").mkdir()
    said = verb("top", data=tmp_path / "data")
    assert said.status in {Exit.NO_HOST, Exit.DATA}
    assert "waypost run" in said.err


# --- tail ------------------------------------------------------------------------------------------------------------


def seqs(lines: list[str], run: str) -> list[int]:
    """The events of a run that were told, by --json."""
    told = [json.loads(line) for line in lines]
    return [line["event"]["seq"] for line in told if line["run"] == run]


def followed(host: HostProcess) -> None:
    """A run to its end; each event once, whether it was there before, or came while somebody looked."""
    run = host.send("asking@example.com", mail("second"))
    with Background("tail", run, data=host.data) as tail:
        tail.wait_for("waits for boss@example.com to decide: 6 characters?")
        assert verb("approve", run, data=host.data).status == 0
        assert (tail.wait(), tail.complaints) == (0, "")
    assert [int(line.split()[1]) for line in tail.said] == list(range(1, len(tail.said) + 1))
    assert "step size is done: 6" in tail.said[2]
    assert 'completed: "True"' in tail.said[-1]
    again = verb("tail", run, "--after", "3", data=host.data)
    assert (again.status, again.out.splitlines()) == (0, tail.said[3:])
    failed = host.send("asking@example.com", mail("bad"))
    said = verb("tail", failed, "--json", data=host.data)
    assert said.status == Exit.REFUSED
    assert json.loads(said.out.splitlines()[-1])["event"]["type"] == "RunFailed"


@pytest.mark.torture
def test_at_a_terminal_what_is_told_fits_and_does_not_steer_it(host: HostProcess) -> None:
    """A fault's text is a stranger's, and may be as long and as wide as it likes."""
    run = host.send("asking@example.com", mail("wide"))
    with Terminal("tail", run, "--data", str(host.data)) as told:
        assert told.end() == Exit.REFUSED
    lines = told.said.split("\r\n")
    assert all(width(line) <= 80 and line.isprintable() for line in lines)
    assert sum(line.count("\N{CJK UNIFIED IDEOGRAPH-6F22}") for line in lines) >= 90
    assert any(line.startswith(" " * 10) for line in lines)


@pytest.mark.torture
def test_everything_is_followed_and_nothing_of_it_missed_over_a_kill_of_its_process(host: HostProcess) -> None:
    """Each run's events come once, in order, whatever happens to the child that runs them."""
    with Background("tail", "--json", data=host.data) as tail:
        tail.complains("following")
        runs = [host.send("asking@example.com", mail(f"n{number}")) for number in range(5)]
        for _ in runs:
            host.wait_for("waits for boss@example.com")
        kill_children(host.pid)
        for run in runs:
            assert verb("approve", run, data=host.data).status == 0
        for _ in runs:
            tail.wait_for("RunCompleted")
        for run in runs:
            logged = verb("log", run, data=host.data).out.splitlines()
            while seqs(tail.said, run)[-1] < len(logged):
                tail.wait_for(run)
            assert seqs(tail.said, run) == list(range(1, len(logged) + 1))
        host.stop()
        assert tail.wait() == Exit.NO_HOST
    assert "waypost runs" in tail.complaints


@pytest.mark.torture
def test_a_run_is_followed_over_a_restart_of_its_host_without_a_gap_or_a_repeat(host: HostProcess) -> None:
    """The host is killed: what it had made durable is told, and then how to go on from there."""
    run = host.send("asking@example.com", mail("first"))
    with Background("tail", run, "--json", data=host.data) as tail:
        tail.wait_for("SignalAwaited")
        host.kill()
        assert tail.wait() == Exit.NO_HOST
    words = tail.complaints.split("`waypost tail ")[1].split("`")[0].split()
    assert words[0] == run
    offline = verb("tail", run, "--json", data=host.data)
    assert offline.status == Exit.NO_HOST
    assert offline.out.splitlines() == tail.said
    with (
        HostProcess(data=host.data, options=OPTIONS),
        Background("tail", *words, "--json", data=host.data) as again,
    ):
        assert verb("approve", run, data=host.data).status == 0
        assert (again.wait(), again.complaints) == (0, "")
    assert seqs([*tail.said, *again.said], run) == list(range(1, len(tail.said) + len(again.said) + 1))
    assert verb("tail", run, "--after", words[-1], data=host.data).status == 0


@pytest.mark.torture
def test_a_deployment_that_sleeps_is_shown_and_followed_over_its_sleep(tmp_path: Path) -> None:
    """What its runs wait on is known all the while; who follows hears of what wakes it, and of what comes then."""
    file = tmp_path / "asking.py"
    file.write_text(FLOW)
    with HostProcess(file, data=tmp_path / "data", options=(*OPTIONS, "--limit", "idle=1")) as host:
        run = host.send("asking@example.com", mail("first"))
        with (
            Background("tail", run, "--json", data=host.data) as one,
            Background("tail", "asking", "--json", data=host.data) as every,
        ):
            every.complains("following")
            asleep = until(host.data, lambda row: row["state"] == "dormant")
            with Background("tail", data=host.data) as late:
                late.complains("following")
            assert (asleep["waiting"], asleep["live"], asleep["crash_budget"]) == ({"approval": 1}, 1, 3)
            assert asleep["deadline"] > "2026"
            assert verb("approve", run, data=host.data).status == 0
            assert (one.wait(), one.complaints) == (0, "")
            assert seqs(one.said, run) == list(range(1, len(one.said) + 1))
            every.wait_for("RunCompleted")
            assert seqs(every.said, run) == seqs(one.said, run)[-len(every.said) :]
            until(host.data, lambda row: row["state"] == "dormant" and row["live"] == 0)
            host.stop()
            assert every.wait() == Exit.NO_HOST

"""A workflow whose process ends again and again: latched, said by every verb, kept by the next host, and reset."""

import os
import re
import signal
from pathlib import Path

import pytest

from waypost.cli.client import Client
from waypost.host.answers.records import Status
from waypost.testing.host_process import HostProcess
from waypost.testing.verbs import verb

pytestmark = pytest.mark.e2e

FAST = (
    "--limit",
    "backoff_first=0.02",
    "--limit",
    "backoff_cap=0.02",
    "--limit",
    "kill_grace=0.3",
    "--isolation",
    "none",
)
WORKFLOW = """
import os, sys
from pathlib import Path
from waypost import Mail, Workflow, approve, sleep

if Path({bad!r}).exists():
    print("the ledger is locked", file=sys.stderr)
    os.kill(os.getpid(), 11)

orders = Workflow("orders", address="orders@example.com", mail_to=["boss@example.com"], on_crash_loop={setting!r})

@orders.run
async def order(mail: Mail) -> str:
    if "ask" in mail.subject:
        await approve("Yes?", who="boss@example.com", deadline="3d")
    else:
        while not Path({good!r}).exists():
            await work()
    return "done"

@orders.step
def work() -> None:
    import time
    time.sleep(600)
"""


def mail(name: str) -> bytes:
    return f"From: ann@example.com\r\nSubject: {name}\r\nMessage-ID: <{name}@x>\r\n\r\nhello\r\n".encode()


def sent(data: Path, name: str) -> str:
    """A mail, accepted; its run."""
    (run,) = re.findall(r"run_[0-9]+_[0-9a-f]{16}", verb("send", "orders@example.com", data=data, stdin=mail(name)).out)
    return str(run)


def workflow(folder: Path, setting: str) -> tuple[Path, Path]:
    """The workflow's file, and the file that breaks it."""
    file, bad = folder / "orders.py", folder / "bad"
    file.write_text(WORKFLOW.format(bad=str(bad), good=str(folder / "good"), setting=setting))
    return file, bad


def latch(host: HostProcess, data: Path, bad: Path) -> None:
    """Break the workflow's process, and every one that follows."""
    bad.touch()
    (status,) = Client(data / "host.sock").get(Status, "status").deployments
    assert status.pid is not None
    os.kill(status.pid, signal.SIGKILL)
    host.wait_for("orders is down", "crash-looping")


@pytest.mark.torture
def test_a_crash_loop_is_latched_shown_kept_and_reset(tmp_path: Path) -> None:
    """Nothing is lost by it, and nothing goes on by itself; each verb names the command that helps."""
    file, bad = workflow(tmp_path, "wait")
    data = tmp_path / "data"
    with HostProcess(file, data=data, options=FAST) as host:
        asked = sent(data, "ask")
        host.wait_for("waits for boss@example.com")
        worked = sent(data, "work")
        host.wait_for("step work begins")
        latch(host, data, bad)
        why = verb("why", worked, data=data).out
        assert "waits for its deployment, which is crash-looping" in why
        assert f"next: waypost reset orders --data {data}\n" in why
        assert "ended by SIGSEGV" in why
        assert "    the ledger is locked" in why
        listed = verb("runs", data=data).out
        assert listed.count("operator: its deployment is crash-looping") == 2
        (status,) = Client(data / "host.sock").get(Status, "status").deployments
        assert (status.state, status.code, status.pid) == ("down", "crash-looping", None)
        later = sent(data, "ask more")
        assert "operator" in verb("runs", data=data).out
        assert verb("approve", asked, data=data).status == 0
    resting = verb("why", later, data=data).out
    assert f"next: waypost run --data {data}\n" in resting
    assert "`waypost reset orders`" in " ".join(resting.split())
    assert verb("reset", "orders", data=data).status == os.EX_UNAVAILABLE
    bad.unlink()
    (tmp_path / "good").touch()
    host = HostProcess(file, data=data, options=FAST)
    try:
        host.start(ready="orders is down: crash-looping")
        assert "its deployment, which is crash-looping" in verb("why", worked, data=data).out
        assert verb("reset", "nobody", data=data).status == os.EX_USAGE
        assert verb("reset", "orders", data=data).out == (
            "orders is given a process again; its live runs go on where they were\n"
        )
        host.wait_for("orders is running")
        again = verb("reset", "orders", data=data)
        assert (again.status, "isn't crash-looping" in again.err) == (1, True)
        host.wait_for(asked[:10], "completed")
        host.wait_for("waits for boss@example.com")
        assert verb("fsck", data=data).status == 0
    finally:
        host.stop()


@pytest.mark.torture
def test_where_the_workflow_says_so_runs_fail_at_the_latch_and_parked_ones_do_not(tmp_path: Path) -> None:
    """The setting of the file is what counts, from its declaration to the log."""
    file, bad = workflow(tmp_path, "fail")
    data = tmp_path / "data"
    with HostProcess(file, data=data, options=FAST) as host:
        asked = sent(data, "ask")
        host.wait_for("waits for boss@example.com")
        worked = sent(data, "work")
        host.wait_for("step work begins")
        latch(host, data, bad)
        failed = verb("why", worked, data=data).out
        assert "workflow-process crash-looped: 3 exits within 60 s" in " ".join(failed.split())
        assert "  failed" in failed
        assert "  parked" in verb("why", asked, data=data).out
        assert verb("fsck", data=data).status == 0
        assert verb("verify", data=data).status == 0

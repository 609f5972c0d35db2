"""``waypost run`` started by programs that leave their own settings behind: a service manager, a container's first."""

import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import pytest

from waypost.cli.client import Client
from waypost.host.answers.records import MailTaken, Runs
from waypost.host.errors import HostError
from waypost.testing.background import COMMAND
from waypost.testing.host_process import HostProcess
from waypost.testing.mortal import workers_of
from waypost.testing.patience import PATIENCE, eventually

pytestmark = pytest.mark.e2e

WORKFLOW = '''
from waypost import Mail, Workflow

plain = Workflow("plain", address="plain@example.com")

@plain.run
async def go(mail: Mail) -> str:
    """Nothing to do."""
    return mail.subject
'''
HIDDEN = """
from ipc.prctl import PR_GET_DUMPABLE, prctl
from waypost.cli.running import run
from waypost.host.errors import BadWorkflow
from waypost.host.processes.isolation import Asked
try:
    run(["nowhere.py"], None, quiet=True, allow_network=False, asked=Asked())
except BadWorkflow:
    print(prctl(PR_GET_DUMPABLE))
"""
DEAF = "import os,signal,sys;signal.signal(signal.SIGCHLD,signal.SIG_IGN);os.execv(sys.argv[1],sys.argv[1:])"
"""Become another program, as somebody whom the ends of children don't concern."""


def test_a_host_hides_before_it_does_anything_else() -> None:
    """It holds the signing key: nobody of the same user may look into its memory, and there is no core file."""
    shown = subprocess.run([sys.executable, "-c", HIDDEN], capture_output=True, text=True, check=True)
    assert shown.stdout == "0\n"


@pytest.mark.measured
def test_who_presses_ctrl_c_twice_means_it(tmp_path: Path) -> None:
    """A child that doesn't leave has its grace; nobody has to wait for that, and nothing is lost by not waiting."""
    (tmp_path / "plain.py").write_text(WORKFLOW)
    host = HostProcess(tmp_path / "plain.py", data=tmp_path / "data").start()
    (child,) = workers_of(host.pid)
    os.kill(child, signal.SIGSTOP)
    os.kill(host.pid, signal.SIGINT)
    host.wait_for("SIGINT: stopping")
    os.kill(host.pid, signal.SIGINT)
    assert host.wait() == 1, "the first signal alone ends with 0"
    until_gone(child)


def until_gone(pid: int) -> None:
    """Wait until a process has ended; it is stopped, so only a kill ends it. Raises AssertionError."""
    try:
        ended = os.pidfd_open(pid)
    except ProcessLookupError:
        return
    with os.fdopen(ended) as waiting:
        assert select.select([waiting], [], [], PATIENCE)[0], "it lives on"


def test_a_host_hears_of_its_childs_end_whoever_has_started_it(tmp_path: Path) -> None:
    """An ignored SIGCHLD is inherited, and by it the kernel throws away how a child ended.

    At Ctrl-C the deployment ends before its host: the child is asked to leave and its journal sealed, so what the host
    says last is true when it says it.
    """
    (tmp_path / "plain.py").write_text(WORKFLOW)
    command = (sys.executable, "-c", DEAF, *COMMAND)
    with HostProcess(tmp_path / "plain.py", data=tmp_path / "data", command=command) as host:
        (child,) = workers_of(host.pid)
        os.kill(child, signal.SIGKILL)
        assert "SIGKILL" in host.wait_for("plain is backing-off")
        host.wait_for("plain is running (generation 2)")
        (child,) = workers_of(host.pid)
        os.kill(host.pid, signal.SIGINT)
        host.wait_for("plain is stopping")
        host.wait_for("plain is stopped")
        assert not Path(f"/proc/{child}").exists()
        host.wait_for("stopped; the same command goes on where it was")
        assert host.wait() == 0


@pytest.mark.parametrize("gone", ["full", pytest.param("closed", marks=pytest.mark.torture)])
def test_a_host_whose_words_nobody_takes_runs_all_the_same(tmp_path: Path, gone: str) -> None:
    """A full disk below its log, or the end of who read it (`| head`): neither keeps it from its work, or its end."""
    (tmp_path / "plain.py").write_text(WORKFLOW)
    data = tmp_path / "data"
    if gone == "full":
        words = os.open("/dev/full", os.O_WRONLY)
    else:
        reading, words = os.pipe()
        os.close(reading)
    command = [*COMMAND, "run", str(tmp_path / "plain.py"), "--data", str(data)]
    host = subprocess.Popen(command, stdout=words, stderr=words)
    os.close(words)
    try:
        client = Client(data / "host.sock")
        eventually(lambda: accepted(client), "it takes a mail")
        eventually(lambda: client.get(Runs, "runs").runs[0].state == "completed", "its run has ended")
        host.send_signal(signal.SIGTERM)
        assert host.wait(PATIENCE) == 0
    finally:
        host.kill()
        host.wait()


def accepted(client: Client) -> bool:
    """Whether the host has accepted a mail: its words can't tell that it is there."""
    mail = b"From: ann@example.com\r\nSubject: said\r\n\r\nhello\r\n"
    with suppress(HostError):
        client.post(MailTaken, "mail", "plain@example.com", body=mail, content_type="message/rfc822")
        return True
    return False

"""What `waypost why` tells people to run is pasted into a shell, and does what it says; nothing in it is changed."""

import os
import pty
import re
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from waypost.cli.client import Client
from waypost.host.answers.records import Status
from waypost.testing.background import COMMAND, Background
from waypost.testing.host_process import HostProcess
from waypost.testing.patience import PATIENCE

pytestmark = [pytest.mark.e2e, pytest.mark.torture]

FAST = tuple(
    word
    for bound in ("backoff_first=0.02", "backoff_cap=0.02", "kill_grace=0.3", "drain_stop=0.5")
    for word in ("--limit", bound)
)
WORKFLOW = """
import os, signal
from pathlib import Path
from waypost import Mail, Workflow, approve, receive, signal as wait_for

if Path({bad!r}).exists():
    os.kill(os.getpid(), signal.SIGKILL)

orders = Workflow("orders", address="orders@example.com", mail_to=["boss@example.com"])

@orders.step
def size(mail: Mail) -> int:
    return len(mail.text)

@orders.step
def other(mail: Mail) -> int:
    return len(mail.text)

@orders.run
async def order(mail: Mail) -> str:
    if mail.subject == "ask":
        return str((await approve("Yes?", who="boss@example.com", deadline="3d")).approved)
    if mail.subject == "signal":
        return str(await wait_for("it's paid"))
    if mail.subject == "change":
        await size(mail)
    return (await receive()).text.strip()
"""


class Shell:
    """A folder with a workflow, its data, and a terminal in it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.file, self.bad = folder, folder / "orders.py", folder / "bad"
        self.write(WORKFLOW)
        (folder / "payload.json").write_text('{"amount": 420}')

    def write(self, text: str) -> None:
        """The workflow's file."""
        self.file.write_text(text.format(bad=str(self.bad)))

    def host(self) -> HostProcess:
        """Its host, not started."""
        return HostProcess(self.file, data=self.folder / ".waypost", options=(*FAST, "--isolation", "none"))

    def run(self, line: str, *, status: int = 0) -> str:
        """Paste a line; what it said. Whoever is asked says yes."""
        waypost = shlex.join(COMMAND)
        ours, theirs = pty.openpty()
        os.write(ours, b"y\n")
        try:
            done = subprocess.run(
                ["/bin/sh", "-c", f'waypost() {{ {waypost} "$@"; }}\n{line}'],
                cwd=self.folder,
                stdin=theirs,
                capture_output=True,
                timeout=PATIENCE,
                check=False,
            )
        finally:
            os.close(ours)
            os.close(theirs)
        said = done.stdout.decode()
        assert done.returncode == status, f"{line}\n{said}\n{done.stderr.decode()}"
        return said

    def told(self, what: str = "") -> tuple[str, str]:
        """What `waypost why` says, on one line, and the command that it names first."""
        said = self.run(f"waypost why {what}")
        assert all(len(line) <= 80 for line in said.splitlines() if not line.startswith(("  next: ", "    or: ")))
        named = re.findall(r"^  next: (.*)$", said, re.MULTILINE)
        return " ".join(said.split()), named[0] if named else ""

    def mail(self, host: HostProcess, subject: str, identity: str = "") -> str:
        """Send one; its run."""
        head = f"From: ann@example.com\r\nSubject: {subject}\r\nMessage-ID: <{identity or subject}@x>\r\n\r\n"
        return host.send("orders@example.com", f"{head}hello {identity}\r\n".encode())

    def reply(self, to: str) -> None:
        """The file that a command reads."""
        head = f"From: ann@example.com\r\nSubject: re\r\nMessage-ID: <re-{to}@x>\r\nIn-Reply-To: <{to}@x>\r\n\r\n"
        (self.folder / "reply.eml").write_bytes(f"{head}fine\r\n".encode())


@pytest.fixture
def shell(tmp_path: Path) -> Shell:
    """A folder of its own."""
    return Shell(tmp_path)


def test_what_a_run_waits_for_comes_when_its_command_is_pasted(shell: Shell) -> None:
    """A decision, a signal, a mail; and of a run that has ended, its history."""
    with shell.host() as host:
        asked = shell.mail(host, "ask")
        host.wait_for("waits for boss@example.com")
        said, line = shell.told(asked)
        assert "a decision of boss@example.com (Yes?)" in said
        shell.run(line)
        host.wait_for('completed: "True"')

        signalled = shell.mail(host, "signal")
        host.wait_for("waits for signal it's paid")
        said, line = shell.told(signalled[:8].rpartition("_")[0])
        assert 'the signal "it\'s paid"' in said
        shell.run(line)
        host.wait_for("completed", "420")

        mailed = shell.mail(host, "mail")
        host.wait_for("waits for the next mail")
        shell.reply("mail")
        shell.run(shell.told(mailed)[1])
        host.wait_for('completed: "fine"')
        said, line = shell.told(mailed)
        assert "nothing, as it has completed" in said
        assert mailed in shell.run(line)


def test_what_stopped_goes_on_when_its_commands_are_pasted(shell: Shell) -> None:
    """A drained deployment, one that crash-loops, one without a host, and a run whose code has changed."""
    with shell.host() as host:
        run = shell.mail(host, "change")
        host.wait_for("waits for the next mail")
        shell.run("waypost drain orders")
        assert shell.told()[1] == shell.told("orders")[1] == shell.told(run)[1] == "waypost resume orders"
        shell.run(shell.told()[1])
        host.wait_for("orders is running")

        shell.bad.touch()
        os.kill(pid_of(shell), signal.SIGKILL)
        host.wait_for("orders is down", "crash-looping")
        said, line = shell.told(run)
        assert "which is crash-looping" in said
        shell.bad.unlink()
        shell.run(line)
        host.wait_for("orders is running")

        shell.write(WORKFLOW.replace("await size(mail)", "await other(mail)"))
        shell.run(f"waypost deploy {shlex.quote(str(shell.file))}")
        shell.reply("change")
        shell.run("waypost send orders@example.com < reply.eml")
        host.wait_for("paused (code-changed)")
        said, line = shell.told(run)
        assert line.startswith("waypost deploy ")
        shell.write(WORKFLOW)
        shell.run(line)
        shell.run(f"waypost resume {run}")
        host.wait_for('completed: "fine"')
    said, line = shell.told("orders")
    assert ("no host runs it" in said, line) == (True, "waypost run")
    words = [*shlex.split(line)[1:], "--isolation", "none"]
    with Background(*words, cwd=shell.folder) as again:
        again.wait_for("orders is running")
        assert "1 running" in shell.told()[0]
        again.signal(signal.SIGTERM)
        assert again.wait() == 0


def test_a_mail_on_hold_is_let_in_as_it_is_said(shell: Shell) -> None:
    """By what is said of each; what nobody has is refused in words."""
    with shell.host() as host:
        shell.mail(host, "ask", "one")
        head = b"From: bob@example.com\r\nSubject: ask\r\nMessage-ID: <one@x>\r\n\r\nother\r\n"
        host.verb("send", "orders@example.com", stdin=head)
        said, line = shell.told("orders/2")
        assert "it has the message id of mail orders/1" in said
        assert line == "waypost queue release orders/2"
        shell.run(line)
        shell.run("waypost why orders/2", status=1)
        shell.run("waypost why orders/77", status=1)
        shell.run("waypost why nobody", status=64)


def pid_of(shell: Shell) -> int:
    """Of the workflow's process."""
    (status,) = Client(shell.folder / ".waypost" / "host.sock").get(Status, "status").deployments
    assert status.pid is not None
    return status.pid

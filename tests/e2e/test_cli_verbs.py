"""The command line as a user has it: real processes, real files, and nothing but what they print."""

import json
import os
import signal
import subprocess
from pathlib import Path

import pytest

from substrate.signing.keys import SigningKey
from waypost.testing.background import COMMAND
from waypost.testing.host_here import HostHere
from waypost.testing.host_process import HostProcess, waypost
from waypost.testing.patience import eventually
from waypost.testing.verbs import verb

pytestmark = pytest.mark.e2e

WORKFLOW = '''
from waypost import Mail, Workflow, approve

asking = Workflow("asking", address="asking@example.com", mail_to=["boss@example.com"])

@asking.step
def size(mail: Mail) -> int:
    """Count."""
    return len(mail.text)

@asking.run
async def ask(mail: Mail) -> str:
    """Ask the boss."""
    found = await size(mail)
    verdict = await approve(f"{found} characters?", who="boss@example.com", deadline="3d")
    return f"{'yes' if verdict.approved else 'no'}, {verdict.text}"
'''


UNACCEPTABLE = {
    b"": "empty",
    b"\x89PNG\r\n\x1a\n" + bytes(range(256)): "not a mail",
    b"just some text\n": "not a mail",
}
READING = {"runs": ("--json",), "show": ("run_1",), "log": ("run_1",)}


def mail(name: str) -> bytes:
    return f"From: ann@example.com\r\nSubject: {name}\r\nMessage-ID: <{name}@x>\r\n\r\nhello\r\n".encode()


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A workflow file; a host beside it keeps its data in ``.waypost`` there."""
    made = tmp_path / "asking.py"
    made.write_text(WORKFLOW)
    return made


def test_every_verb_with_and_without_a_host_also_one_that_was_killed(file: Path) -> None:
    """What is read is the same either way; what was accepted is there after the host has gone, and goes on at once."""
    data = file.parent / ".waypost"
    below = file.parent / "below"
    below.mkdir()
    with HostProcess(file, data=data) as host:
        run = host.send("asking@example.com", mail("one"))
        host.wait_for("waits for boss@example.com")
        why = verb("why", run, cwd=below)  # found from a folder below, without --data
        assert f"waypost approve {run}" in why.out
        isolated = next(line for line in host.said if line.startswith("waypost: isolation "))
        assert isolated.removeprefix("waypost: ") in " ".join(why.out.split()), "what was said at start holds"
        eventually(lambda: "1 run asks something of people" in verb("why", data=data).out, "the host has counted it")
        hosted = {name: verb(name, *on, data=data).out for name, on in READING.items()}
        assert json.loads(verb("verify", "--json", data=data).out)["deployments"][0]["sound"] is True

        second = waypost("run", str(file), data=data)
        assert (second.returncode, f"pid {host.pid}" in second.stderr) == (1, True)
        not_accepted(data)
        host.kill()

    assert (data / "host.sock").exists(), "its socket and its lock are nobody's"
    not_accepted(data)
    assert [path for path in (data / "spool").rglob("*") if path.is_file()] == []
    assert {name: verb(name, *on, data=data).out for name, on in READING.items()} == hosted
    assert "no host runs" in verb("why", run, cwd=below).out
    assert "no host runs here" in verb("runs", data=data).err
    assert "sound" in verb("verify", data=data).out
    refused = verb("approve", run, data=data)
    assert (refused.status, "waypost run" in refused.err) == (69, True)
    sent = verb("send", "asking@example.com", data=data, stdin=mail("spooled"))
    assert sent.status == 0
    assert len(list((data / "spool" / "asking" / "new").iterdir())) == 1
    goes_on_where_it_was(file, run, data)
    assert list((data / "spool" / "asking" / "new").iterdir()) == []


def not_accepted(data: Path) -> None:
    """No mail, an empty one, an address that nobody has: with and without a host in the same words; none is kept."""
    runs = verb("runs", "--json", data=data).out
    assert verb("runs", "asking", "--state", "live", "--json", data=data).out == runs
    assert json.loads(verb("runs", "--state", "failed", "--state", "completed", "--json", data=data).out)["runs"] == []
    for words, status, says in ((("--state", "lost"), 64, "'lost'"), (("asknig",), 64, "asking")):
        refused = verb("runs", *words, data=data)
        assert (refused.status, says in refused.err) == (status, True), refused
    for raw, says in UNACCEPTABLE.items():
        refused = verb("send", "asking@example.com", data=data, stdin=raw)
        assert (refused.status, says in refused.err, ".eml" in refused.err) == (65, True, True), refused
    nobody = verb("send", "nobody@example.com", data=data, stdin=mail("x"))
    assert nobody.status == 67
    assert "nobody@example.com" in nobody.err
    assert "asking@example.com" in nobody.err
    assert verb("runs", "--json", data=data).out == runs


def goes_on_where_it_was(file: Path, run: str, data: Path) -> None:
    """The same command takes in what was sent meanwhile, and answers; code that does something else pauses the run.

    It neither fails nor loops: the difference is shown, and with the old code back the run goes on.
    """
    file.write_text(WORKFLOW.replace("found = await size(mail)", "found = 6"))
    with HostHere(file, data=data) as host:
        host.wait_for("waits for boss@example.com")
        assert any("mail 2 from ann@example.com: spooled" in line for line in host.said)
        again = verb("send", "asking@example.com", data=data, stdin=mail("spooled"))
        assert "already there" in again.out
        assert "a Message-ID of its own" in again.err
        assert verb("approve", run, "--comment", "for once", data=data).status == 0
        host.wait_for("paused (code-changed)")
        why = verb("why", run, data=data)
        assert f"or: waypost resume {run}" in why.out
        assert "size" in why.out
    file.write_text(WORKFLOW)
    with HostHere(file, data=data) as host:
        done = verb("resume", run, data=data)
        assert (done.status, done.out) == (0, f"{run} goes on\n")
        host.wait_for('completed: "yes, for once"')
        assert verb("resume", run, data=data).status == verb("reject", run, data=data).status == 1


@pytest.mark.measured
def test_a_quiet_host_stops_in_order_and_leaves_a_history_for_plain_git(file: Path, tmp_path: Path) -> None:
    """SIGTERM as well as Ctrl-C; a clone is verified anywhere, with the key and with another one."""
    data = file.parent / "data"
    host = HostProcess(file, data=data, options=("--quiet",)).start(ready="mail for")
    run = host.send("asking@example.com", mail("one"))
    assert verb("approve", run, "--call", "r1#3", data=data).status in {0, 1}  # it may not have come that far
    os.kill(host.pid, signal.SIGTERM)
    host.wait_for("SIGTERM", "stopping")
    host.wait_for("stopped; the same command goes on where it was")
    assert host.wait() == 0
    assert not any("run_" in line for line in host.said)
    assert not (data / "host.sock").exists()

    repository, clone = data / "repos" / "asking.git", tmp_path / "clone"
    assert subprocess.run(["git", "-C", repository, "fsck", "--strict"], capture_output=True, check=False).stderr == b""
    # The branch is not called main: a clone must be told.
    subprocess.run(["git", "clone", "-q", "-b", "log", repository, clone], check=True, capture_output=True)
    pinned = verb("verify", str(clone), "--key", str(data / "keys" / "host.ed25519.pub"))
    assert (pinned.status, "asking: sound" in pinned.out, "(pinned)" in pinned.out) == (0, True, True)
    assert "signer not pinned" in verb("verify", str(clone)).out
    SigningKey.load_or_create(tmp_path / "stranger")
    wrong = verb("verify", str(clone), "--key", str(tmp_path / "stranger.pub"))
    assert (wrong.status, "NOT SOUND" in wrong.out) == (1, True)


def test_help_is_quick_because_it_imports_little() -> None:
    """No timing here: what costs time is what must not be imported."""
    code = (
        "import sys; from waypost.cli.command import run; run(['--help'])\n"
        "heavy = {'rich', 'starlette', 'uvicorn', 'pygit2', 'pykka', 'asyncio', 'msgspec', 'http.client', 'ssl'}\n"
        "sys.exit(f'imported {sorted(heavy & sys.modules.keys())}' if heavy & sys.modules.keys() else 0)"
    )
    done = subprocess.run([COMMAND[0], "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "approve" in done.stdout

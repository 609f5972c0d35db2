"""docs/writing.md: its workflow can be deployed, its commands do what it says, and it leaves nothing out."""

import inspect
import json
import re
from pathlib import Path

import pytest

import waypost
from waypost.testing.host_here import HostHere
from waypost.testing.verbs import verb

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "writing.md").read_text(encoding="utf-8")
CODE = re.findall(r"```python\n(.*?)```", PAGE, re.DOTALL)
COMMANDS, FAMILY = (
    re.findall(r"^waypost (.*?)(?:   .*)?$", part, re.MULTILINE) for part in PAGE.split("## Child runs", 1)
)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """The workflow of the page."""
    (tmp_path / "buyer.py").write_text(CODE[0])
    return tmp_path / "buyer.py"


def test_every_public_name_is_on_the_page() -> None:
    """What isn't there is found by nobody but who reads the code."""
    named = set(re.findall(r"\w+", PAGE))
    assert set(waypost.__all__) - named == set()


def test_every_setting_of_a_workflow_and_of_a_step_is_on_the_page() -> None:
    """As above; the ones of a cron have a page of their own."""
    settings = {*inspect.signature(waypost.Workflow).parameters, *inspect.signature(waypost.Workflow.step).parameters}
    plain = {"self", "name", "function", "later"}
    assert {name for name in settings - plain if f"`{name}=`" not in PAGE} == set()


@pytest.mark.e2e
def test_the_commands_of_the_page_do_what_it_says(file: Path) -> None:
    """From the deploy to the end of a run: approval, secret, signal, timer, mail."""
    deploy, check, *_, show = COMMANDS
    approve, signal = (next(each for each in COMMANDS if each.startswith(name)) for name in ("approve", "signal"))
    (payload,) = re.findall(r"payload.json +(\{.*\})", PAGE)
    data = file.parent / ".waypost"
    assert verb(*deploy.split(), cwd=file.parent).status == 0
    (file.parent / "token").write_text("a token for the shop")
    (file.parent / "token").chmod(0o600)
    (data / "credentials.toml").write_text(f'[credentials.shop]\nfile = "{file.parent / "token"}"\n')
    assert verb(*check.split(), cwd=file.parent).status == 0
    mail = b"From: ann@example.com\r\nSubject: A desk\r\n\r\ndesk 120\r\n"
    with HostHere(file, data=data) as host:
        run = host.send("buyer@example.com", mail)
        host.wait_for("waits for boss@example.com")
        assert verb(*approve.split(), data=data).status == 0
        host.wait_for("waits for signal paid")
        assert verb(*signal.split("<")[0].split(), data=data, stdin=payload.encode()).status == 0
        host.wait_for('completed: "done"')
        timeline = verb(*show.split(), data=data).out
        last = verb("log", run, data=data).out
    assert run in timeline
    assert "token of 20 letters" in timeline
    assert [json.loads(line)["type"] for line in last.splitlines()].count("MailSent") == 2


@pytest.mark.e2e
def test_the_children_of_the_page_are_runs_of_their_own(tmp_path: Path) -> None:
    """One completes, one fails and its parent goes on, one waits for a person."""
    file, data = tmp_path / "travel.py", tmp_path / ".waypost"
    file.write_text(CODE[1])
    _, send, runs, why, approve, show = FAMILY
    (text,) = re.findall(r"trip.eml +(.*)", PAGE)
    with HostHere(file, data=data) as host:
        run = host.send(send.split()[1], f"From: ann@example.com\r\nSubject: A trip\r\n\r\n{text}\r\n".encode())
        host.wait_for("run_4", "waits for boss@example.com")
        assert verb(*runs.split(), data=data).out.count("\nrun_") == 4
        assert "its child run (leg, as run_4_" in verb(*why.split(), data=data).out
        assert verb(*approve.split(), data=data).status == 0
        host.wait_for(run[:10], "completed")
        assert "Oslo for 80, no such city (LookupError), Kathmandu for 130" in verb(*show.split(), data=data).out

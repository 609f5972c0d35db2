"""Credentials on a host with real actors and a real child: the whole way, a rotation, a refusal, and no trace."""

import json
import logging
import os
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from actors.messages import Forward
from substrate.granting import ChangeGrants
from substrate.messages import Done
from waypost.cli.client import Client
from waypost.host.answers import EventsPage, MailTaken, RunShown
from waypost.host.app import Config, Host
from waypost.host.credential_answers import CredentialsReloaded, CredentialsShown
from waypost.host.describe import describe_all
from waypost.host.messages import Deployments
from waypost.model.grants import granted
from waypost.model.limits import Limits
from waypost.shell import request
from waypost.testing.host import children_of
from waypost.testing.leaks import found_in, of_processes, on_disk

FILE, ENV, COMMAND = "planted-file-2f8a", 'planted "env" 91cc', "planted-command-77d0"
ROTATED = "planted-rotated-c31e"
PLANTED = (FILE, ENV, COMMAND, ROTATED)
WORKFLOW = '''
import logging, os, sys
from waypost import Mail, StepError, Workflow, progress, secret, sources

flow = Workflow("trusted", address="trusted@example.com", env=["PLANTED_TOKEN"], runs="message")

@flow.step
def uses() -> list[int]:
    """Reads all three."""
    return [len(secret(handle).reveal()) for handle in ("by-file", "by-env", "by-command")]

@flow.step
def asks_models() -> list[str]:
    """Uses the sources."""
    return [f"{each.id} {len(each.secret().reveal())}" for each in sources()]

@flow.step
def careless() -> str:
    """Does what people do when they look for a mistake."""
    value = secret("by-file").reveal()
    logging.warning("logging in with %s, %r", value, secret("by-file"))
    print("token:", value, flush=True)
    sys.stderr.write(f"{value}\\n")
    progress(f"trying {value}")
    raise RuntimeError(f"401 for token {value}, {secret('by-env').reveal()}")

@flow.step
def gives_away() -> dict[str, str]:
    """Returns it."""
    return {"token": secret("by-env").reveal()}

@flow.step
def not_granted() -> str:
    """Asks for what another step may read."""
    return secret("by-file").reveal()

@flow.step
def environment() -> list[str]:
    """What it may see of the variables."""
    return sorted(name for name in os.environ if "PLANTED" in name)

@flow.run
async def run(mail: Mail) -> list[str]:
    """One step, named by the mail."""
    try:
        return [str(await globals()[mail.text.strip()]())]
    except StepError as error:
        return [error.type, error.reason]
'''
LISTED = """
[credentials.by-file]
file = "{folder}/token"
[credentials.by-env]
env = "PLANTED_TOKEN"
[credentials.by-command]
command = ["sh", "-c", "echo {command}"]
[[sources]]
id = "main"
provider = "p"
model = "m"
credential = "by-command"
"""
GRANTS = {
    "uses": ("by-file", "by-env", "by-command"),
    "asks_models": ("by-command",),
    "careless": ("by-file", "by-env"),
    "gives_away": ("by-env",),
}


class Running:
    """A host in this process, with three planted secrets."""

    def __init__(self, folder: Path, *, listed: str = LISTED) -> None:
        folder.joinpath("trusted.py").write_text(WORKFLOW)
        folder.joinpath("token").write_text(FILE + "\n")
        folder.joinpath("token").chmod(0o600)
        self.folder, self.data = folder, folder / "data"
        self.data.mkdir(mode=0o700)
        # The command is written in pieces: what the file says isn't what the command prints.
        words = COMMAND.replace("-", "'-'")
        self.data.joinpath("credentials.toml").write_text(listed.format(folder=folder, command=words))
        self.lines: SimpleQueue[str] = SimpleQueue()
        self.said: list[str] = []
        self.answers: list[Any] = []
        self.sent = 0
        environment = {**os.environ, "PLANTED_TOKEN": ENV}
        self.host = Host.start(
            Config(
                data=self.data,
                described=describe_all([folder / "trusted.py"], timeout=30, environment=environment),
                command=("test",),
                environment=environment,
                limits=Limits(kill_grace=1.0, backoff_first=0.05, backoff_cap=0.1),
                say=lambda _at, text: self.lines.put(text),
            )
        )
        self.client = Client(self.host.data.socket)

    def grant(self) -> None:
        """As an operator does."""
        self.wait_for("is running")
        (deployed,) = request(self.host.root, Deployments(), timeout=30)
        for step, handles in GRANTS.items():
            what = ChangeGrants(step=step, by="ann", give=granted(secrets=handles))
            assert isinstance(request(deployed.supervisor, Forward(what), timeout=30), Done)

    def wait_for(self, text: str) -> str:
        """The next line that holds the text."""
        while True:
            line = self.lines.get(timeout=30)
            self.said.append(line)
            if text in line:
                return line

    def send(self, step: str) -> str:
        """A mail that wants this step; the run."""
        self.sent += 1
        raw = f"From: ann@example.com\r\nMessage-ID: <{self.sent}@x>\r\nSubject: s\r\n\r\n{step}\r\n".encode()
        taken = self.client.post(MailTaken, "mail", "trusted@example.com", body=raw, content_type="message/rfc822")
        return taken.run

    def result(self, step: str) -> list[str]:
        """What a run of this step returns."""
        run = self.send(step)
        self.wait_for("completed")
        page = self.client.get(EventsPage, "runs", run, "events", after=0)
        self.answers += [page, self.client.get(RunShown, "runs", run)]
        events = [json.loads(bytes(raw)) for raw in page.events]
        return list(events[-1]["result"]["inline"])


@pytest.fixture
def running(tmp_path: Path) -> Iterator[Running]:
    """A host of its own for each test."""
    made = Running(tmp_path)
    yield made
    made.host.close()


def test_secrets_reach_the_steps_that_may_read_them_and_leave_no_trace(
    running: Running, caplog: pytest.LogCaptureFixture
) -> None:
    """Whatever a step does with them by mistake: repositories, logs, processes and answers are searched.

    The environment of the host itself has what was put there; its child's hasn't.
    """
    caplog.set_level(logging.DEBUG)
    running.grant()
    assert running.result("uses") == [str([len(FILE), len(ENV), len(COMMAND)])]
    assert running.result("asks_models") == [f"['main {len(COMMAND)}']"]
    assert running.result("environment") == ["[]"]
    kind, message = running.result("careless")
    assert (kind, message) == ("RuntimeError", "401 for token [secret by-file], [secret by-env]")
    kind, message = running.result("gives_away")
    assert (kind, "holds the secret by-env" in message) == ("ValueNotStorable", True)
    kind, message = running.result("not_granted")
    assert (kind, "waypost grants set trusted not_granted --secret by-file" in message) == ("SecretRefused", True)

    running.folder.joinpath("token").write_text(ROTATED)
    reloaded = running.client.post(CredentialsReloaded, "credentials", "reload")
    assert [(each.deployment, each.refused) for each in reloaded.delivered] == [("trusted", "")]
    assert running.result("uses") == [str([len(ROTATED), len(ENV), len(COMMAND)])]
    shown = running.client.get(CredentialsShown, "credentials")
    assert [(each.handle, each.kind, each.state, each.used_by) for each in shown.credentials] == [
        ("by-file", "file", "ok", ("trusted",)),
        ("by-env", "env", "ok", ("trusted",)),
        ("by-command", "command", "ok", ("trusted",)),
    ]
    tried = running.client.post(CredentialsShown, "credentials", "check")
    assert {each.state for each in tried.credentials} == {"ok"}

    texts = of_processes(*children_of(os.getpid()))
    texts |= {"answers": repr((running.answers, shown, tried, reloaded)).encode(), "log": caplog.text.encode()}
    texts["timeline"] = "\n".join(running.said).encode()
    running.host.close()
    texts |= on_disk(running.data)
    assert found_in(texts, PLANTED) == []
    assert b"token: [secret by-file]" in texts["logs/trusted.log"]

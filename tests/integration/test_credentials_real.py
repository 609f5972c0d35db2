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
from waypost.cli.client import Client, Said
from waypost.host.answers.credentials import CredentialsReloaded, CredentialsShown
from waypost.host.answers.records import DeploymentDraining, DeploymentResumed, EventsPage, MailTaken, RunShown
from waypost.host.answers.why import DeploymentWhy, Why
from waypost.host.app import Config, Host
from waypost.host.code.describe import describe_all
from waypost.host.credentials.errors import BadCredentials
from waypost.host.messages import Deployments
from waypost.model.grants import granted
from waypost.model.limits import Limits
from waypost.shell import request
from waypost.testing.child_stage import alive
from waypost.testing.host_process import HostProcess
from waypost.testing.killing import children_of
from waypost.testing.leaks import found_in, of_processes, on_disk
from waypost.testing.patience import eventually

FILE, ENV, COMMAND = "planted-file-2f8a", 'planted "env" 91cc', "planted-command-77d0"
ROTATED = "planted-rotated-c31e"
PLANTED = (FILE, ENV, COMMAND, ROTATED)
WORKFLOW = (Path(__file__).resolve().parents[1] / "e2e" / "flows" / "trusted.py").read_text(encoding="utf-8")
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
    "twice": ("by-file",),
    "hides": ("by-file",),
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

    def why(self, run: str) -> str:
        """What a run waits on, as an operator is told."""
        return repr(self.client.get(Why, "runs", run, "why"))

    def deployment_why(self) -> str:
        """What the deployment waits on."""
        return repr(self.client.get(DeploymentWhy, "deployments", "trusted", "why"))

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

    for step, told in (
        ("asks", "it holds the secret by-file"),
        ("mails", "SendRefused"),
        ("addresses", "it holds the secret by-file"),
        ("encloses", "it holds the secret by-file"),
        ("ends", "ValueNotStorable"),
        ("ends-large", "ValueNotStorable"),
    ):
        running.send(step)
        assert told in running.wait_for("failed")
    running.send("quits")
    assert "the token [secret by-file] is refused" in running.wait_for("cancel was asked for")

    running.folder.joinpath("token").write_text(ROTATED)
    reloaded = running.client.post(CredentialsReloaded, "credentials", "reload")
    assert [(each.deployment, each.state) for each in reloaded.delivered] == [("trusted", "delivered")]
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


# --- what goes wrong -----------------------------------------------------------------------------------------------


@pytest.mark.torture
def test_a_credential_that_is_away_defers_a_run_which_begins_when_it_is_back(running: Running) -> None:
    """The mail is accepted and waits; `why` names the handle and what failed, never what a file or command said."""
    running.folder.joinpath("token").rename(running.folder / "away")
    running.grant()
    run = running.send("uses")
    eventually(lambda: "by-file" in running.why(run), "the run says what it waits for")
    assert "No such file" in running.why(run)
    running.folder.joinpath("away").rename(running.folder / "token")
    running.wait_for("completed")


@pytest.mark.torture
def test_a_credential_that_isnt_listed_fails_the_run_durably_and_mail_goes_on_when_it_is(running: Running) -> None:
    """No child ever sees such a run; its history says why it failed."""
    file = running.data / "credentials.toml"
    whole = file.read_text()
    file.write_text(whole.replace("by-file", "another"))
    running.client.post(CredentialsReloaded, "credentials", "reload")
    running.grant()
    run = running.send("uses")
    running.wait_for("failed")
    page = running.client.get(EventsPage, "runs", run, "events", after=0)
    events = [json.loads(bytes(raw)) for raw in page.events]
    assert [event["type"] for event in events] == ["RunStarted", "RunFailed"]
    assert "by-file isn't listed in credentials.toml" in events[-1]["error"]["message"]
    file.write_text(whole)
    running.client.post(CredentialsReloaded, "credentials", "reload")
    eventually(lambda: "by-file" not in running.deployment_why(), "the keeper was asked again")
    running.send("uses")
    running.wait_for("completed")


@pytest.mark.torture
def test_a_reload_says_to_whom_it_could_deliver_nothing_and_a_bad_file_changes_nothing(running: Running) -> None:
    """A held deployment has no process; a slip of the editor is told with its line."""
    running.grant()
    assert running.result("uses")
    running.client.post(DeploymentDraining, "deployments", "trusted", "drain")
    running.wait_for("is held")
    done = running.client.post(CredentialsReloaded, "credentials", "reload", deployment="trusted")
    (held,) = done.delivered
    assert (held.deployment, held.state, "it is held" in held.why) == ("trusted", "refused", True)
    running.client.post(DeploymentResumed, "deployments", "trusted", "resume")
    file = running.data / "credentials.toml"
    whole = file.read_text()
    file.write_text(whole + "\n[credentials.more]\nenv = 3\n")
    with pytest.raises(Said) as said:
        running.client.post(CredentialsReloaded, "credentials", "reload")
    assert (said.value.code, f"line {whole.count(chr(10)) + 3}" in said.value.message) == ("credentials", True)
    assert running.result("uses")
    with pytest.raises(Said) as said:
        running.client.post(CredentialsReloaded, "credentials", "reload", deployment="none")
    assert said.value.code == "no-such-deployment"


@pytest.mark.torture
def test_a_host_doesnt_start_on_a_file_that_it_doesnt_understand(tmp_path: Path) -> None:
    """Whoever starts it is there to mend it; nothing has begun."""
    with pytest.raises(BadCredentials, match="line 2"):
        Running(tmp_path, listed="\n[secrets]\n")


@pytest.mark.torture
def test_a_step_that_runs_sees_the_new_value_when_it_asks_again(running: Running) -> None:
    """What was sent before another run's start is there when that run is: the second run is only for that."""
    os.mkfifo(running.folder / "gate")
    running.grant()
    run = running.send(f"twice {running.folder / 'gate'}")
    running.wait_for("step twice")
    with (running.folder / "gate").open("w") as gate:  # opens when the step has read the first value
        running.folder.joinpath("token").write_text(ROTATED)
        running.client.post(CredentialsReloaded, "credentials", "reload", deployment="trusted")
        assert running.result("environment")
        gate.write("go on\n")
    assert str([len(FILE), len(ROTATED)]) in running.wait_for("completed")
    assert running.client.get(RunShown, "runs", run).state == "completed"


@pytest.mark.torture
def test_a_value_is_read_again_by_itself_when_its_time_has_come(tmp_path: Path) -> None:
    """A token that another program renews: nobody has to say so."""
    running = Running(tmp_path, listed=LISTED.replace('token"', 'token"\nrefresh = 1'))
    running.grant()
    assert running.result("uses") == [str([len(FILE), len(ENV), len(COMMAND)])]
    tmp_path.joinpath("token").write_text(ROTATED)
    eventually(lambda: str(len(ROTATED)) in running.result("uses")[0], "a step reads the new value")
    running.host.close()


HANGING = """
[credentials.by-file]
command = ["sh", "-c", "echo $$ > {folder}/pid.new; mv {folder}/pid.new {folder}/pid; sleep 1000"]
[credentials.by-env]
env = "PLANTED_TOKEN"
[credentials.by-command]
command = ["sh", "-c", "echo {command}"]
"""


@pytest.mark.torture
def test_a_command_that_hangs_holds_up_nobody_else_and_ends_with_a_host_that_is_killed(tmp_path: Path) -> None:
    """Another deployment's mail runs meanwhile; and no prompt for a password waits on for ever behind a dead host."""
    data = tmp_path / "data"
    data.mkdir(mode=0o700)
    data.joinpath("credentials.toml").write_text(HANGING.format(folder=tmp_path, command="x"))
    for name in ("trusted", "other"):
        text = WORKFLOW.replace('"trusted', f'"{name}')
        tmp_path.joinpath(f"{name}.py").write_text(text)
    host = HostProcess(tmp_path / "trusted.py", tmp_path / "other.py", data=data, env={"PLANTED_TOKEN": ENV}).start()
    grants = [["trusted", "uses", "--secret", "by-file"], ["other", "gives_away", "--secret", "by-env"]]
    for words in grants:
        assert host.verb("grants", "set", *words).returncode == 0
    host.send("trusted@example.com", b"From: ann@example.com\r\nMessage-ID: <1@x>\r\n\r\nuses\r\n")
    eventually((tmp_path / "pid").exists, "the command hangs")
    host.send("other@example.com", b"From: ann@example.com\r\nMessage-ID: <2@x>\r\n\r\ngives_away\r\n")
    assert "ValueNotStorable" in host.wait_for("completed")
    host.kill()
    pid = int((tmp_path / "pid").read_text())
    eventually(lambda: not alive(pid), "the command has ended with its host")

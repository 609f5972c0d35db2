"""Deployments that sleep, made by the hundred: real repositories and code, each with one parked run, and their notes.

What a host leaves behind when they have fallen asleep, made without a process for each; they wake as any other.
"""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from ipc.secret import Secret
from substrate.effects import To
from substrate.files.disk import Disk
from substrate.messages import (
    Append,
    BeginGeneration,
    Claim,
    Deploy,
    Done,
    Enqueue,
    Operation,
    Stage,
    Start,
    Submit,
    TakeUp,
    WorkflowProcess,
)
from substrate.settings import Settings, message_ids
from substrate.signing.keys import SigningKey
from substrate.writer import Writer
from waypost.acting import Reply
from waypost.host.clock import read
from waypost.host.code.deploying import keys, materialised
from waypost.host.code.describe import ask, described
from waypost.host.code.notes import note
from waypost.host.datadir.directory import DataDir, lay_out, prepare
from waypost.host.described import Described, Sleep
from waypost.model import events as ev
from waypost.model.declaration import Description
from waypost.model.ids import CallId, Generation, RunId
from waypost.model.limits import DEFAULT

FLOW = """\
from waypost import Mail, Workflow, receive

flow = Workflow("NAME", address="NAME@example.com")


@flow.step
def note(text: str) -> str:
    return text


@flow.run
async def rest(mail: Mail) -> str:
    await note(mail.subject)
    return (await receive()).text
"""
_TOKEN = 1


class Hasty(Disk):
    """Waits for no disk: nobody will cut the power while these are made."""

    def sync_data(self, descriptor: int, path: str, size: int) -> None:
        """As if it were durable."""

    def sync(self, descriptor: int, path: str, size: int) -> None:
        """As if it were durable."""

    def sync_directory(self, path: str) -> None:
        """As if it were durable."""


def name_of(number: int) -> str:
    """The n-th deployment's name; mail for it is for this at example.com."""
    return f"d{number:04}"


def mail(number: int, to: str, *, answers: int | None = None) -> bytes:
    """A mail that starts a run there, or (``answers``: the number of that which started it) goes on with it."""
    thread = "" if answers is None else f"In-Reply-To: <m{answers}@example.com>\r\n"
    lines = f"Message-ID: <m{number}@example.com>\r\nFrom: ann@example.com\r\nTo: {to}@example.com\r\n"
    return f"{lines}{thread}Subject: {number}\r\n\r\nhello\r\n".encode()


def sleeping(folder: Path, count: int) -> Iterator[str]:
    """Make them in a data directory that is made, too; each name when it is there."""
    data = prepare(folder)
    lay_out(data)
    key, secret = keys(data)
    answer = _answer("template")
    for number in range(count):
        name = name_of(number)
        one = _one(name, answer)
        run = _park(data, key, Secret(secret), one, number)
        note(data, materialised(data, one), Sleep(None, (run,)), read().wall)
        yield name


def _files(name: str) -> dict[str, bytes]:
    return {"flow.py": FLOW.replace("NAME", name).encode()}


def _answer(name: str) -> Description:
    answer = ask(name, _files(name), "flow.py", timeout=DEFAULT.ready_deadline, environment=os.environ)
    assert isinstance(answer, Description), answer
    return answer


def _one(name: str, answer: Description) -> Described:
    """As a child would describe it: only its name is another one."""
    declared = msgspec.structs.replace(answer.workflow, name=name, address=f"{name}@example.com")
    again = msgspec.structs.replace(answer, workflow=declared, definition=declared.digest())
    return described(name, _files(name), again)


def _park(data: DataDir, key: SigningKey, secret: Secret, one: Described, number: int) -> RunId:
    """Its repository, with its code and a run that waits for its next mail."""
    settings = Settings(
        deployment=one.spec.name,
        address=one.spec.address,
        message_id=message_ids(bytes(secret.reveal()), one.spec.address),
        heads=data.head(one.spec.name),
    )
    path, now = data.repo(one.spec.name), read()
    writer = Writer.open(path, settings, key=key, disk=Hasty(), limits=DEFAULT, now=now)

    def do(what: Operation) -> Any:  # Any: as the operation's docstring says
        effects = list(writer.submit(Submit(what=what, stage=Stage.COMMITTED), To(token=_TOKEN), now))
        (value,) = (each.value for each in effects if isinstance(each, Reply))
        assert isinstance(value, Done), value
        return value.value

    do(Deploy(record=one.record, files=one.files))
    generation: Generation = do(BeginGeneration())
    accepted = do(Enqueue(mail(1_000_000 + number, one.spec.name)))
    do(Claim(accepted.arrival))
    start = Start(
        definition=one.spec.definition,
        code=one.spec.code,
        python=one.spec.python,
        waypost=one.spec.waypost,
        distributions=one.spec.distributions,
        mail_to=(),
    )
    run: RunId = do(TakeUp(arrival=accepted.arrival, start=start))
    by = WorkflowProcess(generation)
    step = ev.StepStarted(call=CallId("r1#1"), step="note", arguments="0" * 64)
    done = ev.StepCompleted(call=CallId("r1#1"), output=ev.Value(inline=msgspec.Raw(b'"hello"')))
    waits = ev.SignalAwaited(call=CallId("r1#2"), park="input", seen=3)
    do(Append(by=by, run=run, events=(step, done, waits)))
    list(writer.close(now))
    return run

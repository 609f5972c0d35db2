"""Which runs that are under way would be paused by other code, before it is deployed: a child tries it on their logs.

Nothing is written and nobody is asked: the repository is read as it is, beside a host or without one, and the child is
as keyless as the one that describes the code. A run may go on meanwhile: this tells of where it was.
"""

import os
import subprocess
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import msgspec

from substrate.reader import Reader
from waypost.host.code.describe import Looking, looked
from waypost.host.datadir.directory import DataDir
from waypost.host.described import Described
from waypost.host.errors import BadWorkflow
from waypost.host.processes.guest import guest
from waypost.host.processes.isolation import Isolation
from waypost.host.reading.offline import public_key
from waypost.model import events as ev
from waypost.model import rehearsal
from waypost.model.ids import RunId
from waypost.model.rehearsal import Recorded, Tried

MOST: Final = 500
"""Runs that are tried: the newest of those that are live."""
SIZE: Final = 256 * 1024 * 1024
"""Bytes of all of their logs."""
PATIENCE: Final = 60.0
"""Seconds for all of them."""
_LISTED: Final = 100_000
_LIVE: Final = frozenset({"running", "parked", "paused", "cancelling"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Rehearsed:
    """``paused``: those that would be. ``fit``: how many would go on. ``untried``: they are too many, or too slow."""

    fit: int
    paused: tuple[Tried, ...]
    untried: tuple[RunId, ...]


def rehearse(data: DataDir, one: Described, environment: Mapping[str, str], isolation: Isolation) -> Rehearsed:
    """Try code on the live runs of the deployment of its name. Raises SubstrateError, BadWorkflow, NotIsolated."""
    name = one.spec.name
    if name not in data.deployments():
        return Rehearsed(fit=0, paused=(), untried=())
    reader = Reader.open(data.repo(name), public_key(data))
    live = [line.run for line in reader.runs(_LISTED) if line.state in _LIVE]
    entry = f"{'/'.join(filter(None, (one.record.root, *one.record.module.split('.'))))}.py"
    if entry not in one.files:  # a package
        entry = f"{entry.removesuffix('.py')}/__init__.py"
    given = os.memfd_create("waypost-runs")  # what runs have recorded goes to no disk
    try:
        tried = tuple(_written(given, reader, live[:MOST]))
        os.lseek(given, 0, os.SEEK_SET)
        with guest(isolation):
            answers = _answers(one, entry, Looking(PATIENCE, environment, isolation), given)
    finally:
        os.close(given)
    answered = {each.run for each in answers}
    return Rehearsed(
        fit=sum(not each.code for each in answers),
        paused=tuple(each for each in answers if each.code),
        untried=tuple(run for run in live if run not in answered or run not in tried),
    )


def _written(given: int, reader: Reader, live: Iterable[RunId]) -> Iterator[RunId]:
    size = 0
    for run in live:
        raw = rehearsal.write(_recorded(reader, run))
        size += len(raw)
        if size > SIZE:
            return
        with open(given, "wb", closefd=False) as file:
            file.write(raw)
        yield run


def _recorded(reader: Reader, run: RunId) -> Recorded:
    events = tuple(reader.log(run))
    blobs: dict[str, bytes] = {}
    for event in map(ev.decode, events):
        if isinstance(event, ev.RunStarted | ev.SignalReceived) and event.mail is not msgspec.UNSET:
            blobs[event.mail.sha256] = reader.mail(event.mail.arrival) or b""
        for name in ev.blobs((event,)):
            blobs[name] = reader.blob(run, name) or b""
    return Recorded(run=run, repository=reader.facts().repository, events=events, blobs=blobs)


def _answers(one: Described, entry: str, how: Looking, given: int) -> tuple[Tried, ...]:
    try:
        _, out, why = looked(one.files, "rehearse", entry, how, given)
    except subprocess.TimeoutExpired as late:
        out, why = late.output or b"", ""
    lines = out.splitlines(keepends=True)
    try:
        return tuple(msgspec.json.decode(line, type=Tried) for line in lines if line.endswith(b"\n"))
    except msgspec.MsgspecError:
        raise BadWorkflow(str(Path(one.spec.file)), why or "its import writes over its answer") from None

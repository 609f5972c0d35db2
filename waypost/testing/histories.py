"""Recorded runs as regression tests: what an earlier release wrote, today's code must replay to the same end.

A history is a folder: the workflow (``flow_<name>.py``), the mail that started it (``mail.eml``), the stored events
(``events.jsonl``), and under ``blobs/`` the mails and values that they name; ``parent.json`` says whose child the run
is, where it is one. ``python -m waypost.testing.histories FOLDER`` records one with the real child; a recorded one is
never recorded again.
"""

import hashlib
import sys
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue

import msgspec

from waypost.child import effects as fx
from waypost.child.drive import Drive
from waypost.child.entry import Entry
from waypost.child.load import load, place_of
from waypost.child.loop import WorkflowLoop
from waypost.child.phase import Phase
from waypost.child.program import Program, Turn
from waypost.child.thread_run import ThreadRun
from waypost.model import events as ev
from waypost.model.child_events import Parent
from waypost.model.limits import DEFAULT
from waypost.testing.memory_log import REPOSITORY, RUN, MemoryLog
from waypost.testing.patience import PATIENCE


class DoesNotReplay(AssertionError):
    """A history and today's code differ."""


def folders(root: Path) -> list[Path]:
    """The histories below a folder."""
    return sorted(path.parent for path in root.glob("*/events.jsonl"))


def flow(folder: Path) -> Path:
    """The workflow file of a history."""
    (found,) = folder.glob("flow_*.py")
    return found


def record(folder: Path) -> None:
    """Run the workflow in a real child until it ends and write down what happened. Refuses to write over a history."""
    from waypost.testing.scripted_host import ScriptedHost

    events = folder / "events.jsonl"
    if events.exists():
        raise FileExistsError(f"{events} is a recorded history: make a new folder for a new one")
    log = MemoryLog()
    file = flow(folder)
    of = folder / "parent.json"
    parent = msgspec.json.decode(of.read_bytes(), type=Parent) if of.exists() else None
    code = hashlib.sha256(file.read_bytes()).hexdigest()
    log.start((folder / "mail.eml").read_bytes(), code=code, parent=parent)
    with ScriptedHost(file, log) as host:
        host.drive()
        host.to_the_end()
    blobs = folder / "blobs"
    blobs.mkdir()
    for sha256, raw in log.blobs.items():
        (blobs / sha256).write_bytes(raw)
    events.write_bytes(b"".join(raw + b"\n" for raw in log.raw))


def replay(folder: Path) -> None:
    """Feed a history to today's code. Raises DoesNotReplay where the code goes another way or ends otherwise."""
    events = [ev.decode(line) for line in (folder / "events.jsonl").read_bytes().splitlines()]
    turns: SimpleQueue[Turn] = SimpleQueue()
    workflow = load(place_of(flow(folder))).workflow

    def program(entry: Entry, on_turn: Callable[[Turn], None]) -> Program:
        return WorkflowLoop.create(entry, on_turn) if entry.asynchronous else ThreadRun("replay", entry, turns.put)

    drive = Drive(RUN, last_seq=len(events), repository=REPOSITORY, workflow=workflow, limits=DEFAULT, program=program)
    drive.page(events)
    while not _left(drive):
        wanted = [effect.sha256 for effect in drive.effects() if isinstance(effect, fx.Fetch)]
        for sha256 in wanted:
            drive.fetched(sha256, (folder / "blobs" / sha256).read_bytes())
        if not wanted and not _left(drive):
            if workflow.asynchronous:
                drive.drop()
                raise DoesNotReplay(f"{folder.name}: the code still waits at the end of the history")
            drive.turned(turns.get(timeout=PATIENCE))
    for effect in drive.effects():
        if isinstance(effect, fx.Pause):
            raise DoesNotReplay(f"{folder.name}: {effect.detail}")


def _left(drive: Drive) -> bool:
    return drive.phase is Phase.LEFT


if __name__ == "__main__":
    record(Path(sys.argv[1]))

"""``--rehearse FILE``: would this code go on with the runs that are under way? Their logs come on standard input.

Keyless, and without a host: each run's code is replayed up to where its log ends, by the very drive that would do so
in earnest, and what it wants then is thrown away. No step's body runs.
"""

import os
import sys
from collections.abc import Callable
from queue import SimpleQueue

import msgspec

from waypost.authoring.scope import become_child
from waypost.authoring.workflow import Workflow
from waypost.child import effects as fx
from waypost.child.describe import EX_DATAERR
from waypost.child.drive import Drive
from waypost.child.entry import Entry
from waypost.child.errors import NotLoadable
from waypost.child.load import load, place_of
from waypost.child.loop import WorkflowLoop
from waypost.child.phase import Phase
from waypost.child.program import Program, Turn
from waypost.child.thread_run import ThreadRun
from waypost.model import events as ev
from waypost.model import rehearsal
from waypost.model.limits import DEFAULT
from waypost.model.rehearsal import Recorded, Tried

_DETAIL = 500


def rehearse(file: str, tree: str | None) -> int:
    """Answer for each run on standard input; gives the exit code, 0, or 65 for code that doesn't load.

    What the code itself prints goes to standard error.
    """
    become_child()
    answer_fd = os.dup(1)
    sys.stdout.flush()
    os.dup2(2, 1)
    try:
        workflow = load(place_of(file), tree=tree).workflow
    except NotLoadable:
        return EX_DATAERR
    with os.fdopen(answer_fd, "wb") as out:
        for recorded in rehearsal.read(sys.stdin.buffer):
            out.write(msgspec.json.encode(tried(workflow, recorded)) + b"\n")
            out.flush()  # one that never comes to rest takes no answer before it along
    return 0


def tried(workflow: Workflow, recorded: Recorded) -> Tried:
    """Replay one run up to the end of its log."""
    turns: SimpleQueue[Turn] = SimpleQueue()

    def program(entry: Entry, on_turn: Callable[[Turn], None]) -> Program:
        return WorkflowLoop.create(entry, on_turn) if entry.asynchronous else ThreadRun("rehearsal", entry, turns.put)

    events = [ev.decode(raw) for raw in recorded.events]
    drive = Drive(
        recorded.run,
        last_seq=len(events),
        repository=recorded.repository,
        workflow=workflow,
        limits=DEFAULT,
        program=program,
    )
    try:
        return _tried(drive, events, recorded, turns)
    finally:
        drive.drop()  # else its code would clean up later, within another run


def _tried(drive: Drive, events: list[ev.AnyEvent], recorded: Recorded, turns: SimpleQueue[Turn]) -> Tried:
    drive.page(events)
    drive.live()
    while drive.phase in (Phase.REPLAYING, Phase.LEFT):
        found = drive.effects()
        for effect in found:
            match effect:
                case fx.Pause(detail, code):
                    return Tried(run=recorded.run, code=code, detail=detail[:_DETAIL])
                case fx.Fetch(sha256):
                    drive.fetched(sha256, recorded.blobs[sha256])
                case fx.Starve():
                    drive.begin()
                case _:
                    pass  # what it would do in earnest
        if drive.phase is Phase.LEFT and not found:
            break
        if drive.phase is Phase.REPLAYING and drive.rest is None:
            drive.turned(turns.get())
    return Tried(run=recorded.run)

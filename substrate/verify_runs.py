"""Does every run's log hold together? The second half of ``verify``: chains, grants, mails, blobs.

Pure over the newest tree. Every event is read, numbered and folded again; the chain begins at the run's genesis, so an
event can't be moved to another run or repository; what an event names by hash is hashed.
"""

import hashlib
from dataclasses import dataclass, field

from msgspec import UNSET

from substrate import layout, runlog
from substrate.errors import Damaged
from substrate.operations.sealing import may_be_sealed
from substrate.runlog import Tree, find_blob
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.errors import Invalid
from waypost.model.ids import RunId


@dataclass(slots=True)
class Counted:
    """How much was read, and what is wrong: (words, path)."""

    runs: int = 0
    events: int = 0
    faults: list[tuple[str, str]] = field(default_factory=list)


def count_runs(tree: Tree, repository: str) -> Counted:
    """Read every run, live and sealed. A run that can't be read is a fault and ends that run's check only."""
    counted = Counted()
    live = dict.fromkeys(runlog.run_ids(tree))
    # Some values of a live run may have gone ahead to where it will be sealed.
    sealed = [run for run in runlog.run_ids(tree, layout.SEALED) if run not in live or runlog.is_sealed(tree, run)]
    counted.faults += [("the run is both live and sealed", layout.run_dir(run)) for run in sealed if run in live]
    for run in dict.fromkeys((*live, *sealed)):
        counted.runs += 1
        try:
            counted.events += _check(tree, repository, run, counted.faults)
        except Damaged as failure:
            counted.faults.append((failure.why, failure.file))
    return counted


def _check(tree: Tree, repository: str, run: RunId, faults: list[tuple[str, str]]) -> int:
    path = layout.sealed_log_path(run) if runlog.is_sealed(tree, run) else layout.events_dir(run)
    grants = runlog.find_grants(tree, run)
    state: fold.Run = fold.Absent()
    prev = ev.genesis(repository, run, grants or b"")
    seq = 0
    for raw in runlog.events(tree, run):
        seq += 1
        try:
            event = ev.decode(raw)
            state = fold.evolve(state, event, run_id=run)
        except (Invalid, fold.Illegal) as bad:
            faults.append((f"event {seq}: {bad.message}", path))
            return seq
        if event.prev != prev:
            faults.append((f"event {seq}: its prev isn't the hash of what comes before it", path))
        prev = ev.digest(raw)
        _named(tree, run, event, grants, faults)
    if not seq:
        faults.append(("a run without an event", path))
    elif runlog.is_sealed(tree, run) and not may_be_sealed(state):
        faults.append(("the run is sealed and has not ended, or its mail has not gone", path))
    return seq


def _named(tree: Tree, run: RunId, event: ev.AnyEvent, grants: bytes | None, faults: list[tuple[str, str]]) -> None:
    """What an event names by its hash."""
    match event:
        case ev.RunStarted():
            if hashlib.sha256(grants or b"").hexdigest() != event.grants:
                where = layout.sealed_grants_path if runlog.is_sealed(tree, run) else layout.grants_path
                faults.append(("the grants aren't those that the run was started with", where(run)))
            _mail(tree, event.mail, faults)
        case ev.SignalReceived() if event.mail is not UNSET:
            _mail(tree, event.mail, faults)
        case ev.MailQueued():
            _blob(tree, run, event.sha256, faults)
        case _:
            for sha256 in ev.blobs((event,)):
                _blob(tree, run, sha256, faults)


def _mail(tree: Tree, mailed: ev.Mailed, faults: list[tuple[str, str]]) -> None:
    path = layout.mail_path(mailed.arrival)
    raw = tree.read(path)
    if raw is None or hashlib.sha256(raw).hexdigest() != mailed.sha256:
        faults.append(("the mail is missing, or isn't the one that the event names", path))


def _blob(tree: Tree, run: RunId, sha256: str, faults: list[tuple[str, str]]) -> None:
    data = find_blob(tree, run, sha256)
    if data is None or hashlib.sha256(data).hexdigest() != sha256:
        faults.append(("the blob is missing, or isn't the one that the event names", layout.blob_path(run, sha256)))

"""A whole run by itself, live or sealed: its log from the first event, and all that it names."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass, field

from msgspec import UNSET

from substrate import layout, runlog
from substrate.errors import BadPath, Damaged
from substrate.operations.sealing import may_be_sealed
from substrate.rules.commit import Commit, Ground, files
from substrate.rules.logs import Log, New, follow, genesis_of, within_quotas
from substrate.rules.runs import named, value
from substrate.rules.table import Broken, broken
from substrate.runlog import ABSENT, Known, Tree
from substrate.state import State
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.ids import CallId, RunId, run_ordinal

_ANYONE = Commit(author="hub", puts={})
"""Who wrote an event isn't in the tree; the administrator may write all of them."""


@dataclass(slots=True)
class Counts:
    """How much was looked at."""

    files: int = 0
    runs: int = 0
    events: int = 0


@dataclass(slots=True)
class Outcome:
    """What a run came to, as far as it could be followed: how many events, and the outgoing mail that it waits for."""

    known: Known | None = None
    """None where it couldn't be followed to its end."""
    events: int = 0
    unsent: dict[int, CallId] = field(default_factory=dict)
    """By ordinal, whose call it is."""
    mails: dict[int, None] = field(default_factory=dict)
    """Arrivals of the mails that it was given."""


def every_run(tree: Tree, state: State, ground: Ground, counts: Counts) -> Iterator[Broken]:
    """Hold every run against the rules, live and sealed, and nothing else. Raises Damaged."""
    live = dict.fromkeys(runlog.run_ids(tree))
    # Some values of a live run may have gone ahead to where it will be sealed.
    for run in (*live, *(each for each in runlog.run_ids(tree, layout.SEALED) if each not in live)):
        out = Outcome()
        yield from whole_run(tree, run, state, ground, out)
        counts.runs += 1
        counts.events += out.events


def whole_run(tree: Tree, run: RunId, state: State, ground: Ground, out: Outcome) -> Iterator[Broken]:
    """Hold one run against the rules. What can't be read ends the check of this run only."""
    sealed = runlog.is_sealed(tree, run)
    if sealed and tree.entries(layout.run_dir(run)):
        yield broken("seal", layout.run_dir(run), "the run is both live and sealed")
    grants_path = layout.sealed_grants_path(run) if sealed else layout.grants_path(run)
    grants = tree.read(grants_path)
    if grants is None:
        yield broken("missing", grants_path, "a run without its grants")
    log, names = Log(run, ABSENT), dict[str, None]()
    found: list[Broken] = []
    try:
        for chunk in _chunks(tree, run, sealed=sealed):
            follow(log, chunk, _ANYONE, ground, found, genesis_of(run, grants, ground))
            for event in log.events:
                names.update(dict.fromkeys(named((event,))))
                found += _event(tree, event, grants_path, grants, out)
            yield from found
            complete = not found and len(log.events) == len(chunk)
            found.clear()
            log.events.clear()
            if not complete:
                return
    except (Damaged, BadPath) as damage:
        yield broken("append-only", damage.file if isinstance(damage, Damaged) else damage.path, damage.why)
        return
    out.events, out.known = log.known.seq, log.known
    yield from _ends(log.known, run, state, ground, out, sealed=sealed)
    yield from _values(tree, run, names, ground, sealed=sealed)


def _chunks(tree: Tree, run: RunId, *, sealed: bool) -> Iterator[list[New]]:
    """The log as it lies there, 64 events at a time. Raises Damaged, BadPath."""
    if sealed:
        path = layout.sealed_log_path(run)
        lines = runlog.sealed_events(tree, run)
        for first in range(0, len(lines), layout.FAN):
            block = lines[first : first + layout.FAN]
            yield [New(path, seq, raw) for seq, raw in enumerate(block, first + 1)]
        return
    for first, path in enumerate(files(tree, layout.segments_dir(run))):
        lines = runlog.stored(tree, path).removesuffix(b"\n").split(b"\n")
        start = first * layout.FAN + 1
        if path != layout.segment_path(run, start) or len(lines) != layout.FAN:
            raise Damaged(path, f"{len(lines)} events, where the {layout.FAN} from seq {start} on belong")
        yield [New(path, seq, raw) for seq, raw in enumerate(lines, start)]
    tail = [f"{layout.events_dir(run)}/{name}" for name in tree.entries(layout.events_dir(run))]
    if len(tail) > layout.FAN:
        raise Damaged(layout.events_dir(run), f"{len(tail)} events in files of their own")
    yield [New(path, layout.place_of(path).number or 0, runlog.stored(tree, path)) for path in tail]


def _event(tree: Tree, event: ev.AnyEvent, grants_path: str, grants: bytes | None, out: Outcome) -> Iterator[Broken]:
    """What an event names beside its values."""
    if isinstance(event, ev.RunStarted) and grants is not None:
        found = hashlib.sha256(grants).hexdigest()
        if found != event.grants:
            yield broken("hash", grants_path, f"RunStarted names {event.grants}, these bytes have {found}")
    if isinstance(event, ev.RunStarted | ev.SignalReceived) and event.mail is not UNSET:
        path = layout.mail_path(event.mail.arrival)
        out.mails[event.mail.arrival] = None
        raw = tree.read(path)
        if raw is None:
            yield broken("named", path, f"event {event.seq} names this mail, and it isn't there")
        elif hashlib.sha256(raw).hexdigest() != event.mail.sha256:
            yield broken("hash", path, f"its bytes aren't those of {event.mail.sha256}")


def _ends(known: Known, run: RunId, state: State, ground: Ground, out: Outcome, *, sealed: bool) -> Iterator[Broken]:
    where = layout.sealed_dir(run) if sealed else layout.run_dir(run)
    if isinstance(known.run, fold.Absent):
        yield broken("missing", where, "a run without an event")
        return
    if run_ordinal(run) >= state.run:
        yield broken("ordinals", where, f"{state.run} is the next run")
    if sealed and not may_be_sealed(known.run):
        yield broken("seal", where, "the run has not ended, or mail of it is in the outbox")
    ledger = fold.ledger(known.run)
    if ledger is not None and ledger.generation > state.generation:
        yield broken("generation", where, f"generation {ledger.generation} has the run, {state.generation} is at work")
    if ledger is not None:
        found: list[Broken] = []
        within_quotas(run, ledger, ground, found)
        yield from found
    out.unsent.update(known.run.unsent if isinstance(known.run, fold.Ended) else known.run.ledger.unsent)


def _values(tree: Tree, run: RunId, names: dict[str, None], ground: Ground, *, sealed: bool) -> Iterator[Broken]:
    """Every value that is there is named, and has the hash that it is named by; every named one is there."""
    made = layout.sealed_blob_path if sealed else layout.blob_path
    there: set[str] = set()
    for root in (f"{layout.run_dir(run)}/blobs", f"{layout.sealed_dir(run)}/blobs"):
        for path in files(tree, root):
            name = path.rpartition("/")[2]
            there.add(name)
            yield from value(path, name, runlog.stored(tree, path), ground)
            if name not in names:
                yield broken("unnamed", path, "no event names it")
    for name in names:
        if name not in there:
            yield broken("named", made(run, name), "an event names this value, and it isn't there")

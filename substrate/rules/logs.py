"""A run's log: what a commit adds to it, and that it takes nothing away.

``extended`` judges the files of the log, ``follow`` each event that is new: numbered, chained, legal by the run's own
fold, written by whom it may be. The fold is ``waypost.model.run``: there is no second state machine.
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

import msgspec

from substrate import layout, principals
from substrate.rules.commit import Before, Commit, Ground, OfRun
from substrate.rules.table import Broken, broken
from substrate.runlog import Known
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.errors import Invalid
from waypost.model.ids import RunId
from waypost.model.nesting import EVENT, too_deep

CHILD: principals.Name = "workflow-process"
_BY_FOLD = {"sequence": "sequence", "terminal": "terminal"}
"""The fold's refusals that have a rule of their own; all others are ``legal``."""


class New(msgspec.Struct, frozen=True):
    """An event that a commit adds: where its bytes are, and the seq that its place says."""

    path: str
    seq: int
    raw: bytes


@dataclass(slots=True)
class Log:
    """A run's log after a commit: its state, and what is new in it."""

    run: RunId
    known: Known
    events: list[ev.AnyEvent] = field(default_factory=list)


def follow(
    log: Log, new: Iterable[New], commit: Commit, ground: Ground, found: list[Broken], genesis: str | None = None
) -> None:
    """Add events to a log, one by one, up to the first that may not follow.

    ``genesis``: what ``prev`` of seq 1 must be.
    """
    state, seq, changed = log.known.run, log.known.seq, log.known.changed
    prev = log.known.prev if seq else genesis
    recorded, limit = commit.recorded, ground.limits.event
    for at, each in enumerate(new):
        raw = each.raw
        if len(raw) > limit:
            found.append(broken("event-size", each.path, f"{len(raw)} bytes"))
        event = recorded[at].event if at < len(recorded) and recorded[at].raw is raw else _read(each, found)
        if event is None:
            break
        if event.seq != seq + 1:
            found.append(broken("sequence", each.path, f"seq {event.seq}, and {seq + 1} comes next"))
            break
        if event.seq != each.seq:
            found.append(broken("name", each.path, f"the event says seq {event.seq}"))
        if event.prev != prev:
            found.append(broken("chain", each.path, f"prev {event.prev or 'none'}, and {prev} comes before"))
        why = principals.may_not_write(commit.author, event)
        if why and not (commit.author == CHILD and principals.follows(event)):
            found.append(broken("author", each.path, why))
        try:
            state = fold.evolve(state, event, run_id=log.run)
        except fold.Illegal as illegal:
            found.append(broken(_BY_FOLD.get(illegal.code, "legal"), each.path, illegal.message))
            break
        seq, prev, changed = seq + 1, ev.digest(raw), event.at
        log.events.append(event)
    log.known = Known(state, seq, prev or "", log.known.folded, changed)
    ledger = fold.ledger(state)
    if commit.author == CHILD and ledger is not None:
        within_quotas(log.run, ledger, ground, found)


def _read(new: New, found: list[Broken]) -> ev.AnyEvent | None:
    if too_deep(new.raw):  # how deep a parser itself gets differs with the stack, and from one Python to the next
        found.append(broken("record", new.path, f"not an event: nested more than {EVENT} levels deep"))
        return None
    try:
        return ev.decode(new.raw)
    except Invalid as bad:
        found.append(broken("record", new.path, bad.message))
        return None


def fenced(before: Before, commit: Commit, log: Log, known: Known, found: list[Broken]) -> None:
    """A child writes to a run that lives and that its generation was given; ``known``: the run before the commit."""
    if commit.author != CHILD or follows_only(log):
        return
    ledger = fold.ledger(known.run)
    if ledger is None:
        if isinstance(known.run, fold.Absent):
            found.append(broken("fence", layout.run_dir(log.run), "the run has not begun"))
    elif ledger.generation != before.state.generation:
        words = f"the run is generation {ledger.generation}'s, at work is {before.state.generation}"
        found.append(broken("fence", layout.run_dir(log.run), words))


def follows_only(log: Log) -> bool:
    """Whether what is new in a log follows from what was written to another run."""
    return bool(log.events) and all(map(principals.follows, log.events))


def extended(before: Before, commit: Commit, run: RunId, part: OfRun, ground: Ground, found: list[Broken]) -> Log:
    """The log of a run that isn't being sealed, after a commit. Raises Damaged where it can't be read before it."""
    log = Log(run, before.known(run))
    known = log.known
    new, folded = _segments(before, log.known, part, run, found)
    for seq, raw in sorted(part.events.items()):
        path = layout.event_path(run, seq)
        if seq > log.known.seq:
            new.append(New(path, seq, raw))
        elif before.read(path) != raw:
            found.append(broken("append-only", path, f"event {seq} is recorded already, as other bytes"))
    _nothing_taken(log.known, part, folded, found)
    follow(log, new, commit, ground, found, genesis_of(run, part.grants, ground))
    fenced(before, commit, log, known, found)
    log.known = msgspec.structs.replace(log.known, folded=folded)
    if log.known.seq - folded > layout.FAN:
        found.append(broken("tail", layout.events_dir(run), f"{log.known.seq - folded} events in files of their own"))
    return log


def genesis_of(run: RunId, grants: bytes | None, ground: Ground) -> str:
    """What ``prev`` of seq 1 must be."""
    return ev.genesis(ground.repository, run, grants or b"")


def _segments(before: Before, known: Known, part: OfRun, run: RunId, found: list[Broken]) -> tuple[list[New], int]:
    """What is new in segments, and how many events are folded after them."""
    new: list[New] = []
    folded = known.folded
    for first, data in sorted(part.segments.items()):
        path = layout.segment_path(run, first)
        if first <= known.folded:
            if before.read(path) != data:
                found.append(broken("append-only", path, f"event {first} and those after it are recorded already"))
            continue
        lines = data.split(b"\n")
        if first != folded + 1 or len(lines) != layout.FAN + 1 or lines.pop():
            found.append(broken("tail", path, f"{len(lines)} lines from seq {first}; the next segment is {folded + 1}"))
            break
        old = max(0, known.seq - first + 1)
        names = [f"{seq:010d}.json" for seq in range(first, first + min(old, layout.FAN))]  # layout.event_path
        recorded = before.several(layout.events_dir(run), names)
        if recorded != lines[:old]:
            for seq, (was, raw) in enumerate(zip(recorded, lines, strict=False), first):
                if was != raw:
                    words = f"event {seq} is folded as other bytes than were recorded"
                    found.append(broken("append-only", path, words))
        new += [New(path, seq, raw) for seq, raw in enumerate(lines[old:], first + old)]
        folded += layout.FAN
    return new, folded


def _nothing_taken(known: Known, part: OfRun, folded: int, found: list[Broken]) -> None:
    """Only the events that have just been folded leave the tail, and all of them do."""
    leaving = range(known.folded + 1, min(folded, known.seq) + 1)
    left: set[int] = set()
    for path, place in part.gone.items():
        if place.kind == "event" and place.number in leaving:
            left.add(place.number or 0)
        elif place.kind in {"event", "segment"}:
            found.append(broken("append-only", path, "a recorded event was taken away"))
    stay = [seq for seq in leaving if seq not in left]
    if stay:
        found.append(broken("append-only", f"seq {stay[0]}", "a folded event kept its own file: it is in two places"))


def within_quotas(run: RunId, ledger: fold.Ledger, ground: Ground, found: list[Broken]) -> None:
    """A live run has no more open than it may."""
    if len(ledger.timers) > ground.limits.timers:
        found.append(broken("open-calls", layout.run_dir(run), f"{len(ledger.timers)} pending timers"))
    if ledger.open_calls > ground.limits.open_calls:
        found.append(broken("open-calls", layout.run_dir(run), f"{ledger.open_calls} open calls"))

"""One run's directory there: its log, held against its own system's rules, and every other file beside it.

Events are read one at a time, as often as they are needed; in memory is what is known of the run, not its log.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

from substrate.reference.errors import Leaving, Unreadable
from substrate.reference.records import Told, read_event
from substrate.reference.source import MIB, Entry, Source

EVENT = 8 * MIB
LOG = 64 * MIB
FILE = 64 * MIB
"""Bytes of an event, of a run's log, of any other file of a run at most."""
MAILS = 100_000
"""Mails of one run at most."""

_EVENT_NAME = re.compile(r"(0|[1-9][0-9]{0,15})\.json\Z")
_INPUT = "__signal__:"
TERMINAL = frozenset({"RunCompleted", "RunFailed", "RunCancelled"})


@dataclass(frozen=True, slots=True)
class RunFound:
    """A run that can be taken over. ``mails``: ids of the messages that it names as its own."""

    name: str
    began: int
    """Unix ms of its first event that has a time."""
    events: int
    ended: bool
    mails: frozenset[str] = field(repr=False)
    log: tuple[Entry, ...] = field(repr=False)
    """One file an event, by seq; or the one file of a sealed run."""
    sealed: bool
    others: tuple[tuple[str, Entry], ...] = field(repr=False)
    """Every other file, by its path below the run's directory."""

    @property
    def path(self) -> str:
        """Where it lies."""
        return f"runs/{self.name}"


def look(source: Source, entry: Entry, leaving: Leaving) -> RunFound | None:
    """Look at a run. None, and a line in ``leaving``, where it can't be taken over as a whole."""
    path = f"runs/{entry.name}"
    if entry.kind != "directory":
        leaving.add(path, "it is no directory")
        return None
    try:
        return _look(source, entry, path, leaving)
    except Unreadable as bad:
        leaving.add(path, bad.message)
        return None


def _look(source: Source, entry: Entry, path: str, leaving: Leaving) -> RunFound | None:
    below = {each.name: each for each in source.entries(entry.oid)}
    log, sealed = below.pop("events", None), below.pop("events.jsonl", None)
    if log is not None and sealed is not None:
        raise Unreadable(path, "it has both forms of a log")
    others: list[tuple[str, Entry]] = []
    for name, each in below.items():
        files = source.files(each.oid, name) if each.kind == "directory" else [(name, each)]
        for file, found in files:
            if found.kind != "file":
                leaving.add(f"{path}/{file}", "it is no plain file")
            elif source.size(found.oid) > FILE:
                leaving.add(f"{path}/{file}", f"it has more than {FILE} bytes")
            else:
                others.append((file, found))
    if log is None and sealed is None:
        leaving.add(path, "the run had no event yet" + (f"; its files: {', '.join(sorted(below))}" if below else ""))
        return None
    entries = _files_of(source, path, log) if log is not None else (sealed,) if sealed is not None else ()
    found_run = RunFound(entry.name, 0, 0, False, frozenset(), entries, sealed is not None, tuple(others))  # noqa: FBT003 - a record
    return _read_through(source, found_run)


def _files_of(source: Source, path: str, log: Entry) -> tuple[Entry, ...]:
    if log.kind != "directory":
        raise Unreadable(f"{path}/events", "it is no directory")
    found: dict[int, Entry] = {}
    size = 0
    for each in source.entries(log.oid):
        match = _EVENT_NAME.match(each.name)
        if match is None or each.kind != "file":
            raise Unreadable(f"{path}/events/{each.name}", "no event has such a name")
        found[int(match[1])] = each
        size += source.size(each.oid) + 1
        if size > LOG:
            raise Unreadable(f"{path}/events", f"the log has more than {LOG} bytes")
    return tuple(found[seq] for seq in sorted(found))


def _read_through(source: Source, found: RunFound) -> RunFound:
    """Read the whole log once: it must be whole, and tells what a list of runs shows."""
    began, count, last = 0, 0, ""
    mails: dict[str, None] = {}
    for told in events(source, found):
        began = began or told.time() or 0
        count, last = count + 1, told.type
        mail = mail_of(told)
        if mail:
            mails[mail] = None
            if len(mails) > MAILS:
                raise Unreadable(found.path, f"it names more than {MAILS} mails")
    if not count:
        raise Unreadable(found.path, "its log is empty")
    return RunFound(found.name, began, count, last in TERMINAL, frozenset(mails), found.log, found.sealed, found.others)


def events(source: Source, found: RunFound) -> Iterator[Told]:
    """The run's events in order. Raises Unreadable at one that can't be read, and at a gap."""
    before: int | None = None
    for path, raw in _raws(source, found):
        told = read_event(path, raw)
        if before is not None and told.seq != before + 1:
            raise Unreadable(path, f"seq {told.seq} follows seq {before}: the log has a gap")
        if not found.sealed and not path.endswith(f"/{told.seq}.json"):
            raise Unreadable(path, f"the event says seq {told.seq}")
        before = told.seq
        yield told


def _raws(source: Source, found: RunFound) -> Iterator[tuple[str, bytes]]:
    if not found.sealed:
        for entry in found.log:
            yield f"{found.path}/events/{entry.name}", source.file(entry.oid, EVENT)
        return
    path = f"{found.path}/events.jsonl"
    for number, line in enumerate(source.file(found.log[0].oid, LOG).split(b"\n"), 1):
        if line:
            if len(line) > EVENT:
                raise Unreadable(f"{path} line {number}", f"the event has more than {EVENT} bytes")
            yield f"{path} line {number}", line


def mail_of(told: Told) -> str:
    """The id of the message that the event says was taken in with it; empty where there is none."""
    if told.type == "RunStarted":
        return told.text("consumedMessageId")
    if told.type == "SignalReceived" and told.text("signalName").startswith(_INPUT):
        return told.text("signalId") if isinstance(told.fields.get("payload"), dict) else ""
    return ""

"""Answers from what is visible: pages of a log, blobs and mails of a run, the list of runs.

Pure over the index; nothing is written. Asked of the SubstrateActor they are answered in the order of its mailbox.
"""

import dataclasses
import heapq
from collections.abc import Iterable, Iterator
from typing import assert_never

from substrate import layout, runlog
from substrate.index import Index, line_of
from substrate.messages import (
    LogPage,
    Principal,
    Question,
    ReadBlob,
    ReadLog,
    ReadRuns,
    Refused,
    RunLine,
    WorkflowProcess,
)
from substrate.operations.append import child_may_write
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.ids import RunId, is_sha256, run_ordinal
from waypost.model.waiting import waiting_on


def answer(index: Index, question: Question) -> LogPage | bytes | tuple[RunLine, ...] | Refused:
    """The value of a question, or Refused. Raises Damaged where a log can't be read."""
    match question:
        case ReadLog():
            return read_log(index, question)
        case ReadBlob():
            return read_blob(index, question.run, question.sha256, question.by)
        case ReadRuns():
            return read_runs(index, question.limit)
        case _:
            assert_never(question)


def read_log(index: Index, question: ReadLog) -> LogPage | Refused:
    """Events after a seq, as many as fit, at least one; with the run's grants. Refused with code ``no-run``."""
    last = index.known(question.run).seq
    if not last:
        return Refused("no-run", f"there is no run {question.run}")
    events = page(runlog.events(index, question.run, after=question.after), question.limit)
    grants = index.read(layout.grants_path(question.run)) or b""
    return LogPage(question.run, events, last, grants)


def page(events: Iterable[bytes], limit: int) -> tuple[bytes, ...]:
    """The first events that together have at most ``limit`` bytes; the first one goes in whatever its size."""
    taken: list[bytes] = []
    size = 0
    for raw in events:
        size += len(raw)
        if taken and size > limit:
            break
        taken.append(raw)
    return tuple(taken)


def read_blob(index: Index, run: RunId, sha256: str, by: Principal) -> bytes | Refused:
    """A blob of the run, or the raw bytes of a mail that it was given.

    Refused with code ``not-given`` (another generation's run, to a child) or ``no-blob``.
    """
    known = index.known(run)
    if isinstance(by, WorkflowProcess) and (refused := child_may_write(index, by, known)) is not None:
        return refused
    found = runlog.find_blob(index, run, sha256) if is_sha256(sha256) else None
    if found is None:
        ledger = fold.ledger(known.run)
        arrival = _arrival(index, run, sha256) if ledger is None else ledger.mails.get(sha256)
        found = None if arrival is None else index.read(layout.mail_path(arrival))
    return Refused("no-blob", f"{run} has no blob or mail {sha256[:80]}") if found is None else found


def read_runs(index: Index, limit: int) -> tuple[RunLine, ...]:
    """Runs, newest first: those that have begun, and those whose first mail is queued."""
    newest = heapq.nlargest(limit, _all_runs(index), key=lambda found: run_ordinal(found[0].run))
    return tuple(dataclasses.replace(line, subject=index.subject(arrival)) for line, arrival in newest)


def _all_runs(index: Index) -> Iterator[tuple[RunLine, int]]:
    for past in index.ended.values():
        yield past.line, past.arrival
    for run, known in index.live.items():
        ledger = fold.ledger(known.run)
        assert ledger is not None
        yield line_of(run, known), ledger.started.mail.arrival
    for item in index.queue.values():
        entry = item.queued.entry
        if entry.starts and index.standing(entry.run) == "absent":
            line = RunLine(
                run=entry.run,
                state="queued",
                started=entry.received,
                changed=entry.received,
                seq=0,
                waiting=waiting_on(fold.Absent()),
            )
            yield line, entry.arrival


def _arrival(index: Index, run: RunId, sha256: str) -> int | None:
    """The mail with this hash that a run was given which has ended; its log tells."""
    for raw in runlog.events(index, run):
        event = ev.decode(raw)
        if isinstance(event, ev.RunStarted | ev.SignalReceived) and event.mail and event.mail.sha256 == sha256:
            return event.mail.arrival
    return None

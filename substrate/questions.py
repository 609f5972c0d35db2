"""Answers from what is visible: pages of a log, blobs and mails of a run, the list of runs.

Pure over the index; nothing is written. Asked of the SubstrateActor they are answered in the order of its mailbox.
"""

import itertools
import re
from collections.abc import Iterable, Iterator
from typing import TypeAlias, assert_never, cast, overload

import msgspec

from substrate import asking, layout, runlog
from substrate.errors import Damaged
from substrate.indexing import kept
from substrate.indexing.census import Kinds
from substrate.indexing.index import Index
from substrate.indexing.listing import list_runs
from substrate.messages import (
    Approvals,
    Census,
    Deadlines,
    InForce,
    Kept,
    LiveRuns,
    LogPage,
    Planned,
    Principal,
    Question,
    ReadApprovals,
    ReadBlob,
    ReadCensus,
    ReadDeadlines,
    ReadGrants,
    ReadHold,
    ReadLive,
    ReadLog,
    ReadRejected,
    ReadRest,
    ReadRuns,
    ReadSchedules,
    ReadSealed,
    Refused,
    RejectedPage,
    RunLine,
    WorkflowProcess,
)
from substrate.operations import Item
from substrate.operations.append import child_may_write
from substrate.resting import next_deadline
from substrate.runlog import Tree
from substrate.ticking import planned
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.errors import Invalid
from waypost.model.ids import RunId, is_sha256, run_ordinal
from waypost.model.queue import Entry

_BRINGING = re.compile(rb'\{"seq":[0-9]+,"type":"(?:RunStarted|SignalReceived)"').match
Value: TypeAlias = (
    InForce
    | tuple[Planned, ...]
    | LogPage
    | bytes
    | Deadlines
    | tuple[RunLine, ...]
    | tuple[Kept, ...]
    | RejectedPage
    | Approvals
    | LiveRuns
    | Census
    | None
)


@overload
def answer(index: Index, question: ReadRuns) -> tuple[RunLine, ...]: ...
@overload
def answer(index: Index, question: ReadLog) -> LogPage | Refused: ...
@overload
def answer(index: Index, question: ReadBlob) -> bytes | Refused: ...
@overload
def answer(index: Index, question: ReadGrants) -> InForce: ...
@overload
def answer(index: Index, question: ReadSchedules) -> tuple[Planned, ...]: ...
@overload
def answer(index: Index, question: ReadHold) -> tuple[Kept, ...]: ...
@overload
def answer(index: Index, question: ReadRejected) -> RejectedPage: ...
@overload
def answer(index: Index, question: ReadDeadlines) -> Deadlines: ...
@overload
def answer(index: Index, question: ReadCensus) -> Census: ...
@overload
def answer(index: Index, question: Question) -> Value | Refused: ...
def answer(index: Index, question: Question) -> Value | Refused:  # noqa: C901, PLR0911, PLR0912 - a table
    """The value of a question, or Refused. Raises Damaged where a log can't be read."""
    match question:
        case ReadLog():
            return read_log(index, question)
        case ReadBlob():
            return read_blob(index, question.run, question.sha256, question.by)
        case ReadGrants():
            return index.granted
        case ReadSchedules():
            return read_schedules(index)
        case ReadHold():
            return kept.on_hold(index, index.on_hold.values(), question)
        case ReadRejected():
            return kept.rejected(index, index.address, index.state, question)
        case ReadRuns():
            return read_runs(index, question)
        case ReadApprovals():
            return read_approvals(index, question)
        case ReadLive():
            return read_live(index, question)
        case ReadCensus():
            return read_census(index, question)
        case ReadDeadlines():
            return read_deadlines(index, question)
        case ReadSealed() | ReadRest():
            return None  # whoever owns the repository answers these
        case _:
            assert_never(question)


def read_log(index: Index, question: ReadLog) -> LogPage | Refused:
    """Events after a seq, as many as fit, at least one; with the run's grants. Refused with code ``no-run``."""
    events, last = runlog.page(index, question.run, after=question.after, limit=question.limit)
    if not last:
        return Refused("no-run", f"there is no run {question.run}")
    grants = runlog.find_grants(index, question.run) or b""
    mails = tuple(_brought(index, events, question.mails - sum(map(len, events)))) if question.mails else ()
    return LogPage(question.run, events, last, grants, mails)


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


def read_runs(index: Index, question: ReadRuns) -> tuple[RunLine, ...]:
    """Runs, newest first: those that have begun, and those whose first mail is queued."""
    queued = starting(index.queue.values())
    return list_runs(index, queued, index.subject, index.runs.line, limit=question.limit, before=question.before)


def read_deadlines(index: Index, question: ReadDeadlines) -> Deadlines:
    """A portion of what lies ahead."""
    found = tuple(itertools.islice(index.runs.deadlines(question.after), question.limit + 1))
    return Deadlines(found[: question.limit], len(found) > question.limit)


def read_schedules(tree: Tree) -> tuple[Planned, ...]:
    """The schedules that are deployed, in the order declared. Raises Damaged."""
    try:
        return tuple(planned(tree))
    except Invalid as bad:
        raise Damaged(layout.SCHEDULES, bad.message) from None


def read_approvals(index: Index, question: ReadApprovals) -> Approvals:
    """A portion of what runs ask of people."""
    runs = index.runs.unended(0 if question.after is None else run_ordinal(question.after))
    return asking.approvals(index, runs, index.known, question.limit)


def read_live(index: Index, question: ReadLive) -> LiveRuns:
    """The runs that haven't ended."""
    rests = (run for run in index.runs.unended(0) if isinstance(index.known(run).run, fold.Parked | fold.Paused))
    return LiveRuns(index.runs.driven(), sum(1 for _ in itertools.islice(rests, question.limit)))


def read_census(index: Index, question: ReadCensus) -> Census:
    """What there is, counted."""
    return Census(
        waiting=tuple((_kinds(words), count) for words, count in sorted(index.runs.waiting().items())),
        queued=len(index.queue),
        on_hold=len(index.on_hold),
        rejected=index.state.rejected,
        outbox=len(index.outbox),
        deadlines=index.runs.open_deadlines(),
        next=next_deadline(index, question.now),
    )


def _kinds(words: str) -> Kinds:
    # The index has them from ``kinds_of``, as text.
    return cast("Kinds", tuple(words.split()))


def starting(items: Iterable[Item]) -> dict[RunId, Entry]:
    """The first mail of each run that one is queued for."""
    return {item.queued.entry.run: item.queued.entry for item in items if item.queued.entry.starts}


def _brought(index: Index, events: Iterable[bytes], room: int) -> Iterator[bytes]:
    """The mails that these events bring to the run's code, those for which there is room; others are asked for."""
    for raw in filter(_BRINGING, events):
        match ev.decode(raw):
            case ev.RunStarted(mail=mailed) | ev.SignalReceived(mail=ev.Mailed() as mailed, decision=msgspec.UNSET):
                mail = index.read(layout.mail_path(mailed.arrival))
                if mail is not None and len(mail) <= room:
                    room -= len(mail)
                    yield mail
            case _:
                pass


def _arrival(index: Index, run: RunId, sha256: str) -> int | None:
    """The mail with this hash that a run was given which has ended; its log tells."""
    for raw in runlog.events(index, run):
        event = ev.decode(raw)
        if isinstance(event, ev.RunStarted | ev.SignalReceived) and event.mail and event.mail.sha256 == sha256:
            return event.mail.arrival
    return None

"""The list of runs: the newest of all, or of one deployment, or those in some states, however far back they lie."""

import itertools
from collections.abc import Iterable

from substrate.messages import RunLine
from waypost.host.answers.records import RunRow, Runs
from waypost.host.errors import Usage
from waypost.host.keeping_errors import NoSuchDeployment
from waypost.host.reading.deployment_why import blocks, halted
from waypost.host.reading.explain import Situation
from waypost.host.reading.narrate import printable
from waypost.host.reading.source import LIST, Source, readable
from waypost.model.ids import RunId

LIVE = ("queued", "running", "cancelling", "parked", "paused")
STATES = (*LIVE, "completed", "failed", "cancelled")
"""What a run can be in a list."""
ANY_LIVE = "live"
"""Stands for all of ``LIVE``."""
_BRIEF = 60
_WAITS = 2


def listed(source: Source, limit: int = LIST, *, deployment: str | None = None, states: Iterable[str] = ()) -> Runs:
    """So many runs, newest first; of one deployment, or of all; in some states (``ANY_LIVE`` is several), or in any.

    Raises NoSuchDeployment, Usage.
    """
    wanted = _wanted(states)
    situations = {each.name: each for each in source.situations()}
    if deployment is None:
        found, unread = readable(source, lambda name: _newest(source, name, wanted, limit + 1))
    elif deployment in situations:
        found, unread = {deployment: _newest(source, deployment, wanted, limit + 1)}, ()
    else:
        raise NoSuchDeployment(deployment, tuple(situations))
    rows = [_row(name, line, _stopped(situations[name])) for name, lines in found.items() for line in lines]
    rows.sort(key=lambda row: row.started, reverse=True)
    return Runs(runs=tuple(rows[:limit]), more=len(rows) > limit, unread=unread)


def _wanted(states: Iterable[str]) -> frozenset[str]:
    asked = set(states) or set(STATES)
    for word in asked:
        if word not in {*STATES, ANY_LIVE}:
            raise Usage(f"no run is ever {word[:40]!r}", hint=f"a state is one of {', '.join(STATES)}, or {ANY_LIVE}")
    return frozenset(asked) | (frozenset(LIVE) if ANY_LIVE in asked else frozenset())


def _newest(source: Source, deployment: str, states: frozenset[str], limit: int) -> list[RunLine]:
    """So many runs in one of these states, a page at a time, however many others lie between them."""
    most = limit if states.issuperset(STATES) else LIST
    found: list[RunLine] = []
    before: RunId | None = None
    while len(found) < limit:
        page = source.runs(deployment, most, before)
        found += (line for line in page if line.state in states)
        if len(page) < most:
            break
        before = page[-1].run
    return found[:limit]


def _stopped(situation: Situation) -> str:
    """What each live run of a deployment waits on before all else; empty where it can go on, or nobody runs it."""
    if still := halted(situation):
        return f"operator: its process {still}"
    shown = situation.code or situation.state
    return f"operator: its deployment is {shown}" if shown and blocks(situation) else ""


def _row(deployment: str, line: RunLine, stopped: str) -> RunRow:
    first = [stopped] if stopped and line.waiting else []
    own = [f"{wait.kind}: {printable(wait.detail, _BRIEF)}" for wait in itertools.islice(line.waiting, _WAITS)]
    more = " …" if len(line.waiting) > _WAITS else ""
    return RunRow(
        run=line.run,
        deployment=deployment,
        state=line.state,
        started=line.started,
        changed=line.changed,
        seq=line.seq,
        subject=printable(line.subject, _BRIEF),
        waiting="; ".join((*first, *own)) + more,
        parent=line.parent,
    )

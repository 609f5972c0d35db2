"""Answers as text: what a person reads in a terminal, or a program line by line. Pure but for the time zone."""

import re
from collections.abc import Iterable, Iterator, Sequence
from datetime import datetime
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from waypost.host.reading.held import WouldGo

from waypost.cli.fitting import padded, width
from waypost.cli.output import harmless
from waypost.host.answers.records import (
    ApprovalShown,
    DeploymentReset,
    DeploymentVerified,
    RunRow,
    Runs,
    RunShown,
    Unread,
    Verified,
    WaitingOn,
)

ISOLATION = {
    "namespace": "workflow code sees its own files and processes, and nothing of yours",
    "uid": "workflow code runs as a user of its own, and sees what every user of this machine sees",
    "none": "workflow code runs as this user and is kept from mistakes, not from malice",
}


_TREE = re.compile(r'File "[^"\n]*/code/[0-9a-f]{64}/tree/')
"""What comes before the path of a deployed file as its author knows it."""


def clock(at: str) -> str:
    """An ISO 8601 time as a clock shows it here: ``12:03:44``."""
    return datetime.fromisoformat(at).astimezone().strftime("%H:%M:%S")


def moment(at: str | None) -> str:
    """An ISO 8601 time as people write it here, with its day: ``2026-11-29 12:03:44``."""
    return datetime.fromisoformat(at).astimezone().strftime("%Y-%m-%d %H:%M:%S") if at else ""


def count(number: int, thing: str, ending: str = "s") -> str:
    """So many of them: ``1 mail``, ``2,000 mails``."""
    return f"{number:,} {thing}{'' if number == 1 else ending}"


def isolation(said: str) -> str:
    """What the isolation of a host protects against, with its limits, and why it is no stronger one."""
    if not said:
        return "no host has it up, so no isolation is in force"
    kind, _, why = said.partition(": ")
    means = ISOLATION.get(kind.partition(" ")[0], "")
    return f"isolation {kind}" + (f": {means}" if means else "") + (f" ({harmless(why)})" if why else "")


def show(run: RunShown) -> Iterator[str]:
    """A run with its timeline."""
    by = f"  from {run.sender}" if run.sender else ""
    by = f"  child {harmless(run.child)} of {run.parent}" if run.parent else by
    yield f"{run.run}  {run.deployment}  {run.state}{by}"
    for line in run.lines:
        yield f"{line.seq:5}  {moment(line.at)}  {line.text}"
    if not run.lines:
        yield "no event yet: its mail is queued"
    for wait in run.waiting:
        yield f"waits on {_wait(wait)}"
    yield from (f"    {harmless(line)}" for line in _TREE.sub('File "', run.traceback).splitlines())


def _wait(wait: WaitingOn) -> str:
    since = f", since {moment(wait.since)}" if wait.since else ""
    deadline = f", until {moment(wait.until)}" if wait.until else ", no deadline"
    return harmless(f"{wait.kind}: {wait.detail}{since}{deadline}")


def approvals(found: Iterable[ApprovalShown]) -> Iterator[str]:
    """Open approvals, each with the command that answers it; a line that says so where there is none."""
    each = None
    for each in found:
        until = f", until {moment(each.deadline)}" if each.deadline else ""
        who = harmless(", ".join(each.who))
        yield f"{each.run} {each.call}  {harmless(each.title)}  asked {who} at {moment(each.at)}{until}"
        yield f"  next: waypost approve {each.run} --call '{each.call}'   (or: waypost reject …)"
    if each is None:
        yield "nothing is asked of anybody"


def reset(given: DeploymentReset) -> Iterator[str]:
    """What follows where a deployment isn't crash-looping any more."""
    name = given.deployment
    if given.held:
        yield f"{name} isn't crash-looping any more, but it is held: it has no process, and its runs stay as they are"
        yield f"next: `waypost resume {name}` lists what would go out, and lets it go on"
    elif given.ending:
        yield f"{name} is given a process again; it is drained: no run begins, and its live runs go on until they end"
        yield f"next: `waypost drain {name} --end` shows what it waits for; `waypost resume {name}` ends the drain"
    else:
        yield f"{name} is given a process again; its live runs go on where they were"


def would_go(name: str, go: "WouldGo") -> Iterator[str]:
    """What a held deployment would do if it went on."""
    epoch = go.epoch
    yield f"{name} is held after {go.why}"
    if epoch is not None:
        begun = f"began after flush {epoch.after.flush} by {epoch.why}, {moment(epoch.at)}"
        yield f"  epoch       {epoch.epoch}, which {begun}"
    if epoch is not None and epoch.lost is not None:
        yield f"  missing     {epoch.lost} of epoch {epoch.lost.epoch} was noted here and is not in it"
    yield from _listed("would go out", go.mails, "no mail waits to go out")
    yield from _listed("would go on", go.runs, "no run is live")
    if go.queued:
        yield f"  queued      {count(go.queued, 'mail')} would be taken up"
    if go.more:
        yield "  more        longer lists than these"


def _listed(what: str, lines: Sequence[str], none: str) -> Iterator[str]:
    yield f"  {what}: {len(lines) or none}"
    yield from (f"    {line}" for line in lines)


HEADINGS = ("run", "deployment", "state", "started", "changed", "waits on", "subject")


def row(run: RunRow) -> tuple[str, ...]:
    """One line of the list of runs, by ``HEADINGS``."""
    return (run.run, run.deployment, run.state, moment(run.started), moment(run.changed), run.waiting, run.subject)


def left_out(answer: Runs) -> Iterator[str]:
    """What to say beside a list that doesn't show all there are."""
    if answer.more:
        which = "a deployment's name and --state say which, --limit how many"
        yield f"only the newest {len(answer.runs)} are listed; {which}"
    yield from unread(answer.unread)


def unread(deployments: Iterable[Unread]) -> Iterator[str]:
    """What to say of deployments that a list leaves out."""
    return (f"{each.deployment} isn't listed: {harmless(each.why)}" for each in deployments)


def columns(rows: Sequence[Sequence[str]]) -> Iterator[str]:
    """Rows in aligned columns, two blanks between; whatever a cell has, it stays one cell of one line."""
    shown = [[harmless(cell) for cell in row] for row in rows]
    widths = [max(map(width, column)) for column in zip(*shown, strict=True)]
    for each in shown:
        yield "  ".join(padded(cell, room) for cell, room in zip(each, widths, strict=True)).rstrip()


def verified(answer: Verified) -> Iterator[str]:
    """What the check found, by deployment."""
    for each in answer.deployments:
        # A clone comes from anywhere, and names and paths in it with it.
        yield from map(harmless, _verified(each))
    if not answer.deployments:
        yield "there is nothing to verify yet"
    if answer.isolation is not None:  # a clone by itself isn't run by anybody
        yield isolation(answer.isolation)


def _verified(each: DeploymentVerified) -> Iterator[str]:
    yield f"{each.deployment}: {'sound' if each.sound else 'NOT SOUND'}"
    pinned = "pinned" if each.pinned else "not pinned: it is the key that the history itself names"
    yield f"  signer      {each.signer} ({pinned})"
    if len(each.signers) > 1:
        yield f"  signed by   {', then '.join(each.signers)}"
    if each.earlier:
        yield f"  before      {', '.join(each.earlier)}: restored from there, which only the present signer vouches for"
    yield f"  repository  {each.repository}" + (f", epoch {each.epoch}" if each.epoch > 1 else "")
    flushes, commits = count(each.flushes, "flush", "es"), count(each.commits, "commit")
    yield f"  chain       {flushes}, {commits}; {count(each.runs, 'run')}, {count(each.events, 'event')}"
    yield f"  reach       {each.reach}"
    for fault in each.faults:
        where = ", ".join(filter(None, (f"commit {fault.commit[:12]}" if fault.commit else "", fault.path)))
        yield f"  fault       {f'{where}: ' if where else ''}{fault.fault}"

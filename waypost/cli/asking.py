"""``waypost approvals``: what runs ask of people, once or as it happens."""

import itertools
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial

import msgspec

from waypost.cli import words
from waypost.cli.client import Client
from waypost.cli.output import err, harmless, out
from waypost.cli.place import existing
from waypost.cli.reading import either, give, pages_of
from waypost.host.answers.records import ApprovalShown, OpenApprovals
from waypost.host.datadir.directory import DataDir
from waypost.host.errors import NoHost, Unanswered
from waypost.host.exits import Exit
from waypost.host.watching.sink_logic import how_closed
from waypost.model.errors import WaypostError
from waypost.model.events import decode
from waypost.model.ids import CallId


class Line(msgspec.Struct, frozen=True):
    """What one who follows is told."""

    announced: ApprovalShown | None = None
    withdrawn: dict[str, str] | None = None
    listed: str | None = None
    unread: dict[str, str] | None = None


def approvals(data: str | None, *, follow: bool, as_json: bool) -> Exit:
    """``waypost approvals``, and with ``--follow`` until the host ends."""
    where = existing(data)
    if follow:
        return _follow(where, as_json=as_json)
    answer = either(where, lambda client: client.get(OpenApprovals, "approvals"), _offline)
    give(answer, words.approvals(answer.approvals), as_json=as_json)
    err(*words.unread(answer.unread))
    return Exit.LEFT if answer.unread else Exit.OK


def _follow(where: DataDir, *, as_json: bool) -> Exit:
    with suppress(Unanswered):  # killed: as one that has ended, since nothing was asked of it but to tell
        for raw in Client(where.socket).follow("approvals", "follow"):
            line = raw.strip()
            if line and as_json:
                out(line.decode())
            elif line:
                out(*in_words(msgspec.json.decode(line, type=Line), partial(_closed, where)))
    raise NoHost(str(where.path), "the host has ended, or has broken off because too much was left unread")


def _closed(where: DataDir, run: str, call: str) -> str:
    """How an approval was closed that the sink has missed; empty where its log can't say so any more."""
    try:
        raws = itertools.chain.from_iterable(pages_of(where, run))
        return how_closed(map(decode, raws), CallId(call))
    except WaypostError:
        return ""


def in_words(line: Line, closed: Callable[[str, str], str]) -> Iterator[str]:
    """A line for people; ``closed`` looks into a run's log."""
    if line.announced is not None:
        yield from words.approvals((line.announced,))
    elif line.withdrawn is not None:
        gone = line.withdrawn
        why = gone["why"]
        if why == "gone":  # while nobody could see it: the log has it
            why = closed(gone["run"], gone["call"]) or "it was closed while nobody could see it"
        yield f"{gone['run']} {gone['call']}  no longer asks: {why}"
    elif line.unread is not None:
        yield f"{line.unread['deployment']} can't be read: {harmless(line.unread['why'])}"


def _offline(data: DataDir) -> OpenApprovals:
    from waypost.host.reading import offline, source

    return source.approvals(offline.Offline(data))

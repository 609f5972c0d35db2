"""``waypost approvals``: what runs ask of people, once or as it happens."""

from collections.abc import Iterator

import msgspec

from waypost.cli import words
from waypost.cli.client import Client
from waypost.cli.output import err, harmless, out
from waypost.cli.place import existing
from waypost.cli.reading import either, give
from waypost.host.answers import ApprovalShown, OpenApprovals
from waypost.host.datadir import DataDir
from waypost.host.errors import NoHost
from waypost.host.exits import Exit


class _Line(msgspec.Struct, frozen=True):
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
    for raw in Client(where.socket).follow("approvals", "follow"):
        line = raw.strip()
        if line and as_json:
            out(line.decode())
        elif line:
            out(*_words(msgspec.json.decode(line, type=_Line)))
    raise NoHost(str(where.path), "the host has ended, or has broken off because too much was left unread")


def _words(line: _Line) -> Iterator[str]:
    if line.announced is not None:
        yield from words.approvals((line.announced,))
    elif line.withdrawn is not None:
        gone = line.withdrawn
        yield f"{gone['run']} {gone['call']}  no longer asks: {gone['why']}"
    elif line.unread is not None:
        yield f"{line.unread['deployment']} can't be read: {harmless(line.unread['why'])}"


def _offline(data: DataDir) -> OpenApprovals:
    from waypost.host import offline, source

    return source.approvals(offline.Offline(data))

"""Repositories as the reference system writes them, made here: for the import's tests.

A repository is two branches of plain files; ``Reference`` writes each commit of them through libgit2. The helpers make
the records that such a repository is made of, as that system spells them; ``written`` says what becomes of events.
"""

import base64
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pygit2

from substrate.reference import words
from substrate.reference.log import NewLog
from substrate.reference.records import read_event
from substrate.runlog import Known
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.ids import Generation, RunId
from waypost.model.imported import Imported
from waypost.model.limits import DEFAULT

ADDRESS = "run_dep@bench.example"
BEGAN = 1_790_000_000_000
RUN = RunId("run_1_0123456789abcdef")
MAIL = ev.Mailed(arrival=2, id="<b@x>", sha256="0" * 64, sender="ann@example.com")
_AUTHOR = pygit2.Signature("interchange-hub", "hub@interchange.local", 1_790_000_000, 0)


class Reference:
    """One repository, bare. ``main`` and ``events`` are commits of whole trees: path to bytes."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._repository = pygit2.init_repository(str(path), bare=True)
        self._tips: dict[str, pygit2.Oid] = {}

    def commit(self, branch: str, files: Mapping[str, bytes], modes: Mapping[str, int] | None = None) -> None:
        """One commit whose tree is exactly these files; ``modes`` for those that are no plain files."""
        parents = [self._tips[branch]] if branch in self._tips else []
        tree = self._tree([(path.split("/"), data, (modes or {}).get(path, 0o100644)) for path, data in files.items()])
        name = f"refs/heads/{branch}"
        self._tips[branch] = self._repository.create_commit(name, _AUTHOR, _AUTHOR, "a commit", tree, parents)

    def _tree(self, files: Iterable[tuple[list[str], bytes, int]]) -> pygit2.Oid:
        builder = self._repository.TreeBuilder()
        below: dict[str, list[tuple[list[str], bytes, int]]] = {}
        for parts, data, mode in files:
            if len(parts) == 1:
                builder.insert(parts[0], self._repository.create_blob(data), mode)
            else:
                below.setdefault(parts[0], []).append((parts[1:], data, mode))
        for name, rest in below.items():
            builder.insert(name, self._tree(rest), 0o040000)
        return builder.write()


def event(seq: int, kind: str, **fields: Any) -> bytes:  # Any: whatever JSON a kind of theirs has
    """An event as it lies there; each is a second after the one before."""
    return compact({"seq": seq, "type": kind, "at": moment(seq), **fields})


def moment(seq: int) -> str:
    """When the event with this number was."""
    return f"2026-01-02T03:{seq // 60 % 60:02d}:{seq % 60:02d}.000Z"


def compact(value: object) -> bytes:
    """JSON as JavaScript writes it: half surrogate pairs escaped, all else as it is."""
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "backslashreplace")


def one_a_file(run: str, events: Sequence[bytes]) -> dict[str, bytes]:
    """A run's log, one file an event."""
    return {f"runs/{run}/events/{json.loads(raw)['seq']}.json": raw for raw in events}


def sealed(run: str, events: Sequence[bytes]) -> dict[str, bytes]:
    """A run's log in one file."""
    return {f"runs/{run}/events.jsonl": b"".join(raw + b"\n" for raw in events)}


def written(*raws: bytes, stored: frozenset[str] = frozenset()) -> tuple[list[ev.AnyEvent], NewLog]:
    """These events behind a RunStarted, each in our words or as a Foreign one; and the log that they make."""
    imported = Imported(system="interchange", run="r", commit="0" * 40)
    started = ev.RunStarted(
        mail=MAIL,
        definition="0" * 64,
        code="0" * 64,
        python="",
        waypost="",
        generation=Generation(0),
        grants="0" * 64,
        origin="0" * 64,
        imported=imported,
    )
    log, names = NewLog(RUN, Known(fold.Absent(), prev="0" * 64), DEFAULT), words.Names()
    assert log.add((started,), 0, None)
    made: list[ev.AnyEvent] = []
    for raw in raws:
        each = read_event("e", raw)
        ledger = fold.ledger(log.known.run)
        assert ledger is not None
        mail = MAIL if words.awaited(each, ledger, names) else None
        said = words.said(each, ledger, names, each.time() or 0, mail, stored, DEFAULT)
        recorded = log.add(said.events, each.time() or 0, "0" * 64) if said.events else None
        if recorded is None:
            recorded = log.add((words.foreign(each),), each.time() or 0, "0" * 64)
        assert recorded is not None
        made += [one.event for one in recorded]
    return made, log


def mail(name: str, *, answers: str | None = None, text: str = "hello") -> bytes:
    """A mail; ``name`` becomes its Message-ID, without the angles."""
    head = f"From: ann@example.com\r\nTo: {ADDRESS}\r\nSubject: about {name}\r\nMessage-ID: <{name}>\r\n"
    reply = "" if answers is None else f"In-Reply-To: <{answers}>\r\n"
    return f"{head}{reply}\r\n{text}\r\n".encode()


def payload(name: str, text: str = "hello") -> dict[str, Any]:  # Any: JSON
    """What an event has of such a mail."""
    raw = {"from": ["ann@example.com"], "subject": [f"about {name}"], "message-id": [f"<{name}>"]}
    return {
        "headers": {"from": "ann@example.com", "to": [ADDRESS], "date": "", "messageId": f"<{name}>"},
        "rawHeaders": raw,
        "parts": [{"contentType": "text/plain", "ref": "mail-part:///r/m/0-part.plain", "text": text}],
    }


def queued(
    name: str, received: int, raw: bytes | None, *, place: str = "inbox", address: str = ADDRESS
) -> dict[str, bytes]:
    """An entry of inbox or processing."""
    body: dict[str, object] = {"messageId": f"<{name}>", "receivedAt": received, "address": address}
    body["mailAuditRef"] = {"store": "in-process", "path": f"<{name}>"}
    if raw is not None:
        body["rawMessage"] = base64.b64encode(raw).decode()
    return {f"{_root(address)}/{place}/{received}-<{name}>.json": compact(body)}


def consumed(
    name: str, received: int, run: str, *, rejection: str | None = None, address: str = ADDRESS
) -> dict[str, bytes]:
    """A consumed entry."""
    body: dict[str, object] = {"messageId": f"<{name}>", "receivedAt": received, "address": address, "runId": run}
    body |= {"consumedAt": received + 100, "mailAuditRef": {"store": "in-process", "path": f"<{name}>"}}
    if rejection is not None:
        body["rejection"] = {"code": rejection, "message": "it was refused"}
    return {f"{_root(address)}/consumed/<{name}>.json": compact(body)}


def watermark(value: int, *, address: str = ADDRESS) -> dict[str, bytes]:
    """An address's watermark."""
    return {f"{_root(address)}/watermark.json": compact({"watermark": value})}


def _root(address: str) -> str:
    segment = quote(address, safe="-_.!~*'()")
    return f"addresses/{segment}"

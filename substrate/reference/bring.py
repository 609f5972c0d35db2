"""A whole new repository out of a survey: its runs, then what was consumed there, then what still waits.

No imported run goes on: its program isn't ours. One that was live there is ended here by a RunFailed of type
``Imported`` that says so; a reply to its thread starts a new run that names it. Mail that waits there waits here. In
memory is one run's log at most.
"""

from dataclasses import dataclass, field
from pathlib import Path

from substrate import layout
from substrate.errors import Damaged
from substrate.files.disk import Disk
from substrate.messages import Enqueue
from substrate.operations import Change
from substrate.operations.intake import enqueue
from substrate.reference import arrivals
from substrate.reference.desk import Desk
from substrate.reference.errors import Unreadable
from substrate.reference.queue import Queued, message_of
from substrate.reference.rebuilt import rebuilt
from substrate.reference.survey import Survey
from substrate.reference.transcript import UNTOLD, Post, Transcript
from substrate.settings import Settings
from substrate.signing.keys import SigningKey
from waypost.model.grants import encode
from waypost.model.ids import RunId
from waypost.model.limits import Limits
from waypost.model.times import Now


@dataclass(frozen=True, slots=True)
class Brought:
    """One run: its name there, its id here, how many events it has here, and whether it was live there."""

    name: str
    run: RunId
    events: int
    was_live: bool


@dataclass(slots=True)
class Result:
    """What was taken over. The rest is in the survey's ``leaving``, to which this adds."""

    runs: list[Brought] = field(default_factory=list)
    queued: int = 0
    """Mails that wait in the inbox."""
    held: int = 0
    """Mails on hold: stale, or under an id that another mail has."""
    filed: int = 0
    """Mails that were consumed there and caused no event: their ids are known, they are among the rejected."""


def bring(
    path: Path,
    settings: Settings,
    found: Survey,
    *,
    key: SigningKey,
    disk: Disk,
    limits: Limits,
    now: Now,
    version: str,
) -> Result:
    """Make the repository at ``path``, where nothing may be, and close it. ``version``: this Waypost's, for the record.

    Raises SubstrateError; what is at ``path`` then is no whole import and must go.
    """
    assert not path.exists(), path
    desk = Desk.open(path, settings, key=key, disk=disk, limits=limits, now=now)
    assert isinstance(desk, Desk)
    try:
        desk.begin(now)
        made = _Bringing(desk, found, version)
        made.grants()
        made.runs()
        made.consumed()
        made.waiting()
        desk.end()
    except BaseException:
        for _ in desk.void("the import has failed"):
            pass
        raise
    return made.result


class _Bringing:
    def __init__(self, desk: Desk, found: Survey, version: str) -> None:
        self.result = Result()
        self._desk, self._found, self._version = desk, found, version
        queue = found.queue
        self._queued = {each.entry.id: each for each in (*queue.consumed, *queue.waiting)}
        self._used: set[str] = set()
        self._runs: dict[str, RunId] = {}

    def grants(self) -> None:
        """What each step may do, as far as what was granted there means anything here."""
        puts = {layout.step_grants_path(step): encode(grants) for step, grants in sorted(self._found.grants.items())}
        if puts:
            self._desk.carry(Change(author="hub", subject="import what its steps may do", puts=puts))

    def runs(self) -> None:
        """Every run, in the order in which they began, each with its mails."""
        for found in self._found.runs:
            transcript = Transcript(
                self._desk,
                self._found.source,
                found,
                self._found.commit,
                self._version,
                self._post,
                self._found.leaving,
            )
            try:
                run = transcript.write()
            except Unreadable as bad:
                raise Damaged(bad.path, f"it can't be read any more: {bad.why}") from bad
            self._used |= transcript.used
            self._runs[found.name] = run
            self.result.runs.append(Brought(found.name, run, self._desk.view.known(run).seq, not found.ended))

    def consumed(self) -> None:
        """What was consumed there and is in no run's log: rejected, or part of a log that is no more."""
        for each in self._found.queue.consumed:
            if each.entry.id not in self._used:
                self._file(each, each.entry.rejected or UNTOLD)

    def waiting(self) -> None:
        """What waits there, waits here; but what a run was given already is not given to another."""
        served = frozenset[str]().union(*(run.mails for run in self._found.runs))
        for each in self._found.queue.waiting:
            if each.entry.id in self._used:
                continue
            if each.entry.id in served:
                self._file(each, UNTOLD)
            else:
                self._enqueue(each)

    # --- one mail -----------------------------------------------------------------------------------------------------

    def _enqueue(self, each: Queued) -> None:
        raw = self._message(each)
        if raw is None:
            self._left(each, "the message itself isn't there; ask its sender for it")
            return
        context = self._desk.context(each.entry.received)
        if each.entry.received < self._found.queue.watermark:
            made = arrivals.stale(self._desk.view, raw, self._desk.context().now.wall, context)
            decided = made if made is not None else enqueue(self._desk.view, Enqueue(raw), context)
        else:
            decided = enqueue(self._desk.view, Enqueue(raw), context)
        if not isinstance(decided, Change):
            self._left(each, getattr(decided, "why", "a mail with the same id and the same bytes is there already"))
            return
        self._desk.carry(decided)
        if decided.value.place == "hold":
            self.result.held += 1
        else:
            self.result.queued += 1

    def _file(self, each: Queued, code: str) -> None:
        """A mail that caused no event: its id is refused for the horizon, as it was there."""
        desk = self._desk
        known = self._runs.get(each.entry.run)
        why = f"a consumed mail of {each.entry.address}, whose bytes are gone or can't be taken"
        own = self._message(each)
        for raw in filter(None, (own, rebuilt(None, why, message_id=each.entry.id))):
            run, state = (known, desk.view.state) if known else arrivals.next_run(desk.view, desk.context())
            entry = desk.take_in(raw, run, state, each.entry.received, starts=known is None)
            if entry is not None:
                break
        else:
            self._left(each, "a mail of its id is there already")
            return
        desk.file(entry, code, each.entry.received if each.entry.consumed is None else each.entry.consumed)
        self.result.filed += 1
        if raw is not own:
            self._left(each, "the bytes of the mail are gone, or can't be taken: its id is filed without them")

    def _post(self, name: str) -> Post | None:
        each = self._queued.get(name)
        if each is None:
            file = self._found.messages.get(name)
            raw = None if file is None else self._read(file)
            return None if raw is None else Post(raw)
        received = each.entry.received
        return Post(self._message(each), received, received if each.entry.consumed is None else each.entry.consumed)

    def _message(self, each: Queued) -> bytes | None:
        file = each.file.oid if each.has_message else self._found.messages.get(each.entry.id)
        return None if file is None else self._read(file)

    def _read(self, file: bytes) -> bytes | None:
        try:
            return message_of(self._found.source, file)
        except Unreadable:
            return None

    def _left(self, each: Queued, why: str) -> None:
        self._found.leaving.add(each.path, why)

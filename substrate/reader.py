"""Read-only views of a repository, with or without a host at work on it: nothing on disk is touched.

A ``Reader`` stands at one commit: the last durable flush when it was opened (storage §3, readers), or one that is
named; open another to see what came later. Live and sealed runs read alike.
"""

import functools
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from substrate import asking, layout, runlog
from substrate import state as files
from substrate.errors import Damaged, NoSuchRun
from substrate.files.folder import Folder
from substrate.indexing import kept
from substrate.indexing.derived import CardsOfAFile
from substrate.indexing.listing import list_runs, told_line
from substrate.messages import (
    Approval,
    Drain,
    InForce,
    Kept,
    Latch,
    LogPage,
    Planned,
    ReadHold,
    ReadRejected,
    RejectedPage,
    RunLine,
)
from substrate.operations.granting import in_force
from substrate.questions import read_schedules
from substrate.rules.code import code_of
from substrate.runlog import Known
from substrate.signing.keys import PublicKey
from substrate.storage.readview import ReadView, open_readonly
from waypost.model import mail
from waypost.model.code import Deployed
from waypost.model.code import decode as decode_deployed
from waypost.model.errors import Invalid
from waypost.model.ids import RunId
from waypost.model.queue import Entry, decode


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """A deployment's repository at this moment. ``sealed`` is the flush that stock git sees."""

    deployment: str
    address: str
    repository: str
    epoch: int
    generation: int
    held: str
    """Why nothing may leave and no child may run until an operator says so; empty as a rule."""
    held_at: str
    """Since when, in ISO 8601 UTC, as far as that was written down."""
    latch: Latch | None
    """Why no child may run until an operator resets it."""
    drain: Drain | None
    """Whether an operator has it come to rest, which isn't over."""
    flush: int
    flush_hash: str
    sealed: int
    head: str


@dataclass(frozen=True, slots=True)
class QueueLine:
    """A mail and where it stands: ``inbox``, ``processing``, ``hold`` or ``consumed``."""

    place: str
    entry: Entry
    attempt: int


class Reader:
    """One repository at one moment. Every method may raise Damaged, naming the file that can't be read."""

    def __init__(self, view: ReadView) -> None:
        self._view = view
        # Whoever reads page by page reads one log to its end.
        self._sealed = functools.lru_cache(maxsize=1)(functools.partial(runlog.sealed_events, view))

    @classmethod
    def open(cls, path: str | Path, key: PublicKey, at: str | None = None) -> "Reader":
        """Look at a repository; ``key`` is the host's, which must have signed it. ``at``: a commit, 40 hex digits.

        Raises NotARepository, NewerFormat, Damaged, ForeignJournal, Unsigned, NotInHistory, OSError.
        """
        return cls(open_readonly(path, key, at))

    def facts(self) -> Facts:
        """What the repository is and how far it reaches."""
        view = self._view
        return Facts(
            deployment=view.format.deployment,
            address=view.format.address,
            repository=view.repository_id,
            epoch=view.format.epoch,
            generation=self._state().generation,
            held=self._state().held,
            held_at=self._state().held_at or "",
            latch=self._state().latch or None,
            drain=self._state().drain or None,
            flush=view.flush_number,
            flush_hash=view.flush_hash,
            sealed=view.sealed_number,
            head=view.head,
        )

    def runs(self, limit: int = 1000, before: RunId | None = None) -> tuple[RunLine, ...]:
        """Runs, newest first, those among them whose first mail is still queued; only those older than ``before``."""
        queued = {line.entry.run: line.entry for line in self.queue() if line.entry.starts and line.place != "hold"}
        with closing(CardsOfAFile(Path(Folder(str(self._view.path)).derived))) as cards:

            def told(run: RunId) -> RunLine:
                return told_line(self._view, run, cards.card(run), self._subject)

            return list_runs(self._view, queued, self._subject, told, limit=limit, before=before)

    def run(self, run: RunId) -> Known:
        """A run's state and its newest seq. Raises NoSuchRun."""
        known = runlog.load(self._view, run)
        if not known.seq:
            raise NoSuchRun(run)
        return known

    def log(self, run: RunId, *, after: int = 0) -> Iterator[bytes]:
        """The stored events of a run with a seq above ``after``; none for a run that isn't there."""
        return runlog.events(self._view, run, after=after)

    def page(self, run: RunId, *, after: int = 0, limit: int) -> LogPage:
        """Stored events after a seq: as many as fit ``limit`` bytes, at least one. Raises NoSuchRun."""
        events, last = runlog.page(self._view, run, after=after, limit=limit, remembered=self._sealed)
        if not last:
            raise NoSuchRun(run)
        grants = runlog.find_grants(self._view, run) or b""
        return LogPage(run, events, last, grants)

    def blob(self, run: RunId, sha256: str) -> bytes | None:
        """A value over the inline limit, by its hash; None where there is none."""
        return runlog.find_blob(self._view, run, sha256)

    def mail(self, arrival: int) -> bytes | None:
        """The raw bytes of an accepted mail."""
        return self._view.read(layout.mail_path(arrival))

    def queue(self, *, consumed: bool = False) -> Iterator[QueueLine]:
        """Mails in inbox, processing and hold, each by arrival; with ``consumed`` those within the horizon, too."""
        address = self._view.format.address
        for place in ("inbox", "processing", "hold"):
            for directory, name in runlog.leaves(self._view, layout.queue_dir(address, place)):
                yield self._line(place, f"{directory}/{name}")
        for directory, name in runlog.leaves(self._view, layout.queue_dir(address, "consumed")) if consumed else ():
            for file in self._view.entries(f"{directory}/{name}"):
                yield self._line("consumed", f"{directory}/{name}/{file}")

    def on_hold(self, limit: int = 1000) -> tuple[Kept, ...]:
        """Mails on hold, oldest first."""
        entries = (line.entry for line in self.queue() if line.place == "hold")
        return kept.on_hold(self._view, entries, ReadHold(limit=limit))

    def rejected(self, cursor: tuple[int, int] | None = None) -> RejectedPage:
        """Mails that were rejected within the horizon, from where the page before ended."""
        question = ReadRejected(cursor=cursor)
        return kept.rejected(self._view, self._view.format.address, self._state(), question)

    def approvals(self) -> tuple[Approval, ...]:
        """The open approvals of live runs, oldest run first."""
        live = tuple(runlog.oldest_first(self._view, layout.RUNS))
        return asking.approvals(self._view, live, lambda run: runlog.load(self._view, run), len(live)).found

    def granted(self) -> InForce:
        """What its steps are granted."""
        return in_force(self._view)

    def deployed(self) -> Deployed | None:
        """What the deployment runs; None where nothing was ever deployed."""
        raw = self._view.read(layout.DEPLOYED)
        try:
            return None if raw is None else decode_deployed(raw)
        except Invalid as bad:
            raise Damaged(layout.DEPLOYED, bad.message) from None

    def schedules(self) -> tuple[Planned, ...]:
        """The cron schedules of what it runs, and how far each has come."""
        return read_schedules(self._view)

    def code(self, tree: str) -> dict[str, bytes]:
        """The files of a tree of code, by their paths in it; none where it isn't there."""
        return code_of(self._view, tree)

    def _line(self, place: str, path: str) -> QueueLine:
        try:
            entry = decode(self._view.read(path) or b"")
        except Invalid as bad:
            raise Damaged(path, bad.message) from None
        attempt = layout.place_of(path).attempt
        return QueueLine(place, entry, entry.attempt if attempt is None else attempt)

    def _state(self) -> files.State:
        try:
            return files.decode_state(self._view.read(layout.STATE) or b"")
        except Invalid as bad:
            raise Damaged(layout.STATE, bad.message) from None

    def _subject(self, arrival: int) -> str:
        return mail.subject(self._view.read(layout.mail_path(arrival)) or b"")

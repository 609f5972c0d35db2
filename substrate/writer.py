"""One repository at work: operations in, commits and answers out; visible first, then durable (storage §2).

``Writer`` is the SubstrateActor's whole behaviour without its thread. Its methods return effects in order: what to tell
whom, and when to come back. It writes to disk only in ``flush`` and ``seal``; when a flush fails, every operation of
the batch is answered Withheld, nothing that was visible counts any more, and the writer is finished. Nobody asks it to
seal finished runs: that comes after a flush, one run a turn, so that no append waits for more than one of them.
"""

import functools
import logging
import os
from collections.abc import Generator, Iterator
from pathlib import Path

import msgspec

from substrate import layout
from substrate import state as files
from substrate.deciding import decided, told
from substrate.drops import Drops
from substrate.effects import Again, Effect, SpaceShort, To, answered
from substrate.errors import Damaged, SubstrateError
from substrate.files.disk import Disk
from substrate.files.folder import Folder
from substrate.folding import Folding
from substrate.indexing.index import Index
from substrate.indexing.settling import Settling
from substrate.messages import (
    Committed,
    Done,
    Durable,
    Fact,
    Flush,
    FoldAway,
    Idle,
    Merge,
    Question,
    Queued,
    ReadRest,
    ReadSealed,
    Ref,
    Refused,
    Result,
    Settle,
    Snapshot,
    Stage,
    Submit,
    Withheld,
)
from substrate.operations import Change, Context, Hold, Settled
from substrate.operations.sealing import seal_run
from substrate.requests import is_question
from substrate.resting import rest
from substrate.rules import BrokenRule, Gate, Ground
from substrate.settings import Settings, check_owner
from substrate.signing.keys import SigningKey
from substrate.storage.heads import Heads
from substrate.storage.space import enough, kept, withholds
from substrate.storage.store import Store
from waypost.acting import Reply, Tell, WakeAt
from waypost.model.ids import Generation, RunId
from waypost.model.limits import Limits
from waypost.model.times import Now

_log = logging.getLogger(__name__)
_COMMITTED = Stage.COMMITTED
"""Looked up once, as on the way of every append."""
_FLUSH = Again(Flush())
_FOLD_AWAY = Again(FoldAway())
_SETTLE = Again(Settle())
_RANDOM = functools.partial(os.urandom, 8)


class _Waiting(msgspec.Struct, frozen=True):
    position: int
    to: To
    result: Result


class Writer:
    """The open repository, its subscribers, and the askers that wait for a flush."""

    def __init__(self, store: Store, index: Index, settings: Settings, limits: Limits, now: Now) -> None:
        self._store, self._index = store, index
        self._settling = Settling(index, store.repository_id)
        self._settings, self._limits, self._repository = settings, limits, store.repository_id
        self._gate = Gate(index, Ground(repository=self._repository, address=settings.address, limits=limits))
        self._position = self._durable = 0
        self._subscribers: list[Ref] = []
        self._waiting: list[_Waiting] = []
        self._flush_asked = False
        self._may_fold = len(index.finished)
        """So many of the finished runs, the first ones, have all of their log on disk."""
        self._fold_asked = self._unfit = False
        self._folding: Folding | None = None
        self._drops = Drops(settings.address, limits)
        self._drops.look(index, now)
        self._wake_at: float | None = None
        self._merge_at: float | None = None
        self._room, self._enough = store.room, enough(limits)
        self._short = ""
        """Why mail is withheld, as the parent was told."""

    @classmethod
    def open(cls, path: Path, settings: Settings, *, key: SigningKey, disk: Disk, limits: Limits, now: Now) -> "Writer":
        """Recover the repository, or create it where none was ever noted. Raises SubstrateError."""
        heads = None if settings.heads is None else Heads(settings.heads, disk)
        if not path.exists():
            if heads is not None:
                heads.begin(str(path))
            repository = os.urandom(16).hex()
            first = {
                layout.FORMAT: files.encode(
                    files.Format(
                        format=files.VERSION,
                        repository=repository,
                        epoch=1,
                        deployment=settings.deployment,
                        address=settings.address,
                    )
                ),
                layout.STATE: files.encode(files.State()),
            }
            Store.create(
                path, repository_id=repository, key=key, first=first, at=now.wall, disk=disk, limits=limits
            ).close()
        store = Store.open(path, key=key, disk=disk, limits=limits, heads=heads)
        try:
            check_owner(store.path, store.read(layout.FORMAT) or b"", settings)
            derived = Path(Folder(str(path)).derived)
            index = Index.open(derived, store, settings.address, limits, store.repository_id)
            store.let_go_of_packs()
        except BaseException:
            store.abandon()
            raise
        return cls(store, index, settings, limits, now)

    # --- messages ----------------------------------------------------------------------------------------------------

    def submit(self, submit: Submit, to: To, now: Now) -> Iterator[Effect]:
        """Carry out one operation or question and answer it at its stage."""
        what = submit.what
        result: Result
        if is_question(what):
            result = yield from self._asked(what, now)
        elif self._room < self._enough and (reason := withholds(what, self._room, self._limits)) is not None:
            result = yield from self._short_of_space(reason)
        else:
            verdict = decided(self._index, what, self._context(now))
            match verdict:
                case Change() if not self._store.fits(verdict.puts, verdict.deletes, kept(what, self._limits)):
                    result = yield from self._short_of_space(f"the disk is full: no space for '{verdict.subject}'")
                case Change():
                    broken = yield from self._commit(verdict, now)
                    result = broken or Done(self._position, verdict.value)
                case Settled():
                    result = Done(self._position, verdict.value)
                case Hold():
                    self._index.hold(verdict)
                    result = Done(self._position)
                case Refused() | Withheld():
                    result = verdict
        if submit.stage is _COMMITTED or self._position <= self._durable or isinstance(result, Withheld):
            yield from answered(to, result)
        else:
            # A refusal waits, too: it may rest on what is only visible, and that leaves nobody before it is durable.
            self._waiting.append(_Waiting(self._position, to, result))
        if self._store.pending >= self._limits.flush_operations:
            yield from self.flush(now)

    def subscribe(self, subscriber: Ref, to: To) -> Iterator[Effect]:
        """Send the subscriber a Snapshot now, and every Committed and Durable after it."""
        snapshot = self.snapshot()
        self._subscribers = [each for each in self._subscribers if each.is_alive()]
        self._subscribers.append(subscriber)
        yield Tell(subscriber, snapshot)
        if to.token is not None:
            yield Reply(to.token, snapshot)

    def flush(self, now: Now) -> Iterator[Effect]:
        """End the batch: make what is visible durable, say so, and answer who waited. Raises FlushFailed."""
        self._flush_asked = False
        if not self._store.pending:
            return
        self._durable = self._store.flush()
        self._room = self._store.room
        for subscriber in self._subscribers:
            yield Tell(subscriber, Durable(self._durable))
        done, self._waiting = self._waiting, []
        for each in done:
            yield from answered(each.to, each.result)
        if self._store.wants_seal(now.mono):
            yield Again(Idle())  # in a turn of its own: these answers go first
        self._may_fold = len(self._index.finished)
        self._drops.look(self._index, now)
        yield from self.sweep()
        if self._wake_at is None:
            yield self._wake(now)

    def sweep(self) -> Iterator[Effect]:
        """Schedule the sealing of a finished run and the drop of an old bucket; also at the start, after a crash."""
        if (self._may_fold or self._drops.waiting) and not self._fold_asked:
            self._fold_asked = True
            yield _FOLD_AWAY

    def fold_away(self, now: Now) -> Iterator[Effect]:
        """Seal the run that has been finished longest, or a part of it; the flush after it comes for the next.

        When there is none, the oldest bucket is dropped, if due. A full disk: later. What can't be read stays.
        """
        self._fold_asked = False
        if self._room < self._enough:
            return
        if not self._may_fold:
            change = self._drops.next(self._index, self._context(now))
            if change is not None and (not self._fits(change) or (yield from self._commit(change, now)) is not None):
                self._drops.give_up()
            return
        run = next(iter(self._index.finished))
        if self._folding is None or self._folding.run != run:
            self._folding = Folding(self._index, run, self._repository)
        try:
            if self._folding.step():
                yield from self.sweep()
                return
            decided = seal_run(self._index, run, self._folding.log)
        except Damaged as failure:
            # What others do in this repository goes on: whoever reads the run, and `verify`, will be told the same.
            _log.error("%s can't be sealed: %s", run, failure.message)
            yield from self._leave(run)
            return
        assert isinstance(decided, Change), decided
        if not self._fits(decided):
            return
        if (yield from self._commit(decided, now)) is not None:
            yield from self._leave(run)
            return
        if decided.sealed is not None:
            self._folding = None
            self._may_fold -= 1

    def idle(self, now: Now) -> Iterator[Effect]:
        """Seal if it is time; come back as long as something isn't sealed. Raises FlushFailed, SecondWriter."""
        if self._wake_at is not None and now.mono >= self._wake_at:
            self._wake_at = None
        if self._store.wants_seal(now.mono):
            yield from self.seal(now)
        if self._short and self._room >= self._enough:
            yield from self._short_of_space("")
        if self._store.unsealed and self._wake_at is None:
            yield self._wake(now)

    def seal(self, now: Now) -> Iterator[Effect]:
        """Flush and seal now, so that stock git sees all. Raises FlushFailed, SecondWriter."""
        yield from self.flush(now)
        self._store.seal()
        self._room = self._store.room
        if self._unfit:
            self._fold_asked = self._unfit = False
            yield from self.sweep()
        if self._room >= self._enough and self._settling.begin():
            yield _SETTLE
        yield from self.merge_soon(now)

    def settle(self) -> Iterator[Effect]:
        """Write a portion of what is durable into the derived index."""
        if self._settling.step():
            yield _SETTLE

    def merge(self, now: Now) -> Iterator[Effect]:
        """Make one step of merging packs. Between two steps there is a pause, in which appends don't wait for any."""
        if self._merge_at is None or now.mono < self._merge_at:
            return
        self._merge_at = None
        self._store.merge()
        yield from self.merge_soon(now)

    def merge_soon(self, now: Now) -> Iterator[Effect]:
        """Come back for the next step, if packs are to be merged."""
        if self._merge_at is None and self._store.merging:
            self._merge_at = now.mono + self._limits.merge_pause
            yield WakeAt(Merge(), mono=self._merge_at)

    # --- the end -----------------------------------------------------------------------------------------------------

    def close(self, now: Now) -> Iterator[Effect]:
        """Flush, answer, seal and close; if the disk refuses, as ``void``."""
        try:
            yield from self.flush(now)
            self._settling.finish()
            self._store.close()
            self._index.close()
        except SubstrateError as failure:
            yield from self.void(failure.message)

    def void(self, reason: str, *, doubtful: bool = False) -> Iterator[Effect]:
        """Withdraw what isn't durable, tell its askers, write nothing more. ``doubtful``: nobody knows what it was."""
        self._store.abandon()
        self._index.close(keep=not doubtful)
        waiting, self._waiting = self._waiting, []
        for each in waiting:
            yield from answered(each.to, Withheld(reason))

    # --- what is ------------------------------------------------------------------------------------------------------

    @property
    def position(self) -> int:
        """Commits since opening that are visible."""
        return self._position

    @property
    def flush_number(self) -> int:
        """Of the last durable flush."""
        return self._store.flush_number

    def snapshot(self) -> Snapshot:
        """The state that a new subscriber starts from."""
        index = self._index
        return Snapshot(
            position=self._position,
            repository=self._repository,
            generation=Generation(index.state.generation),
            runs=index.runs.driven(),
            queue=tuple(index.told(item.queued) for item in index.queue.values() if not item.claimed),
            outbox=tuple(index.outbox.values()),
            held=index.state.held,
            held_at=index.state.held_at or "",
            latch=index.state.latch or None,
            drain=index.state.drain or None,
            granted=index.granted,
        )

    # --- inside -------------------------------------------------------------------------------------------------------

    def _asked(self, what: Question, now: Now) -> Generator[Effect, None, Result]:
        match what:
            case ReadRest():
                found = rest(self._index, position=self._position, quiet=self._store.quiet, now=now)
                return Done(self._position, found)
            case ReadSealed():
                yield from self.seal(now)
                return Done(self._position)
            case _:
                value = told(self._index, what)
                return value if isinstance(value, Refused) else Done(self._position, value)

    def _fits(self, change: Change) -> bool:
        """Whether what nobody waits for has space; if not, it waits for the next seal."""
        self._fold_asked = self._unfit = not self._store.fits(change.puts, change.deletes, self._limits.reserve)
        return not self._unfit

    def _leave(self, run: RunId) -> Iterator[Effect]:
        del self._index.finished[run]
        self._may_fold -= 1
        yield from self.sweep()

    def _commit(self, change: Change, now: Now) -> Generator[Effect, None, BrokenRule | None]:
        """Commit it, whatever has decided it, if it breaks no rule; else nothing happens, and the rule is returned."""
        if (broken := self._gate.refuses(change)) is not None:
            return broken
        author = f"{change.author} <{change.author}@deployment.waypost>"
        self._position = self._store.commit(
            author=author, subject=change.subject, puts=change.puts, deletes=change.deletes, at=now.wall
        )
        self._index.apply(change)
        if self._subscribers:
            committed = Committed(self._position, self._position, tuple(map(self._published, change.facts)))
            for subscriber in self._subscribers:
                yield Tell(subscriber, committed)
        if not self._flush_asked:
            self._flush_asked = True
            yield _FLUSH
        return None

    def _published(self, fact: Fact) -> Fact:
        return self._index.told(fact) if isinstance(fact, Queued) else fact

    def _wake(self, now: Now) -> WakeAt:
        self._wake_at = now.mono + self._limits.seal_idle
        return WakeAt(Idle(), mono=self._wake_at)

    def _context(self, now: Now) -> Context:
        return Context(
            now=now,
            deployment=self._settings.deployment,
            repository=self._repository,
            address=self._settings.address,
            runs=self._settings.runs,
            limits=self._limits,
            message_id=self._settings.message_id,
            random=_RANDOM,
        )

    def _short_of_space(self, why: str) -> Generator[Effect, None, Withheld]:
        """Tell the parent when space runs short, and when that is over; what was too large alone isn't told."""
        short = why if self._room < self._enough else ""
        if bool(short) != bool(self._short):
            self._short = short
            yield SpaceShort(short)
        return Withheld(why)

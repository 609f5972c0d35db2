"""The SubstrateActor: one repository, one mailbox, one writer (design §3.2).

Its mailbox is the lock and the queue of writes; the disk is written in its own thread and nowhere else. What it does is
in ``Writer``; here are the states it can be in, the effects, and what happens when it fails: whoever waits is told
``Withheld``, nothing more is written, and its parent learns of its end and starts another from what is durable.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TypeAlias, assert_never

from substrate.effects import Again, Effect, SpaceShort, To, answered
from substrate.errors import (
    Damaged,
    FlushFailed,
    ForeignJournal,
    NewerFormat,
    RepositoryGone,
    RolledBack,
    SubstrateError,
    WrongOwner,
)
from substrate.files.disk import Disk
from substrate.messages import (
    Done,
    Flush,
    FoldAway,
    Idle,
    Merge,
    Open,
    Ref,
    Refused,
    Seal,
    Settle,
    Submit,
    Subscribe,
    SubstrateMessage,
    Withheld,
)
from substrate.settings import Settings
from substrate.signing.keys import SigningKey
from substrate.writer import Writer
from waypost.acting import Asked, Clock, Next, Reply, Tell, WakeAt
from waypost.model.limits import DEFAULT, Limits
from waypost.model.times import Now
from waypost.observing import NOBODY, Flushed, Observer
from waypost.shell import Shell, tell

_MARKED = 64
"""Flushes of which the observer is told together, as long as they come within ``_TOGETHER`` seconds."""
_TOGETHER = 1.0
_OBSERVED = (Flush, Idle)
_ANSWERED = (Open, Submit)
_NOWHERE = To()
"""Made once each, as every message comes by them."""


@dataclass(frozen=True, slots=True)
class Unopened:
    """The repository wasn't opened, or couldn't be: nothing is accepted."""


@dataclass(frozen=True, slots=True)
class Serving:
    """The repository is open."""

    writer: Writer


State: TypeAlias = Unopened | Serving


class SubstrateActor(Shell):
    """See ``substrate.messages`` for what it is told. ``path`` is the bare repository; its parent directory exists."""

    def __init__(  # noqa: PLR0913 - what it is made with, each by its name
        self,
        path: Path,
        settings: Settings,
        key: SigningKey,
        *,
        clock: Clock,
        disk: Disk | None = None,
        limits: Limits = DEFAULT,
        parent: Ref | None = None,
        incarnation: int = 1,
        observer: Observer = NOBODY,
    ) -> None:
        super().__init__(
            f"{settings.deployment}/substrate",
            Unopened(),
            self._decide,
            clock=clock,
            parent=parent,
            incarnation=incarnation,
        )
        self._path, self._settings, self._key = path, settings, key
        self._disk, self._limits = disk or Disk(), limits
        self._observer, self._flushes, self._marked = observer, list[float](), 0.0

    def perform(self, effect: Effect) -> None:
        """Carry out what the shell doesn't know."""
        match effect:
            case Again():
                tell(self.actor_ref, effect.message)  # not to one that is letting go: what it began comes to an end
            case SpaceShort():
                tell(self._parent, replace(effect, incarnation=self.incarnation))
            case Reply() | Tell() | WakeAt():
                raise AssertionError("the shell's own")
            case _:
                assert_never(effect)

    def finish(self) -> None:
        """A clean stop flushes, answers and seals; after a failure there is nothing left to write."""
        if isinstance(self._state, Serving):
            self._perform_all(self._state.writer.close(self._clock.now()))
        self._mark()

    def _decide(self, state: State, message: SubstrateMessage | Asked, now: Now) -> Next[State]:
        try:
            return self._turn(state, message, now)
        except BaseException as failure:
            if isinstance(state, Serving):
                # What has a name has its cause. What has none may come of the index, and would come again.
                self._perform_all(state.writer.void(str(failure), doubtful=not isinstance(failure, SubstrateError)))
                self._state = Unopened()
            raise

    def _turn(self, state: State, message: SubstrateMessage | Asked, now: Now) -> Next[State]:
        body, to = (message.body, To(token=message.token)) if isinstance(message, Asked) else (message, _to(message))
        match state:
            case Serving():
                if isinstance(body, _OBSERVED) and self._observer is not NOBODY:
                    return Next(state, self._observed(state.writer, body, to, now))
                return Next(state, tuple(_serve(state.writer, body, to, now)))
            case Unopened():
                return self._unopened(body, to, now)
            case _:
                assert_never(state)

    def _observed(self, writer: Writer, message: Flush | Idle, to: To, now: Now) -> tuple[Effect, ...]:
        """As ``_serve``, and how long a flush took. What was marked last is told when the time for a seal has come."""
        before = writer.flush_number
        effects = tuple(_serve(writer, message, to, now))
        if isinstance(message, Flush) and writer.flush_number != before:
            self._flushes.append(self._clock.now().mono - now.mono)
        if len(self._flushes) >= _MARKED or now.mono - self._marked >= _TOGETHER:
            self._marked = now.mono
            self._mark()
        return effects

    def _mark(self) -> None:
        if self._flushes:
            self._observer.mark(Flushed(self._settings.deployment, tuple(self._flushes)))
            self._flushes.clear()

    def _unopened(self, message: SubstrateMessage, to: To, now: Now) -> Next[State]:
        match message:
            case Open():
                try:
                    writer = Writer.open(
                        self._path, self._settings, key=self._key, disk=self._disk, limits=self._limits, now=now
                    )
                except SubstrateError as failure:
                    return Next(Unopened(), tuple(answered(to, _refused(failure))))
                answer = answered(to, Done(0, writer.snapshot()))
                return Next(Serving(writer), (*answer, *writer.sweep(), *writer.merge_soon(now)))
            case Submit() | Seal() | Subscribe():
                return Next(Unopened(), tuple(answered(to, Withheld("the repository is not open"))))
            case Flush() | FoldAway() | Settle() | Idle() | Merge():
                return Next(Unopened())
            case _:
                assert_never(message)

    def _perform_all(self, effects: Iterable[Effect]) -> None:
        for effect in effects:
            self.carry_out(effect)


def _serve(writer: Writer, message: SubstrateMessage, to: To, now: Now) -> Iterable[Effect]:  # noqa: PLR0911 - a table
    match message:
        case Submit():
            return writer.submit(message, to, now)
        case Flush():
            return writer.flush(now)
        case Subscribe():
            return writer.subscribe(message.subscriber, to)
        case Seal():
            effects = list(writer.seal(now))
            return (*effects, *answered(to, Done(writer.position, writer.flush_number)))
        case FoldAway():
            return writer.fold_away(now)
        case Settle():
            return writer.settle()
        case Idle():
            return writer.idle(now)
        case Merge():
            return writer.merge(now)
        case Open():
            return answered(to, Done(writer.position, writer.snapshot()))
        case _:
            assert_never(message)


def _to(message: SubstrateMessage) -> To:
    return To(ref=message.reply_to, correlation=message.correlation) if isinstance(message, _ANSWERED) else _NOWHERE


def _refused(failure: SubstrateError) -> Refused:
    """An opening that failed, by the codes of ``Open``."""
    match failure:
        case ForeignJournal() | WrongOwner():
            code = "foreign"
        case Damaged():
            code = "damaged"
        case RolledBack() | RepositoryGone():
            code = "rolled-back"
        case NewerFormat():
            code = "newer-format"
        case FlushFailed():
            code = failure.fault or "disk"
        case _:
            code = "unreadable"
    return Refused(code, failure.message, failure.hint)

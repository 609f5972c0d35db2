"""How far a deployment's schedules have come: their files, the one operation that moves them, and what may be asked.

Part of ``substrate.messages``, by whose name the operation and the question are imported. What a schedule is, and when
it is due, is ``waypost.model.schedule``'s.

``schedules/<id>.json``, a format for ever: one line of JSON with the fields of ``Ticked``, keys in this order, each
left out where it says nothing; instants are ISO 8601 UTC with milliseconds. It comes with the commit that deploys the
code which declares the schedule, and goes with the one that deploys code which doesn't. Where the expression or the
zone is another one, it begins anew with that commit. Every tick changes it, in the commit that enqueues its mail.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated, Final, Literal, TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from substrate import layout
from substrate.runlog import Tree
from waypost.model.errors import Invalid
from waypost.model.ids import RunId
from waypost.model.schedule import MOST, Schedule, caught_up, next_after
from waypost.model.times import stamp, unstamp

MOST_WAITING: Final = 100
"""Ticks of a schedule with ``overlap="queue"`` that wait for the run of the one before; another one is left out."""

Fate: TypeAlias = Literal["sent", "skipped", "waiting", "cancelled", "repeated", "missed", "set-back"]
"""What became of the newest tick: its mail was enqueued; it was left out because of the run of the one before, or waits
for that; its mail was enqueued and that run cancelled; its mail had been enqueued before the clock went back; it was
missed, and isn't caught up; the clock went back, so that what lies behind ``last`` is due again."""
Instant: TypeAlias = Annotated[str, msgspec.Meta(pattern=r"^[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9:.]{12}Z$")]


class Ticked(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """``schedules/<id>.json``."""

    id: str
    expression: str
    tz: str
    since: Instant
    """When the commit that began it was made: ticks count from behind it."""
    last: Instant | UnsetType = UNSET
    """The newest tick that was dealt with; nothing up to it is due any more."""
    fate: Fate | UnsetType = UNSET
    arrival: Annotated[int, msgspec.Meta(ge=1)] | UnsetType = UNSET
    """Of the mail of the newest tick that has one, and the run that this is for."""
    run: RunId | UnsetType = UNSET
    waiting: tuple[Instant, ...] = ()
    """Ticks that have no mail yet, in the order in which they were due."""

    @property
    def reached(self) -> int:
        """Up to where nothing is due any more, in Unix milliseconds."""
        return unstamp(self.since if self.last is UNSET else self.last)


@dataclass(frozen=True, slots=True, kw_only=True)
class Tick:
    """A schedule has come further: its ticks count from behind ``last`` now. Value: its ``Ticked`` after that.

    ``due``: the tick that is due, which gets a mail, or what its ``overlap`` says; the first of those that wait, or
    None: nothing is due, and the rest is left out (``missed``, or ``set-back`` where ``last`` lies before ``after``).
    ``after``: how far it had come as the asker knows it. All of them Unix milliseconds. Refused with code ``schedule``
    (it isn't deployed) or ``moved`` (it is somewhere else: the asker is behind).
    """

    schedule: str
    after: int
    last: int
    due: int | None = None


@dataclass(frozen=True, slots=True)
class ScheduleMoved:
    """A schedule has come further, or back: with a mail, or without one."""

    schedule: str


@dataclass(frozen=True, slots=True)
class ReadSchedules:
    """Every schedule that is deployed, and how far it has come. Value: tuple of ``Planned``, in the order declared."""


@dataclass(frozen=True, slots=True)
class Planned:
    """A schedule and its file."""

    schedule: Schedule
    ticked: Ticked


class _Declares(msgspec.Struct):
    """The one part of a declaration that matters here: an older or a newer one may have others."""

    schedules: tuple[Schedule, ...] = ()


class _Record(msgspec.Struct):
    declared: _Declares


_records = msgspec.json.Decoder(_Record)
_files = msgspec.json.Decoder(Ticked)


def encode(ticked: Ticked) -> bytes:
    """One line of JSON, keys in the order of the record."""
    return msgspec.json.encode(ticked)


def decode(raw: bytes) -> Ticked:
    """Read a ``schedules/<id>.json``, strictly. Raises Invalid."""
    try:
        found = _files.decode(raw)
        for instant in (found.since, found.last or found.since, *found.waiting):
            unstamp(instant)
    except (msgspec.MsgspecError, UnicodeDecodeError, Invalid) as bad:
        raise Invalid(f"not a schedules/<id>.json: {bad}") from None
    if len(found.waiting) > MOST_WAITING:
        raise Invalid(f"not a schedules/<id>.json: {len(found.waiting)} ticks wait, and {MOST_WAITING} may")
    return found


def declared(raw: bytes | None) -> tuple[Schedule, ...]:
    """The schedules of a ``state/code.json``; none where there is none. Raises Invalid."""
    if raw is None:
        return ()
    try:
        found = _records.decode(raw).declared.schedules
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as bad:
        raise Invalid(f"the schedules of {layout.DEPLOYED} can't be read: {bad}") from None
    if len(found) > MOST:
        raise Invalid(f"{layout.DEPLOYED} has {len(found)} schedules, and {MOST} are allowed")
    return found


def began(schedule: Schedule, at: int) -> Ticked:
    """A schedule that begins at this instant."""
    return Ticked(id=schedule.id, expression=schedule.expression, tz=schedule.tz, since=stamp(at))


def planned(tree: Tree) -> Iterator[Planned]:
    """Every schedule that is deployed and has its file. Raises Invalid where something can't be read."""
    for schedule in declared(tree.read(layout.DEPLOYED)):
        raw = tree.read(layout.schedule_path(schedule.id))
        if raw is not None:
            yield Planned(schedule, decode(raw))


def next_tick(one: Planned, now: int) -> int | None:
    """When a schedule has something to do, in Unix milliseconds; None for never. What is overdue is so in the past.

    A last tick in the future, because the clock was set back, holds for one interval at most: so that is to be recorded
    at once. Raises NoZone.
    """
    reached = one.ticked.reached
    if reached > now and caught_up(one.schedule, reached, now).last < reached:
        return now
    return next_after(one.schedule, reached)


def soonest(tree: Tree, now: int) -> int | None:
    """The next tick of all schedules, as ``next_tick`` has it; one whose zone is gone has none. Raises Invalid."""
    found: list[int] = []
    for one in planned(tree):
        try:
            at = next_tick(one, now)
        except Invalid:  # NoZone: told by the scheduler, and by `waypost schedule list`
            continue
        if at is not None:
            found.append(at)
    return min(found, default=None)

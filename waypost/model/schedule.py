"""When a deployment's schedules are due: ticks as absolute instants, and what becomes of those that were missed.

All of it is pure: a schedule, instants in Unix milliseconds (UTC), and the zone rules of this installation. A tick is
never early, never comes twice, and the next one is always later. What the local clock does to a fixed time is a setting
of the schedule: ``gap`` for one that a jump leaves out, ``repeat`` for one that comes twice. Expressions that mean
"every so often" (a ``*`` in minute or hour) have neither: they go by the clock as it runs.

Nothing here loads the calendar or a zone before it is asked to: a child knows the records and needs no more.
"""

import hashlib
import re
from datetime import datetime
from typing import Annotated, Final, Literal, TypeAlias, get_args

import msgspec

from waypost.model.errors import Invalid
from waypost.model.times import stamp, unstamp

Gap: TypeAlias = Literal["run-after", "skip"]
"""A time that the clock jumps over: due when the jump is over (default; once, however many were in it), or not at
all."""
Repeat: TypeAlias = Literal["first", "both"]
"""A time that comes twice because the clock is set back: due the first time (default), or both."""
CatchUp: TypeAlias = Literal["none", "latest"] | Annotated[int, msgspec.Meta(ge=1, le=100)]
"""Of the ticks that came due while no host ran: none that was missed, the latest one (default), or the latest so many.
One that is on time counts as the latest."""
Overlap: TypeAlias = Literal["skip", "queue", "cancel"]
"""A tick whose predecessor's run hasn't ended: left out (default), queued behind it, or that run is cancelled."""

MOST: Final = 100
"""Schedules of one workflow."""
MOST_CAUGHT_UP: Final = 100
LATE: Final = 60_000
"""Milliseconds up to which a tick isn't missed, but late: it is due whatever ``catch_up`` says. No two of a
schedule are closer than that."""

_NAME = r"[a-z0-9][a-z0-9-]{0,62}\Z"
_TICK_ID = r" tick:([a-z0-9][a-z0-9-]{0,62}):([0-9T:.Z-]{24})\Z"
_MINUTE: Final = 60_000
_MANY: Final = 4
"""Times as many ticks as are wanted are looked at in one window."""


class Schedule(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """A cron schedule of a workflow; make one by ``schedule``. Part of the definition: a format for ever."""

    id: str
    """Its name, 1 to 63 of a-z, 0-9 and '-'; without one ``cron-`` and 12 hex digits made of expression and zone."""
    expression: str
    """Five fields with a blank between: `waypost.model.cron`."""
    tz: str
    """An IANA name: `waypost.model.zones`."""
    gap: Gap = "run-after"
    repeat: Repeat = "first"
    catch_up: CatchUp = "latest"
    overlap: Overlap = "skip"


class Tick(msgspec.Struct, frozen=True):
    """What began a run, or resumed it, instead of somebody's mail: the ``schedule`` of this id was ``due`` (UTC)."""

    schedule: str
    due: datetime


class Caught(msgspec.Struct, frozen=True):
    """What becomes of the time since a schedule's last tick."""

    fire: tuple[int, ...]
    """Ticks that are due now, in order."""
    last: int
    """What to go on from: nothing up to here is due any more. The next tick is ``next_after`` this."""
    left_out: tuple[int, int] | None = None
    """The first and the last of the ticks that were missed and are not fired."""
    ahead: bool = False
    """The last tick lies in the future: the clock was set back. ``last`` is at most one interval ahead now."""


def schedule(
    expression: str,
    *,
    tz: str = "UTC",
    name: str | None = None,
    gap: Gap = "run-after",
    repeat: Repeat = "first",
    catch_up: CatchUp = "latest",
    overlap: Overlap = "skip",
) -> Schedule:
    """Make a schedule and check all of it but its zone's name, which ``check`` does. Raises Invalid, BadExpression."""
    from waypost.model.cron import canonical

    text: tuple[tuple[str, object], ...] = (("the expression", expression), ("tz", tz), ("name", name or ""))
    for what, given in text:
        if not isinstance(given, str):
            raise Invalid(f"{what} is text, not {given!r}", hint="cron('0 9 * * *', tz='Europe/Berlin')")
    chosen = (
        ("gap", gap, get_args(Gap)),
        ("repeat", repeat, get_args(Repeat)),
        ("overlap", overlap, get_args(Overlap)),
    )
    for what, given, known in chosen:
        if given not in known:
            raise Invalid(f"{what}={given!r} is none of {', '.join(map(repr, known))}")
    counted = isinstance(catch_up, int) and not isinstance(catch_up, bool) and 1 <= catch_up <= MOST_CAUGHT_UP
    if not counted and catch_up not in ("none", "latest"):
        raise Invalid(f"catch_up={catch_up!r} is neither 'none' nor 'latest' nor a number from 1 to {MOST_CAUGHT_UP}")
    if name is not None and not re.match(_NAME, name):
        raise Invalid(f"{name!r} can't name a schedule: 1 to 63 of a-z, 0-9 and '-', not '-' first")
    clean = canonical(expression)
    return Schedule(
        id=name or f"cron-{hashlib.sha256(f'{clean} {tz}'.encode('utf-8', 'surrogatepass')).hexdigest()[:12]}",
        expression=clean,
        tz=tz,
        gap=gap,
        repeat=repeat,
        catch_up=catch_up,
        overlap=overlap,
    )


def check(of: Schedule, after_ms: int) -> None:
    """What must be right before it is deployed, wherever it comes from. Raises NoZone, BadExpression, Invalid.

    A zone may also go from the database later: of a schedule that is deployed already, this says why it has no tick.
    """
    same = schedule(
        of.expression,
        tz=of.tz,
        name=of.id,
        gap=of.gap,
        repeat=of.repeat,
        catch_up=of.catch_up,
        overlap=of.overlap,
    )
    if same != of:
        raise Invalid(f"schedule {of.id} isn't written as it should be: {of.expression!r} for {same.expression!r}")
    if next_after(of, after_ms) is None:
        raise Invalid(
            f"{of.expression!r} in {of.tz} never comes: gap='skip' leaves each of its times out",
            hint="use gap='run-after'",
        )


def next_after(of: Schedule, after_ms: int) -> int | None:
    """The first tick later than ``after_ms``; None where there is none within fifty years.

    Raises NoZone, BadExpression: nothing else, whatever has been stored as a schedule. Times before 1970 count as 1970.
    """
    from waypost.model import cron, zones

    zone, expression = zones.zone(of.tz), cron.canonical(of.expression)
    after_ms = max(after_ms, -1)
    try:
        now = zones.shown(after_ms, zone)
    except (ValueError, OverflowError, OSError):
        return None  # past the year 9999
    fixed, local = cron.at_fixed_times(expression), now.replace(tzinfo=None, fold=0)
    both = not fixed or of.repeat == "both"
    begin = local
    if both and not now.fold:
        begin -= zones.set_back(local, zone)  # between two times that come twice: those before `now` come again
    best: int | None = None
    for each in cron.after(expression, begin):
        if each - local > cron.HORIZON:
            break
        known, first = zones.instants(each, zone), zones.reached(each, zone)
        if fixed and of.gap == "run-after" and not known:
            known = (first,)
        later = [at for at in (known if both else known[:1]) if at > after_ms]
        best = min(later if best is None else (best, *later), default=None)
        if best is not None and first > after_ms:
            break  # whatever follows comes later
    return best


def ticks_between(of: Schedule, after_ms: int, upto_ms: int, limit: int) -> tuple[int, ...]:
    """The first ``limit`` ticks later than ``after_ms`` and not later than ``upto_ms``. Raises as ``next_after``."""
    found: list[int] = []
    at = next_after(of, after_ms)
    while at is not None and at <= upto_ms and len(found) < limit:
        found.append(at)
        at = next_after(of, at)
    return tuple(found)


def latest(of: Schedule, after_ms: int, upto_ms: int) -> int | None:
    """The last tick later than ``after_ms`` and not later than ``upto_ms``; its cost doesn't grow with their number.

    Raises as ``next_after`` does.
    """
    found = next_after(of, after_ms)
    if found is None or found > upto_ms:
        return None
    # Back in growing strides until there is one ahead, then by halves: up to `found` is one, after `none` isn't.
    none, stride = upto_ms, _MINUTE
    while upto_ms - stride > found:
        ahead = next_after(of, upto_ms - stride)
        if ahead is not None and ahead <= upto_ms:
            found = ahead
            break
        none, stride = upto_ms - stride, stride * 2
    while none - found >= _MINUTE:
        middle = (found + none) // 2
        ahead = next_after(of, middle)
        if ahead is not None and ahead <= upto_ms:
            found = ahead
        else:
            none = middle
    return max((found, *ticks_between(of, found, upto_ms, 2)))


def caught_up(of: Schedule, last_ms: int, now_ms: int) -> Caught:
    """What is due of the time since ``last_ms``, by the schedule's ``catch_up``. Raises as ``next_after`` does.

    The newest tick is one of them like those before it, whether it is on time or missed itself: whoever starts at the
    moment of a tick gets that one with ``latest``, and not the one before it as well.

    ``last_ms``: the last tick that was dealt with, or when the schedule began. Where it lies in the future the clock
    was set back, and nothing is due until it is reached; but where that would be longer than one interval (the clock
    had been wrong by years, say), only the next tick is left out, and it goes on after that. Whoever fires a tick
    again that was fired before the clock went back must know it by its id.
    """
    if last_ms > now_ms:
        following = next_after(of, now_ms)
        return Caught((), last_ms if following is None else min(last_ms, following), None, ahead=True)
    oldest, newest = next_after(of, last_ms), latest(of, last_ms, now_ms)
    if oldest is None or newest is None:
        return Caught((), last_ms)
    if of.catch_up == "none" and now_ms - newest >= LATE:
        return Caught((), newest, (oldest, newest))
    due = _up_to(of, last_ms, newest, of.catch_up if isinstance(of.catch_up, int) else 1)
    missed = latest(of, last_ms, due[0] - 1)
    return Caught(due, newest, None if missed is None else (oldest, missed))


def _up_to(of: Schedule, after_ms: int, newest: int, limit: int) -> tuple[int, ...]:
    """The last ``limit`` ticks later than ``after_ms`` up to the tick ``newest``, in order."""
    found: tuple[int, ...] = (newest,)
    stride = _MINUTE
    while len(found) < limit and newest - stride // 2 > after_ms:
        # Forward through a window that is doubled is ten times as quick as back by single ticks.
        window = ticks_between(of, max(after_ms, newest - stride), newest, limit * _MANY)
        if window[-1] != newest:  # a burst: so many that the window is too long
            break
        found, stride = window[-limit:], stride * 2
    while len(found) < limit and (earlier := latest(of, after_ms, found[0] - 1)) is not None:
        found = (earlier, *found)
    return found


# --- the name of a tick ---------------------------------------------------------------------------------------------


def tick_id(schedule_id: str, due_ms: int) -> str:
    """The message id of a tick's mail, the same whenever it is made: a format for ever.

    No mail from outside can have it: it begins with a blank, and a header's value is trimmed. So nobody can take a
    tick's place before it comes, or pass for one.
    """
    return f" tick:{schedule_id}:{stamp(due_ms)}"


def tick_of(message_id: str) -> Tick | None:
    """The tick whose mail has this message id; None of any other mail."""
    if not message_id.startswith(" tick:"):
        return None
    match = re.match(_TICK_ID, message_id)
    try:
        return None if match is None else Tick(match[1], datetime.fromisoformat(stamp(unstamp(match[2]))))
    except Invalid:
        return None

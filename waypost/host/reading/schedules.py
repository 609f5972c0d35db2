"""The answers about cron schedules, with and without a host: what is due next, and why something isn't as it should be.

When a tick is due is `waypost.model.schedule`'s to say, here as in the host, so that what is foretold is what comes.
"""

from collections.abc import Iterator

import msgspec

from substrate.messages import Planned
from waypost.host.answers.schedules import DueTick, ScheduleShown, SchedulesShown
from waypost.host.keeping_errors import NoSuchDeployment
from waypost.host.reading.deployment_why import blocks, sentence_of
from waypost.host.reading.explain import Situation
from waypost.host.reading.narrate import printable
from waypost.host.reading.source import Source, readable
from waypost.model import zones
from waypost.model.cron import after, at_fixed_times
from waypost.model.errors import Invalid
from waypost.model.schedule import Schedule, caught_up, next_after
from waypost.model.times import stamp
from waypost.model.why import command

MOST = 100
"""Ticks of one schedule that are foretold."""
_WHY = 300


def listed(source: Source, now_ms: int, *, name: str | None = None, count: int = 1) -> SchedulesShown:
    """Every schedule, or those of one deployment, each with its next ``count`` ticks. Raises NoSuchDeployment."""
    situations = {each.name: each for each in source.situations() if name in {None, each.name}}
    if name is not None and name not in situations:
        raise NoSuchDeployment(name, tuple(each.name for each in source.situations()))
    if name is None:
        found, unread = readable(source, source.schedules)
    else:
        found, unread = {name: source.schedules(name)}, ()
    rows = [shown(situations[where], each, now_ms, count) for where, several in found.items() for each in several]
    rows.sort(key=lambda row: (row.next[0].due if row.next else "~", row.deployment))
    return SchedulesShown(schedules=tuple(rows), zones=zones.release(), unread=unread)


def tried(schedule: Schedule, now_ms: int, count: int) -> SchedulesShown:
    """What a schedule would do that is deployed nowhere. Raises NoZone."""
    row = _bare(schedule, tuple(_foretold(schedule, next_after(schedule, now_ms), count)))
    return SchedulesShown(schedules=(row,), zones=zones.release())


def shown(situation: Situation, plan: Planned, now_ms: int, count: int) -> ScheduleShown:
    """One schedule of a deployment."""
    schedule, ticked = plan.schedule, plan.ticked
    state, why, helps = _state(situation, plan, now_ms)
    ticks = () if state == "no-zone" else tuple(_foretold(schedule, _first(plan, now_ms), count))
    return msgspec.structs.replace(
        _bare(schedule, ticks),
        deployment=situation.name,
        since=ticked.since,
        last=ticked.last or "",
        fate=ticked.fate or "",
        run=ticked.run or "",
        waiting=ticked.waiting,
        state=state,
        why=printable(why, _WHY),
        command=helps,
    )


def _bare(of: Schedule, ticks: tuple[DueTick, ...]) -> ScheduleShown:
    return ScheduleShown(
        deployment="",
        schedule=of.id,
        expression=of.expression,
        tz=of.tz,
        gap=of.gap,
        repeat=of.repeat,
        catch_up=of.catch_up,
        overlap=of.overlap,
        since="",
        next=ticks,
        state="due",
    )


def _first(plan: Planned, now_ms: int) -> int | None:
    """The next tick that gets a mail, or would if a host ran; it may be late."""
    caught = caught_up(plan.schedule, plan.ticked.reached, now_ms)
    return caught.fire[0] if caught.fire else next_after(plan.schedule, caught.last)


def _state(situation: Situation, plan: Planned, now_ms: int) -> tuple[str, str, str]:
    """The schedule's state, why, and the command that helps."""
    ticked = plan.ticked
    try:
        first = _first(plan, now_ms)
    except Invalid as gone:
        return "no-zone", f"{gone.message}: {gone.hint}", ""
    if not situation.hosted or blocks(situation):
        sentence = sentence_of(situation)
        return "stopped", f"{situation.name} waits for {sentence.waits_for}", sentence.command
    if ticked.reached > now_ms:
        until = caught_up(plan.schedule, ticked.reached, now_ms).last
        return "ahead", f"the clock was set back behind its last tick: it goes on after {stamp(until)}", ""
    if ticked.waiting:
        many = f"{len(ticked.waiting)} tick{'s wait' if len(ticked.waiting) > 1 else ' waits'}"
        run = ticked.run or ""
        return "waiting", f"{many} for {run}, which the one before began", command("why", run) if run else ""
    if first is not None and first <= now_ms:
        return "late", f"it was due at {stamp(first)}", command("why", situation.name)
    return "due", "", ""


def _foretold(of: Schedule, first: int | None, count: int) -> Iterator[DueTick]:
    zone = zones.zone(of.tz)
    for _ in range(count):
        if first is None:
            return
        local = zones.shown(first, zone)
        yield DueTick(due=stamp(first), local=local.isoformat(timespec="minutes"), note=_note(of, first))
        first = next_after(of, first)


def _note(of: Schedule, due_ms: int) -> str:
    """What the zone's clock does about this tick, in a few words."""
    zone = zones.zone(of.tz)
    local = zones.shown(due_ms, zone)
    naive = local.replace(tzinfo=None, fold=0)
    if zones.set_back(naive, zone):
        return (
            "the second time: the clock was set back" if local.fold else "the clock is set back: this time comes twice"
        )
    if at_fixed_times(of.expression) and next(after(of.expression, naive - zones.SECOND), None) != naive:
        return "the clock has jumped over its time"
    return ""

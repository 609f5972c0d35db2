"""``waypost schedule``: what is due, and when; with and without a host, and of an expression that is only tried."""

import time
from collections.abc import Iterable, Iterator, Sequence

from waypost.cli import words
from waypost.cli.output import err, harmless
from waypost.cli.place import existing, plain
from waypost.cli.reading import either, give
from waypost.host.answers.schedules import DueTick, ScheduleShown, SchedulesShown
from waypost.host.datadir.directory import DataDir
from waypost.host.errors import Usage
from waypost.host.exits import Exit
from waypost.model.errors import Invalid
from waypost.model.why import beside

LISTED = ("schedule", "state", "next, UTC", "there", "last, UTC", "expression", "zone", "settings")
_FIRST = 5
_DEFAULTS = {"gap": "run-after", "repeat": "first", "catch_up": "latest", "overlap": "skip"}
_FATES = {"sent": "", "waiting": "waits", "cancelled": "in place of the one before", "repeated": "was sent before"}


def listed(deployment: str | None, data: str | None, *, as_json: bool) -> Exit:
    """``waypost schedule list [DEPLOYMENT]``."""
    answer = _asked(deployment, data, 1)
    give(answer, list_words(answer, ("--data", data) if data else ()), as_json=as_json)
    err(*words.unread(answer.unread))
    return Exit.LEFT if answer.unread else Exit.OK


def following(deployment: str | None, expression: str | None, data: str | None, *, count: int, as_json: bool) -> Exit:
    """``waypost schedule next DEPLOYMENT``. Raises Usage where an expression is given, too, or neither."""
    if deployment is None or expression is not None:
        hint = "`waypost schedule next DEPLOYMENT`, or `waypost schedule next --expression '0 9 * * *'`"
        raise Usage("name a deployment, or give an --expression", hint=hint)
    answer = _asked(deployment, data, count)
    give(answer, tick_words(answer, count), as_json=as_json)
    return Exit.OK


def tried(expression: str, *, tz: str, gap: str, repeat: str, count: int, as_json: bool) -> Exit:
    """``waypost schedule next --expression E``: nothing has to be deployed for that, or to be there at all."""
    from waypost.host.reading import schedules
    from waypost.model.schedule import schedule

    try:
        made = schedule(
            plain("--expression", expression),
            tz=plain("--tz", tz),
            gap=gap,  # type: ignore[arg-type] # it is what is looked at
            repeat=repeat,  # type: ignore[arg-type] # the same
        )
        answer = schedules.tried(made, _now(), count)
    except Invalid as bad:
        raise Usage(bad.message, hint=bad.hint) from None
    give(answer, tick_words(answer, count), as_json=as_json)
    return Exit.OK


def introduced(where: DataDir, deployment: str) -> Iterator[str]:
    """For whoever has just deployed it: when each of its schedules is due first. Raises Said, Unanswered."""
    rows = _read(where, deployment, 1).schedules
    for each in rows[:_FIRST]:
        due, there = (_utc(each.next[0].due), _there(each.next[0], each)) if each.next else ("never", "")
        local = f", {there} there" if there else ""
        yield harmless(f"due by {each.schedule}, {each.expression} {each.tz}: {due} UTC{local}")
    if len(rows) > _FIRST:
        yield f"… {len(rows) - _FIRST} more schedules"


def _asked(deployment: str | None, data: str | None, count: int) -> SchedulesShown:
    return _read(existing(data), None if deployment is None else plain("the deployment", deployment), count)


def _read(where: DataDir, name: str | None, count: int) -> SchedulesShown:
    query: dict[str, int | str] = {"count": count} if name is None else {"deployment": name, "count": count}
    return either(
        where,
        lambda client: client.get(SchedulesShown, "schedules", **query),
        lambda data: _offline(data, name, count),
    )


def _offline(data: DataDir, name: str | None, count: int) -> SchedulesShown:
    from waypost.host.reading import offline, schedules

    return schedules.listed(offline.Offline(data), _now(), name=name, count=count)


def _now() -> int:
    return time.time_ns() // 1_000_000


# --- in words -------------------------------------------------------------------------------------------------------


def list_words(answer: SchedulesShown, options: tuple[str, ...] = ()) -> Iterator[str]:
    """Each schedule in a line, then what isn't as it should be."""
    if not answer.schedules:
        yield "no schedule is deployed here: a workflow has one by @workflow.cron"
        return
    yield from _columns(LISTED, map(_row, answer.schedules))
    for each in answer.schedules:
        if each.why:
            helps = f"; next: {beside(each.command, *options)}" if each.command else ""
            yield harmless(f"{_name(each)}: {each.why}{helps}")


def _row(each: ScheduleShown) -> tuple[str, ...]:
    due, there = (_utc(each.next[0].due), _there(each.next[0], each)) if each.next else ("never", "")
    settings = ", ".join(
        f"{name}={value}" for name, usual in _DEFAULTS.items() if (value := getattr(each, name)) != usual
    )
    return (_name(each), each.state, due, there, _last(each), each.expression, each.tz, settings)


def _last(each: ScheduleShown) -> str:
    if not each.last:
        return "never"
    fate = _FATES.get(each.fate, each.fate)
    return _utc(each.last) + (f" ({fate})" if fate else "")


def tick_words(answer: SchedulesShown, count: int) -> Iterator[str]:
    """The next ticks of all of them, each in a line."""
    every = [(tick, each) for each in answer.schedules for tick in each.next]
    every.sort(key=lambda pair: pair[0].due)
    if not every:
        yield "nothing is due: no schedule is deployed" if not answer.schedules else "nothing is due"
    else:
        rows = ((_utc(tick.due), _there(tick, each), _name(each), tick.note) for tick, each in every[:count])
        yield from _columns(("UTC", "there", "schedule", ""), rows)
    for each in answer.schedules:
        if each.why:
            yield harmless(f"{_name(each)}: {each.why}")


def _name(each: ScheduleShown) -> str:
    return f"{each.deployment}/{each.schedule}" if each.deployment else f"{each.expression} {each.tz}"


def _columns(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    """Aligned, without the local time where nothing is due by another clock than UTC."""
    at, rows = headings.index("there"), tuple(rows)
    kept = [number for number in range(len(headings)) if number != at or any(row[at] for row in rows)]
    yield from words.columns([[row[number] for number in kept] for row in (headings, *rows)])


def _there(tick: DueTick, each: ScheduleShown) -> str:
    """When it is due by its own clock; empty where that is UTC."""
    return "" if each.tz == "UTC" else tick.local.replace("T", " ")


def _utc(at: str) -> str:
    return at[:16].replace("T", " ")

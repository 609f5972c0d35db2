"""Cron expressions: five fields, the calendar that they mean, and nothing of zones.

    minute 0-59   hour 0-23   day of month 1-31   month 1-12 or JAN-DEC   day of week 0-7 or SUN-SAT (0 and 7: Sunday)

A field is ``*``, a number, a range ``1-5``, a list ``1,15``, each with a step ``*/10``; a day of month also ``L`` (the
last one) or ``LW`` (the last working day), a day of week also ``5L`` (the month's last Friday) or ``5#2`` (its second).
Where both day fields are restricted either is enough; if one begins with ``*`` both must hold: as in Debian's cron, by
cronsim. Seconds, years, ``@daily``, ``W``, ``?`` and ``H`` are refused, never guessed at, and so is a step longer than
its field: ``*/90`` would be every hour.
"""

import functools
import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Final

from cronsim import CronSim, CronSimError

from waypost.model.errors import Invalid

LONGEST: Final = 256
"""Characters of an expression."""
HORIZON: Final = timedelta(days=365 * 50 + 13)
"""How far ahead a tick is looked for. The rarest one that can be written comes every forty years."""
_NAMES: tuple[str, ...] = ("minute", "hour", "day-of-month", "month", "day-of-week")
_SIZES = (60, 24, 31, 12, 7)
_RANGES: dict[str, str] = {
    "minute": "0 to 59",
    "hour": "0 to 23",
    "day-of-month": "1 to 31, as far as its month has them, L for the last one or LW for the last working day",
    "month": "1 to 12 or JAN to DEC",
    "day-of-week": "0 to 7 or SUN to SAT (0 and 7: Sunday), 5L for the month's last Friday or 5#2 for its second",
}
_ALPHABET = re.compile(r"[0-9A-Za-z*,/#-]+\Z")
_MEANT: Final = {
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
    "@monthly": "0 0 1 * *",
    "@weekly": "0 0 * * 0",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@hourly": "0 * * * *",
}
_EXAMPLE: Final = "minute hour day month weekday, such as '30 9 * * MON-FRI'"
_FAR: Final = datetime(9900, 1, 1)  # noqa: DTZ001 - a local time, of no zone
_SOME_DAY: Final = datetime(2026, 1, 1)  # noqa: DTZ001 - the same


class BadExpression(Invalid):
    """``expression`` is no cron expression, or one that never comes."""

    def __init__(self, expression: str, why: str, hint: str) -> None:
        shown = expression if len(expression) <= LONGEST else f"{expression[:40]}…"
        super().__init__(f"{shown!r} can't be a schedule: {why}", hint=hint)
        self.expression = expression


@functools.lru_cache(maxsize=1024)
def canonical(expression: str) -> str:
    """Check an expression, and give it in capitals, with one blank between its fields. Raises BadExpression."""
    if len(expression) > LONGEST:
        raise BadExpression(
            expression, f"it has {len(expression)} characters, and {LONGEST} are allowed", "write a range or a step"
        )
    if meant := _MEANT.get(expression.strip().lower()):
        raise BadExpression(expression, "names stand for no expression here", f"write {meant!r}")
    clean = " ".join(_fields(expression)).upper()
    for name, size, field in zip(_NAMES, _SIZES, clean.split(), strict=True):
        for step in map(int, re.findall(r"/([0-9]+)", field)):
            if step > size:
                why = f"its {name} has steps of {step}, and there are {size}: {field!r}"
                raise BadExpression(
                    expression, why, "write each time of day by itself: steps don't go past their field"
                )
    try:
        first = next(after(clean, _SOME_DAY), None)
    except CronSimError as bad:
        raise BadExpression(expression, *_why(str(bad), clean)) from None
    if first is None or first - _SOME_DAY > HORIZON:
        raise BadExpression(
            expression, "there is no such day within fifty years", "look at its day, month and weekday together"
        )
    return clean


def _fields(expression: str) -> list[str]:
    fields = re.split(r"[ \t]+", expression.strip(" \t"))
    wrong = next((number for number, field in enumerate(fields) if not _ALPHABET.match(field)), None)
    if wrong is not None and len(fields) == len(_NAMES):
        why = f"its {_NAMES[wrong]} has a character that none can have: {fields[wrong]!r}"
        raise BadExpression(expression, why, _hint(_NAMES[wrong]))
    if wrong is not None:
        raise BadExpression(expression, "it is empty, or has a character that none can have", f"write {_EXAMPLE}")
    if len(fields) != len(_NAMES):
        raise BadExpression(
            expression, f"it has {len(fields)} fields, not {len(_NAMES)}", f"write {_EXAMPLE}: no seconds, no year"
        )
    return fields


def _why(said: str, clean: str) -> tuple[str, str]:
    """What is wrong, and how it is written."""
    # cronsim says "Bad day-of-month", also of one that no month of the expression has.
    field = said.removeprefix("Bad ")
    written = dict(zip(_NAMES, clean.split(), strict=True)).get(field)
    if written is None:
        return said, f"write {_EXAMPLE}"
    return f"its {field} can't be, or never comes: {written!r}", _hint(field)


def _hint(field: str) -> str:
    return f"write the {field} as {_RANGES[field]}; several as 1-5 or 1,15, every so many as */10"


def after(expression: str, local: datetime) -> Iterator[datetime]:
    """The local times of an expression that come after ``local``, in order: naive ones, as on a calendar.

    Nothing more from the year 9900 on, or where the next would be more than fifty years away. Raises CronSimError for
    what ``canonical`` would have refused.
    """
    if local >= _FAR:
        return iter(())
    return iter(CronSim(expression, local))


def at_fixed_times(expression: str) -> bool:
    """Whether it names a time of day, and none of ``*`` in hour or minute: only such a time can be missed or repeated.

    The others mean "every so often" and go by the clock as it runs, through both hours where one comes twice.
    """
    minute, hour, *_ = expression.split()
    return not (minute.startswith("*") or hour.startswith("*"))

"""Time as a value: two clocks read together, their text form, and durations as people write them."""

import functools
import re
from datetime import UTC, datetime, timedelta

import msgspec

from waypost.model.errors import Invalid


class Now(msgspec.Struct, frozen=True):
    """One reading of both clocks.

    ``wall``: Unix time in milliseconds; what is recorded and what people read.
    ``mono``: seconds of the monotonic clock; what watchdogs count. The two are never subtracted from each other.
    """

    wall: int
    mono: float


_STAMP = len("2026-11-29T08:00:00.000Z")
_MILLISECONDS = tuple(f".{part:03d}Z" for part in range(1000))


def stamp(wall: int) -> str:
    """ISO 8601 in UTC with milliseconds, the one form that events carry: ``2026-11-29T08:00:00.000Z``."""
    return _second(wall // 1000) + _MILLISECONDS[wall % 1000]


@functools.lru_cache(maxsize=16)
def _second(wall: int) -> str:
    # Thousands of stamps fall into one second; making this part anew costs ten times as much as the rest.
    return datetime.fromtimestamp(wall, UTC).isoformat(timespec="seconds").removesuffix("+00:00")


def unstamp(text: str) -> int:
    """The inverse of ``stamp``, of other ISO 8601 with a zone, too: Unix milliseconds. Raises Invalid."""
    if (
        len(text) == _STAMP
        and text[10:20:3] == "T::."
        and text[23] == "Z"
        and text[20:23].isdecimal()
        and text.isascii()
    ):
        return _second_of(text[:19]) + int(text[20:23])
    return _unstamp(text)


def plainly(at: str) -> str:
    """A stamp as people write a time, with its zone, as they may live in another than the host: ``… 08:00:00 UTC``."""
    return f"{at[:19].replace('T', ' ')} UTC"


@functools.lru_cache(maxsize=16)
def _second_of(text: str) -> int:
    # As above: a run's events lie close together, and a replay reads the time of each.
    return _unstamp(f"{text}Z")


def _unstamp(text: str) -> int:
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise Invalid(f"{text!r} is not a time stamp") from None
    if moment.tzinfo is None:
        raise Invalid(f"{text!r} has no time zone")
    return round((moment - datetime(1970, 1, 1, tzinfo=UTC)) / timedelta(milliseconds=1))


_UNITS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0, "w": 604800.0}
# Compiled by the first text that is read: a child loads this file on its way to ready.
_DURATION = r"(?:[0-9]+(?:\.[0-9]+)?(?:ms|[smhdw]))+\Z"
_PART = r"([0-9]+(?:\.[0-9]+)?)(ms|[smhdw])"

LONGEST = 100 * 365 * 86400.0
"""A hundred years, in seconds: the longest duration that is accepted."""


def seconds(value: float | str | timedelta) -> float:
    """A duration in seconds: from a number of seconds, a timedelta, or text such as ``"3d"`` or ``"1h30m"``.

    Raises Invalid for anything else, negative, not finite, or longer than a hundred years.
    """
    match value:
        case bool():
            raise Invalid(f"{value!r} is not a duration")
        case timedelta():
            found = value.total_seconds()
        case int() | float():
            found = float(value)
        case str() if re.match(_DURATION, value):
            found = sum(float(number) * _UNITS[unit] for number, unit in re.findall(_PART, value))
        case _:
            raise Invalid(
                f"{value!r} is not a duration", hint='write seconds, a timedelta, or text such as "3d" or "1h30m"'
            )
    if not 0 <= found <= LONGEST:
        raise Invalid(f"{value!r} is not a duration between 0 and 100 years")
    return found

"""Time zones by their IANA names, and what a local clock shows: the same on every machine that has this installation.

Names and rules come from the package tzdata and nowhere else. A machine's own /usr/share/zoneinfo may be missing,
older, or without the old names, and a schedule mustn't mean one thing where it is written and another where it runs. A
process reads a zone once and stays with it; new rules arrive with ``pip install -U tzdata`` and the host's next start.
There is no ``local`` zone, no path and no fixed offset: ``Etc/GMT-3`` is three hours ahead of UTC.
"""

import functools
import importlib
import importlib.resources
import io
import re
from datetime import UTC, datetime, timedelta, tzinfo
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final
from zoneinfo import ZoneInfo

from waypost.model.errors import Invalid
from waypost.model.tzif import LARGEST, whole

SECOND: Final = timedelta(seconds=1)
_PACKAGE: Final = "tzdata"
_NO_PLACE: Final = frozenset({"Factory"})
"""Names in the list that stand for "nobody has said where"."""
_LONGEST: Final = 64
_BROKEN: Final = (ImportError, OSError, ValueError, SyntaxError)
"""What Python raises where a file of the database, or all of it, isn't there or isn't whole."""
_OFFSET = re.compile(r"(?:UTC|GMT)?([+-])(\d{1,2})(?::?00)?\Z", re.ASCII)


class NoZone(Invalid):
    """``name`` is no zone that the installed database has: it never was one, isn't any more, or can't be read."""

    def __init__(self, name: str, hint: str, unreadable: str = "") -> None:
        """``unreadable``: why the database can't say, where it can't."""
        why = f": {unreadable}" if unreadable else ""
        message = f"there is no time zone {name[:_LONGEST]!r} in the zone database ({release()}){why}"
        super().__init__(message, hint=hint)
        self.name = name


def release() -> str:
    """The database's own release, such as ``2026f``; of one that isn't there, or isn't whole, that it isn't."""
    try:
        return str(importlib.import_module(_PACKAGE).IANA_VERSION)
    except (AttributeError, *_BROKEN):
        return "not installed"


@functools.cache
def names() -> frozenset[str]:
    """Every name there is: 500 and some, spelt exactly so."""
    listed = _plain(importlib.resources.files(_PACKAGE).joinpath("zones")).read_text("utf-8")
    return frozenset(listed.split()) - _NO_PLACE


@functools.cache
def zone(name: str) -> tzinfo:
    """The zone of this name. Raises NoZone: names are compared letter by letter, whatever the file system does.

    A database that is being exchanged, or was installed in part, lacks files: the zone's trouble, and nobody else's.
    """
    try:
        return _read(name)
    except _BROKEN as failure:
        why = getattr(failure, "strerror", None) or str(failure) or type(failure).__name__
        raise NoZone(name, "`pip install --force-reinstall tzdata`, then start the host anew", why) from failure


def _read(name: str) -> tzinfo:
    if name not in names():
        raise NoZone(name, _instead(name))
    if name == "UTC":
        return UTC
    *folders, last = name.split("/")
    # As a package's file: ZoneInfo(name) would prefer the machine's own.
    where = importlib.resources.files(".".join((_PACKAGE, "zoneinfo", *folders))).joinpath(last)
    with _plain(where).open("rb") as file:
        raw = file.read(LARGEST + 1)
    if not whole(raw):  # Python's reader would go on for ever, or end the process
        raise ValueError("its file isn't whole, or is damaged")
    return ZoneInfo.from_file(io.BytesIO(raw), key=name)


def _plain(where: Traversable) -> Traversable:
    """The same. Raises ValueError for what is there and is no file: to open a pipe is to wait for who writes to it."""
    if isinstance(where, Path) and where.exists() and not where.is_file():
        raise ValueError("its file is no plain file")
    return where


def _instead(name: str) -> str:
    """What somebody may have meant."""
    if match := _OFFSET.match(name):
        sign = "-" if match[1] == "+" else "+"
        return f"write tz='Etc/GMT{sign}{int(match[2])}' (its sign is turned round), or better the name of a place"
    for known in sorted(names()):
        if known.lower() == name.lower():
            return f"it is spelt {known!r}"
    if name.lower() in {"local", "localtime"} or name.startswith(("/", ".")):
        return "name the place, such as tz='Europe/Berlin': a machine's own zone would change with the machine"
    return "name a place as in tz='Europe/Berlin', or 'UTC'; new zones come with `pip install -U tzdata`"


def shown(at_ms: int, in_zone: tzinfo) -> datetime:
    """What the local clock shows at an instant (Unix ms): aware, of whole seconds."""
    return datetime.fromtimestamp(at_ms // 1000, in_zone)


def instants(local: datetime, in_zone: tzinfo) -> tuple[int, ...]:
    """When (Unix ms) the zone's clock shows this naive local time: once, twice where it is set back, never in a gap."""
    first, second = (_offset(local, in_zone, fold) for fold in (0, 1))
    if first < second:
        return ()
    if first == second:
        return (_unix(local, first),)
    return (_unix(local, first), _unix(local, second))


def reached(local: datetime, in_zone: tzinfo) -> int:
    """When (Unix ms) the zone's clock shows this naive local time or a later one for the first time.

    Of a time in a gap this is the end of the gap. A later local time is never reached earlier.
    """
    before, after = (_offset(local, in_zone, fold) for fold in (0, 1))
    if before >= after:
        return _unix(local, before)
    # The clock jumps somewhere in between: at the first second that no longer has the offset from before.
    early, late = _unix(local, after) // 1000, _unix(local, before) // 1000
    while late - early > 1:
        middle = (early + late) // 2
        if datetime.fromtimestamp(middle, in_zone).utcoffset() == before:
            early = middle
        else:
            late = middle
    return late * 1000


def set_back(local: datetime, in_zone: tzinfo) -> timedelta:
    """By how much the clock is set back where this naive local time comes twice; nothing where it doesn't."""
    first, second = (_offset(local, in_zone, fold) for fold in (0, 1))
    return max(first - second, timedelta())


def _offset(local: datetime, in_zone: tzinfo, fold: int) -> timedelta:
    found = in_zone.utcoffset(local.replace(tzinfo=in_zone, fold=fold))
    assert found is not None
    return found


def _unix(local: datetime, offset: timedelta) -> int:
    return round((local - offset).replace(tzinfo=UTC).timestamp()) * 1000

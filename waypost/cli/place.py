"""What a verb means: which run, and which data directory.

The latter is ``--data``, else ``WAYPOST_DATA``, else the nearest ``.waypost`` upwards.
"""

import os
import re
from pathlib import Path

from waypost.host.datadir.directory import NAME, DataDir, find
from waypost.host.errors import NoSuchRun, NotText

VARIABLE = "WAYPOST_DATA"


def told(option: str | None) -> str | None:
    """What was said outright."""
    return option or os.environ.get(VARIABLE) or None


def existing(option: str | None, *, begun: bool = True) -> DataDir:
    """The data directory of a verb that needs one. Raises NoDataDirectory, NewerData, DamagedFormat.

    ``begun``: as of ``find``.
    """
    return find(Path.cwd(), told(option), begun=begun)


def for_host(option: str | None, first_file: Path) -> Path:
    """Where a host lives: as told, or beside its first file, or in its first folder."""
    chosen, first = told(option), first_file.absolute()
    return Path(chosen) if chosen else (first if first.is_dir() else first.parent) / NAME


def run_named(text: str) -> str:
    """A run's id, or the beginning of one, as somebody typed it. Raises NoSuchRun for what can't be either."""
    if not re.fullmatch(r"[a-z0-9_]{1,64}", text):
        raise NoSuchRun(text)
    return text


def plain(what: str, text: str) -> str:
    """An argument that goes to the host as text. Raises NotText: bytes that are no UTF-8 arrive as lone surrogates."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise NotText(what, text) from None
    return text

"""Which data directory a verb means: ``--data``, ``WAYPOST_DATA``, or the nearest ``.waypost`` upwards."""

import os
from pathlib import Path

from waypost.host.datadir import NAME, DataDir, find

VARIABLE = "WAYPOST_DATA"


def told(option: str | None) -> str | None:
    """What was said outright."""
    return option or os.environ.get(VARIABLE) or None


def existing(option: str | None) -> DataDir:
    """The data directory of a verb that needs one. Raises NoDataDirectory, NewerData, DamagedFormat."""
    return find(Path.cwd(), told(option))


def for_host(option: str | None, first_file: Path) -> Path:
    """Where a host lives: as told, or beside its first file."""
    chosen = told(option)
    return Path(chosen) if chosen else first_file.absolute().parent / NAME

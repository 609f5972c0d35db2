"""The options of ``waypost run`` that say how far workflow code is shut in, as the host wants them."""

import os
import re
from collections.abc import Sequence
from pathlib import Path

from ipc.box import MODES
from waypost.host.errors import Usage
from waypost.host.processes.isolation import Asked
from waypost.host.processes.users import RANGE

_SIZE = re.compile(r"([1-9][0-9]{0,14})([KMGT]?)\Z")
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}
_UIDS = re.compile(r"([0-9]{1,10})-([0-9]{1,10})\Z")
_LARGEST = 2**32 - 2
_SMALLEST = 100
"""Users that a range has at least: those that are taken are passed over."""


def asked(
    mode: str | None,
    *,
    reads: Sequence[str] = (),
    writes: Sequence[str] = (),
    no_network: bool = False,
    memory: str | None = None,
    processes: int = 0,
    files: int = 0,
    uids: str | None = None,
) -> Asked:
    """What was said on the command line. Raises Usage."""
    if mode is not None and mode not in MODES:
        raise Usage(f"--isolation {mode}: there is no such mode", hint=f"choose one of {', '.join(MODES)}")
    return Asked(
        mode=mode,
        reads=_paths("--reads", reads),
        writes=_paths("--writes", writes),
        network=not no_network,
        memory=0 if memory is None else _size(memory),
        processes=processes,
        files=files,
        uids=RANGE if uids is None else _range(uids),
    )


def _paths(option: str, given: Sequence[str]) -> tuple[str, ...]:
    for path in given:
        if not Path(path).exists():
            raise Usage(f"{option} {path}: there is no such file or folder", hint="name one that is there")
    return tuple(os.path.abspath(path) for path in given)  # noqa: PTH100 - a name, links and all


def _size(text: str) -> int:
    match = _SIZE.match(text.upper())
    if match is None:
        raise Usage(f"--memory {text}: that is no size", hint="write bytes, or 512M, or 2G")
    return int(match[1]) * _UNITS[match[2]]


def _range(text: str) -> range:
    match = _UIDS.match(text)
    first, last = (int(match[1]), int(match[2])) if match else (0, 0)
    if not 0 < first <= last <= _LARGEST or last - first + 1 < _SMALLEST:
        raise Usage(
            f"--uids {text}: that is no range of users",
            hint=f"write FIRST-LAST, {_SMALLEST} or more, such as 70000-79999",
        )
    return range(first, last + 1)

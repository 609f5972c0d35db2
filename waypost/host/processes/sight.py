"""What a child in a namespace sees of the machine: the least with which Python runs, and what the operator opens.

The system's programs, libraries and settings, the interpreter with its packages, and the workflow's code are there and
can't be written. ``/tmp``, ``/var/tmp``, ``/dev/shm`` and the home directory are empty, its own, and gone with it.
Everything else, and the data directory whatever else is opened, doesn't exist (docs/isolation.md).
"""

import os
import re
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ipc.box import Entry, covering, is_below
from waypost.host.processes.isolation_errors import OpensTooMuch

SYSTEM = ("/usr", "/etc", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store", "/gnu/store")
_LED_OUT = ("/etc/resolv.conf", "/etc/hosts", "/etc/localtime", "/etc/ssl/certs", "/etc/ssl/cert.pem")
"""Settings that are links on some systems, to places that aren't shown."""
_KERNELS = ("/proc", "/dev", "/sys")
_PRIVATE, _COMMON = "700", "1777"
_VISIBLE = frozenset({"ro", "rw"})
_SHUT = ("PermissionError:", "Read-only file system")
_MISSING = re.compile(r"FileNotFoundError: .*'/")


@dataclass(frozen=True, slots=True, kw_only=True)
class Sight:
    """What is open beside the system: paths that may be read, paths that may be written too, as they were given.

    ``hidden`` is the data directory; ``home`` the host's home directory. All are absolute.
    """

    hidden: str
    home: str
    reads: tuple[str, ...] = ()
    writes: tuple[str, ...] = ()

    def check(self) -> None:
        """Raises OpensTooMuch for a path that would open what must stay shut."""
        hidden = os.path.realpath(self.hidden)
        kept = [("the data directory", hidden), *(("the interpreter", os.path.realpath(p)) for p in interpreter())]
        for given in (*self.reads, *self.writes):
            path = os.path.realpath(given)
            if path == "/" or any(is_below(path, folder) for folder in _KERNELS):
                raise OpensTooMuch(given, "it is the machine itself")
            if is_below(path, hidden):
                raise OpensTooMuch(given, "it lies in the data directory, with the keys and the history")
        for given in self.writes:
            path = os.path.realpath(given)
            for what, folder in kept:
                if is_below(folder, path) or is_below(path, folder):
                    raise OpensTooMuch(given, f"{what} {folder} could be replaced there")

    def entries(self, code: str | None) -> tuple[Entry, ...]:
        """The entries of a child's box, as they are to be placed. ``code``: the folder on its import path."""
        placed: dict[str, Entry] = {}
        for name in SYSTEM:
            if Path(name).is_symlink():
                placed[name] = Entry("link", name, os.readlink(name))  # noqa: PTH115 - as it is written there
            elif Path(name).is_dir():
                placed[name] = Entry("ro", name, name)
        for name in ("/tmp", "/var/tmp"):  # noqa: S108 - of its own
            placed[name] = Entry("tmp", name, _COMMON)
        home = os.path.normpath(self.home)
        placed.setdefault(home, Entry("tmp", home, _PRIVATE))
        shown = (*interpreter(), *filter(None, (code,)), *self.reads, *map(os.path.realpath, _LED_OUT))
        for path in shown:
            placed.update(_brought("ro", path))
        for path in self.writes:
            placed.update(_brought("rw", path))
        hidden = os.path.realpath(self.hidden)
        placed[hidden] = Entry("veil", hidden)
        return _in_order(placed.values())


def interpreter() -> tuple[str, ...]:
    """Folders and files that this interpreter and its packages lie in."""
    # The first entry is the folder of the script, or the current one: a child starts without it (-P).
    imported = sys.path if sys.flags.safe_path else sys.path[1:]
    ours = [str(Path(str(sys.modules[name].__file__)).parent) for name in ("waypost", "ipc")]
    prefixes = (sys.prefix, sys.base_prefix, sys.exec_prefix, sys.base_exec_prefix)
    return tuple(path for path in (*prefixes, *imported, *ours) if Path(path).is_absolute())


def shut_off(failure: str, isolation: str) -> str:
    """What to say of a step's failure that may come from what isn't open to it; empty for any other failure.

    ``isolation`` as the host says it; empty where that isn't known.
    """
    if isolation and not isolation.startswith("namespace"):
        return ""
    if not any(sign in failure for sign in _SHUT) and not _MISSING.search(failure):
        return ""
    return (
        "; in its namespace it sees nothing that wasn't opened for it: "
        "`waypost run --reads PATH` and `waypost run --writes PATH` do, when the host is started"
    )


def _brought(kind: Literal["ro", "rw"], path: str) -> dict[str, Entry]:
    """A path in its real place, and a link to that under the name that it was given; nothing where there is none.

    Never in two places: what is veiled in one of them would be seen in the other.
    """
    real, given = os.path.realpath(path), os.path.normpath(path)
    if not Path(real).exists():
        return {}
    return {given: Entry("link", given, real), real: Entry(kind, real, real)}


def _in_order(entries: Iterable[Entry]) -> tuple[Entry, ...]:
    """Shallow ones first, without what is there anyhow and without veils over nothing."""
    kept: list[Entry] = []
    for entry in sorted(entries, key=lambda entry: (len(Path(entry.target).parts), entry.target)):
        above = covering(kept, entry.target)
        if above is None:
            needed = entry.kind != "veil"
        elif above.kind == "link":
            needed = False  # it is there by way of the link, as far as it is at all
        elif entry.kind in _VISIBLE:
            needed = above.kind != entry.kind
        elif entry.kind == "veil":
            needed = above.kind in _VISIBLE
        else:
            needed = above.kind not in _VISIBLE  # what was opened there is meant, its links included
        if needed:
            kept.append(entry)
    return tuple(kept)

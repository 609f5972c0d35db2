"""What a child is shut into: the record that the host makes and the child reads from its command line (design §1).

Three modes. ``none`` changes nothing; ``uid`` makes the child another user; ``namespace`` gives it mount, pid, IPC and
UTS namespaces of its own (and a user namespace, where the host isn't root), in which there is what ``entries`` say and
nothing else. Limits hold in each. Nothing here is secret: any user of the machine may read a command line.

The text has a line for each part, a word and its value; the two paths of an entry have a tab between them.
"""

from collections.abc import Iterable
from typing import Final, Literal, NamedTuple, TypeAlias, get_args

from ipc.errors import BadBox

Mode: TypeAlias = Literal["namespace", "uid", "none"]
MODES: Final[tuple[Mode, ...]] = get_args(Mode)

Kind: TypeAlias = Literal["ro", "rw", "tmp", "veil", "link"]
KINDS: Final[tuple[Kind, ...]] = get_args(Kind)


class Entry(NamedTuple):
    """One thing that is there in a namespace, placed in the order of the list, so that a deeper one comes later.

    ``ro``, ``rw``: what lies at ``source`` on the machine, with what is mounted below it. ``tmp``: an empty directory
    of the child's own, gone with it; its mode is ``source``, in octal. ``veil``: an empty one, read-only, over what
    would be visible there. ``link``: a symbolic link to ``source``.
    """

    kind: Kind
    target: str
    source: str = ""


class Box(NamedTuple):
    """A child's confinement. Numbers of 0 mean: no limit, or no other user."""

    mode: Mode = "none"
    entries: tuple[Entry, ...] = ()
    uid: int = 0
    """User and group that the child becomes; the host must be root."""
    network: bool = True
    memory: int = 0
    """Bytes that each process may have in writable memory of its own (RLIMIT_DATA)."""
    processes: int = 0
    """Processes and threads (RLIMIT_NPROC)."""
    files: int = 0
    """Descriptors that each process may have open (RLIMIT_NOFILE)."""

    def text(self) -> str:
        """For the command line. Raises BadBox for a path that can't be written there."""
        lines = [
            f"mode {self.mode}",
            f"uid {self.uid}",
            f"network {int(self.network)}",
            f"memory {self.memory}",
            f"processes {self.processes}",
            f"files {self.files}",
        ]
        for kind, target, source in self.entries:
            if any(char in path for path in (target, source) for char in "\n\t\0"):
                raise BadBox(f"{target!r} or {source!r} has a character that no path of a box may have")
            lines.append(f"{kind} {target}\t{source}")
        return "\n".join(lines)


def parse(text: str) -> Box:
    """Read what ``Box.text`` wrote. Raises BadBox for anything else: a child never runs in half a box."""
    entries: list[Entry] = []
    numbers: dict[str, int] = {}
    mode: Mode | None = None
    for line in text.split("\n"):
        word, _, rest = line.partition(" ")
        if word in KINDS:
            target, tab, source = rest.partition("\t")
            if not tab or not target.startswith("/"):
                raise BadBox(f"{line!r} is no entry")
            entries.append(Entry(word, target, source))
        elif word == "mode" and rest in MODES and mode is None:
            mode = rest
        elif word in {"uid", "network", "memory", "processes", "files"} and word not in numbers and _decimal(rest):
            numbers[word] = int(rest)
        else:
            raise BadBox(f"{line!r} says nothing of a box")
    if mode is None:
        raise BadBox("no mode is named")
    network = bool(numbers.pop("network", 1))
    return Box(mode=mode, entries=tuple(entries), network=network, **numbers)


def covering(entries: Iterable[Entry], path: str) -> Entry | None:
    """The entry in which a path lies: the deepest one, and of equal ones the last."""
    found: Entry | None = None
    for entry in entries:
        if is_below(path, entry.target) and (found is None or len(entry.target) >= len(found.target)):
            found = entry
    return found


def is_below(path: str, folder: str) -> bool:
    """Whether a normal path is a folder, or lies in it."""
    return path == folder or path.startswith(folder.rstrip("/") + "/")


def _decimal(text: str) -> bool:
    return text.isascii() and text.isdigit()

"""Whether a child may begin one more thread, as the kernel counts them now, and which limit stands in its way.

Three limits hold at once: of its user's processes and threads (RLIMIT_NPROC, getrlimit(2)), of its service or container
(``pids.max`` of its control groups), and of the machine (``kernel.threads-max``). In a namespace that its user alone
made, what is in there is counted. Linux, proc(5), cgroups(7).
"""

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from ipc.stopped import processes

_PROC, _GROUPS = Path("/proc"), Path("/sys/fs/cgroup")
_PARENT, _THREADS = 1, 17
"""Fields of ``stat`` behind the name: who began it, and how many threads it has."""
_EXEMPT = (1 << 24) | (1 << 21)
"""CAP_SYS_RESOURCE and CAP_SYS_ADMIN: who has one of them isn't counted by its user."""


@dataclass(frozen=True, slots=True)
class Crowd:
    """``count`` processes and threads of ``most``. ``whose`` limit: its user's, its service's, the machine's."""

    whose: Literal["user", "service", "machine"]
    count: int
    most: int
    group: str = ""
    """Of a service: the control group."""


class Machine:
    """What counts for several children, read once: to be made anew whenever somebody asks."""

    def __init__(self, *, proc: Path = _PROC, groups: Path = _GROUPS) -> None:
        self._proc, self._groups = proc, groups
        self._known: dict[str, Crowd | None] = {}
        """By what a process's ``cgroup`` says, which of these is full."""
        self._total, self._most = 0, 0
        with suppress(OSError, ValueError, IndexError):
            self._total = int((proc / "loadavg").read_text().split()[3].partition("/")[2])
            self._most = int((proc / "sys/kernel/threads-max").read_text())

    def crowded(self, child: int, *, boxed: bool) -> Crowd | None:
        """The limit that leaves this child no room for one more thread; None: there is room, or the kernel won't say.

        ``boxed``: it is in a namespace.
        """
        if 0 < self._most <= self._total:
            return Crowd("machine", self._total, self._most)
        with suppress(OSError, ValueError, IndexError, StopIteration):
            text = (self._proc / f"{child}/cgroup").read_text()
            if text not in self._known:
                limits = (_limit(path) for path in _groups(text, self._groups))
                self._known[text] = next((each for each in limits if each and each.count >= each.most), None)
            return self._known[text] or self._of_its_user(child, boxed=boxed)
        return None

    def _of_its_user(self, child: int, *, boxed: bool) -> Crowd | None:
        worker = processes(child, boxed=boxed, proc=self._proc)[-1]  # the limit is of the one that runs the code
        lines = (self._proc / f"{worker}/limits").read_text().splitlines()
        word = next(line for line in lines if line.startswith("Max processes")).split()[2]
        if not word.isdigit() or int(word) > self._total or _exempt(worker, self._proc):
            return None
        count = _counted(child, self._proc, boxed=boxed)
        return Crowd("user", count, int(word)) if count >= int(word) else None


def _limit(group: Path) -> Crowd | None:
    with suppress(OSError, ValueError):  # it has no such limit
        return Crowd(
            "service", int((group / "pids.current").read_text()), int((group / "pids.max").read_text()), group.name
        )
    return None


def _groups(text: str, groups: Path) -> Iterator[Path]:
    """Control groups that may limit a process's threads, from its own up: each of them holds."""
    for line in text.splitlines():
        number, kinds, name = line.split(":", 2)
        if number != "0" and "pids" not in kinds.split(","):
            continue
        top = groups if number == "0" else groups / "pids"
        here = top / name.lstrip("/")
        yield from (each for each in (here, *here.parents) if each.is_relative_to(top) and each != top)


def _exempt(child: int, proc: Path) -> bool:
    status = _status(child, proc)
    return status["Uid"].split()[0] == "0" or bool(int(status["CapEff"], 16) & _EXEMPT)


def _status(pid: int, proc: Path) -> dict[str, str]:
    lines = (proc / f"{pid}/status").read_text(errors="replace").splitlines()
    return {name: value.strip() for name, _, value in (line.partition(":") for line in lines)}


def _counted(child: int, proc: Path, *, boxed: bool) -> int:
    """Threads of all that its user runs; in a namespace, of the child and what descends from it."""
    threads, parents, users = dict[int, int](), dict[int, int](), dict[int, str]()
    for entry in proc.iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError, ValueError, IndexError):  # gone meanwhile
            pid = int(entry.name)
            stat = (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()
            threads[pid], parents[pid] = int(stat[_THREADS]), int(stat[_PARENT])
            users[pid] = "" if boxed else _status(pid, proc)["Uid"].split()[0]
    ours = (pid for pid in threads if (_descends(pid, child, parents) if boxed else users[pid] == users[child]))
    return sum(threads[pid] for pid in ours)


def _descends(pid: int, child: int, parents: dict[int, int]) -> bool:
    while pid != child and pid in parents:
        pid = parents[pid]
    return pid == child

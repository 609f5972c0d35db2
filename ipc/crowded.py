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


def crowded(child: int, *, boxed: bool, proc: Path = _PROC, groups: Path = _GROUPS) -> Crowd | None:
    """The limit that leaves no room for one more thread; None where there is room, or the kernel won't say."""
    with suppress(OSError, ValueError, IndexError, StopIteration):
        return next((each for each in _limits(child, boxed, proc, groups) if each.count >= each.most), None)
    return None


def _limits(child: int, boxed: bool, proc: Path, groups: Path) -> Iterator[Crowd]:  # noqa: FBT001 - as it was said
    total = int((proc / "loadavg").read_text().split()[3].partition("/")[2])
    yield Crowd("machine", total, int((proc / "sys/kernel/threads-max").read_text()))
    for path in _groups(child, proc, groups):
        with suppress(OSError, ValueError):  # it has no such limit
            most = int((path / "pids.max").read_text())
            yield Crowd("service", int((path / "pids.current").read_text()), most, path.name)
    worker = processes(child, boxed=boxed, proc=proc)[-1]  # the limit is of the one that runs the code
    soft = next(line for line in (proc / f"{worker}/limits").read_text().splitlines() if line.startswith("Max proc"))
    word = soft.split()[2]
    if word.isdigit() and int(word) <= total and not _exempt(worker, proc):
        yield Crowd("user", _counted(child, boxed, proc), int(word))


def _groups(child: int, proc: Path, groups: Path) -> Iterator[Path]:
    """Its control groups that may limit processes, from its own up: each of them holds."""
    for line in (proc / f"{child}/cgroup").read_text().splitlines():
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


def _counted(child: int, boxed: bool, proc: Path) -> int:  # noqa: FBT001 - as it was said
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

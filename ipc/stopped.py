"""Which processes of a child have been stopped, by SIGSTOP or from a terminal: the kernel says so when it is asked.

A stopped process does nothing, and says nothing: from outside it looks like one that is at work. In a namespace the
child is three processes, and any of them may be the one (`ipc.boxing`). Linux, proc(5).
"""

from pathlib import Path

_PROC = Path("/proc")
_STOPPED, _TRACED = b"T", b"t"
_DEPTH = 2
"""In a namespace: from the host's child to process 1, and from there to the one that runs the code."""


def stopped(child: int, *, boxed: bool, proc: Path = _PROC) -> tuple[int, ...]:
    """The processes of a child that are stopped, the host's own child first. ``boxed``: it is in a namespace."""
    return tuple(pid for pid in processes(child, boxed=boxed, proc=proc) if _state(pid, proc) == _STOPPED)


def traced(child: int, *, boxed: bool, proc: Path = _PROC) -> tuple[int, ...]:
    """Those that a debugger holds, which no SIGCONT lets go on."""
    return tuple(pid for pid in processes(child, boxed=boxed, proc=proc) if _state(pid, proc) == _TRACED)


def halted(child: int, *, boxed: bool, proc: Path = _PROC) -> bool:
    """Whether one of them is stopped, or held by a debugger."""
    return any(_state(pid, proc) in {_STOPPED, _TRACED} for pid in processes(child, boxed=boxed, proc=proc))


def processes(child: int, *, boxed: bool, proc: Path = _PROC) -> tuple[int, ...]:
    """Those that a child is made of, the host's own first; the last one runs the code, if the kernel says so much."""
    found = [child]
    for _ in range(_DEPTH if boxed else 0):
        found += _first(found[-1], proc)
    return tuple(dict.fromkeys(found))


def _first(pid: int, proc: Path) -> list[int]:
    """The first one that it has begun; what is adopted by process 1 comes after it. None where the kernel won't say."""
    try:
        return [int(each) for each in (proc / f"{pid}/task/{pid}/children").read_bytes().split()[:1]]
    except (OSError, ValueError):
        return []


def _state(pid: int, proc: Path) -> bytes:
    try:
        # The name before it may hold blanks and brackets.
        return (proc / f"{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
    except (OSError, IndexError):
        return b""

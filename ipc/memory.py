"""Whether the kernel has ended processes for want of memory: its own count, of the control group that a child is in.

Nothing else of the kernel's tells it to an ordinary user. The count is of the group, so it says that somebody in it was
ended, not who: whoever asks compares two readings around the end of one process.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Self

_PROC = Path("/proc")
_GROUPS = Path("/sys/fs/cgroup")
_KEY = "oom_kill "


@dataclass(frozen=True, slots=True)
class Witness:
    """The count of one group when it was first read; see cgroups(7): ``memory.events``; v1: ``memory.oom_control``."""

    file: Path
    before: int

    @classmethod
    def of(cls, pid: int, *, proc: Path = _PROC, groups: Path = _GROUPS) -> Self | None:
        """The witness for a process that runs; None where the kernel keeps no count that can be read."""
        try:
            lines = (proc / str(pid) / "cgroup").read_text(errors="replace").splitlines()
        except OSError:
            return None
        for line in lines:
            number, _, rest = line.partition(":")
            controllers, _, path = rest.partition(":")
            if number == "0":
                file = groups / path.lstrip("/") / "memory.events"
            elif "memory" in controllers.split(","):
                file = groups / "memory" / path.lstrip("/") / "memory.oom_control"
            else:
                continue
            before = _count(file)
            if before is not None:
                return cls(file, before)
        return None

    def saw(self) -> bool:
        """Whether the kernel has ended somebody in this group since."""
        after = _count(self.file)
        return after is not None and after > self.before


def _count(file: Path) -> int | None:
    try:
        lines = file.read_text(errors="replace").splitlines()
    except OSError:
        return None
    found = [line[len(_KEY) :] for line in lines if line.startswith(_KEY)]
    return int(found[0]) if found and found[0].isascii() and found[0].isdigit() else None

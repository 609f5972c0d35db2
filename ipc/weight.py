"""How much memory a process and all that it has begun have resident, as the kernel counts it: proc(5), ``stat``."""

import os
from contextlib import suppress
from pathlib import Path

_PROC = Path("/proc")
_SESSION, _RSS = 3, 21
"""Fields of ``stat`` behind the name, which may hold blanks and brackets: session, resident pages."""


def resident(session: int, *, proc: Path = _PROC) -> int:
    """Bytes of every process of this session; 0 where none is left. What ends meanwhile isn't counted."""
    pages = 0
    for entry in os.scandir(proc):
        if not entry.name.isdigit():
            continue
        with suppress(OSError, ValueError, IndexError):
            fields = (proc / entry.name / "stat").read_bytes().rpartition(b")")[2].split()
            if int(fields[_SESSION]) == session:
                pages += int(fields[_RSS])
    return pages * os.sysconf("SC_PAGE_SIZE")

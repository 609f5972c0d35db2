"""The child's ties to the host that started it; the first thing that `waypost.child` does.

When the host dies, however it dies, the child dies too: nobody is left to record what it does.
"""

import os
import signal
from contextlib import suppress

from ipc.prctl import PR_SET_PDEATHSIG, prctl

UMASK = 0o077
BEFORE_HOST = 200
"""By how many thousandths of all memory a child seems larger than it is, where the kernel looks for whom to end."""

CONTROL_FD = 3
"""The child's descriptor for both directions of the control channel."""
EVENTS_FD = 4
"""The one it writes the event channel to."""
SECRETS_FD = 5
"""The one that brings its secrets; read once and closed."""


def settle(parent_pid: int, box: str | None = None) -> None:
    """Tie this process to its parent, keep what it writes to itself, and shut it in. Call before anything else.

    ``box``: what `ipc.box.Box.text` wrote; in a namespace it is another process that returns. Raises KernelRefused,
    BadBox.
    """
    die_with(parent_pid)
    _go_first()
    os.umask(UMASK)
    if box is not None:
        from ipc.box import parse
        from ipc.boxing import enter

        enter(parse(box), parent_pid)


def _go_first() -> None:
    """Where memory runs out, have the kernel end this process, and what it starts, before its host.

    It ends whoever uses most, and of many small children none does; see proc_pid_oom_score_adj(5).
    """
    with suppress(OSError):  # no /proc here: then the kernel chooses
        adjustment = os.open("/proc/self/oom_score_adj", os.O_RDWR | os.O_CLOEXEC)
        try:
            os.write(adjustment, b"%d" % min(int(os.read(adjustment, 16)) + BEFORE_HOST, 1000))
        finally:
            os.close(adjustment)


def die_with(parent_pid: int) -> None:
    """Have the kernel kill this process when the thread that started it ends; never returns in an orphan.

    ``parent_pid`` is the host's, told by the host: without it a host that died before this call would go unnoticed,
    as the kernel only reports deaths that are still to come.
    """
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:
        os.kill(os.getpid(), signal.SIGKILL)

"""The child's ties to the host that started it; the first thing that `waypost.child` does.

When the host dies, however it dies, the child dies too: nobody is left to record what it does.
"""

import os
import signal

from ipc.prctl import PR_SET_PDEATHSIG, prctl

UMASK = 0o077

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
    os.umask(UMASK)
    if box is not None:
        from ipc.box import parse
        from ipc.boxing import enter

        enter(parse(box), parent_pid)


def die_with(parent_pid: int) -> None:
    """Have the kernel kill this process when the thread that started it ends; never returns in an orphan.

    ``parent_pid`` is the host's, told by the host: without it a host that died before this call would go unnoticed,
    as the kernel only reports deaths that are still to come.
    """
    prctl(PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent_pid:
        os.kill(os.getpid(), signal.SIGKILL)

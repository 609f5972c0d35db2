"""Nothing outlives its host or its child: kill -9 of a host whose child is stuck, and all that it has started."""

import os
import select
import signal
from contextlib import suppress
from pathlib import Path

import pytest

from ipc.strays import Mark, bears
from waypost.host.datadir import DataDir
from waypost.host.kin import kin
from waypost.testing.errands import mail
from waypost.testing.host_process import HostProcess
from waypost.testing.mortal import PATIENCE

pytestmark = [pytest.mark.e2e, pytest.mark.torture]

ADDRESS = "leaves@example.com"
MODES = ("none", "namespace")


def family(host: int, data: Path) -> dict[int, str]:
    """Everything that a host's children are and have started, its guardian apart: pidfds, and what each was called."""
    parents: dict[int, int] = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                parents[int(entry.name)] = int(
                    (entry / "stat").read_text(errors="replace").rpartition(")")[2].split()[1]
                )
    found: dict[int, str] = {}
    mark = Mark(kin(DataDir(data)))
    for pid, parent in parents.items():
        above = pid
        while above in parents and above != host:
            above = parents[above]
        if pid != host and (above == host or bears(pid, mark)):
            with suppress(OSError):
                words = Path(f"/proc/{pid}/cmdline").read_text(errors="replace").split("\0")
                if len(words) > 1 and "waypost-guardian" not in words:  # one that isn't reaped has no words
                    name = "child" if parent == host else "forked"
                    found[os.pidfd_open(pid)] = words[-2] if words[-2].startswith("in-") else name
    return found


def gone(pidfd: int, seconds: float = PATIENCE) -> bool:
    """Whether a process ends within so many seconds."""
    return bool(select.select([pidfd], [], [], seconds)[0])


def started(flows: Path, data: Path, mode: str) -> tuple[HostProcess, dict[int, str]]:
    """A host whose child has left everything behind, and its family."""
    host = HostProcess(flows / "leaves_behind.py", data=data, options=("--isolation", mode)).start()
    host.send(ADDRESS, mail(sender="ann@example.com", to=ADDRESS, subject="go", message_id="<1@x>", text="go"))
    host.wait_for("everything is left behind")
    found = family(host.pid, data)
    assert {"in-the-group", "in-a-session", "child"} <= set(found.values())
    return host, found


@pytest.mark.parametrize("mode", MODES)
def test_a_killed_host_takes_a_stuck_child_and_its_group_along_and_the_next_start_the_rest(
    mode: str, tmp_path: Path, flows: Path, unmeasured: None
) -> None:
    """The kernel was told not to, so the guardian does it. Of a namespace nothing is left at all."""
    data = tmp_path / "data"
    host, found = started(flows, data, mode)
    stuck = {"child"} if mode == "none" else {"child", "forked"}
    for pidfd, name in found.items():
        if name in stuck:
            signal.pidfd_send_signal(pidfd, signal.SIGSTOP)
    host.kill()
    left = {pidfd for pidfd, name in found.items() if mode == "none" and name in {"in-a-session", "forked"}}
    assert len(left) == (2 if mode == "none" else 0)
    assert all(gone(pidfd) for pidfd in found if pidfd not in left)
    assert not any(gone(pidfd, 0.0) for pidfd in left), "a group and session of their own: that is for the next start"
    again = HostProcess(flows / "leaves_behind.py", data=data, options=("--isolation", mode)).start()
    try:
        assert all(map(gone, found))
    finally:
        again.kill()


@pytest.mark.parametrize("mode", MODES)
def test_what_a_child_started_ends_with_it(mode: str, tmp_path: Path, flows: Path, unmeasured: None) -> None:
    """Its host lives and brings up the next one; also what has left group and session is gone by then."""
    data = tmp_path / "data"
    host, found = started(flows, data, mode)
    try:
        stopped = host.stop()
        assert all(map(gone, found))
        assert stopped == 0
    finally:
        host.kill()

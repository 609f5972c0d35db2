"""Nothing outlives its host or its child: kill -9 of a host whose child is stuck, and all that it has started."""

import os
import select
import signal
import tempfile
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from ipc.strays import Mark, bears
from waypost.host.datadir import DataDir
from waypost.host.kin import kin
from waypost.host.materialise import clear
from waypost.testing.background import COMMAND
from waypost.testing.boxed import NOBODY, reachable_by, venv_for
from waypost.testing.errands import mail
from waypost.testing.host_process import HostProcess
from waypost.testing.patience import PATIENCE

pytestmark = [pytest.mark.e2e, pytest.mark.torture]

ADDRESS = "leaves@example.com"
ROOT = os.geteuid() == 0
MODES = [
    "none",
    "namespace",
    pytest.param("uid", marks=pytest.mark.skipif(not ROOT or not reachable_by(NOBODY), reason="needs another user")),
]


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


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that any user may go through, with a Python that any user may run."""
    made = Path(tempfile.mkdtemp(dir="/var/tmp"))
    made.chmod(0o755)
    yield made
    for entry in Path("/proc").iterdir():  # the second host's, which did the step again
        with suppress(OSError):
            if entry.name.isdigit() and (entry / "cmdline").read_bytes().startswith(f"{made}/".encode()):
                os.kill(int(entry.name), signal.SIGKILL)
    clear(made)


def host_in(folder: Path, flows: Path, mode: str) -> HostProcess:
    """A host in this mode."""
    python = venv_for(folder / "venv", os.geteuid()) if not (folder / "venv").exists() else folder / "venv/bin/python"
    command = (str(python), *COMMAND[1:])
    options = ("--isolation", mode)
    return HostProcess(flows / "leaves_behind.py", data=folder / "data", options=options, command=command).start()


def started(folder: Path, flows: Path, mode: str) -> tuple[HostProcess, dict[int, str]]:
    """A host whose child has left everything behind, and its family."""
    host = host_in(folder, flows, mode)
    host.send(ADDRESS, mail(sender="ann@example.com", to=ADDRESS, subject="go", message_id="<1@x>", text="go"))
    host.wait_for("everything is left behind")
    found = family(host.pid, folder / "data")
    assert {"in-the-group", "in-a-session", "in-hiding", "child"} <= set(found.values())
    return host, found


def kill(pidfds: Iterable[int]) -> None:
    """What is said not to be found isn't left to the machine, either."""
    for pidfd in pidfds:
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)


@pytest.mark.parametrize("mode", MODES)
def test_a_killed_host_takes_a_stuck_child_and_its_group_along_and_the_next_start_the_rest(
    mode: str, folder: Path, flows: Path, unmeasured: None
) -> None:
    """The kernel was told not to, so the guardian does it. Of a namespace nothing is left at all.

    Without isolation, what has taken its mark off and left its group isn't found, as docs/isolation.md says.
    """
    host, found = started(folder, flows, mode)
    stuck = {"child", "forked"} if mode == "namespace" else {"child"}
    for pidfd, name in found.items():
        if name in stuck:
            signal.pidfd_send_signal(pidfd, signal.SIGSTOP)
    host.kill()
    away = set() if mode == "namespace" else {"in-a-session", "in-hiding", "forked"}
    left = {pidfd for pidfd, name in found.items() if name in away}
    assert len(left) == len(away)
    assert all(gone(pidfd) for pidfd in found if pidfd not in left)
    assert not any(gone(pidfd, 0.0) for pidfd in left), "a group and session of their own: that is for the next start"
    again = host_in(folder, flows, mode)
    hiding = {pidfd for pidfd in left if mode == "none" and found[pidfd] == "in-hiding"}
    try:
        assert all(gone(pidfd) for pidfd in found if pidfd not in hiding)
        assert not any(gone(pidfd, 0.0) for pidfd in hiding)
    finally:
        kill(hiding)
        again.kill()


@pytest.mark.parametrize("mode", MODES)
def test_what_a_child_started_ends_with_it(mode: str, folder: Path, flows: Path, unmeasured: None) -> None:
    """Its host lives and brings up the next one; also what has left group and session is gone by then."""
    host, found = started(folder, flows, mode)
    hiding = {pidfd for pidfd, name in found.items() if mode == "none" and name == "in-hiding"}
    try:
        (child,) = (pidfd for pidfd, name in found.items() if name == "child")
        signal.pidfd_send_signal(child, signal.SIGKILL)
        assert all(gone(pidfd) for pidfd in found if pidfd not in hiding)
        assert not any(gone(pidfd, 0.0) for pidfd in hiding)
        host.wait_for("leaves is running (generation 2)")
    finally:
        kill(hiding)
        host.kill()

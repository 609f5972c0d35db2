"""Nothing outlives its host or its child: kill -9 of a host whose child is stuck, and all that it has started."""

import os
import select
import signal
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path

import pytest

from ipc.strays import Mark, bears
from waypost.host.code.materialise import clear
from waypost.host.datadir.directory import DataDir
from waypost.host.processes.guardian import GUARDIANS, NAME
from waypost.host.processes.kin import kin
from waypost.testing.background import COMMAND
from waypost.testing.boxed import NOBODY, reachable_by, venv_for
from waypost.testing.errands import mail
from waypost.testing.host_process import HostProcess
from waypost.testing.own_pids import in_own_pids
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
                if len(words) > 1 and f"{NAME}-of-{host}" not in words:  # one that isn't reaped has no words
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


def apart(mode: str, check: Callable[[str, Path, Path], None]) -> Callable[[str, Path, Path], None]:
    """A test as it is to be run in this mode: where a whole user is ended, away from everybody else's processes."""
    return in_own_pids(check) if mode == "uid" else check


@contextmanager
def fleeing(folder: Path) -> Iterator[int]:
    """Where a step's process that forks and ends without a pause tells by its end that it has one."""
    os.mkfifo(folder / "fleeing")
    (folder / "fleeing").chmod(0o666)
    reading = os.open(folder / "fleeing", os.O_RDONLY | os.O_NONBLOCK)
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("LEAVES_FLEEING", str(folder / "fleeing"))
        yield reading
    os.close(reading)


def caught(reading: int) -> bool:
    """Whether all of those have ended, in time."""
    hung_up = select.poll()
    hung_up.register(reading, 0)
    return bool(hung_up.poll(PATIENCE * 1000))


def host_in(folder: Path, flows: Path, mode: str) -> HostProcess:
    """A host in this mode, of the workflow that leaves processes behind."""
    return host_of(folder, flows / "leaves_behind.py", mode)


def host_of(folder: Path, file: Path, mode: str) -> HostProcess:
    """A host in this mode."""
    python = venv_for(folder / "venv", os.geteuid()) if not (folder / "venv").exists() else folder / "venv/bin/python"
    command = (str(python), *COMMAND[1:])
    options = ("--isolation", mode)
    return HostProcess(file, data=folder / "data", options=options, command=command).start()


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

    Without isolation, what has taken its mark off and left its group isn't found, as docs/isolation.md says. Of a user
    of its own the guardian ends everything, wherever it is.
    """
    apart(mode, ends_with_its_host)(mode, folder, flows)


def ends_with_its_host(mode: str, folder: Path, flows: Path) -> None:
    """The test, in one mode."""
    host, found = started(folder, flows, mode)
    stuck = {"child", "forked"} if mode == "namespace" else {"child"}
    for pidfd, name in found.items():
        if name in stuck:
            signal.pidfd_send_signal(pidfd, signal.SIGSTOP)
    host.kill()
    away = {"in-a-session", "in-hiding", "forked"} if mode == "none" else set()
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
    apart(mode, ends_with_its_child)(mode, folder, flows)


def ends_with_its_child(mode: str, folder: Path, flows: Path) -> None:
    """The test, in one mode."""
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


@pytest.mark.skipif(not ROOT or not reachable_by(NOBODY), reason="needs another user")
@pytest.mark.parametrize("end", ["child", "host", "host and one guardian", "host and guardians"])
@in_own_pids
def test_what_forks_and_ends_without_a_pause_outlives_neither_its_child_nor_its_host(
    end: str, folder: Path, flows: Path, unmeasured: None
) -> None:
    """No list of processes has it; its user gives it away. Without a guardian, the next start ends it."""
    with fleeing(folder) as reading:
        host, found = started(folder, flows, "uid")
        (child,) = (pidfd for pidfd, name in found.items() if name == "child")
        if end == "child":
            signal.pidfd_send_signal(child, signal.SIGKILL)
            assert caught(reading)
            host.wait_for("leaves is running (generation 2)")
            host.kill()
            return
        kill_with(host, {"host": 0, "host and one guardian": 1}.get(end, GUARDIANS))
        if end == "host and guardians":
            host_in(folder, flows, "uid").kill()
        assert caught(reading)


LOOKED = """
import os
import subprocess
import sys
from waypost import Mail, Workflow

flow = Workflow("looked", address="looked@example.com")
if "IPC_CHANNEL_ID" not in os.environ:  # it has no host
    told = os.open({fleeing!r}, os.O_WRONLY)  # its end is the end of what hides
    words = [sys.executable, "-c", "import signal; signal.pause()"]
    subprocess.Popen(words, env={{}}, start_new_session=True, pass_fds=[told], stdout=-3, stderr=-3)

@flow.run
async def go(mail: Mail) -> None: ...
"""


@pytest.mark.skipif(not ROOT or not reachable_by(NOBODY), reason="needs another user")
@in_own_pids
def test_what_code_starts_while_it_is_looked_at_does_not_outlive_the_look(folder: Path, unmeasured: None) -> None:
    """It has a user of its own, too, and nobody has decided yet that it may run."""
    with fleeing(folder) as reading:
        file = folder / "looked.py"
        file.write_text(LOOKED.format(fleeing=str(folder / "fleeing")))
        host = host_of(folder, file, "uid")
        assert caught(reading)
        host.kill()


@pytest.mark.parametrize("first", ["host", "guardian", "child"])
@pytest.mark.parametrize("mode", MODES)
def test_a_host_one_guardian_and_a_child_that_are_killed_in_one_instant_leave_nothing_in_the_group(
    mode: str, first: str, folder: Path, flows: Path, unmeasured: None
) -> None:
    """In every order. The other guardian is still there: what a child has started doesn't wait for the next start."""
    apart(mode, partial(ends_with_all_of_them, first))(mode, folder, flows)


def ends_with_all_of_them(first: str, mode: str, folder: Path, flows: Path) -> None:
    """The test, in one mode."""
    host, found = started(folder, flows, mode)
    (child,) = (pidfd for pidfd, name in found.items() if name == "child")
    away = {"in-a-session", "in-hiding", "forked"} if mode == "none" else set()
    left = {pidfd for pidfd, name in found.items() if name in away}
    try:
        if first == "child":
            os.kill(host.pid, signal.SIGSTOP)
            signal.pidfd_send_signal(child, signal.SIGKILL)
        kill_with(host, 1, host_first=first == "host")
        assert all(gone(pidfd) for pidfd in found if pidfd not in left)
    finally:
        kill(left)


def kill_with(host: HostProcess, count: int, *, host_first: bool = False) -> None:
    """The host, and so many of its guardians, with no time between in which it could replace them."""
    guardians = guardians_of(host.pid)
    assert len(guardians) == GUARDIANS
    os.kill(host.pid, signal.SIGSTOP)
    if host_first:
        for each in guardians:
            os.kill(each, signal.SIGSTOP)
        host.kill()
    for number, each in enumerate(guardians):
        os.kill(each, signal.SIGKILL if number < count else signal.SIGCONT)
    if not host_first:
        host.kill()


def guardians_of(host: int) -> list[int]:
    """Their processes."""
    return [
        int(entry.parent.name)
        for entry in Path("/proc").glob("[0-9]*/cmdline")
        if f"{NAME}-of-{host}" in entry.read_text(errors="replace").split("\0")
    ]

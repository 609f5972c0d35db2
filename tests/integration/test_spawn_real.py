"""Real children on real descriptors: what they hold, what they can say, and that they die with their parent."""

import gc
import json
import os
import select
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from ipc import control, events, parse
from ipc.environment import Anchors, child_environment
from ipc.errors import SpawnFailed
from ipc.frames import FrameReader
from ipc.keys import SpawnKeys, mint
from ipc.messages import Progress, Ready
from ipc.parent import BEFORE_HOST
from ipc.process import open_descriptors
from ipc.sealed import Direction
from ipc.spawn import Spawned, command, spawn
from waypost.testing.patience import PATIENCE

NOBODYS_PID = 2**22 + 1

HONEST = """
import os, socket
from ipc import control, events
from ipc.environment import read_anchors
from ipc.keys import read_secrets
from ipc.messages import Progress, Ready
from ipc.sealed import Direction
from waypost.ed25519 import PrivateKey
anchors, key = read_anchors(os.environ), read_secrets()
mine = PrivateKey.generate()
up = control.Sender(mine, anchors.channel_id, Direction.UP)
os.write(3, up.seal(Ready(key=mine.public, pid=os.getpid())))
os.write(4, events.Sender(key, anchors.channel_id).seal(Progress(run="r", call="r1#1", seq=0, text="hello")))
"""


class Running:
    """A spawned child and the host's ends, cleaned up whatever the test did."""

    def __init__(self, code: str, keys: SpawnKeys, clean: ExitStack) -> None:
        self.child = start(code, keys)
        for fd in (self.child.control, self.child.events, self.child.stdout, self.child.stderr, self.child.pidfd):
            clean.callback(os.close, fd)
        clean.callback(self.kill)

    def kill(self) -> None:
        """End it with its group and reap it."""
        with suppress(ProcessLookupError):
            os.killpg(self.child.pid, signal.SIGKILL)
        with suppress(ChildProcessError):
            os.waitpid(self.child.pid, 0)

    def output(self) -> str:
        """All that it prints, once it has ended or closed it."""
        return read_all(self.child.stdout).decode()

    def wait(self) -> int:
        """The exit code, negative for a signal; the pidfd says when."""
        assert ready(self.child.pidfd), read_all(self.child.stderr).decode()
        _, status = os.waitpid(self.child.pid, 0)
        return os.waitstatus_to_exitcode(status)


def start(code: str, keys: SpawnKeys) -> Spawned:
    place = Anchors(
        channel_id=keys.channel_id,
        host_key=keys.public_key,
        deployment="expenses",
        definition="ab" * 32,
        address="expenses@example.com",
    )
    return spawn([sys.executable, "-P", "-c", code], child_environment(os.environ, place), keys.for_child())


def ready(fd: int) -> bool:
    return bool(select.select([fd], [], [], PATIENCE)[0])


def read_all(fd: int) -> bytes:
    """Read to the end of the stream: until the child has closed it."""
    data = b""
    while ready(fd) and (part := os.read(fd, 65536)):
        data += part
    return data


@pytest.fixture
def clean() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def test_a_real_child_introduces_itself_and_is_believed(clean: ExitStack) -> None:
    """The whole way: keys minted, secrets by descriptor, ready signed by the child's own key, progress by MAC."""
    keys = mint()
    running = Running(HONEST, keys, clean)
    bodies = list(FrameReader("control up").feed(read_all(running.child.control)))
    host = control.Receiver(None, keys.channel_id, Direction.UP, parse=parse.from_child)
    message = host.open(bodies[0])
    assert isinstance(message, Ready), running.output()
    assert message.pid == running.child.pid
    progress = list(FrameReader("events up").feed(read_all(running.child.events)))
    watcher = events.Receiver(keys.events, keys.channel_id, parse=parse.from_child_events)
    assert watcher.open(progress[0]) == Progress(run="r", call="r1#1", seq=0, text="hello")
    assert running.wait() == 0


def test_a_child_holds_its_six_descriptors_and_no_other(clean: ExitStack) -> None:
    """Not even one that a library left inheritable: no lock, no other child's pipe, no listening socket."""
    stray, other = os.pipe()
    clean.callback(os.close, stray)
    clean.callback(os.close, other)
    os.set_inheritable(stray, True)  # noqa: FBT003 - positional only
    code = """
import json, os, stat
held = {}
for name in os.listdir("/proc/self/fd"):
    try:
        held[name] = stat.filemode(os.fstat(int(name)).st_mode)[0]
    except OSError:
        pass  # the listing's own
print(json.dumps(held))
"""
    running = Running(code, mint(), clean)
    assert json.loads(running.output()) == {"0": "c", "1": "p", "2": "p", "3": "s", "4": "p", "5": "p"}


BARE_HOST = """
import os, select, sys
from ipc.process import open_descriptors
from ipc.spawn import spawn
for wanted in range(3, 9):
    for fd in range(3, wanted):
        os.dup2(0, fd)
    child = spawn([sys.executable, "-c", sys.argv[1]], dict(os.environ), b"secret")
    os.waitpid(child.pid, 0)
    print(os.read(child.stdout, 4096).decode().strip(), os.read(child.events, 64), os.read(child.control, 64))
    for fd in open_descriptors()[3:]:
        os.close(fd)
"""


def test_descriptors_land_on_their_numbers_whatever_is_free_in_the_host() -> None:
    """The host's own ends may have any numbers, those of the targets included: no move overwrites another."""
    code = "import os; os.write(3, b'control'); os.write(4, b'events'); print(os.read(5, 64))"
    host = subprocess.run([sys.executable, "-c", BARE_HOST, code], capture_output=True, text=True, check=False)
    assert host.stdout.splitlines() == ["b'secret' b'events' b'control'"] * 6, host.stderr


def test_a_child_leads_its_own_session_with_signals_as_new(clean: ExitStack) -> None:
    """A Ctrl-C at the terminal is the host's to handle, and what the host ignores the child must not ignore."""
    before = signal.signal(signal.SIGUSR1, signal.SIG_IGN)
    clean.callback(signal.signal, signal.SIGUSR1, before)
    code = """
import os, signal
print(os.getsid(0) == os.getpid() == os.getpgrp(), signal.getsignal(signal.SIGUSR1) == signal.SIG_DFL)
"""
    assert Running(code, mint(), clean).output().split() == ["True", "True"]


def test_where_memory_runs_out_a_child_is_ended_before_its_host(clean: ExitStack) -> None:
    """The kernel ends whoever uses most: beside a hundred small children that would be the host."""
    place = "/proc/self/oom_score_adj"
    code = f"from ipc.parent import settle\nsettle({os.getpid()})\nprint(open({place!r}).read())"
    said = Running(code, mint(), clean).output()
    assert int(said) == min(int(Path(place).read_text()) + BEFORE_HOST, 1000)


def test_settling_sets_the_umask(clean: ExitStack) -> None:
    """What a step writes is its user's alone."""
    code = f"import os\nfrom ipc.parent import settle\nsettle({os.getpid()})\nprint(oct(os.umask(0)))"
    assert Running(code, mint(), clean).output().strip() == "0o77"


def test_a_child_whose_parent_is_gone_already_dies_at_once(clean: ExitStack) -> None:
    """The host may die between starting a child and the child's first line."""
    running = Running(f"from ipc.parent import die_with\ndie_with({NOBODYS_PID})\nprint('alive')", mint(), clean)
    assert running.output() == ""
    assert running.wait() == -signal.SIGKILL


MIDDLE = """
import os, sys
from ipc.keys import mint
from ipc.spawn import spawn
code = "from ipc.parent import settle; import os, signal; settle(%d); os.write(4, b'settled'); signal.pause()"
child = spawn([sys.executable, "-P", "-c", code % os.getpid()], dict(os.environ), mint().for_child())
os.set_blocking(child.events, True)
assert os.read(child.events, 7) == b"settled"
os.write(1, b"%d\\n" % child.pid)
sys.stdin.read() or __import__("signal").pause()
"""


def test_a_child_dies_with_a_parent_that_was_killed(clean: ExitStack) -> None:
    """Kill -9 of the host leaves nothing behind that goes on working unrecorded."""
    middle = Running(MIDDLE, mint(), clean)
    assert ready(middle.child.stdout)
    pid = int(os.read(middle.child.stdout, 64))
    pidfd = os.pidfd_open(pid)
    clean.callback(os.close, pidfd)
    os.kill(middle.child.pid, signal.SIGKILL)
    assert ready(pidfd), "the grandchild outlived its parent"


def descriptors() -> set[int]:
    """What is open, without what earlier tests have left for the garbage; theirs may still be closed at any moment."""
    gc.collect()
    return set(open_descriptors())


@pytest.mark.parametrize(
    ("program", "errno"),
    [("/nonexistent/python", 2), ("/etc/passwd", 13), ("/", 13)],
    ids=["missing", "file", "folder"],
)
def test_an_exec_that_fails_is_a_typed_error_and_leaves_nothing_open(program: str, errno: int) -> None:
    """The supervisor must tell a wrong path from a child that crashed."""
    before = descriptors()
    with pytest.raises(SpawnFailed) as caught:
        spawn([program], {}, b"")
    assert (caught.value.program, caught.value.stage, caught.value.errno) == (program, "exec", errno)
    assert descriptors() <= before


def test_many_spawns_leave_no_descriptor_behind() -> None:
    """A host that restarts children for a year has as many descriptors open as on its first day."""
    before = descriptors()
    for _ in range(20):
        with ExitStack() as clean:
            running = Running("", mint(), clean)
            running.kill()
    assert descriptors() <= before


POOR_HOST = """
import os, resource
from ipc.errors import SpawnFailed
from ipc.process import open_descriptors
from ipc.spawn import spawn
before = open_descriptors()
soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
for allowed in range(3, 40):
    resource.setrlimit(resource.RLIMIT_NOFILE, (allowed, hard))
    try:
        child = spawn(["/bin/true"], {}, b"secret")
    except SpawnFailed as failure:
        print(failure.stage)
    else:
        print("started")
        os.waitpid(child.pid, 0)
        for fd in (child.control, child.events, child.stdout, child.stderr, child.pidfd):
            os.close(fd)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
    assert open_descriptors() == before, allowed
    try:
        os.waitpid(-1, os.WNOHANG)
    except ChildProcessError:
        continue
    raise SystemExit("a process is left over")
"""


def test_a_host_out_of_descriptors_fails_cleanly_at_every_point() -> None:
    """Wherever the last descriptor is used up: a typed error, no process left over, nothing left open."""
    host = subprocess.run([sys.executable, "-c", POOR_HOST], capture_output=True, text=True, check=False)
    stages = host.stdout.split()
    assert host.returncode == 0, host.stderr
    assert stages.count("descriptors") > 10
    assert stages[-1] == "started"


DEAF_HOST = """
import os, select, signal
from ipc.errors import SpawnFailed
from ipc.spawn import spawn
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
for _ in range(20):
    try:
        child = spawn(["/bin/true"], {}, b"secret")
    except SpawnFailed as failure:
        assert failure.stage == "pidfd", failure
    else:
        assert select.select([child.pidfd], [], [], 30)[0]
"""


def test_a_host_that_ignores_sigchld_still_learns_of_every_exit() -> None:
    """The kernel reaps by itself then: the child is either never there, or its pidfd tells."""
    host = subprocess.run([sys.executable, "-c", DEAF_HOST], capture_output=True, text=True, check=False)
    assert host.returncode == 0, host.stderr


def test_secrets_that_might_block_are_refused() -> None:
    """More than a pipe surely holds would leave the host waiting for a reader that isn't there yet."""
    with pytest.raises(ValueError, match="4096"):
        spawn([sys.executable], {}, bytes(4097))


def test_the_command_is_the_designs() -> None:
    """Written out, since tests and documents elsewhere rely on it."""
    assert command("/py", ["--root", "/w"], parent=7, argv_prefix=["/bin/isolate", "--"]) == (
        *("/bin/isolate", "--", "/py", "-P", "-X", "utf8", "-m", "waypost.child", "--parent", "7", "--root", "/w"),
    )

"""A process in a namespace is as good as any other, but for what isn't there: by root, and by an ordinary user."""

import functools
import os
import signal
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ipc.box import Box, Entry
from waypost.testing.boxed import NOBODY, reachable_by, run, said, sight

USERS = [os.geteuid(), *([NOBODY] if os.geteuid() == 0 and reachable_by(NOBODY) else [])]
INSIDE = 70001


@pytest.fixture(params=USERS, ids=lambda user: f"host-of-{user}")
def user(request: pytest.FixtureRequest) -> int:
    """Who is the host."""
    found: int = request.param
    if complaint := refused(found):
        pytest.skip(f"this kernel has no namespaces for user {found}: {complaint[-300:]}")
    return found


@functools.cache
def refused(user: int) -> str:
    """Why this user can't have one; empty where he can."""
    _, complaint, code = said(run("", Box("namespace", sight(user=user), INSIDE if user == 0 else 0), user=user))
    return complaint if code else ""


@pytest.fixture
def place() -> Iterator[Path]:
    """A folder that anybody can reach; pytest's own are root's alone."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:  # not below what is a folder of its own inside
        Path(name).chmod(0o755)
        yield Path(name)


def box(user: int, *more: Entry, network: bool = True, memory: int = 0, processes: int = 0, files: int = 0) -> Box:
    """A namespace for a host of this user."""
    uid = INSIDE if user == 0 else 0
    return Box("namespace", sight(*more, user=user), uid, network, memory, processes, files)


ORPHANS = """
import os, subprocess, sys, time
r, w = os.pipe()
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.write(w, b"%d" % os.getpid()); os._exit(3)
    os._exit(0)
os.wait(); orphan = int(os.read(r, 32))
while os.path.exists(f"/proc/{orphan}"): time.sleep(0.005)
mine = subprocess.run(["/bin/sh", "-c", "exit 5"]).returncode
print(mine, os.getpid() != 1, sorted(p for p in os.listdir("/proc") if p.isdigit()) == ["1", str(os.getpid())])
"""


def test_orphans_are_reaped_and_the_exit_statuses_of_its_own_children_are_not(user: int) -> None:
    """Process 1 of the namespace does nothing else; a step's subprocess is waited for by the step alone."""
    assert said(run(ORPHANS, box(user), user=user))[0].split() == ["5", "True", "True"]


@pytest.mark.parametrize(
    ("code", "status"),
    [
        ("import sys; sys.exit(7)", 7),
        ("raise SystemExit", 0),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", -signal.SIGKILL),
        ("import os, signal; os.kill(os.getpid(), signal.SIGSEGV)", -signal.SIGSEGV),
        ("import os; os.abort()", -signal.SIGABRT),
        ("import os; os.kill(1, 9); print('alive', flush=True); os._exit(4)", 4),
    ],
)
def test_it_ends_to_the_host_as_it_ended(user: int, code: str, status: int) -> None:
    """The reason of an exit is kept and shown: exit status, or the signal by its name."""
    assert said(run(code, box(user), user=user))[2] == status


POLITE = """
import signal, sys, time
signal.signal(signal.SIGTERM, lambda *_: sys.exit(9))
print("ready", flush=True)
while True: time.sleep(0.1)    # no pause(), which a signal just before it would not end
"""


def asked_to_end(user: int) -> int:
    """How it ended, being asked as soon as it had said something."""
    process = run(POLITE, box(user), user=user)
    assert process.stdout is not None
    assert process.stdout.readline() == b"ready\n"
    process.terminate()
    return said(process)[2]


def test_a_polite_request_to_end_arrives(user: int) -> None:
    """SIGTERM goes to the host's child, which hands it on twice."""
    assert asked_to_end(user) == 9


@pytest.mark.torture
def test_so_does_one_that_comes_before_anybody_listens(user: int) -> None:
    """One of sixty that were sent in the first moment was lost, and the child was killed later for not ending."""
    assert {asked_to_end(user) for _ in range(60)} == {9}


DAEMON = """
import os, sys, time
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        print(1, flush=True)
        while True: time.sleep(60)
    os._exit(0)
while True: time.sleep(60)
"""


def test_nothing_outlives_the_hosts_child(user: int) -> None:
    """Not even what has left session and group: stdout, which it holds, comes to its end."""
    process = run(DAEMON, box(user), user=user)
    assert process.stdout is not None
    assert process.stdout.readline() == b"1\n"
    process.kill()  # the one process that the host knows of, and not its group
    out, _, status = said(process)
    assert (out, status) == ("", -signal.SIGKILL)


def test_it_holds_its_own_descriptors_and_no_other(user: int) -> None:
    """Not the two by which its namespace is watched."""
    code = "import os; print([fd for fd in range(100) if os.path.exists(f'/proc/self/fd/{fd}')])"
    assert said(run(code, box(user), user=user))[0] == "[0, 1, 2]\n"


POWERS = """
import os, re
text = open("/proc/self/status").read()
print({int(mask, 16) for mask in re.findall(r"Cap\\w+:\\s(\\w+)", text)}, re.findall(r"NoNewPrivs:\\s(\\d)", text))
print(os.getresuid(), os.getresgid())
"""


def test_it_has_no_capability_and_can_not_gain_one(user: int) -> None:
    """The bounding set is empty, and no program that is setuid changes that."""
    inside = INSIDE if user == 0 else user
    assert said(run(POWERS, box(user), user=user))[0] == f"{{0}} ['1']\n{(inside,) * 3} {(inside,) * 3}\n"


NAMESPACES = """
import ctypes, os
libc, tried = ctypes.CDLL(None, use_errno=True), []
flags, struct = 1 << 28, (ctypes.c_uint64 * 8)(1 << 28)
for number, arguments in ((272, (flags,)), (56, (flags | 17, 0, 0, 0, 0)), (435, (struct, 64))):
    if libc.syscall(ctypes.c_long(number), *(ctypes.c_long(a) if type(a) is int else a for a in arguments)) == 0:
        os._exit(0)
    tried.append(os.strerror(ctypes.get_errno()))
print(tried)
"""


@pytest.mark.skipif(os.uname().machine != "x86_64", reason="its calls have these numbers")
def test_it_makes_no_user_namespace_in_which_it_would_have_every_capability(user: int) -> None:
    """By none of the three calls that make one; threads and processes are made as ever."""
    refused, missing = "Operation not permitted", "Function not implemented"
    assert said(run(NAMESPACES, box(user), user=user))[0] == f"{[refused, refused, missing]}\n"
    code = "import os, subprocess, threading as t; a=t.Thread(target=os.write, args=(1, b'1\\n')); a.start(); a.join()"
    assert said(run(f"{code}; subprocess.run(['/bin/echo', '2'])", box(user), user=user))[0] == "1\n2\n"


def test_it_sees_what_it_was_given_and_writes_where_it_may(user: int, place: Path) -> None:
    """Folders above what is shown are empty but for it; what is veiled is empty; nothing else can be written."""
    folder = place / "folder"
    shown, open_, secret = folder / "shown", folder / "open", folder / "shown" / "secret"
    for each in (folder, folder / "beside", shown, open_, secret):
        each.mkdir()
        each.chmod(0o777)
    (secret / "key").write_text("secret")
    code = f"""
import os, pathlib
folder, shown, open_ = {str(folder)!r}, {str(shown)!r}, {str(open_)!r}
print(sorted(os.listdir(folder)), os.listdir(shown), os.listdir(shown + "/secret"))
closed = ["", "/etc", "/usr", "/dev", "/proc", folder, shown, shown + "/secret"]
for path in (*closed, open_, "/tmp", "/dev/shm"):
    try:
        pathlib.Path(path + "/x").write_text("x")
        print("written", path + "/x")
    except OSError:
        pass
"""
    more = (
        Entry("ro", str(shown), str(shown)),
        Entry("rw", str(open_), str(open_)),
        Entry("veil", str(secret)),
    )
    out, complaint, _ = said(run(code, box(user, *more), user=user))
    assert out.splitlines() == [
        "['open', 'shown'] ['secret'] []",
        f"written {open_}/x",
        "written /tmp/x",
        "written /dev/shm/x",
    ], complaint
    assert (open_ / "x").read_text() == "x"


def test_its_host_is_not_there(user: int) -> None:
    """No process but its own can be seen, signalled, or asked about; and no key of the host's session."""
    code = f"""
import os
print(os.path.exists("/proc/{os.getpid()}"), os.getppid(), os.getsid(0))
try:
    os.kill({os.getpid()}, 0)
except ProcessLookupError:
    print("gone")
print({{line.split()[5] for line in open("/proc/keys")}} == {{str(os.getuid())}})
"""
    assert said(run(code, box(user), user=user))[0].split() == ["False", "1", "0", "gone", "True"]


def test_without_a_network_it_has_but_itself(user: int) -> None:
    """A server of its own can be reached, nobody else can: by no abstract socket, and not past the machine (vsock)."""
    code = """
import socket
with socket.create_server(("127.0.0.1", 0)) as server:
    socket.create_connection(server.getsockname()).close()
print([name for _, name in socket.if_nameindex()])
with open("/proc/net/unix") as sockets:
    print(len(sockets.readlines()))
try:
    socket.create_connection(("192.0.2.1", 9))
except OSError as refused:
    print(refused.strerror)
try:
    socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM)
except OSError as refused:
    print(refused.strerror)
"""
    assert said(run(code, box(user, network=False), user=user))[0].splitlines() == [
        "['lo']",
        "1",
        "Network is unreachable",
        "Address family not supported by protocol",
    ]


FILL = """
with open("/tmp/x", "wb", buffering=0) as file:
    for _ in range(65):
        file.write(b"x" * (1 << 20))
"""


@pytest.mark.parametrize(
    ("limits", "code", "error"),
    [
        ({"memory": 200 << 20}, "b'x' * (300 << 20)", "MemoryError"),
        ({"memory": 64 << 20}, FILL, "No space left on device"),
        ({"files": 20}, "import os; [os.dup(0) for _ in range(30)]", "Too many open files"),
        (
            {"processes": 8},
            "import subprocess\nfor _ in range(9): subprocess.Popen(['/bin/sleep', '60'])",
            "unavailable",
        ),
    ],
)
def test_who_goes_beyond_a_limit_is_told_so(user: int, limits: dict[str, Any], code: str, error: str) -> None:
    """As an exception, which becomes the step's error: nobody has to guess."""
    _, complaint, status = said(run(code, box(user, **limits), user=user))
    assert status == 1
    assert error in complaint.splitlines()[-1]


def test_a_box_that_can_not_be_made_is_an_end_with_a_reason(user: int) -> None:
    """There is no half of it: what is to be shown isn't there, so nothing is run."""
    out, complaint, status = said(run("print('inside')", box(user, Entry("ro", "/no/where", "/no/where")), user=user))
    assert (out, status) == ("", 1)
    assert "the kernel refused mount of" in complaint

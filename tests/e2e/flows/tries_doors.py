"""A step that tries every door (``waypost.testing.doors``); what it finds open is its result.

The mail's text says where things are, as JSON: what an attacker would find out by himself takes no test.
"""

# Doors are tried by the plainest call there is, and whatever keeps one shut is its answer.
# ruff: noqa: BLE001, PLW1510, PTH110, PTH115, PTH123, PTH208

import ctypes
import json
import os
import socket
import subprocess
import sys
import sysconfig
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from waypost import Mail, Workflow

flow = Workflow("doors", address="doors@example.com", runs="message")

DOORS: list[Callable[[SimpleNamespace], None]] = []
KEYCTL, PTRACE_SEIZE, CLONE_NEWUSER = 250, 0x4206, 0x10000000
libc = ctypes.CDLL(None, use_errno=True)


def door(function: Callable[[SimpleNamespace], None]) -> Callable[[SimpleNamespace], None]:
    DOORS.append(function)
    return function


def must(result: int) -> None:
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@door
def descriptors(place: SimpleNamespace) -> None:
    for name in os.listdir(f"/proc/{place.host}/fd"):
        os.readlink(f"/proc/{place.host}/fd/{name}")


@door
def memory(place: SimpleNamespace) -> None:
    first = Path(f"/proc/{place.host}/maps").read_text().splitlines()[0]
    with open(f"/proc/{place.host}/mem", "rb", buffering=0) as file:
        file.seek(int(first.partition("-")[0], 16))
        assert file.read(1)


@door
def debugger(place: SimpleNamespace) -> None:
    """By a process that ends at once: who is debugged stops at its next signal, until somebody lets it go on."""
    code = f"import ctypes, sys; sys.exit(ctypes.CDLL(None).ptrace({PTRACE_SEIZE}, {place.host}, None, None) != 0)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@door
def keys(place: SimpleNamespace) -> None:
    assert (Path(place.data) / "keys/host.ed25519").read_bytes()


@door
def history(place: SimpleNamespace) -> None:
    open(f"{place.data}/repos/doors.git/HEAD", "r+b").close()


@door
def spool(place: SimpleNamespace) -> None:
    folder = Path(place.data) / "spool"
    (folder / "intruder").mkdir()
    (folder / "intruder").rmdir()


@door
def log(place: SimpleNamespace) -> None:
    open(f"{place.data}/logs/doors.log", "ab").close()


@door
def hidden(place: SimpleNamespace) -> None:
    """In a process of its own: with a user namespace of its own it would be root there."""
    if os.path.exists(f"{place.data}/keys"):
        assert os.listdir(f"{place.data}/keys")
        return
    code = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
uid = os.getuid()
libc.unshare(0x10000000 | 0x20000)
try:
    open("/proc/self/uid_map", "w").write(f"0 {uid} 1")
except OSError:
    pass
for path in (sys.argv[1], os.path.dirname(sys.argv[1]), "/"):
    libc.umount2(path.encode(), 2)
sys.exit(0 if os.path.exists(sys.argv[1] + "/keys") else 9)
"""
    done = subprocess.run([sys.executable, "-c", code, place.data])
    assert done.returncode == 0


ASK = """
import socket, sys
with socket.socket(socket.AF_UNIX) as s:
    s.settimeout(10)
    s.connect(sys.argv[1])
    s.sendall(b"GET /v1/status HTTP/1.0\\r\\n\\r\\n")
    sys.exit(0 if b" 200 " in s.recv(100) else 9)
"""
TELL = "import atexit, os, sys; sys.exit = lambda code: os.write(1, b'told' if code == 0 else b'not told')\n"


@door
def api(place: SimpleNamespace) -> None:
    done = subprocess.run([sys.executable, "-c", ASK, f"{place.data}/host.sock"], capture_output=True)
    assert done.returncode == 0


@door
def api_by_an_orphan(place: SimpleNamespace) -> None:
    """It leaves session and group, and is executed anew without a word of its past."""
    read, write = os.pipe()
    if os.fork() == 0:
        middle = os.getpid()
        os.setsid()
        if os.fork() == 0:
            while os.getppid() == middle:
                pass
            os.dup2(write, 1)
            os.execve(sys.executable, [sys.executable, "-c", TELL + ASK, f"{place.data}/host.sock"], {})
        os._exit(0)
    os.wait()
    os.close(write)
    with os.fdopen(read) as said:
        assert said.read() == "told"


@door
def code(place: SimpleNamespace) -> None:
    own = Path(__file__)
    own.parent.chmod(0o755)
    own.chmod(0o644)
    with own.open("a"):
        pass


@door
def packages(place: SimpleNamespace) -> None:
    file = Path(sysconfig.get_path("purelib")) / "intruder.pth"
    file.touch()
    file.unlink()


@door
def signals(place: SimpleNamespace) -> None:
    os.kill(place.host, 0)


@door
def sight(place: SimpleNamespace) -> None:
    assert Path(f"/proc/{place.host}/cmdline").read_bytes()


@door
def home(place: SimpleNamespace) -> None:
    assert Path(place.home, "private").read_bytes()


@door
def common(place: SimpleNamespace) -> None:
    assert Path(place.common).read_bytes()


@door
def shared_memory(place: SimpleNamespace) -> None:
    assert Path(place.shared).read_bytes()


@door
def abstract(place: SimpleNamespace) -> None:
    with socket.socket(socket.AF_UNIX) as caller:
        caller.settimeout(10)
        caller.connect("\0" + place.abstract)


@door
def servers(place: SimpleNamespace) -> None:
    socket.create_connection(("127.0.0.1", place.port), 10).close()


@door
def keyring(place: SimpleNamespace) -> None:
    key = libc.syscall(ctypes.c_long(KEYCTL), ctypes.c_long(10), ctypes.c_long(-3), b"user", b"doors", ctypes.c_long(0))
    must(key)
    buffer = ctypes.create_string_buffer(100)
    must(libc.syscall(ctypes.c_long(KEYCTL), ctypes.c_long(11), ctypes.c_long(key), buffer, ctypes.c_long(100)))


@door
def kernel(place: SimpleNamespace) -> None:
    os.close(os.open("/proc/sys/kernel/core_pattern", os.O_WRONLY))


@door
def user_namespace(place: SimpleNamespace) -> None:
    code = f"import ctypes, sys; sys.exit(ctypes.CDLL(None).unshare({CLONE_NEWUSER}) != 0)"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0


@flow.step
def try_them(mail: Mail) -> dict[str, str]:
    place = SimpleNamespace(**json.loads(mail.text))
    found = {}
    for each in DOORS:
        try:
            each(place)
            found[each.__name__] = "open"
        except Exception as shut:
            found[each.__name__] = f"shut: {shut!r}"
    return found


@flow.run
async def go(mail: Mail) -> dict[str, str]:
    return await try_them(mail)

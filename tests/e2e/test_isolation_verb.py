"""``waypost run`` with isolation asked for, opened, limited, and where the kernel has none."""

import json
import os
import shlex
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from waypost.host.exits import Exit
from waypost.testing.background import COMMAND
from waypost.testing.boxed import NOBODY, reachable_by, venv_for
from waypost.testing.errands import mail
from waypost.testing.host_process import HostProcess, waypost
from waypost.testing.own_pids import in_own_pids

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.skipif(os.uname().machine != "x86_64", reason="the filter below knows that machine's numbers"),
]

ROOT = os.geteuid() == 0
README = Path(__file__).parents[2] / "README.md"
SECCOMP = """
import ctypes, os, struct, sys
libc = ctypes.CDLL(None)
load, equal, give = 0x20, 0x15, 0x06
program = b"".join(struct.pack("HBBI", *line) for line in (
    (load, 0, 0, 0), (equal, 0, 1, 272), (give, 0, 0, 0x00050000 | 1), (give, 0, 0, 0x7FFF0000)))
kept = ctypes.create_string_buffer(program)
libc.prctl(38, 1, 0, 0, 0)
assert libc.prctl(22, 2, struct.pack("HxxxxxxP", 4, ctypes.addressof(kept)), 0, 0) == 0
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Become another program, for which unshare(2) fails with EPERM: as in a container, or where it is switched off."""


@pytest.fixture
def folder() -> Iterator[Path]:
    """One that any user may go through; pytest's own are their user's alone."""
    with tempfile.TemporaryDirectory(dir="/var/tmp") as name:
        Path(name).chmod(0o755)
        yield Path(name)


def a_mail(text: str) -> bytes:
    return mail(sender="ann@example.com", to="looks@example.com", subject="go", message_id="<1@example.com>", text=text)


def result(host: HostProcess, run: str) -> object:
    """What a run came to."""
    last = json.loads(host.verb("log", run).stdout.splitlines()[-1])
    assert last["type"] == "RunCompleted", last
    return last["result"]["inline"]


@pytest.mark.torture
def test_what_was_opened_is_there_and_who_goes_beyond_a_limit_is_told_so(flows: Path, folder: Path) -> None:
    """The README's own command, and two limits more; each is in the first line, and in the error of its step."""
    for name in ("in", "out", "secret"):
        (folder / name).mkdir()
    (folder / "in" / "given").write_text("from the operator")
    (folder / "out").chmod(0o777)  # a host of root's gives the workflow a user of its own
    (line,) = (line for line in README.read_text().splitlines() if line.startswith("waypost run") and "--reads" in line)
    places = {"/srv/prices": str(folder / "in"), "/srv/ledger": str(folder / "out")}
    options = [places.get(word, word) for word in shlex.split(line)[3:]]
    assert set(places.values()) <= set(options)
    options += ["--processes", "40", "--open-files", "128"]
    with HostProcess(flows / "looks_around.py", data=folder / "data", options=tuple(options)) as host:
        said = "namespace (no network, memory 536870912, processes 40, files 128)"
        assert f"isolation {said}:" in host.said[0]
        run = host.send("looks@example.com", a_mail(str(folder)))
        host.wait_for("completed")
        found = result(host, run)
        status = json.loads(host.verb("verify", "--json").stdout)
    assert found == [
        "from the operator",
        "data",  # the way to its own code, and nothing else
        "in",
        "out",
        "MemoryError: ",
        "BlockingIOError: [Errno 11] Resource temporarily unavailable",
        "OSError: [Errno 24] Too many open files",
        "OSError: [Errno 101] Network is unreachable",
    ]
    assert status["isolation"] == said
    assert (folder / "out" / "written").read_text() == "by the workflow"


def case(user: int, mode: str) -> object:
    marks = [pytest.mark.torture]
    if user != os.geteuid() and not ROOT:
        marks.append(pytest.mark.skip(reason="only root can become another user"))
    return pytest.param(user, mode, marks=marks)


@pytest.mark.parametrize(
    ("user", "mode"),
    [case(NOBODY if ROOT else os.geteuid(), "none"), case(0, "uid")],
)
def test_where_the_kernel_refuses_the_next_weaker_mode_is_in_force_and_everybody_is_told_why(
    user: int, mode: str, flows: Path, folder: Path
) -> None:
    """In the first line, in `why`, in `verify`; asked for by name, it is an error and nothing is begun."""
    if not reachable_by(user):
        pytest.skip("this user has no Python that finds what is needed")
    (in_own_pids(falls_to) if mode == "uid" else falls_to)(user, mode, flows, folder)


def falls_to(user: int, mode: str, flows: Path, folder: Path) -> None:
    """The test, for one of them."""
    python = venv_for(folder / "venv", user)
    os.chown(folder, user, user)
    become: tuple[str, ...] = ()
    if user != os.geteuid():
        become = ("setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups")
    command = (*become, python, "-c", SECCOMP, python, *COMMAND[1:])
    reason = "namespace can't be had, the kernel refused unshare: Operation not permitted (errno 1)"
    flow, data = flows / "looks_around.py", folder / "data"
    refused = HostProcess(flow, data=data, options=("--isolation", "namespace"), command=command).start(None)
    assert refused.wait() == Exit.REFUSED
    assert "isolation namespace can't be had: the kernel refused unshare" in refused.complaints
    assert not data.exists()
    with HostProcess(flow, data=data, command=command) as host:
        assert host.said[0].startswith(f"waypost: isolation {mode}: ")
        assert host.said[0].endswith(f"({reason})")
        assert json.loads(waypost("verify", "--json", data=data).stdout)["isolation"] == f"{mode}: {reason}"
        run = host.send("looks@example.com", a_mail("nowhere"))
        host.wait_for("failed")
        assert " ".join(host.verb("why", run).stdout.split()).endswith(f"({reason})")
    assert "no host has it up" in waypost("verify", data=data).stdout

"""A real child of a real host tries every door, in each mode, and as an ordinary user: the promises are a table."""

import json
import os
import shutil
import socket
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from waypost.testing.background import COMMAND
from waypost.testing.boxed import NOBODY, reachable_by, venv_for
from waypost.testing.doors import COLUMNS, DOORS, table
from waypost.testing.errands import mail
from waypost.testing.host_process import HostProcess
from waypost.testing.own_pids import in_own_pids

ROOT = os.geteuid() == 0
ORDINARY = NOBODY if ROOT else os.geteuid()
DOCS = Path(__file__).parents[2] / "docs" / "isolation.md"
WITH_A_KEY = """
import ctypes, os, sys
libc = ctypes.CDLL(None)
libc.syscall(ctypes.c_long(250), ctypes.c_long(1), None)
libc.syscall(ctypes.c_long(248), b"user", b"doors", b"secret", ctypes.c_long(6), ctypes.c_long(-3))
os.execv(sys.argv[1], sys.argv[1:])
"""
"""Become another program, with a session keyring that holds a key (keyctl(2), add_key(2))."""


class Field:
    """A folder that everybody can reach, with what the doors lead to."""

    def __init__(self, folder: Path, user: int, opened: ExitStack) -> None:
        self.user = user
        self.project = folder / "project"
        self.data, self.home = self.project / ".waypost", folder / "home"
        for each in (self.project, self.home):
            each.mkdir()
        (self.home / "private").write_text("private")
        (self.home / "private").chmod(0o600)
        self.python = venv_for(folder / "venv", user)
        self.common = [Path(top) / f"waypost-doors-{os.getpid()}-{user}" for top in ("/tmp", "/dev/shm")]
        for file in self.common:
            file.write_text("common")
            file.chmod(0o644)
            opened.callback(file.unlink)
        self.abstract = f"waypost-doors-{os.getpid()}-{folder.name}"
        door = opened.enter_context(socket.socket(socket.AF_UNIX))
        door.bind(f"\0{self.abstract}")
        door.listen()
        server = opened.enter_context(socket.create_server(("127.0.0.1", 0)))
        self.port = server.getsockname()[1]
        for path in (folder, *folder.rglob("*")):
            os.chown(path, user, user, follow_symlinks=False)

    def tried(self, mode: str, flow: Path) -> dict[str, str]:
        """What a child of this user's host found, in this mode."""
        become: tuple[str, ...] = ()
        if self.user != os.geteuid():
            become = ("setpriv", "--reuid", str(self.user), "--regid", str(self.user), "--clear-groups")
        host = HostProcess(
            flow,
            data=self.data,
            env={"HOME": str(self.home), "TMPDIR": "/tmp"},
            options=("--isolation", mode, *(("--reads", str(self.project)) if mode == "namespace" else ())),
            command=(*become, self.python, "-c", WITH_A_KEY, self.python, *COMMAND[1:]),
        )
        with host:
            place = {
                "host": host.pid,
                "data": str(self.data),
                "home": str(self.home),
                "common": str(self.common[0]),
                "shared": str(self.common[1]),
                "abstract": self.abstract,
                "port": self.port,
            }
            raw = mail(
                sender="ann@example.com",
                to="doors@example.com",
                subject="go",
                message_id="<1@example.com>",
                text=json.dumps(place),
            )
            run = host.send("doors@example.com", raw)
            host.wait_for("completed")
            events = [json.loads(line) for line in host.verb("log", run).stdout.splitlines()]
        (found,) = (event["output"]["inline"] for event in events if event["type"] == "StepCompleted")
        doors: dict[str, str] = json.loads(found) if isinstance(found, str) else found
        return doors


@pytest.fixture
def opened() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


@pytest.fixture
def folder() -> Iterator[Path]:
    """Not below what is a folder of its own inside."""
    made = Path(tempfile.mkdtemp(dir="/var/tmp"))
    made.chmod(0o755)
    yield made
    for path in made.rglob("*"):
        if path.is_dir() and not path.is_symlink():
            path.chmod(0o700)
    shutil.rmtree(made)


def case(mode: str, column: str, user: int, *, long: bool = True) -> object:
    """A mode as one user's host has it."""
    needs_root = user != os.geteuid() or mode == "uid" or column == COLUMNS[3]
    marks = [pytest.mark.torture] if long else []
    if needs_root and not ROOT:
        marks.append(pytest.mark.skip(reason="only root can be, or become, that host's user"))
    return pytest.param(mode, column, user, id=f"{mode}-host-of-{user}", marks=marks)


@pytest.mark.e2e
@pytest.mark.skipif(sys.platform != "linux" or os.uname().machine != "x86_64", reason="its calls have these numbers")
@pytest.mark.parametrize(
    ("mode", "column", "user"),
    [
        case("namespace", "namespace", os.geteuid(), long=False),
        case("namespace", "namespace", ORDINARY),
        case("uid", "uid", 0),
        case("none", "none", ORDINARY),
        case("none", "none, host is root", 0),
    ],
)
def test_each_mode_shuts_what_it_promises_and_the_table_says_what_stays_open(
    mode: str, column: str, user: int, flows: Path, folder: Path, opened: ExitStack, unmeasured: None
) -> None:
    """Every door is tried by a workflow's step; none is left out, and none is open that isn't said to be."""
    if not reachable_by(user):
        pytest.skip("this user has no Python that finds what is needed")
    field = Field(folder, user, opened)

    def check() -> None:
        held_to_the_table(field.tried(mode, flows / "tries_doors.py"), column)

    (in_own_pids(check) if mode == "uid" else check)()


def held_to_the_table(found: dict[str, str], column: str) -> None:
    """What was found is what it says."""
    assert found.keys() == {door.key for door in DOORS}
    wrong = {door.words: found[door.key] for door in DOORS if (found[door.key] == "open") != door.open_in(column)}
    assert wrong == {}


def test_the_table_in_the_docs_is_the_one_that_the_doors_are_held_to() -> None:
    """What an operator reads is what is tested."""
    assert table() in DOCS.read_text(encoding="utf-8")

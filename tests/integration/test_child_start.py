"""How a child starts: what it has loaded when it says ``ready``, and what that leaves as it was for a user's code.

No test here measures a time: what costs time is what must not be loaded.
"""

import subprocess
import sys
from pathlib import Path

import pytest
from msgspec import UNSET

from waypost.testing.memory_log import MemoryLog
from waypost.testing.scripted_host import ScriptedHost

FLOW = """
import gc
import msgspec
from decimal import Decimal
from waypost import Attachment, Mail, Workflow, approve, receive, send, sleep

flow = Workflow("orders", address="orders@example.com", mail_to=["boss@example.com"], env=["REGION"])

class Claim(msgspec.Struct):
    amount: Decimal

@flow.step(retries=2)
def read(mail: Mail) -> Claim:
    print("garbage", gc.isenabled(), flush=True)
    return Claim(Decimal(1))

@flow.run
async def main(mail: Mail) -> str:
    await read(mail)
    return "done"
"""
SAY = """
import gc, sys
print("LOADED", *sorted(sys.modules))
print("GARBAGE", gc.isenabled())
"""

LATER = {
    *("argparse", "ast", "asyncio", "base64", "concurrent", "copy", "dataclasses", "dis", "email", "getopt", "html"),
    *("http", "importlib.metadata", "inspect", "json", "linecache", "logging", "multiprocessing", "pathlib", "pickle"),
    *("queue", "random", "secrets", "selectors", "shutil", "socket", "ssl", "subprocess", "tempfile", "threading"),
    *("tokenize", "traceback", "typing_extensions", "unittest", "urllib", "weakref", "zipfile", "nacl.bindings"),
    *(
        "actors",
        "substrate",
        "waypost.cli",
        "waypost.host",
        "waypost.shell",
        "ipc.events",
        "ipc.messages",
        "ipc.parse",
        "ipc.process",
    ),
    *("ipc.spawn", "waypost.child.blame", "waypost.child.describe", "waypost.child.loop", "waypost.child.runtime"),
    *("waypost.child.serving", "waypost.child.wire", "waypost.model.events", "waypost.model.mail"),
    *("waypost.model.mail_address", "waypost.model.mail_parse", "waypost.model.run"),
}
"""What a child loads after its ``ready``, or never: together more than half of what its start once took."""


@pytest.fixture
def unmeasured(monkeypatch: pytest.MonkeyPatch) -> None:
    """Measuring coverage loads half of these by itself."""
    monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)


def started(file: Path, text: str, *arguments: str) -> ScriptedHost:
    """Write a workflow and prepare its host."""
    file.write_text(text)
    log = MemoryLog()
    log.start(b"From: ann@example.com\r\nMessage-ID: <1@x>\r\n\r\nplease\r\n")
    return ScriptedHost(file, log, arguments)


@pytest.mark.usefixtures("unmeasured")
@pytest.mark.parametrize("place", [(), ("--tree", "{folder}")], ids=["a file", "a file of a tree of code"])
def test_ready_comes_before_all_that_only_a_run_needs(tmp_path: Path, place: tuple[str, ...]) -> None:
    """A deployment that is woken by a mail answers the sooner, and a host with many comes up the sooner."""
    with started(tmp_path / "cs_flow.py", FLOW + SAY, *(each.format(folder=tmp_path) for each in place)) as host:
        host.until(lambda: host.ready is not None and b"GARBAGE" in host.output)
        assert host.ready is not None
        assert host.ready.error is UNSET
        said = dict(line.split(" ", 1) for line in host.output.decode().splitlines())
    loaded = set(said["LOADED"].split())
    assert "cs_flow" in loaded
    bare = subprocess.run([sys.executable, "-P", "-c", SAY], check=True, capture_output=True, text=True).stdout
    assert sorted(LATER & loaded - set(bare.split())) == []  # what an installation's .pth files load isn't ours
    assert said["GARBAGE"] == "True"


def test_a_file_may_turn_the_search_for_garbage_off(tmp_path: Path) -> None:
    """The start does so for itself; that must not undo what a file wants."""
    file = tmp_path / "cs_gc.py"
    with started(file, FLOW + "gc.disable()\n") as host:
        host.drive()
        host.to_the_end()
    assert b"garbage False" in host.output


BORROWED = """
from typing_extensions import Annotated, NotRequired, TypedDict
from waypost import Workflow

flow = Workflow("orders", address="orders@example.com")

class Base(TypedDict):
    name: str

class Claim(Base):
    amount: Annotated[int, "cents"]
    note: NotRequired["str"]

@flow.step
def claim() -> Claim:
    return {"name": "Ann", "amount": 3}

@flow.run
async def main() -> Claim:
    return await claim()
"""


def test_types_of_typing_extensions_are_as_good_as_those_of_typing(tmp_path: Path) -> None:
    """The start hides that package from msgspec for a moment; whoever imports it later finds it, whole."""
    pytest.importorskip("typing_extensions")
    host = started(tmp_path / "cs_borrowed.py", BORROWED)
    with host:
        host.drive()
        host.to_the_end()
    assert host.kinds()[-1] == "RunCompleted", host.output.decode()
    described = subprocess.run(
        [sys.executable, "-P", "-m", "waypost.child", "--describe", host.file], capture_output=True, check=False
    )
    assert described.returncode == 0, described.stdout


def test_two_children_that_start_at_once_are_both_ready(tmp_path: Path) -> None:
    """Each has keys and descriptors of its own, whatever the host spawns beside it."""
    with started(tmp_path / "cs_one.py", FLOW) as one, started(tmp_path / "cs_two.py", FLOW) as two:
        one.until(lambda: one.ready is not None)
        two.until(lambda: two.ready is not None)
        assert one.ready is not None
        assert two.ready is not None
        assert one.ready.key != two.ready.key
        assert (one.ready.pid, two.ready.pid) == (one.pid, two.pid)


@pytest.mark.parametrize(
    ("arguments", "code", "shown"),
    [
        (["--help"], 0, "usage: python -m waypost.child"),
        (["--rot", "/w"], 2, "'--rot' is no argument"),
        ([], 78, "--parent, --root and --module are needed"),
    ],
)
def test_a_command_typed_by_hand_is_answered_in_words(arguments: list[str], code: int, shown: str) -> None:
    """People do try it."""
    done = subprocess.run(
        [sys.executable, "-P", "-m", "waypost.child", *arguments], capture_output=True, text=True, check=False
    )
    assert (done.returncode, shown in done.stdout + done.stderr) == (code, True), done
    assert "Traceback" not in done.stderr

"""After kill -9 the verbs that read show every acknowledged write, and leave the directory byte for byte as it was."""

from pathlib import Path

import pytest

from waypost.testing.host_process import HostProcess
from waypost.testing.verbs import verb

pytestmark = pytest.mark.e2e

WORKFLOW = """
from waypost import Mail, Workflow, receive

asking = Workflow("asking", address="asking@example.com")

@asking.step
def size(mail: Mail) -> int:
    return len(mail.text)

@asking.run
async def ask(mail: Mail) -> str:
    found = await size(mail)
    return f"{found}, {(await receive()).subject}"
"""
RUNS = 3
READING = [
    ("runs",),
    ("show", "run_1"),
    ("log", "run_2"),
    ("why", "run_1"),
    ("verify",),
    ("fsck", "asking"),
    ("queue", "hold"),
    ("queue", "rejected"),
    ("receipt", "asking"),
]


def mail(number: int, answers: int | None = None) -> bytes:
    thread = "" if answers is None else f"In-Reply-To: <{answers}@x>\r\n"
    head = f"From: ann@example.com\r\nSubject: mail {number}\r\nMessage-ID: <{number}@x>\r\n{thread}"
    return f"{head}\r\nhello\r\n".encode()


def state_of(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Every file and directory: mode, time of its last change, and bytes."""
    found = {}
    for path in sorted(folder.rglob("*")):
        facts = path.lstat()
        data = path.read_bytes() if path.is_file() else str(sorted(path.iterdir())).encode() if path.is_dir() else b""
        found[str(path.relative_to(folder))] = (facts.st_mode, facts.st_mtime_ns, data)
    return found


@pytest.mark.parametrize(
    "index",
    ["as it is", pytest.param("gone", marks=pytest.mark.torture), pytest.param("torn", marks=pytest.mark.torture)],
)
def test_what_reads_without_a_host_shows_all_and_touches_nothing(tmp_path: Path, index: str) -> None:
    """The host was killed with work in its journal, and its derived index is perhaps lost, or torn."""
    file, data = tmp_path / "asking.py", tmp_path / "data"
    file.write_text(WORKFLOW, encoding="utf-8")
    host = HostProcess(file, data=data).start()
    runs = [host.send("asking@example.com", mail(number)) for number in range(1, RUNS + 1)]
    host.send("asking@example.com", mail(RUNS + 1, answers=1))
    host.wait_for("completed")
    host.kill()
    derived = data / "repos" / "asking.git" / "waypost" / "derived" / "runs.sqlite"
    assert derived.exists()
    if index == "gone":
        derived.unlink()
    elif index == "torn":
        derived.write_bytes(derived.read_bytes()[: derived.stat().st_size // 2])
    before = state_of(data)
    said = {words: verb(*words, data=data) for words in READING}
    assert state_of(data) == before
    assert {words: each.status for words, each in said.items() if each.status} == {}
    listed = said["runs",].out
    assert all(run in listed for run in runs), listed
    assert listed.count("completed") == 1
    assert all(f"mail {number}" in listed for number in range(1, RUNS + 1))

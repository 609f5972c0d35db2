"""Moving house from end to end: run, park, back up, lose everything, restore elsewhere, resume, answer, verify."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from waypost.testing.host_process import HostProcess, waypost
from waypost.testing.stores import git
from waypost.testing.verbs import verb

pytestmark = pytest.mark.e2e

WORKFLOW = '''
from pathlib import Path

from waypost import Mail, Workflow, approve, send

asking = Workflow("asking", address="asking@example.com", mail_to=["boss@example.com"], env=["LEDGER"])

@asking.step
def book(what: str) -> int:
    """Once."""
    import os
    with Path(os.environ["LEDGER"]).open("a") as ledger:
        ledger.write(what + "\\n")
    return len(what)

@asking.run
async def ask(mail: Mail) -> str:
    """Book, ask, book again, tell."""
    await book("before")
    verdict = await approve("Pay?", who="boss@example.com", deadline="3d")
    await book("after")
    await send(to="boss@example.com", subject="told", text="told")
    return str(verdict.approved)
'''
ADDRESS = "asking@example.com"
MAIL = b"From: ann@example.com\r\nSubject: %s\r\nMessage-ID: <%s@x>\r\n\r\nhello\r\n"

FREE = ("--isolation", "none")
"""The workflow's ledger lies in the test's own folder, which a host of root's would keep from it."""


@contextmanager
def held(file: Path, data: Path, ledger: Path) -> Iterator[HostProcess]:
    """A host whose deployment is held: it never says that it is running."""
    host = HostProcess(file, data=data, env={"LEDGER": str(ledger)}, options=FREE).start(ready="asking is held")
    try:
        yield host
    finally:
        host.stop()


def told(data: Path) -> int:
    return sum(b"Subject: told" in file.read_bytes() for file in (data / "out" / "new").iterdir())


@pytest.mark.torture
def test_a_live_run_goes_on_in_another_house(tmp_path: Path) -> None:
    """The whole story, from a backup beside a live host; what was done before isn't done again."""
    file, old, new, ledger = (tmp_path / name for name in ("asking.py", "old", "new", "ledger"))
    file.write_text(WORKFLOW)
    box, keep = tmp_path / "asking.waypost", tmp_path / "old.pub"
    with HostProcess(file, data=old, env={"LEDGER": str(ledger)}, options=FREE) as host:
        run = host.send(ADDRESS, MAIL % (b"first", b"first"))
        host.wait_for("waits for boss@example.com")
        receipt = verb("receipt", "asking", data=old)
        (tmp_path / "receipt").write_text(receipt.out)
        made = verb("backup", "asking", str(box), data=old)
        assert made.status == 0, made.err
        assert "asking up to flush" in made.out
        assert verb("backup", "asking", str(box), data=old).status == 1
        shutil.copy(old / "keys" / "host.ed25519.pub", keep)
        host.kill()
    shutil.rmtree(old)

    assert verb("restore", str(box), "--key", str(file), data=new).status == 64
    restored = verb("restore", str(box), "--key", str(keep), data=tmp_path / ".." / tmp_path.name / new.name)
    assert restored.status == 0, restored.err
    assert f" is in {new.resolve()}, " in restored.out
    assert "it is held in epoch 2" in restored.out
    assert verb("restore", str(box), data=new).status == 1
    with held(file, new, ledger) as host:
        assert verb("approve", run, data=new).status == 0
        assert verb("send", ADDRESS, data=new, stdin=MAIL % (b"first", b"first")).out.count("already there") == 1
        listed = verb("resume", "asking", data=new)
        assert listed.status == 1
        assert run in listed.out
        assert ledger.read_text() == "before\n"
        assert verb("resume", "asking", "--yes", data=new).status == 0
        host.wait_for("completed")
    assert ledger.read_text() == "before\nafter\n"
    assert told(new) == 1
    checked = verb("verify", "--receipt", str(tmp_path / "receipt"), data=new)
    assert checked.status == 0, checked.out
    assert "the receipt proves flush" in checked.out
    assert verb("verify", data=new).status == 0
    shown = git(new / "repos" / "asking.git", "log", "--format=%s", "log")
    assert "begin epoch 2 after flush" in shown
    assert git(new / "repos" / "asking.git", "fsck", "--strict", "--no-progress") == ""
    assert verb("fsck", "asking", data=new).status == 0


@pytest.mark.torture
def test_a_restore_that_is_killed_leaves_nothing_that_a_host_would_start(tmp_path: Path) -> None:
    """SIGKILL in the very middle: git has fetched, and the program that asked it is gone. The same command ends it.

    So it is with a backup: half of one never has its name.
    """
    file, old, new, ledger = (tmp_path / name for name in ("asking.py", "old", "new", "ledger"))
    file.write_text(WORKFLOW)
    with HostProcess(file, data=old, env={"LEDGER": str(ledger)}, options=FREE) as host:
        host.send(ADDRESS, MAIL % (b"first", b"first"))
        host.wait_for("waits for boss@example.com")
    fake, real = tmp_path / "bin" / "git", shutil.which("git")
    fake.parent.mkdir()
    fake.write_text(f'#!/bin/sh\n{real} "$@"\nkill -9 $PPID\n')
    fake.chmod(0o755)
    path = {"PATH": f"{fake.parent}:/usr/bin:/bin"}
    assert waypost("backup", "asking", str(tmp_path / "box"), data=old, env=path).returncode == -9
    assert not (tmp_path / "box").exists()
    assert verb("backup", "asking", str(tmp_path / "box"), data=old).status == 0
    killed = waypost("restore", str(tmp_path / "box"), data=new, env=path)
    assert killed.returncode == -9
    assert (new / "restoring").exists()
    assert not list((new / "repos").iterdir())
    assert verb("runs", data=new).out.splitlines()[1:] == []
    assert verb("restore", str(tmp_path / "box"), data=new).status == 0
    with held(file, new, ledger):
        assert not (new / "restoring").exists()
        assert "approval" in verb("runs", data=new).out


@pytest.mark.torture
def test_a_killed_hosts_data_is_backed_up_and_a_mirror_is_enough(tmp_path: Path) -> None:
    """Without a host, what lies in a journal is sealed first; and whoever has only a clone can go on from it."""
    file, old, ledger = tmp_path / "asking.py", tmp_path / "old", tmp_path / "ledger"
    file.write_text(WORKFLOW)
    with HostProcess(file, data=old, env={"LEDGER": str(ledger)}, options=FREE) as host:
        run = host.send(ADDRESS, MAIL % (b"first", b"first"))
        host.wait_for("waits for boss@example.com")
        host.kill()
    assert verb("send", ADDRESS, data=old, stdin=MAIL % (b"second", b"second")).status == 0  # into the spool
    made = verb("backup", "asking", str(tmp_path / "box"), "--with-keys", data=old)
    assert made.status == 0, made.err
    assert "1 mail from the spool" in made.out
    git(tmp_path, "clone", "-q", "--bare", str(old / "repos" / "asking.git"), str(tmp_path / "mirror"))
    for number, source in enumerate(([str(tmp_path / "box")], ["--from", f"file://{tmp_path}/mirror"])):
        new = tmp_path / f"new{number}"
        restored = verb("restore", *source, data=new)
        assert restored.status == 0, restored.err
        listed = verb("resume", "asking", data=new)
        assert run in listed.out
        assert verb("verify", data=new).status == 0
    assert verb("verify", "--key", str(old / "keys" / "host.ed25519.pub"), data=tmp_path / "new0").status == 0
    assert verb("verify", "--key", str(old / "keys" / "host.ed25519.pub"), data=tmp_path / "new1").status == 1
    assert verb("restore", data=tmp_path / "new2").status == 64
    assert verb("restore", str(file), data=tmp_path / "new2").status == 65
    assert verb("restore", str(tmp_path / "nothing"), data=tmp_path / "new2").status == 78

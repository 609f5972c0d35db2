"""A repository is set back under its host's feet: it says so, and goes on only by an operator's word, twice."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from waypost.testing.host_process import HostProcess
from waypost.testing.stores import git
from waypost.testing.verbs import verb

pytestmark = pytest.mark.e2e

WORKFLOW = '''
from waypost import Mail, Workflow, approve, send, sleep

asking = Workflow("asking", address="asking@example.com", mail_to=["boss@example.com"])

@asking.run
async def ask(mail: Mail) -> str:
    """Ask, then tell."""
    verdict = await approve("Pay?", who="boss@example.com", deadline="3d")
    await send(to="boss@example.com", subject="told", text="told")
    return str(verdict.approved)
'''
ADDRESS = "asking@example.com"


def mail(name: str) -> bytes:
    return f"From: ann@example.com\r\nSubject: {name}\r\nMessage-ID: <{name}@x>\r\n\r\nhello\r\n".encode()


@contextmanager
def held(file: Path, data: Path) -> Iterator[HostProcess]:
    """A host whose deployment is held: it never says that it is running."""
    host = HostProcess(file, data=data).start(ready="asking is held")
    try:
        yield host
    finally:
        host.stop()


def told(data: Path) -> int:
    return sum(b"Subject: told" in file.read_bytes() for file in (data / "out" / "new").iterdir())


@pytest.mark.torture
def test_a_history_that_went_back_is_given_up_and_resumed_by_hand(tmp_path: Path) -> None:
    """The story of a restored snapshot: refused, accepted, held, listed, resumed; and nothing leaves before."""
    file, data = tmp_path / "asking.py", tmp_path / "data"
    file.write_text(WORKFLOW)
    repository = data / "repos" / "asking.git"
    with HostProcess(file, data=data) as host:
        first = host.send(ADDRESS, mail("first"))
        host.wait_for("waits for boss@example.com")
    shutil.copytree(repository, tmp_path / "snapshot", symlinks=True)
    with HostProcess(file, data=data) as host:
        host.send(ADDRESS, mail("second"))
        host.wait_for("waits for boss@example.com")
    shutil.rmtree(repository)
    shutil.copytree(tmp_path / "snapshot", repository, symlinks=True)

    refused = HostProcess(file, data=data).start(ready=None)
    assert refused.wait() == 78
    assert "history went back from flush" in refused.complaints
    assert "waypost accept-rollback asking" in refused.complaints

    assert verb("accept-rollback", "nobody", data=data).status == 64
    accepted = verb("accept-rollback", "asking", data=data)
    assert accepted.status == 0, accepted.err
    assert "given up: flush" in accepted.out
    assert "waypost resume asking" in accepted.out
    assert verb("accept-rollback", "asking", data=data).status == 78

    with held(file, data) as host:
        assert verb("accept-rollback", "asking", data=data).status == 1  # a host runs
        third = host.send(ADDRESS, mail("third"))
        assert verb("approve", first, data=data).status == 0
        why = verb("why", first, data=data)
        assert "waypost resume asking" in why.out
        asked = verb("resume", "asking", data=data)
        assert asked.status == 1
        assert f"{first} running" in asked.out
        assert "missing     flush" in asked.out
        assert "queued      1 mail would" in asked.out
        assert verb("show", first, data=data).out.count("\n") > 3
        assert told(data) == 0
        resumed = verb("resume", "asking", "--yes", data=data)
        assert (resumed.status, "asking goes on" in resumed.out) == (0, True)
        host.wait_for("is running")
        host.wait_for("completed")
        assert verb("resume", "asking", "--yes", data=data).status == 1
        assert verb("verify", data=data).status == 0
    assert told(data) == 1
    assert third in verb("runs", data=data).out
    assert verb("fsck", "asking", data=data).status == 0
    assert "begin epoch 2 after flush" in git(repository, "log", "--format=%s", "log")


@pytest.mark.torture
def test_commits_that_somebody_else_put_on_top_are_named_and_set_aside(tmp_path: Path) -> None:
    """A push past the host, or a merge by hand: the host never builds on what it hasn't signed."""
    file, data = tmp_path / "asking.py", tmp_path / "data"
    file.write_text(WORKFLOW)
    repository = data / "repos" / "asking.git"
    with HostProcess(file, data=data) as host:
        host.send(ADDRESS, mail("first"))
        host.wait_for("waits for boss@example.com")
    tree = git(repository, "rev-parse", "log^{tree}").strip()
    who = ("-c", "user.name=m", "-c", "user.email=m@x")
    forged = git(repository, *who, "commit-tree", tree, "-p", "log", "-m", "hi").strip()
    git(repository, "update-ref", "refs/heads/log", forged)
    refused = HostProcess(file, data=data).start(ready=None)
    assert refused.wait() == 78
    assert forged in refused.complaints
    assert "waypost accept-rollback asking" in refused.complaints
    accepted = verb("accept-rollback", "asking", data=data)
    assert (accepted.status, forged in accepted.out) == (0, True)
    with held(file, data) as host:
        assert verb("resume", "asking", "--yes", data=data).status == 0
        host.wait_for("is running")

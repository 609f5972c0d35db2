"""A finished run has folded away: what a user sees of it is what there was to see before."""

import time
from pathlib import Path

import pytest

from substrate import layout, runlog
from substrate.signing.keys import PublicKey
from substrate.storage.readview import open_readonly
from waypost.model.ids import parse_run_id
from waypost.testing.host_here import HostHere
from waypost.testing.patience import PATIENCE
from waypost.testing.stores import git
from waypost.testing.verbs import verb

pytestmark = pytest.mark.e2e


def mail(name: str, answers: str = "") -> bytes:
    header = f"In-Reply-To: <{answers}>\r\n" if answers else ""
    return f"From: ann@example.com\r\nSubject: {name}\r\nMessage-ID: <{name}@x>\r\n{header}\r\nhello\r\n".encode()


def read(run: str, data: Path) -> list[tuple[int, str]]:
    """What every reading verb says."""
    said = [verb(name, run, data=data) for name in ("show", "log")]
    return [(each.status, each.out) for each in said]


def test_a_run_that_is_sealed_reads_as_it_did_with_and_without_a_host(tmp_path: Path, counting: Path) -> None:
    """Every verb, by a host that has just sealed it, without one, and by one that never read it; replies find it."""
    data = tmp_path / "data"
    repository = data / "repos" / "counting.git"
    with HostHere(counting, data=data) as host:
        run = parse_run_id(host.send("counting@example.com", mail("one")))
        host.wait_for("completed")
        before = read(run, data)
        until = time.monotonic() + PATIENCE
        while not runlog.is_sealed(open_readonly(repository, PublicKey.load(data / "keys" / "host.ed25519.pub")), run):
            assert time.monotonic() < until, "it was never sealed"
        assert read(run, data) == before
        assert "completed" in verb("runs", data=data).out
        assert "completed" in verb("why", run, data=data).out
    assert read(run, data)[1] == before[1]
    assert "completed" in verb("runs", data=data).out
    assert "sound" in verb("verify", data=data).out
    assert git(repository, "cat-file", "blob", f"log:{layout.sealed_log_path(run)}") == before[1][1]
    with HostHere(counting, data=data) as host:
        assert read(run, data) == before
        new = host.send("counting@example.com", mail("two", answers="one@x"))
        host.wait_for("completed")
        assert f'"after":"{run}"' in verb("log", new, data=data).out

"""An import that is killed, or whose disk fails: there is a whole deployment of that name, or there is none."""

import errno
import os
from pathlib import Path

import pytest

from substrate import Reader, verify
from substrate.files.disk import Disk
from substrate.signing.keys import PublicKey
from substrate.storage.readview import open_readonly
from waypost.host.keeping.importing import Exists, Imported, Order, carry_out
from waypost.model.errors import WaypostError
from waypost.model.ids import Deployment
from waypost.testing import reference as made
from waypost.testing.disks import Died, DyingDisk, FailingDisk

GRID = [pytest.param(24, id="some"), pytest.param(1, id="all", marks=pytest.mark.torture)]
"""Every so many points of the disk."""


def order(source: Path) -> Order:
    return Order(source=source, name=Deployment("taken"), address=None, steps={})


def places(data: Path) -> dict[str, str]:
    """Where each mail is, in a repository that verifies."""
    key, path = PublicKey.load(data / "keys" / "host.ed25519.pub"), data / "repos" / "taken.git"
    assert verify(path, key).faults == ()
    lines = Reader(open_readonly(str(path), key)).queue(consumed=True)
    return {line.entry.id: line.place for line in lines}


WHOLE = {"<a@x>": "consumed", "<b@x>": "inbox"}


@pytest.fixture
def small(tmp_path: Path) -> Path:
    """A repository with one run, one mail that waits, one that was consumed."""
    run = [
        made.event(1, "RunStarted", runId="a", trigger={"payload": made.payload("a@x")}, consumedMessageId="<a@x>"),
        made.event(2, "StepStarted", stepId="s", attempt=1, input={"ref": "inline:null"}),
        made.event(3, "RunCompleted"),
    ]
    source = made.Reference(tmp_path / "theirs.git")
    source.commit("main", made.sealed("a", run))
    source.commit("events", made.queued("a@x", made.BEGAN, made.mail("a@x")))
    waiting = made.queued("b@x", made.BEGAN + 1, made.mail("b@x"))
    source.commit("events", {**waiting, **made.consumed("a@x", made.BEGAN, "a")})
    return source.path


def points(source: Path, data: Path) -> int:
    disk = Disk()
    whole(carry_out(data, order(source), disk=disk), data)
    return disk.points


def whole(done: Imported, data: Path) -> None:
    assert (len(done.runs), done.queued, done.left) == (1, 1, ())
    assert places(data) == WHOLE
    assert not (data / "importing").exists()


def finished(source: Path, data: Path) -> None:
    """After whatever came between: what is there is whole, or the same command makes it."""
    if (data / "repos" / "taken.git").exists():
        assert places(data) == WHOLE
        with pytest.raises(Exists):
            carry_out(data, order(source))
    else:
        whole(carry_out(data, order(source)), data)


@pytest.mark.parametrize("every", GRID)
def test_a_death_at_any_moment_leaves_nothing_half_and_the_same_command_finishes(
    every: int, small: Path, tmp_path: Path
) -> None:
    """Also the last one of all, between the rename and what clears the rest away."""
    total = points(small, tmp_path / "undisturbed")
    for at in {*range(1, total + 1, every), total}:
        data = tmp_path / f"data{at}"
        with pytest.raises(Died):
            carry_out(data, order(small), disk=DyingDisk(at))
        finished(small, data)


@pytest.mark.parametrize("every", GRID)
@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC], ids=["EIO", "ENOSPC"])
def test_a_disk_that_fails_ends_the_import_in_words_and_leaves_nothing_half(
    error: int, every: int, small: Path, tmp_path: Path
) -> None:
    """And never in a repository that somebody could take for a whole one; what the disk said is in the message."""
    total = points(small, tmp_path / "undisturbed")
    said: list[str] = []
    for at in range(2, total + 1, every * 2):
        data = tmp_path / f"data{at}"
        try:
            carry_out(data, order(small), disk=FailingDisk(at, error))
        except WaypostError as failure:
            said.append(failure.message)
        finished(small, data)
    assert len(said) > 1
    assert all(os.strerror(error) in message for message in said), said

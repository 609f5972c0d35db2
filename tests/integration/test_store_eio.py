"""A disk that fails a sync once and then pretends that all is well: nothing acknowledged is ever lost by it."""

import errno
import os
import shutil
from contextlib import suppress
from pathlib import Path

import pytest

from substrate.checking.looking import look
from substrate.checking.verify import verify
from substrate.errors import FlushFailed, Unreadable
from substrate.files.disk import Disk
from substrate.signing.keys import SigningKey
from substrate.storage.readview import open_readonly
from substrate.storage.store import Store
from waypost.model.limits import Limits
from waypost.testing.disks import Died, DyingDisk, FailingDisk, LapsingDisk, power_cut
from waypost.testing.stores import fresh_store, fsck, put

KEY = SigningKey.generate()
LIMITS = Limits(seal_bytes=64 * 1024)


def lapse(repository: Path, disk: LapsingDisk) -> None:
    """Three flushes that are acknowledged, and a fourth whose sync fails: it must never be there again."""
    store = fresh_store(repository, KEY, disk=disk, limits=LIMITS)
    for number in (1, 2, 3):
        put(store, {f"d/{number}": b"%d" % number * 100})
        store.flush()
    put(store, {"d/4": b"4" * 100})
    disk.armed = True
    with pytest.raises(FlushFailed) as caught:
        store.flush()
    assert (caught.value.errno, caught.value.fault) == (errno.EIO, "disk")
    store.close()


def names_of(repository: Path) -> tuple[str, ...]:
    """What a recovered store shows in ``d``; the repository is sound for git afterwards."""
    store = Store.open(repository, key=KEY, limits=LIMITS)
    names = store.entries("d")
    store.close()
    assert fsck(repository) == ""
    return names


def test_what_was_withheld_is_void_and_what_was_acknowledged_stays(tmp_path: Path) -> None:
    """The failed flush is whole in the system's cache, and is cut all the same: whoever sent it was told so."""
    disk = LapsingDisk(tmp_path / "record")
    lapse(tmp_path / "r.git", disk)
    disk.close()
    assert names_of(tmp_path / "r.git") == ("1", "2", "3")


@pytest.mark.parametrize("more", [0, 2])
def test_a_power_cut_after_the_recovery_takes_nothing(tmp_path: Path, more: int) -> None:
    """The recovery's own sync of that file would prove nothing, so what is good was copied into another one."""
    disk = LapsingDisk(tmp_path / "record")
    lapse(tmp_path / "r.git", disk)
    store = Store.open(tmp_path / "r.git", key=KEY, disk=disk, limits=LIMITS)
    for number in range(more):
        put(store, {f"d/{number + 5}": b"later"})
        store.flush()
    store.abandon()
    disk.close()
    power_cut(tmp_path / "r.git", tmp_path / "record", tmp_path / "cut.git")
    assert names_of(tmp_path / "cut.git") == ("1", "2", "3", "5", "6")[: 3 + more]


def test_a_copy_that_reads_back_otherwise_stops_the_recovery(tmp_path: Path) -> None:
    """The ref hasn't moved, and the journal is still there: a better disk, or a backup, has all of it."""

    class Garbling(Disk):
        def write_at(self, descriptor: int, path: str, data: bytes, offset: int) -> None:
            if path.endswith("recovered.pack"):
                data = data[:-50] + b"\xff" + data[-49:]
            super().write_at(descriptor, path, data, offset)

    disk = LapsingDisk(tmp_path / "record")
    lapse(tmp_path / "r.git", disk)
    disk.close()
    with pytest.raises(FlushFailed, match="doesn't give back"):
        Store.open(tmp_path / "r.git", key=KEY, disk=Garbling(), limits=LIMITS)
    assert names_of(tmp_path / "r.git") == ("1", "2", "3")


def grid(folder: Path, step: int) -> None:
    """After the failed sync: the disk fails at each point of the recovery, and the host dies in the one after that."""
    disk = LapsingDisk(folder / "record")
    lapse(folder / "template.git", disk)
    disk.close()
    count = Disk()
    shutil.copytree(folder / "template.git", folder / "count.git")
    Store.open(folder / "count.git", key=KEY, disk=count, limits=LIMITS).abandon()
    assert count.points > 20
    for at in range(1, count.points + 1, step):
        for error in (errno.EIO, errno.ENOSPC):
            repository = folder / f"{at}-{error}.git"
            shutil.copytree(folder / "template.git", repository)
            try:
                Store.open(repository, key=KEY, disk=FailingDisk(at, error), limits=LIMITS).abandon()
            except FlushFailed as failed:
                assert failed.errno == error  # noqa: PT017 - the else branch is a case of its own
            else:
                assert error == errno.ENOSPC, f"point {at} swallowed an error"
            with suppress(Died):  # it may have less to do than the first
                Store.open(repository, key=KEY, disk=DyingDisk(at, half=True), limits=LIMITS).abandon()
            assert names_of(repository) == ("1", "2", "3")
            shutil.rmtree(repository)


def test_a_second_failure_in_the_recovery_and_a_death_after_it_lose_nothing(tmp_path: Path) -> None:
    """Some points of it."""
    grid(tmp_path, 5)


@pytest.mark.torture
@pytest.mark.timeout(1800)
def test_no_second_failure_in_the_recovery_loses_anything(tmp_path: Path) -> None:
    """All points of it."""
    grid(tmp_path, 1)


@pytest.mark.parametrize("number", [errno.EIO, errno.EROFS])
def test_a_reader_says_of_which_file_the_disk_wont_vouch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, number: int
) -> None:
    """The system tells whoever syncs next of an earlier failure, and by a descriptor it names no file.

    Who verifies, or checks, is told so as well, and what helps: a host that answers isn't to fail on it.
    """
    store = fresh_store(tmp_path / "r.git", KEY, limits=LIMITS)
    put(store, {"d/1": b"1"})
    store.flush()
    store.abandon()

    def fails(_descriptor: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr("os.fdatasync", fails)
    with pytest.raises(OSError, match=os.strerror(number)) as caught:
        open_readonly(tmp_path / "r.git", KEY.public)
    assert str(caught.value.filename).endswith(".jpack")
    with pytest.raises(Unreadable, match=rf"\.jpack: {os.strerror(number)}") as refused:
        look(tmp_path / "r.git")
    assert "mount it anew" in (refused.value.hint or "")
    report = verify(tmp_path / "r.git", KEY.public)
    assert not report.sound
    assert [fault.what for fault in report.faults] == [refused.value.message]

"""Exchanging the key: two flushes, followed by whoever trusted the old one, and a death at any point in between."""

import shutil
from pathlib import Path

import pytest

from substrate import SigningKey, layout, verify
from substrate.errors import BranchLocked, Unsigned
from substrate.files.disk import Disk
from substrate.storage.heads import Heads, read_note
from substrate.storage.store import Store
from substrate.upkeep.rotation import rotate
from waypost.testing.disks import Died, DyingDisk
from waypost.testing.stores import AT, fresh_store, fsck, git, put, verify_commit

OLD, NEW = SigningKey.generate(), SigningKey.generate()


@pytest.fixture
def house(tmp_path: Path) -> Path:
    """A folder with a repository of three flushes, one of them in a journal, as a kill leaves it."""
    folder = tmp_path / "house"
    folder.mkdir()
    store = fresh_store(folder / "r.git", OLD)
    for name in ("a", "b"):
        put(store, {f"grants/{name}.json": b"{}"})
        store.flush()
    store.abandon()
    return folder


def exchange(folder: Path, disk: Disk | None = None) -> int:
    return rotate(folder / "r.git", OLD, NEW, folder / "heads" / "r.json", at=AT, disk=disk).flush


def test_the_new_key_signs_from_then_on_and_the_old_one_no_more(house: Path) -> None:
    """A start with the old key, stolen or just restored, finds a branch that it hasn't signed."""
    assert exchange(house) == 5
    path = house / "r.git"
    with pytest.raises(Unsigned):
        Store.open(path, key=OLD)
    store = Store.open(path, key=NEW, heads=Heads(house / "heads" / "r.json", Disk()))
    put(store, {"grants/c.json": b"{}"})
    store.close()
    for key in (OLD, NEW):
        report = verify(path, key.public)
        assert report.sound
        assert report.signers == (OLD.fingerprint, NEW.fingerprint)
    assert not verify(path, SigningKey.generate().public).sound
    assert fsck(path) == ""
    assert "Good" in verify_commit(path, "log~2", OLD.public)
    assert "Good" in verify_commit(path, "log~1", NEW.public)
    assert git(path, "log", "-2", "--skip=1", "--format=%an %s", "log").splitlines() == [
        f"hub sign with {NEW.fingerprint} from now on",
        f"hub name the next key, {NEW.fingerprint}",
    ]


def test_a_second_time_changes_nothing(house: Path) -> None:
    """The verb is run again when it isn't known whether it had ended."""
    exchange(house)
    tip = git(house / "r.git", "rev-parse", "log")
    assert exchange(house) == 5
    assert git(house / "r.git", "rev-parse", "log") == tip


def test_a_lock_that_is_held_is_said_before_it_counts_as_done(house: Path) -> None:
    """As long as the branch can't move, a journal holds what the old key signed, and a start wouldn't trust it."""
    lock = house / "r.git" / "refs" / "heads" / "log.lock"
    lock.write_bytes(b"")
    with pytest.raises(BranchLocked):
        exchange(house)
    lock.unlink()
    assert exchange(house) == 5
    Store.open(house / "r.git", key=NEW).close()


@pytest.mark.parametrize("stride", [13, pytest.param(1, marks=[pytest.mark.torture, pytest.mark.timeout(900)])])
def test_a_death_at_any_point_and_a_second_one_are_ended_by_the_next_try(
    tmp_path: Path, house: Path, stride: int
) -> None:
    """One flush of each kind, whatever happened in between."""
    at, died = 1, True
    while died:
        folder = Path(shutil.copytree(house, tmp_path / str(at)))
        died = False
        for disk in (DyingDisk(at), DyingDisk(1 + at % 11), None):
            try:
                exchange(folder, disk)
                break
            except Died:
                died = True
        path = folder / "r.git"
        report = verify(path, OLD.public)
        assert report.sound, report.faults
        assert (report.last_flush, report.signers) == (5, (OLD.fingerprint, NEW.fingerprint))
        noted = read_note(folder / "heads" / "r.json")
        assert noted is not None
        assert noted.head == git(path, "rev-parse", "log").strip()
        Store.open(path, key=NEW).close()
        shutil.rmtree(folder)
        at += stride
    assert at > 40
    assert layout.place_of(layout.SIGNER).kind == "signer"

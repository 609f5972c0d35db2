"""A host that may open no more files: that is no fault of a disk, and what can't be opened isn't damaged."""

import errno
import resource
from pathlib import Path

import pytest

from substrate.errors import TOO_MANY_FILES, Damaged, FlushFailed
from substrate.packs.objects import Kind, object_id
from substrate.packs.sealed import SealedObjects
from substrate.signing.keys import SigningKey
from substrate.storage.store import Store
from waypost.testing.disks import FailingDisk
from waypost.testing.lowered import lowered
from waypost.testing.stores import fresh_store, put

KEY = SigningKey.generate()


def sealed(repository: Path) -> None:
    """A repository with a file in a pack."""
    store = fresh_store(repository, KEY)
    put(store, {"d/1.json": b"{}"})
    store.flush()
    store.close()


@pytest.mark.parametrize("number", [errno.EMFILE, errno.ENFILE])
def test_a_write_for_which_no_file_could_be_opened_says_so_and_what_to_do(tmp_path: Path, number: int) -> None:
    """`storage-failed` sent people to their disks, and kept the deployment down until a host was started anew."""
    fresh_store(tmp_path / "r.git", KEY).close()
    told: set[tuple[str | None, bool]] = set()
    for point in range(0, 40, 5):
        try:
            store = Store.open(tmp_path / "r.git", key=KEY, disk=FailingDisk(point, number))
            put(store, {f"d/{point}": b"x"})
            store.flush()
            store.close()
        except FlushFailed as failure:
            told.add((failure.fault, "allow its host more open files (`ulimit -n` of the shell" in failure.hint))
    assert told == {(TOO_MANY_FILES, True)}


def test_a_repository_that_can_not_be_opened_for_want_of_files_is_neither_failed_nor_damaged(tmp_path: Path) -> None:
    """By the real limit; and it is whole when there are files again."""
    sealed(tmp_path / "r.git")
    with lowered(resource.RLIMIT_NOFILE), pytest.raises(FlushFailed) as caught:
        Store.open(tmp_path / "r.git", key=KEY)
    assert caught.value.fault == TOO_MANY_FILES
    store = Store.open(tmp_path / "r.git", key=KEY)
    assert store.read("d/1.json") == b"{}"
    store.close()


def test_an_object_that_can_not_be_looked_for_for_want_of_files_is_not_missing(tmp_path: Path) -> None:
    """A merge may have replaced the packs, so they are opened anew before it is called damaged: that failed."""
    sealed(tmp_path / "r.git")
    store, objects = f"{tmp_path}/r.git/objects", SealedObjects(f"{tmp_path}/r.git/objects")
    with lowered(resource.RLIMIT_NOFILE), pytest.raises(OSError, match="Too many open files"):
        objects.read(Kind.BLOB, object_id(Kind.BLOB, b"another"))
    with pytest.raises(Damaged):
        SealedObjects(store).read(Kind.BLOB, object_id(Kind.BLOB, b"another"))

"""Stock git at work on the repository at each point of a seal and of a merge: nobody harms anybody."""

import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from substrate.packs.merging import FAN
from substrate.signing.keys import SigningKey
from substrate.storage.store import Store
from waypost.model.limits import Limits
from waypost.testing.disks import HookedDisk
from waypost.testing.stores import files_of, fresh_store, fsck, git, put

KEY = SigningKey.generate()
LIMITS = Limits(seal_bytes=64 * 1024)
SOUND = ("fsck", "--strict", "--full", "--no-progress", "--no-dangling")
"""Between a pack's index and the move of the branch, what is new is named by nobody: that is no fault."""


def collect(repository: Path) -> None:
    """Somebody tidies up; where we hold the branch's lock, git may say that it couldn't."""
    said = git(repository, "gc", "-q", "--prune=now", check=False)
    assert said == "" or "log.lock': File exists" in said


def repack(repository: Path) -> None:
    """Somebody packs everything anew, with and without what we keep."""
    git(repository, "repack", "-adq")
    git(repository, "repack", "-aq", "--pack-kept-objects")


def clone(repository: Path) -> None:
    """Somebody takes a copy, by hard links and over a pipe; both are sound."""
    for number, address in enumerate((str(repository), f"file://{repository}")):
        copy = repository.parent / f"copy{number}"
        git(repository.parent, "clone", "-q", "--bare", address, str(copy))
        assert git(copy, *SOUND) == ""
        shutil.rmtree(copy)


def check(repository: Path) -> None:
    """Somebody checks it: at no moment is there anything to find."""
    assert git(repository, *SOUND) == ""
    assert git(repository, "rev-list", "--objects", "--quiet", "log") == ""


def backup(repository: Path) -> None:
    """Somebody makes a bundle."""
    git(repository, "bundle", "create", "-q", str(repository.parent / "bundle"), "log")


def index_of_all(repository: Path) -> None:
    """Somebody's maintenance makes one index over all packs; it must not name one that a merge takes away."""
    git(repository, "multi-pack-index", "write")


BESIDE: tuple[Callable[[Path], None], ...] = (collect, check, repack, clone, backup, index_of_all)


def made(path: Path) -> Store:
    """A repository with one pack less than is merged."""
    store = fresh_store(path, KEY, limits=LIMITS)
    random_ = random.Random(1)
    for number in range(FAN - 1):
        put(store, {f"d/{name}": b"%d" % random_.randrange(3) * 80 for name in range(20)}, subject=f"write {number}")
        store.flush()
        store.seal()
    store.close()
    return store


def play(folder: Path, beside: Callable[[Path], None], *, first: int, step: int) -> None:
    """A seal and a merge, held at every ``step``-th point while another program runs."""
    repository = folder / "r.git"
    made(repository)

    held: list[str] = []

    def hook(number: int, operation: str, _path: str) -> None:
        if (number - first) % step == 0:
            held.append(operation)
            beside(repository)

    disk = HookedDisk()
    store = Store.open(repository, key=KEY, disk=disk, limits=LIMITS)
    disk.hook = hook
    for number in range(2):
        put(store, {f"d/{name}": b"%d" % number * 80 for name in range(20)})
        store.flush()
        store.seal()
        while store.merging:
            store.merge()
    assert any("merge.pack" in path for _, path in disk.passed)
    assert len(held) > 60 // step
    disk.hook = None
    store.seal()
    before = files_of(store)
    assert before["d/7"] == b"1" * 80
    store.close()
    assert fsck(repository) == ""
    again = Store.open(repository, key=KEY, limits=LIMITS)
    assert files_of(again) == before
    again.close()


@pytest.mark.parametrize("beside", BESIDE, ids=lambda beside: beside.__name__)
def test_git_beside_a_seal_and_a_merge_harms_nobody(tmp_path: Path, beside: Callable[[Path], None]) -> None:
    """Held at some of the points; each program at other ones."""
    play(tmp_path, beside, first=BESIDE.index(beside), step=4)


@pytest.mark.torture
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("beside", BESIDE, ids=lambda beside: beside.__name__)
def test_git_beside_each_point_of_a_seal_and_a_merge_harms_nobody(
    tmp_path: Path, beside: Callable[[Path], None]
) -> None:
    """Held at each of them."""
    play(tmp_path, beside, first=0, step=1)

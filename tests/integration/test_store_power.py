"""The power goes at any point of recovery, flush, seal and merge, and takes all that wasn't synced: no ack is a lie."""

import random
import shutil
from pathlib import Path

import pytest

from substrate.errors import Damaged, FlushFailed
from substrate.packs.merging import FAN
from substrate.signing.keys import SigningKey
from substrate.storage.readview import open_readonly
from substrate.storage.store import Store
from waypost.model.limits import Limits
from waypost.testing.cuts import CutDisk
from waypost.testing.disks import Died, ShortDisk
from waypost.testing.stores import files_of, fresh_store, fsck, git, put

KEY = SigningKey.generate()
LIMITS = Limits(seal_bytes=64 * 1024)
BEFORE = 3
"""Numbers that are acknowledged before the first point; the last two of them lie in a killed host's journal."""
LAST = 9


@pytest.fixture(name="template", scope="module")
def _template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, CutDisk]:
    """A repository that wants recovery and then a merge, and a disk that the whole script went through."""
    folder = tmp_path_factory.mktemp("power")
    store = fresh_store(folder / "template.git", KEY, limits=LIMITS)
    for number in range(FAN - 2):
        put(store, {f"old/{number}": b"%d" % number * 300})
        store.seal()
    for number in range(1, BEFORE + 1):
        put(store, {f"d/{number}": b"%d" % number * 200})
        store.flush()
        if number == 1:
            store.seal()
    store.abandon()
    shutil.copytree(folder / "template.git", folder / "count.git")
    disk = CutDisk(folder / "count.git")
    script(folder / "count.git", disk, [])
    return folder / "template.git", disk


def script(repository: Path, disk: CutDisk | ShortDisk, acknowledged: list[int]) -> None:
    """Recover, write, seal, merge, stop; each acknowledged number is durable by promise."""
    store = Store.open(repository, key=KEY, disk=disk, limits=LIMITS)
    acknowledged.extend(range(len(acknowledged) + 1, BEFORE + 1))
    try:
        for number in range(acknowledged[-1] + 1, LAST):
            put(store, {f"d/{number}": b"%d" % number * 200})
            put(store, {f"big/{number}": bytes([number]) * 3000})
            store.flush()
            acknowledged.append(number)
            if number % 2 == 0:
                store.seal()
                while store.merging:
                    store.merge()
        put(store, {f"d/{LAST}": b"9" * 200})
        store.close()
        acknowledged.append(LAST)
    finally:
        store.abandon()


def check(repository: Path, acknowledged: list[int]) -> None:
    """All that was acknowledged is there, at a flush boundary; it opens, goes on, and is sound for git."""
    view = open_readonly(repository, KEY.public)
    store = Store.open(repository, key=KEY, limits=LIMITS)
    shown = sorted(int(name) for name in store.entries("d"))
    assert shown == list(range(1, len(shown) + 1))
    assert max(acknowledged, default=BEFORE) <= len(shown) <= LAST
    for number in shown:
        assert store.read(f"d/{number}") == b"%d" % number * 200
    assert len(store.entries("big")) == len([number for number in shown if BEFORE < number < LAST])
    assert files_of(store) == {path: view.read(path) for path in files_of(store)}
    put(store, {"after": b"goes on"})
    while store.merging:
        store.merge()
    store.close()
    assert fsck(repository) == ""
    assert git(repository, "cat-file", "blob", "log:after") == "goes on"
    assert [p.name for p in (repository / "waypost").iterdir()] == ["journal"]


def cut_at(
    template: Path, folder: Path, at: int, chances: tuple[random.Random | None, ...], *, second: int = 0
) -> None:
    """The power goes at one point; with ``second``, again at that point of the recovery from it."""
    repository = folder / "r.git"
    shutil.copytree(template, repository)
    disk = CutDisk(repository, at=at, half=at % 2 == 0)
    acknowledged: list[int] = []
    with pytest.raises(Died):
        script(repository, disk, acknowledged)
    for chance in chances:
        left = folder / "left.git"
        disk.leave(left, chance)
        if second:
            again = CutDisk(left, at=second)
            with pytest.raises(Died):
                script(left, again, list(acknowledged))
            left = folder / "again.git"
            again.leave(left, chance)
        check(left, acknowledged)
        shutil.rmtree(folder / "left.git")
        shutil.rmtree(folder / "again.git", ignore_errors=True)
    shutil.rmtree(repository)


def test_a_power_cut_at_any_point_takes_nothing_that_was_acknowledged(
    template: tuple[Path, CutDisk], tmp_path: Path
) -> None:
    """Contents, names, and the order of both: some points here, each with what was synced only, or a mixture."""
    source, whole = template
    assert whole.points > 120
    for at in range(2, whole.points + 1, 13):
        cut_at(source, tmp_path, at, (None if at % 2 else random.Random(at),))


def test_a_second_power_cut_in_the_recovery_takes_nothing_either(
    template: tuple[Path, CutDisk], tmp_path: Path
) -> None:
    """What a recovery has done so far is no better synced than anything else."""
    source, whole = template
    for at in range(7, whole.points + 1, 37):
        cut_at(source, tmp_path, at, (random.Random(at),), second=1 + at % 19)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_no_power_cut_at_all_takes_anything(template: tuple[Path, CutDisk], tmp_path: Path) -> None:
    """Every point, with mixtures, and a second cut in each recovery."""
    source, whole = template
    for at in range(1, whole.points + 1):
        cut_at(source, tmp_path, at, (None, *(random.Random(at * 7 + seed) for seed in range(6))))
        for second in range(1 + at % 3, 24, 3):
            cut_at(source, tmp_path, at, (None, random.Random(at * second)), second=second)


def test_a_disk_that_lies_about_names_is_found_out(template: tuple[Path, CutDisk], tmp_path: Path) -> None:
    """So that the tests above mean something: where syncs of directories do nothing, what was acknowledged is lost."""

    class Lying(CutDisk):
        def sync_directory(self, path: str) -> None:
            self.point("sync-directory", path)

    source, whole = template
    shutil.copytree(source, tmp_path / "r.git")
    disk = Lying(tmp_path / "r.git", at=whole.points)
    acknowledged: list[int] = []
    with pytest.raises(Died):
        script(tmp_path / "r.git", disk, acknowledged)
    disk.leave(tmp_path / "left.git")
    with pytest.raises((Damaged, AssertionError)):
        check(tmp_path / "left.git", acknowledged)


def lapse_at(template: Path, folder: Path, lapse: int) -> None:
    """A sync fails once and then pretends; the host starts again, writes, and then the power goes."""
    repository, left = folder / "r.git", folder / "left.git"
    shutil.copytree(template, repository)
    disk = CutDisk(repository, lapse=lapse)
    acknowledged: list[int] = []
    try:
        script(repository, disk, acknowledged)
    except FlushFailed:
        store = Store.open(repository, key=KEY, disk=disk, limits=LIMITS)
        shown = len(store.entries("d"))
        assert max(acknowledged, default=BEFORE) <= shown
        acknowledged = list(range(1, shown + 1))
        store.abandon()
        disk.leave(left)
        check(left, acknowledged)
        shutil.rmtree(left)
        if shown < LAST:
            script(repository, disk, acknowledged)
    disk.leave(left)
    check(left, acknowledged)
    shutil.rmtree(left)
    shutil.rmtree(repository)


def test_a_sync_that_fails_once_and_then_succeeds_proves_nothing(
    template: tuple[Path, CutDisk], tmp_path: Path
) -> None:
    """In a flush, a seal, a merge or a recovery: what was acknowledged is there after the power went."""
    source, whole = template
    for lapse in whole.syncs[1::8]:
        lapse_at(source, tmp_path, lapse)


@pytest.mark.torture
@pytest.mark.timeout(1800)
def test_no_sync_that_fails_once_takes_anything(template: tuple[Path, CutDisk], tmp_path: Path) -> None:
    """Every sync of the script."""
    source, whole = template
    for lapse in whole.syncs:
        lapse_at(source, tmp_path, lapse)


@pytest.mark.parametrize("most", [1000, 4095])
def test_writes_that_are_taken_in_part_are_gone_on_with(
    template: tuple[Path, CutDisk], tmp_path: Path, most: int
) -> None:
    """The operating system may take fewer bytes than it was given, and say so: no error, and no hole."""
    shutil.copytree(template[0], tmp_path / "r.git")
    disk = ShortDisk(most)
    acknowledged: list[int] = []
    script(tmp_path / "r.git", disk, acknowledged)
    assert disk.short > 10
    check(tmp_path / "r.git", acknowledged)

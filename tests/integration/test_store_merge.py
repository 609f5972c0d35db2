"""Merging packs on a real disk: sound for git at every point, killed at every point, and nothing of it leaks."""

import errno
import logging
import random
import shutil
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec.structs import replace

from substrate.files.disk import Disk
from substrate.packs.merging import FAN, LEVELS
from substrate.packs.packindex import FIRST_BYTES, PackIndex
from substrate.signing.keys import SigningKey
from substrate.storage.readview import open_readonly
from substrate.storage.store import Store
from waypost.model.limits import DEFAULT, Limits
from waypost.testing.disks import Died, DyingDisk, FailingDisk, HookedDisk
from waypost.testing.stores import files_of, fresh_store, fsck, git, put

KEY = SigningKey.generate()
LIMITS = Limits(seal_bytes=64 * 1024)


def write(store: Store, number: int, random_: random.Random) -> None:
    """A flush and a seal: some files anew, some as they were before, so that packs have objects in common."""
    for _ in range(3):
        names = [f"{random_.randrange(3)}/{random_.randrange(40):02d}" for _ in range(4)]
        put(store, {f"d/{name}": b"%d" % random_.randrange(4) * 90 for name in names}, subject=f"write {number}")
    if number % 5 == 0:
        put(store, {"big.jsonl": random_.randbytes(70_000), "raw": random_.randbytes(300_000)})
    store.flush()
    store.seal()


def merge_all(store: Store) -> int:
    """Make every step that there is to make; how many."""
    steps = 0
    while store.merging:
        store.merge()
        steps += 1
    return steps


def packs_of(repository: Path) -> list[Path]:
    return sorted((repository / "objects" / "pack").glob("*.pack"))


def check_packs(repository: Path) -> None:
    """Every pack is sound for git, holds nothing twice, and nothing else lies about."""
    assert fsck(repository) == ""
    for pack in packs_of(repository):
        assert git(repository, "verify-pack", str(pack)) == ""
        assert pack.with_suffix(".keep").exists()
        index = PackIndex(pack.with_suffix(".idx").read_bytes())
        oids = [entry.oid for entry in index]
        assert [oid for first in range(FIRST_BYTES) for oid in index.oids(first)] == oids
        assert len(oids) == len(set(oids)) == int.from_bytes(pack.read_bytes()[8:12])
    assert "garbage: 0\n" in git(repository, "count-objects", "-v")
    assert [p.name for p in (repository / "waypost").iterdir()] == ["journal"]


@pytest.fixture(name="template", scope="module")
def _template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Five packs, four of them of one level and with objects in common, closed; the next start merges all."""
    path = tmp_path_factory.mktemp("merge") / "template.git"
    random_ = random.Random(3)
    store = fresh_store(path, KEY, limits=LIMITS)
    put(store, {"kept": b"k"})
    for _ in range(FAN):
        write(store, 5, random_)
    store.close()
    assert len(packs_of(path)) == FAN + 1
    return path


@pytest.mark.parametrize("seed", range(2))
def test_merged_packs_hold_every_object_once(tmp_path: Path, seed: int) -> None:
    """What several packs hold is copied once, deltas find their bases, and the whole history stays readable."""
    random_ = random.Random(seed)
    store = fresh_store(tmp_path / "r.git", KEY, limits=LIMITS)
    sealed: Counter[bytes] = Counter()
    known: set[Path] = set()
    for number in range(1, 40):
        write(store, number, random_)
        for pack in set(packs_of(tmp_path / "r.git")) - known:
            sealed.update(entry.oid for entry in PackIndex(pack.with_suffix(".idx").read_bytes()))
        merge_all(store)
        known = set(packs_of(tmp_path / "r.git"))
    assert max(sealed.values()) > 1, "no two packs had anything in common"
    assert len(known) <= LEVELS * (FAN - 1)
    before = files_of(store)
    store.close()
    check_packs(tmp_path / "r.git")
    again = Store.open(tmp_path / "r.git", key=KEY, limits=LIMITS)
    assert files_of(again) == before
    again.close()
    git(tmp_path, "clone", "-q", "r.git", "copy")


def test_many_merges_leak_neither_descriptors_nor_maps(tmp_path: Path) -> None:
    """A long-lived handle would keep every pack that has gone open: many merges leave as many open as the first did."""
    random_ = random.Random(5)
    store = fresh_store(tmp_path / "r.git", KEY, limits=LIMITS)
    merges = 0
    seen = []
    for number in range(1, 75):
        write(store, number, random_)
        for name in ("kept", "raw", "d/0/01"):
            store.read(name)
        if merge_all(store):
            merges += 1
            files_of(store)
            seen.append((sum(1 for _ in Path("/proc/self/fd").iterdir()), _maps_of(tmp_path)))
    assert merges > 15
    assert max(fds for fds, _ in seen) <= seen[0][0] + 3 * LEVELS
    assert all("(deleted)" not in line for line in _maps_of(tmp_path))
    assert not [link for link in _open_files() if link.startswith(str(tmp_path)) and link.endswith("(deleted)")]
    store.close()
    check_packs(tmp_path / "r.git")


def _maps_of(folder: Path) -> list[str]:
    lines = Path("/proc/self/maps").read_text().splitlines()
    return [line for line in lines if str(folder) in line and "/pack-" in line]


def _open_files() -> Iterator[str]:
    for link in Path("/proc/self/fd").iterdir():
        try:
            yield str(link.readlink())
        except FileNotFoundError:
            continue


def test_a_reader_of_before_the_merge_reads_on(template: Path, tmp_path: Path) -> None:
    """Another process opened the packs that have gone; what it looks for is in the new one."""
    shutil.copytree(template, tmp_path / "r.git")
    view = open_readonly(tmp_path / "r.git", KEY.public)
    store = Store.open(tmp_path / "r.git", key=KEY, limits=LIMITS)
    assert merge_all(store) > 3
    assert len(packs_of(tmp_path / "r.git")) == 1
    assert view.read("kept") == b"k"
    assert {path: view.read(path) for path in files_of(store)} == files_of(store)
    store.close()


def merging(repository: Path, disk: Disk) -> Store:
    """Open, write something, merge, write again; stop cleanly. Raises what the disk raises."""
    store = Store.open(repository, key=KEY, disk=disk, limits=LIMITS)
    put(store, {"during": b"1"})
    store.flush()
    merge_all(store)
    put(store, {"during": b"2"})
    store.close()
    return store


def points(template: Path, folder: Path) -> range:
    """The points that lie within the merge."""
    shutil.copytree(template, folder / "count.git")
    disk = HookedDisk()
    merging(folder / "count.git", disk)
    named = [at for at, (_, path) in enumerate(disk.passed, 1) if "merge.pack" in path]
    last = max(at for at, (operation, path) in enumerate(disk.passed, 1) if operation == "unlink" and "/pack/" in path)
    return range(named[0], last + 2)


def check(repository: Path, expected: dict[str, bytes]) -> None:
    """All that was acknowledged is there; a start brings the packs in order, and merges in the end."""
    assert {path: open_readonly(repository, KEY.public).read(path) for path in expected} == expected
    store = Store.open(repository, key=KEY, limits=LIMITS)
    assert {path: store.read(path) for path in expected} == expected
    merge_all(store)
    assert {path: store.read(path) for path in expected} == expected
    store.close()
    check_packs(repository)
    assert len(packs_of(repository)) <= FAN


def die_in_merges(template: Path, folder: Path, step: int, second: tuple[int, ...]) -> None:
    """Die at every ``step``-th point of a merge, then in the recovery of that, too."""
    expected = _expected(template, folder)
    for at in points(template, folder)[::step]:
        repository = folder / f"{at}.git"
        shutil.copytree(template, repository)
        with pytest.raises(Died):
            merging(repository, DyingDisk(at, half=at % 2 == 0))
        for again in second:
            try:
                Store.open(repository, key=KEY, disk=DyingDisk(again), limits=LIMITS).abandon()
            except Died:
                continue
        check(repository, expected)
        shutil.rmtree(repository)


def _expected(template: Path, folder: Path) -> dict[str, bytes]:
    shutil.copytree(template, folder / "expected.git")
    store = Store.open(folder / "expected.git", key=KEY, limits=LIMITS)
    expected = files_of(store)
    store.close()
    return expected


def test_a_death_in_a_merge_loses_nothing(template: Path, tmp_path: Path) -> None:
    """Killed at every thirteenth point, at each one in the long run; half of them with the write half done."""
    die_in_merges(template, tmp_path, 13, ())


def test_a_second_death_in_the_recovery_of_a_merge_loses_nothing(template: Path, tmp_path: Path) -> None:
    """The next start finishes what was begun, and may be killed as well."""
    die_in_merges(template, tmp_path, 19, (2, 5, 8, 11))


@pytest.mark.torture
@pytest.mark.timeout(1800)
def test_no_death_at_all_in_a_merge_or_its_recovery_loses_anything(template: Path, tmp_path: Path) -> None:
    """The whole grid."""
    shutil.copytree(template, tmp_path / "first")
    die_in_merges(tmp_path / "first", tmp_path, 1, ())
    shutil.rmtree(tmp_path / "expected.git")
    shutil.rmtree(tmp_path / "count.git")
    die_in_merges(template, tmp_path, 1, tuple(range(1, 40)))


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_an_error_in_a_merge_harms_nobody(template: Path, tmp_path: Path, error: int) -> None:
    """The merge is given up, the store writes on, and the next start merges again."""
    fail_in_merges(template, tmp_path, error, 19)


@pytest.mark.torture
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_no_error_at_all_in_a_merge_harms_anybody(template: Path, tmp_path: Path, error: int) -> None:
    """The whole grid."""
    fail_in_merges(template, tmp_path, error, 1)


def fail_in_merges(template: Path, folder: Path, error: int, step: int) -> None:
    """Fail once at every ``step``-th point of a merge."""
    expected = _expected(template, folder)
    for at in points(template, folder)[::step]:
        repository = folder / f"{at}.git"
        shutil.copytree(template, repository)
        disk = FailingDisk(at, error)
        disk.lasting = False
        merging(repository, disk)
        check(repository, expected | {"during": b"2"})
        shutil.rmtree(repository)


@pytest.mark.parametrize("part", ["pack", "idx"])
def test_damage_is_never_copied_under_a_fresh_checksum(
    template: Path, tmp_path: Path, part: str, caplog: pytest.LogCaptureFixture
) -> None:
    """A pack that isn't as it was written is left alone, with all others, and the log names it."""
    repository = tmp_path / "r.git"
    shutil.copytree(template, repository)
    store = Store.open(repository, key=KEY, limits=LIMITS)
    spoilt = max(packs_of(repository), key=lambda pack: pack.stat().st_size).with_suffix(f".{part}")
    raw = bytearray(spoilt.read_bytes())
    raw[len(raw) // 2] ^= 1
    spoilt.chmod(0o644)
    spoilt.write_bytes(raw)
    before = sorted(packs_of(repository))
    with caplog.at_level(logging.ERROR):
        merge_all(store)
    assert "aren't merged" in caplog.text
    assert not store.merging
    assert sorted(packs_of(repository)) == before
    put(store, {"goes": b"on"})
    store.flush()
    store.abandon()


def test_the_bytes_of_a_step_are_bounded(template: Path, tmp_path: Path) -> None:
    """Between two steps others write: no step writes more than half a megabyte, or syncs twice."""
    shutil.copytree(template, tmp_path / "r.git")
    disk = HookedDisk()
    store = Store.open(tmp_path / "r.git", key=KEY, disk=disk, limits=replace(DEFAULT, seal_bytes=64 * 1024))
    while store.merging:
        before = len(disk.passed)
        store.merge()
        writes = [path for operation, path in disk.passed[before:] if operation == "write" and "merge.pack" in path]
        assert len(writes) <= 2
    store.close()


@pytest.mark.parametrize("restarted", [True, False])
def test_an_index_whose_pack_a_power_cut_has_taken_is_relied_on_by_nobody(
    template: Path,
    tmp_path: Path,
    restarted: bool,  # noqa: FBT001 - a case
) -> None:
    """Two names, given between two syncs, and only the second is there: the same merge is made again, and whole."""
    shutil.copytree(template, tmp_path / "made.git")
    expected = _expected(template, tmp_path)
    first = Store.open(tmp_path / "made.git", key=KEY, limits=LIMITS)
    merge_all(first)
    first.close()
    made = max(packs_of(tmp_path / "made.git"), key=lambda pack: pack.stat().st_size)
    repository = tmp_path / "r.git"
    shutil.copytree(template, repository)
    store = None if restarted else Store.open(repository, key=KEY, limits=LIMITS)
    for suffix in ("keep", "idx"):
        shutil.copy(made.with_suffix(f".{suffix}"), repository / "objects" / "pack")
    if store is not None:
        merge_all(store)
        store.close()
    check(repository, expected)

"""Every point at which the store touches the disk: it dies there, or the disk fails there, and nothing is lost."""

import errno
import os
import shutil
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest

from substrate.errors import Broken, FlushFailed, NotARepository, SecondWriter
from substrate.files.disk import Disk
from substrate.signing.keys import SigningKey
from substrate.storage.readview import open_readonly
from substrate.storage.store import Store
from waypost.model.limits import Limits
from waypost.testing.disks import Died, DyingDisk, FailingDisk, RecordingDisk, power_cut
from waypost.testing.stores import files_of, fresh_store, fsck, git, put

KEY = SigningKey.generate()
LIMITS = Limits(seal_bytes=64 * 1024)


def script(store: Store, acknowledged: list[int]) -> None:
    """Three flushes with a seal between, then a clean stop; each acknowledged number is durable by promise."""
    for number in range(1, 6):
        put(store, {f"d/{number}": b"%d" % number * 200})
        store.flush()
        acknowledged.append(number)
        if number in (2, 4):
            store.seal()
    put(store, {"d/6": b"6"}, deletes=("d/1",))
    store.close()
    acknowledged.append(6)


def points_of(folder: Path) -> tuple[int, int]:
    """How many points opening passes, and how many opening and the whole script."""
    fresh_store(folder / "count.git", KEY, limits=LIMITS).close()
    disk = Disk()
    store = Store.open(folder / "count.git", key=KEY, disk=disk, limits=LIMITS)
    opened = disk.points
    script(store, [])
    return opened, disk.points


def check(repository: Path, acknowledged: list[int], *, upto: int = 6) -> None:
    """After a crash: a prefix of what was written, with all that was acknowledged, sound for git, open for more."""
    view = open_readonly(repository, KEY.public)
    store = Store.open(repository, key=KEY, limits=LIMITS)
    shown = {name for name in store.entries("d") if name.isdecimal()}
    last = max((int(name) for name in shown), default=0)
    first = 2 if last == 6 else 1
    assert shown == {str(number) for number in range(first, last + 1)}
    assert max(acknowledged, default=0) <= last <= upto
    assert files_of(store) == {path: view.read(path) for path in files_of(store)}
    put(store, {"after": b"goes on"})
    store.close()
    assert fsck(repository) == ""
    assert git(repository, "cat-file", "blob", "log:after") == "goes on"
    leftovers = [p.name for p in (repository / "waypost").iterdir() if p.name != "journal"]
    assert leftovers == []


@pytest.fixture(name="template", scope="module")
def _template(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, int, int]:
    folder = tmp_path_factory.mktemp("faults")
    opened, total = points_of(folder)
    fresh_store(folder / "template.git", KEY, limits=LIMITS).close()
    return folder / "template.git", opened, total


def test_a_death_at_any_point_loses_nothing(template: tuple[Path, int, int], tmp_path: Path) -> None:
    """From the first allocation to the last unlink of the stop, at every fourth point; half of them die half-way."""
    source, _, total = template
    assert total > 60
    die_at(source, tmp_path, range(1, total + 1, 4))


@pytest.mark.torture
def test_a_death_at_each_of_the_other_points_loses_nothing(template: tuple[Path, int, int], tmp_path: Path) -> None:
    """So that every single one is met."""
    source, _, total = template
    die_at(source, tmp_path, range(2, total + 1, 2))


def die_at(source: Path, folder: Path, points: range) -> None:
    """Die at each of these points, and look at what is left."""
    for at in points:
        repository = folder / f"{at}.git"
        shutil.copytree(source, repository)
        acknowledged: list[int] = []
        with pytest.raises(Died):
            script(Store.open(repository, key=KEY, disk=DyingDisk(at, half=at % 8 < 4), limits=LIMITS), acknowledged)
        check(repository, acknowledged)
        shutil.rmtree(repository)


def die_twice(template: tuple[Path, int, int], folder: Path, step: int, seconds: range, *, first: int = 0) -> None:
    """Die at every ``step``-th point from the ``first`` on, then at each of the ``seconds`` of the recovery."""
    source, opened, total = template
    crashed = folder / "crashed.git"
    for at in range(opened + 2 + first, total, step):
        shutil.rmtree(crashed, ignore_errors=True)
        shutil.copytree(source, crashed)
        acknowledged: list[int] = []
        with pytest.raises(Died):
            script(Store.open(crashed, key=KEY, disk=DyingDisk(at), limits=LIMITS), acknowledged)
        for second in seconds:
            with suppress(Died):
                Store.open(crashed, key=KEY, disk=DyingDisk(second, half=second % 2 == 0), limits=LIMITS).abandon()
        check(crashed, acknowledged)


def test_a_second_death_in_recovery_loses_nothing(template: tuple[Path, int, int], tmp_path: Path) -> None:
    """Recovery may be killed at any of its points, and again, and still goes on."""
    die_twice(template, tmp_path, 9, range(1, 30, 4))


@pytest.mark.torture
@pytest.mark.timeout(1800)
def test_no_two_deaths_lose_anything(template: tuple[Path, int, int], tmp_path: Path) -> None:
    """Each second death alone, after every fourth first one, beginning elsewhere each time."""
    for second in range(1, 36):
        die_twice(template, tmp_path, 4, range(second, second + 1), first=1 + second % 4)


@pytest.mark.soak
@pytest.mark.timeout(3600)
def test_no_two_deaths_at_all_lose_anything(template: tuple[Path, int, int], tmp_path: Path) -> None:
    """The whole grid."""
    for second in range(1, 36):
        die_twice(template, tmp_path, 1, range(second, second + 1))


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_an_error_at_any_point_breaks_the_store_and_loses_nothing(
    template: tuple[Path, int, int], tmp_path: Path, error: int
) -> None:
    """A failed write is never retried on the same file: the store refuses everything, and can be opened again."""
    fail_at_points(template, tmp_path, error, 8)


@pytest.mark.torture
@pytest.mark.timeout(1800)
@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
def test_no_error_at_all_loses_anything(template: tuple[Path, int, int], tmp_path: Path, error: int) -> None:
    """The whole grid."""
    fail_at_points(template, tmp_path, error, 1)


def fail_at_points(template: tuple[Path, int, int], folder: Path, error: int, step: int) -> None:
    """Fail at every ``step``-th point."""
    source, opened, total = template
    for at in range(1, total + 1, step):
        repository = folder / f"{at}.git"
        shutil.copytree(source, repository)
        acknowledged: list[int] = []
        store: Store | None = None
        try:
            store = Store.open(repository, key=KEY, disk=FailingDisk(at, error), limits=LIMITS)
            script(store, acknowledged)
        except FlushFailed as failed:
            assert failed.errno == error  # noqa: PT017 - the else branch is a case of its own
            if store is not None:
                with pytest.raises(Broken):
                    store.read("d/1")
                store.close()
        else:
            assert error == errno.ENOSPC, f"point {at} of {opened} to {total} swallowed an error"
        check(repository, acknowledged)
        shutil.rmtree(repository)


def test_a_killed_creation_leaves_nothing_under_the_name(tmp_path: Path) -> None:
    """Either the repository is there with flush 1, or a later ``create`` makes it."""
    for at in range(1, 200):
        path = tmp_path / f"{at}.git"
        try:
            store = fresh_store(path, KEY, disk=DyingDisk(at), limits=LIMITS)
        except Died:
            again = Store.open(path, key=KEY) if path.exists() else fresh_store(path, KEY)
            assert again.flush_number == 1
            again.close()
        else:
            store.abandon()
            assert at > 30
            return
    pytest.fail("creating a repository never ended")


def test_a_creation_on_a_full_disk_leaves_nothing_under_the_name(tmp_path: Path) -> None:
    """Also where all is durable and only its seal waits for space: what had no branch would be damaged for ever."""
    for at in range(1, 200):
        path, disk = tmp_path / f"{at}.git", FailingDisk(at, errno.ENOSPC)
        try:
            store = fresh_store(path, KEY, disk=disk, limits=LIMITS)
        except FlushFailed as failed:
            assert failed.errno == errno.ENOSPC  # noqa: PT017 - the else branch is a case of its own
            again = Store.open(path, key=KEY) if path.exists() else fresh_store(path, KEY)
            assert again.flush_number == 1
            again.close()
        else:
            store.abandon()
            Store.open(path, key=KEY).close()
            if disk.points < at:
                assert at > 30
                return
    pytest.fail("creating a repository never ended")


def test_a_full_disk_lets_running_work_go_on(tmp_path: Path) -> None:
    """No next journal can be allocated: the seal waits, and flushes go into what is reserved (storage §2)."""
    store = fresh_store(tmp_path / "r.git", KEY, limits=LIMITS)
    store.abandon()
    disk = FailingDisk(0, errno.ENOSPC)
    disk.at = 10**9
    store = Store.open(tmp_path / "r.git", key=KEY, disk=disk, limits=LIMITS)
    disk.at = disk.points
    room = store.room
    for number in range(40):
        put(store, {f"d/{number:02d}": bytes(20_000)})
        store.flush()
        store.seal()
    assert 0 < store.room < room - 40 * 1000
    assert git(tmp_path / "r.git", "log", "--format=%s", "-1", "log").strip() == "create the repository"
    disk.at = 10**9
    store.seal()
    assert len(git(tmp_path / "r.git", "ls-tree", "--name-only", "log:d").split()) == 40
    assert store.room > room - 2000
    store.close()


def test_a_disk_that_is_full_for_good_fails_the_flush(tmp_path: Path) -> None:
    """What doesn't fit into the reserved space isn't acknowledged; what was before it is kept."""
    disk = FailingDisk(10**9, errno.ENOSPC)
    store = fresh_store(tmp_path / "r.git", KEY, disk=disk, limits=LIMITS)
    put(store, {"d/1": b"fits"})
    store.flush()
    disk.at = disk.points
    put(store, {"d/2": os.urandom(3_000_000)})
    with pytest.raises(FlushFailed) as caught:
        store.flush()
    assert caught.value.errno == errno.ENOSPC
    with pytest.raises(Broken):
        store.flush()
    store.close()
    again = Store.open(tmp_path / "r.git", key=KEY)
    assert again.entries("d") == ("1",)
    again.close()


def test_a_second_writer_is_found_at_the_seal(tmp_path: Path) -> None:
    """The branch isn't where we left it: stop, and say where it stands."""
    store = fresh_store(tmp_path / "r.git", KEY)
    put(store, {"a": b"1"})
    store.seal()
    git(tmp_path / "r.git", "update-ref", "refs/heads/log", "log~1")
    put(store, {"a": b"2"})
    with pytest.raises(SecondWriter) as caught:
        store.seal()
    assert caught.value.found == git(tmp_path / "r.git", "rev-parse", "log").strip()
    with pytest.raises(Broken):
        store.flush()
    store.close()
    assert not (tmp_path / "r.git" / "refs" / "heads" / "log.lock").exists()


@pytest.mark.parametrize("flushes", [1, 3, 5])
def test_a_power_cut_leaves_exactly_what_was_acknowledged(tmp_path: Path, flushes: int) -> None:
    """Played back: the journal ends where the last returned sync left it, whatever was written after that."""
    disk = RecordingDisk(tmp_path / "record")
    store = fresh_store(tmp_path / "r.git", KEY, disk=disk, limits=LIMITS)
    for number in range(1, flushes + 1):
        put(store, {f"d/{number}": b"%d" % number})
        store.flush()
        if number == 2:
            store.seal()
    put(store, {"d/9": b"written, never synced"})
    disk.sync_data = lambda *_: (_ for _ in ()).throw(Died())  # type: ignore[method-assign]  # the cord is pulled here
    with pytest.raises(Died):
        store.flush()
    store.abandon()
    disk.close()
    power_cut(tmp_path / "r.git", tmp_path / "record", tmp_path / "cut.git")
    check(tmp_path / "cut.git", list(range(1, flushes + 1)), upto=flushes)
    assert open_readonly(tmp_path / "r.git", KEY.public).read("d/9") is not None


def test_what_is_in_the_way_is_never_cleared_for_a_new_repository(tmp_path: Path) -> None:
    """Only the rest of a killed creation of the same name is."""
    (tmp_path / "r.git").write_text("a file")
    with pytest.raises(NotARepository):
        fresh_store(tmp_path / "r.git", KEY)
    assert (tmp_path / "r.git").read_text() == "a file"


def _lock_of_a_killed_seal(repository: Path) -> None:
    aside, lock = repository / "waypost" / "ref.new", repository / "refs" / "heads" / "log.lock"
    aside.write_text("1" * 40)
    os.link(aside, lock)


def _lock_of_another(repository: Path) -> None:
    (repository / "refs" / "heads" / "log.lock").write_text("")


@pytest.mark.parametrize(("make", "stays"), [(_lock_of_a_killed_seal, False), (_lock_of_another, True)])
def test_only_our_own_stale_lock_is_removed(tmp_path: Path, make: Callable[[Path], None], stays: bool) -> None:  # noqa: FBT001 - a column of the table
    """Known by its inode, so a lock that a live git holds is never taken away (case: ref lock left by a crash)."""
    fresh_store(tmp_path / "r.git", KEY).close()
    make(tmp_path / "r.git")
    Store.open(tmp_path / "r.git", key=KEY).close()
    assert (tmp_path / "r.git" / "refs" / "heads" / "log.lock").exists() == stays


def test_what_is_written_to_a_repository_that_was_removed_is_acknowledged_to_nobody(tmp_path: Path) -> None:
    """Its journal is open still, and takes all that is written, until nobody has it open any more."""
    place = tmp_path / "r.git"
    store = fresh_store(place, KEY)
    put(store, {"d/1": b"1"})
    store.flush()
    place.rename(moved := tmp_path / "moved.git")
    put(store, {"d/2": b"2"})
    store.flush()  # it was moved, and nothing is lost
    shutil.rmtree(moved)
    put(store, {"d/3": b"3"})
    with pytest.raises(FlushFailed, match="removed"):
        store.flush()
    store.abandon()

"""How far a repository had got is known outside of it: a start refuses a history in which that isn't."""

import contextlib
import errno
import os
import shlex
import shutil
import subprocess
import tempfile
from pathlib import Path

import pytest

from substrate import SigningKey, layout
from substrate.errors import BadNote, OthersFolder, RolledBack, Unsigned
from substrate.files.disk import Disk
from substrate.signing.epoch import decode_noted
from substrate.storage.heads import Heads, read_note
from substrate.storage.store import Store
from waypost.model.limits import Limits
from waypost.testing.disks import Died, DyingDisk, HookedDisk
from waypost.testing.stores import fresh_store, git, put

KEY = SigningKey.generate()
SMALL = Limits(seal_bytes=64 * 1024)


class House:
    """A repository and, beside it, what is remembered of it."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.path, self.note = folder, folder / "r.git", folder / "heads" / "r.json"
        fresh_store(self.path, KEY, limits=SMALL).close()

    def start(self, disk: Disk | None = None) -> Store:
        """What a host does."""
        heads = Heads(self.note, disk or Disk())
        return Store.open(self.path, key=KEY, disk=disk, limits=SMALL, heads=heads)

    def write(self, *names: str, disk: Disk | None = None) -> None:
        """A life of the host: one flush for each name, sealed at the end."""
        store = self.start(disk)
        for name in names:
            put(store, {f"grants/{name}.json": b"{}"})
            store.flush()
        store.close()

    def copy(self, name: str) -> Path:
        """The repository as it is now."""
        return Path(shutil.copytree(self.path, self.folder / name, symlinks=True))

    def put_back(self, copy: Path) -> None:
        """What somebody does who restores a folder from a snapshot."""
        shutil.rmtree(self.path)
        copy.rename(self.path)


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_each_seal_is_noted_and_so_is_the_first_start(house: House) -> None:
    """What was made before anybody took notes is taken as it is, once; from then on the file follows each seal."""
    assert read_note(house.note) is None
    house.write("a")
    first = read_note(house.note)
    house.write("b", "c")
    second = read_note(house.note)
    assert first is not None
    assert second is not None
    assert (first.flush, second.flush) == (2, 4)
    assert git(house.path, "rev-parse", "log").strip() == second.head
    assert house.note.stat().st_mode & 0o777 == 0o600
    assert decode_noted(house.note.read_bytes()) == second


def test_a_repository_that_was_set_back_stays_shut_and_as_it_is(house: House) -> None:
    """Each of its signatures is good: only what is known outside tells that acknowledged writes are missing."""
    house.write("a")
    old = house.copy("old")
    house.write("b", "c")
    house.put_back(old)
    before = sorted(path for path in house.path.rglob("*"))
    with pytest.raises(RolledBack) as refused:
        house.start()
    assert "history went back from flush 4 to flush 2" in refused.value.message
    assert "waypost accept-rollback" in refused.value.hint
    assert sorted(path for path in house.path.rglob("*")) == before
    with pytest.raises(RolledBack):
        house.start()


def test_another_line_from_the_same_past_is_no_descendant(house: House) -> None:
    """A copy that went on by itself is longer, perhaps, and signed, and still isn't what was acknowledged here."""
    house.write("a")
    twin = House.__new__(House)
    twin.folder, twin.path, twin.note = house.folder, house.copy("twin"), house.folder / "other.json"
    house.write("b")
    twin.write("x", "y", "z")
    house.put_back(twin.path)
    with pytest.raises(RolledBack, match="history was replaced: flush 3 is not in it"):
        house.start()


def test_a_branch_that_was_moved_alone_can_be_put_back(house: House) -> None:
    """The objects are all there: the message has the one command that loses nothing, and it works."""
    house.write("a", "b")
    newest = git(house.path, "rev-parse", "log").strip()
    git(house.path, "update-ref", "refs/heads/log", git(house.path, "rev-parse", "log~1").strip())
    with pytest.raises(RolledBack) as refused:
        house.start()
    command = refused.value.hint.partition("`")[2].partition("`")[0]
    assert newest in command
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull}
    subprocess.run(shlex.split(command), check=True, env=environment)
    house.write("c")


def test_a_packed_ref_of_old_doesn_t_come_back_to_life(house: House) -> None:
    """`git pack-refs`, more commits, and the loose ref is lost: git would show the old value without a word."""
    house.write("a")
    git(house.path, "pack-refs", "--all")
    house.write("b")
    (house.path / "refs" / "heads" / "log").unlink()
    with pytest.raises(RolledBack, match="history went back from flush 3 to flush 2"):
        house.start()


def test_unsigned_commits_on_top_are_refused_by_name(house: House) -> None:
    """The host never builds on a commit that it hasn't signed."""
    house.write("a")
    tree = git(house.path, "rev-parse", "log^{tree}").strip()
    who = ("-c", "user.name=m", "-c", "user.email=m@x")
    forged = git(house.path, *who, "commit-tree", tree, "-p", "log", "-m", "hi").strip()
    git(house.path, "update-ref", "refs/heads/log", forged)
    with pytest.raises(Unsigned, match=forged):
        house.start()


@pytest.mark.parametrize("raw", [b"", b"{}", b"\xff", b'{"repository":"r","epoch":1,"flush":0}', b"[" * 5000])
def test_a_note_that_can_t_be_read_is_said_and_not_forgotten(house: House, raw: bytes) -> None:
    """Whoever can spoil the file must not get the same as somebody who never had one."""
    house.write("a")
    house.note.write_bytes(raw)
    with pytest.raises(BadNote, match=r"r\.json"):
        house.start()
    assert house.note.read_bytes() == raw


def test_a_note_of_another_repository_is_told_apart(house: House) -> None:
    """A repository that was replaced by another one of the same host verifies from end to end."""
    house.write("a")
    raw = house.note.read_bytes()
    house.note.write_bytes(raw.replace(b'"repository":"', b'"repository":"not'))
    with pytest.raises(RolledBack, match="another repository"):
        house.start()


@pytest.mark.parametrize("stride", [4, pytest.param(1, marks=[pytest.mark.torture, pytest.mark.timeout(900)])])
def test_a_death_at_any_point_of_two_lives_never_looks_like_a_rollback(tmp_path: Path, stride: int) -> None:
    """The note goes first, the branch follows and is never ahead: in between the journal has what it speaks of."""
    at, died = 1, True
    while died:
        place = tmp_path / str(at)
        place.mkdir()
        house = House(place)
        house.write("first")
        died = False
        try:
            house.write("a", "b", disk=DyingDisk(at))
        except Died:
            died = True
            noted = read_note(house.note)
            assert noted is not None
            # Else somebody could take away just those flushes that the note doesn't know yet.
            assert noted.flush >= int(git(house.path, "log", "-1", "--format=%B", "log").split()[-2])
            with contextlib.suppress(Died):
                house.write("c", disk=DyingDisk(1 + at % 7))
        house.write("d")
        noted = read_note(house.note)
        assert noted is not None
        assert noted.head == git(house.path, "rev-parse", "log").strip()
        at += stride
    assert at > 30


def test_a_layout_that_has_the_files_knows_them() -> None:
    """The grammar of names is one table: what this writes must stand in it."""
    assert layout.place_of(layout.EPOCH).kind == "epoch"
    assert layout.place_of(layout.SIGNER).kind == "signer"


def test_a_lock_that_nobody_lets_go_of_is_said_once_with_what_to_do(
    house: House, caplog: pytest.LogCaptureFixture
) -> None:
    """A git that died holding it looks like one that works: writing goes on, and a person is told, once."""
    store = house.start()
    lock = house.path / "refs" / "heads" / "log.lock"
    lock.write_bytes(b"")
    for name in ("a", "b", "c"):
        put(store, {f"grants/{name}.json": b"{}"})
        store.seal()
    said = [record.getMessage() for record in caplog.records if "log.lock" in record.getMessage()]
    assert len(said) == 1
    assert f"rm {lock}" in said[0]
    lock.unlink()
    store.close()
    assert git(house.path, "log", "--format=%s", "log").count("put files") == 3


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can be somebody else")
def test_a_repository_of_another_user_is_said_with_both_names(house: House) -> None:
    """Neither "the disk refused" nor a traceback: whose it is, who we are, and the two ways on."""
    house.write("a")
    temporary = Path(tempfile.gettempdir())
    for path in (house.folder, *house.folder.parents):
        if temporary in path.parents:  # one folder more where the tests run in parallel
            path.chmod(0o755)
    said, into = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            os.setuid(65534)
            house.start()
        except OthersFolder as refused:
            os.write(into, f"{refused.message}\n{refused.hint}".encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    os.close(into)
    with os.fdopen(said) as pipe:
        words = pipe.read()
    assert "it belongs to root, and this host runs as" in words
    assert "chown -R" in words


def test_only_what_is_durable_is_noted(house: House) -> None:
    """A flush that was on its way when the host was killed is noted after recovery has synced it, not before.

    Else a power cut in between would look like a rollback, although nobody was ever told of that flush.
    """
    store = house.start()
    put(store, {"grants/a.json": b"{}"})
    store.flush()
    store.abandon()
    noted = read_note(house.note)
    passed = HookedDisk()
    house.start(passed).abandon()
    names = [operation for operation, path in passed.passed if path.endswith(("r.new", "recovered.pack", "r.json"))]
    assert names.index("sync") < names.index("write-file")
    assert noted != read_note(house.note)


def test_no_space_for_the_note_is_no_reason_to_stop(house: House, caplog: pytest.LogCaptureFixture) -> None:
    """It may lie on another disk than the repository: the seal waits, and writing goes on until there is space."""

    class Full(Disk):
        full = True

        def point(self, operation: str, path: str) -> None:
            super().point(operation, path)
            if self.full and operation == "write-file" and path.endswith("r.new"):
                raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    disk = Full()
    disk.full = False
    store = house.start(disk)
    disk.full = True
    for name in ("a", "b"):
        put(store, {f"grants/{name}.json": b"{}"})
        store.seal()
    assert store.unsealed
    assert "no space to note" in caplog.text
    before = read_note(house.note)
    assert before is not None
    assert git(house.path, "rev-parse", "log").strip() == before.head
    disk.full = False
    store.seal()
    assert not store.unsealed
    store.close()
    after = read_note(house.note)
    assert after is not None
    assert after.flush == before.flush + 2

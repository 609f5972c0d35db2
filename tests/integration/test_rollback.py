"""``accept-rollback``: the only way on after a history went back, in an epoch that says what is missing, held."""

import shutil
from pathlib import Path

import pytest

from substrate import SigningKey, layout
from substrate.errors import BranchLocked, NothingSigned, NothingToAccept, RepositoryGone, RolledBack, Unsigned
from substrate.files.disk import Disk
from substrate.signing.epoch import decode_epoch
from substrate.state import decode_format, decode_state
from substrate.storage.heads import Heads, read_note
from substrate.storage.store import Store
from substrate.upkeep.rollback import Accepted, accept
from waypost.host.datadir.directory import DataDir, lay_out
from waypost.host.reading.deployment_why import sentence_of
from waypost.host.reading.offline import Offline
from waypost.model.limits import Limits
from waypost.testing.disks import Died, DyingDisk
from waypost.testing.stores import AT, fresh_store, fsck, git, put

KEY = SigningKey.generate()
SMALL = Limits(seal_bytes=64 * 1024)


class House:
    """A repository whose host was at flush 4 when somebody put the folder back that it had at flush 2."""

    def __init__(self, folder: Path) -> None:
        self.path, self.note = folder / "r.git", folder / "heads" / "r.json"
        self.new = folder / "new"
        if self.path.exists():
            return
        fresh_store(self.path, KEY, limits=SMALL).close()
        self.write("a")
        old = shutil.copytree(self.path, folder / "old", symlinks=True)
        self.write("b", "c")
        self.path.rename(self.new)
        old.rename(self.path)

    def start(self, disk: Disk | None = None) -> Store:
        """What a host does."""
        return Store.open(self.path, key=KEY, limits=SMALL, heads=Heads(self.note, disk or Disk()))

    def write(self, *names: str) -> None:
        """A life of the host: one flush for each name, sealed at the end."""
        store = self.start()
        for name in names:
            put(store, {f"grants/{name}.json": b"{}"})
            store.flush()
        store.close()

    def accept(self, disk: Disk | None = None) -> Accepted:
        """What the verb does, under the host's lock."""
        return accept(self.path, KEY, self.note, at=AT, disk=disk, limits=SMALL)

    def forge(self, *parents: str) -> str:
        """A commit of somebody who has git and the disk, and no key."""
        tree = git(self.path, "rev-parse", "log^{tree}").strip()
        who = ("-c", "user.name=m", "-c", "user.email=m@x")
        above = [word for parent in parents for word in ("-p", parent)]
        forged = git(self.path, *who, "commit-tree", tree, *above, "-m", "hi").strip()
        git(self.path, "update-ref", "refs/heads/log", forged)
        return forged


@pytest.fixture
def house(tmp_path: Path) -> House:
    return House(tmp_path)


def test_the_new_epoch_says_what_it_goes_on_from_and_what_is_missing_and_is_held(house: House) -> None:
    """Who reads the history later must find in it, signed, that something was given up, and by whose word."""
    lost = read_note(house.note)
    accepted = house.accept()
    assert accepted.lost == lost
    store = house.start()
    record = decode_epoch(store.read(layout.EPOCH) or b"")
    assert (record.epoch, record.why, record.lost) == (2, "accept-rollback", lost)
    assert (record.after.flush, record.after.epoch) == (2, 1)
    assert decode_format(store.read(layout.FORMAT) or b"").epoch == 2
    assert decode_state(store.read(layout.STATE) or b"").held == "accept-rollback"
    assert store.flush_number == 3
    assert read_note(house.note) == accepted.now == store.reached
    store.close()
    assert git(house.path, "log", "-1", "--format=%an %s", "log").strip() == (
        "hub begin epoch 2 after flush 2 of epoch 1: accept-rollback"
    )
    assert fsck(house.path) == ""


def test_what_was_given_up_can_t_come_back_behind_it(house: House) -> None:
    """The newer folder turns up again: by then it is the one that isn't what was noted."""
    house.accept()
    shutil.rmtree(house.path)
    house.new.rename(house.path)
    with pytest.raises(RolledBack, match="history was replaced: flush 3 is not in it"):
        house.start()


def test_nothing_is_accepted_where_nothing_went_back(house: House) -> None:
    """An epoch is begun once for each loss: the second time there is nothing to accept, and nothing is written."""
    house.accept()
    before = git(house.path, "rev-parse", "log")
    with pytest.raises(NothingToAccept):
        house.accept()
    assert git(house.path, "rev-parse", "log") == before


@pytest.mark.parametrize("merge", [False, True])
def test_unsigned_commits_are_set_aside_and_stay_readable(house: House, merge: bool) -> None:  # noqa: FBT001 - a case
    """They are evidence: the branch goes back to what the host signed, and a ref of their own keeps them."""
    house.accept()
    signed = git(house.path, "rev-parse", "log").strip()
    first = house.forge(signed)
    forged = house.forge(first, signed) if merge else house.forge(first)
    with pytest.raises(Unsigned, match=forged):
        house.start()
    accepted = house.accept()
    assert (accepted.unsigned, accepted.lost) == (forged, None)
    assert git(house.path, "rev-parse", f"refs/unsigned/{forged}", "log~1").split() == [forged, signed]
    store = house.start()
    record = decode_epoch(store.read(layout.EPOCH) or b"")
    assert (record.epoch, record.unsigned) == (3, forged)
    store.close()
    assert fsck(house.path) == ""


def test_a_repository_that_nobody_here_has_signed_is_not_taken_over(house: House) -> None:
    """Another host's repository, or a forged one, isn't ours to go on with."""
    house.forge()
    forged = git(house.path, "rev-parse", "log")
    with pytest.raises(NothingSigned, match="none of its commits is signed by SHA256:"):
        house.accept()
    assert git(house.path, "rev-parse", "log") == forged


def test_a_repository_that_is_gone_is_given_up_by_name_only(house: House) -> None:
    """Never taken for a new one by itself; when it is given up, what was known of it is kept beside."""
    house.path.rename(house.path.with_name("away"))
    lost = read_note(house.note)
    with pytest.raises(RepositoryGone, match="it had reached flush 4"):
        Heads(house.note, Disk()).begin(str(house.path))
    assert house.accept() == Accepted(now=None, lost=lost)
    assert read_note(house.note) is None
    (kept,) = house.note.parent.glob("r.gone-*")
    assert read_note(kept) == lost
    with pytest.raises(NothingToAccept):
        house.accept()


def test_a_held_lock_is_named_and_nothing_is_half_done(house: House) -> None:
    """The file of a git that died looks like that of one that works: only a person can tell."""
    house.accept()
    signed = git(house.path, "rev-parse", "log").strip()
    house.forge(signed)
    lock = house.path / "refs" / "heads" / "log.lock"
    lock.write_bytes(b"")
    with pytest.raises(BranchLocked, match=r"log\.lock"):
        house.accept()
    lock.unlink()
    house.accept()


@pytest.mark.parametrize("stride", [4, pytest.param(1, marks=[pytest.mark.torture, pytest.mark.timeout(900)])])
@pytest.mark.parametrize("unsigned", [False, True])
def test_a_death_at_any_point_leaves_it_shut_or_accepted_and_the_next_try_ends_it(
    tmp_path: Path,
    unsigned: bool,  # noqa: FBT001 - a case
    stride: int,
) -> None:
    """Whatever was done, the same command goes on, and the epoch is begun once."""
    first = tmp_path / "first"
    first.mkdir()
    house = House(first)
    if unsigned:
        house.forge(git(house.path, "rev-parse", "log").strip())
    at, died = 1, True
    while died:
        house = House(Path(shutil.copytree(first, tmp_path / str(at))))
        died = False
        for disk in (DyingDisk(at), DyingDisk(1 + at % 5), Disk()):
            try:
                house.accept(disk)
                break
            except Died:
                died = True
            except NothingToAccept:
                break
        store = house.start()
        record = decode_epoch(store.read(layout.EPOCH) or b"")
        assert (record.epoch, record.after.flush) == (2, 2)
        assert store.flush_number == 3
        store.close()
        at += stride
    assert at > 15


@pytest.mark.parametrize("left", ["older", "another", "nothing", "newer"])
def test_without_a_host_it_is_said_too_that_something_is_missing(house: House, tmp_path: Path, left: str) -> None:
    """The host that found it has ended: "start one, and it goes on where it was" would send somebody in a circle."""
    data = DataDir(tmp_path / "data")
    (tmp_path / "data").mkdir()
    lay_out(data)
    data.public_key.write_text(f"{KEY.public.line()}\n")
    data.head("r").parent.mkdir(exist_ok=True)
    shutil.copy(house.note, data.head("r"))
    if left == "another":
        data.head("r").write_text(house.note.read_text().replace('"repository":"', '"repository":"f'))
    if left != "nothing":
        (house.path if left == "older" else house.new).rename(data.repo("r"))
    (found,) = Offline(data).situations()
    if left == "newer":
        assert (found.state, found.code) == ("", "")
        return
    why = {"older": "from flush 4 to flush 2", "another": "another repository", "nothing": "is gone"}[left]
    assert (found.state, found.code) == ("down", "rolled-back")
    if left == "nothing":
        with pytest.raises(RepositoryGone, match="it had reached flush 4"):
            Offline(data).runs("r", 1)
    assert why in found.reason
    sentence = sentence_of(found)
    assert sentence.needed
    assert why in sentence.waits_for
    assert sentence.command == "waypost accept-rollback r"

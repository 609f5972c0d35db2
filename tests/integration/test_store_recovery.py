"""Recovery by flush: what counts, what is a torn tail, and what is never touched (storage §3)."""

import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from substrate.errors import Damaged, ForeignJournal, NewerFormat, NotARepository, Unsigned
from substrate.packs import pack
from substrate.packs.unpack import read_head
from substrate.signing.keys import SigningKey
from substrate.storage.readview import open_readonly
from substrate.storage.scan import Stop, scan
from substrate.storage.store import Store
from waypost.model.limits import Limits
from waypost.testing.stores import AT, REPOSITORY_ID, files_of, first_files, fresh_store, fsck, git, put

KEY = SigningKey.generate()
LIMITS = Limits(seal_bytes=64 * 1024)


@pytest.fixture(name="killed")
def _killed(tmp_path: Path) -> Path:
    """A repository whose host was killed: four flushes in the journal, the fourth of two commits."""
    store = fresh_store(tmp_path / "r.git", KEY)
    for number in (1, 2, 3):
        put(store, {f"d/{number}": b"%d" % number * 50})
        store.flush()
    put(store, {"d/4": b"4" * 50})
    put(store, {"d/5": b"5" * 50})
    store.flush()
    put(store, {"d/lost": b"never flushed"})
    store.abandon()
    return tmp_path / "r.git"


def journal_of(repository: Path) -> Path:
    """The one journal that holds something."""
    (found,) = [file for file in (repository / "waypost" / "journal").iterdir() if file.read_bytes()[12:].strip(b"\0")]
    return found


def ends_of(repository: Path) -> list[int]:
    """Where each flush of the journal ends."""
    raw = journal_of(repository).read_bytes()
    return [flush.end for flush in scan("journal", raw, KEY.public.verifies).flushes]


def everything(repository: Path) -> dict[str, bytes]:
    """Every file of the folder, to see that nothing was touched."""
    return {str(path): path.read_bytes() for path in sorted(repository.rglob("*")) if path.is_file()}


def names_in(repository: Path) -> tuple[str, ...]:
    """What the recovered store shows in ``d``; the repository is closed and sound afterwards."""
    store = Store.open(repository, key=KEY)
    names = store.entries("d")
    store.close()
    assert fsck(repository) == ""
    return names


def test_every_flushed_write_survives_a_kill(killed: Path) -> None:
    """And what was only visible is gone, everywhere alike."""
    assert open_readonly(killed, KEY.public).entries("d") == ("1", "2", "3", "4", "5")
    assert names_in(killed) == ("1", "2", "3", "4", "5")
    assert not list((killed / "waypost" / "journal").iterdir())


@pytest.mark.parametrize("stride", [3, pytest.param(1, marks=pytest.mark.torture)])
def test_a_tail_torn_at_any_byte_leaves_whole_flushes(killed: Path, stride: int) -> None:
    """Cut in the last flush, then zeros: its two commits count both or not at all."""
    raw, (*_, before, end) = journal_of(killed).read_bytes(), ends_of(killed)
    for cut in (*range(before, end - 64, stride), *range(end - 64, end)):
        found = scan("journal", raw[:cut] + bytes(900), KEY.public.verifies)
        assert [flush.head.number for flush in found.flushes] == [2, 3, 4]
        assert found.stop is (Stop.END if cut == before else Stop.TORN)
        assert not [head for head in found.later if head.number > 5]


@pytest.mark.parametrize("share", [0.0, 0.01, 0.3, 0.6, 0.9, 0.999])
def test_a_torn_tail_is_cut_and_logged(killed: Path, share: float, caplog: pytest.LogCaptureFixture) -> None:
    """The next start shows whole flushes, says what it cut, and leaves a sound repository."""
    journal, (*_, before, end) = journal_of(killed), ends_of(killed)
    raw = journal.read_bytes()
    cut = before + int((end - before) * share)
    journal.write_bytes(raw[:cut] + bytes(len(raw) - cut))
    view = open_readonly(killed, KEY.public)
    assert (view.entries("d"), view.flush_number) == (("1", "2", "3"), 4)
    with caplog.at_level(logging.WARNING):
        assert names_in(killed) == ("1", "2", "3")
    assert ("torn tail" in caplog.text) == (cut > before)


@pytest.mark.parametrize("garbage", [b"\xff" * 300, b"\x9d\x01" + b"x" * 300, b"\x31" + b"\0" * 9 + b"y", b"PACK" * 99])
def test_garbage_behind_the_last_flush_is_a_tail(killed: Path, garbage: bytes) -> None:
    """Reserved space that a crash left with something else in it."""
    journal, end = journal_of(killed), ends_of(killed)[-1]
    raw = journal.read_bytes()
    journal.write_bytes(raw[:end] + garbage + raw[end + len(garbage) :])
    assert names_in(killed) == ("1", "2", "3", "4", "5")


def test_a_truncated_journal_is_a_tail(killed: Path) -> None:
    """The file may also end early: a copy, or another file system."""
    journal, ends = journal_of(killed), ends_of(killed)
    journal.write_bytes(journal.read_bytes()[: ends[1] + 33])
    assert names_in(killed) == ("1", "2")


@pytest.mark.parametrize("place", [0, 1])
@pytest.mark.parametrize("damage", [b"\0" * 40, b"\xff" * 40, b"\0"])
def test_damage_before_an_acknowledged_flush_stops_everything(killed: Path, place: int, damage: bytes) -> None:
    """Flush k+2 is there, so k+1 was acknowledged: nothing is cut, and the message names file, offset and heads."""
    journal, ends = journal_of(killed), ends_of(killed)
    raw = bytearray(journal.read_bytes())
    start = (pack.HEADER, *ends)[place] + 5
    raw[start : start + len(damage)] = damage
    journal.write_bytes(raw)
    before = everything(killed)
    for look in (lambda: Store.open(killed, key=KEY), lambda: open_readonly(killed, KEY.public)):
        with pytest.raises(Damaged) as caught:
            look()
        assert (caught.value.file, caught.value.offset) == (str(journal), (pack.HEADER, *ends)[place])
        assert [head.split()[1] for head in caught.value.heads] == [str(place + 1), str(place + 3)]
    assert everything(killed) == before


@pytest.mark.parametrize("place", [0, 1, 2, 3])
@pytest.mark.parametrize("bit", [0x10, 0x20, 0x40])
def test_an_entry_of_another_kind_is_never_taken_in(killed: Path, place: int, bit: int) -> None:
    """A checksum covers an entry's content and not its kind: a blob that reads as a tree has another id."""
    journal, ends = journal_of(killed), [pack.HEADER, *ends_of(killed)]
    raw = bytearray(journal.read_bytes())
    raw[ends[place]] ^= bit
    journal.write_bytes(raw)
    before = everything(killed)
    if place == 3 and bit != 0x10:  # of the very last flush: a torn tail, as far as anybody can tell
        assert names_in(killed) == ("1", "2", "3")
        return
    with pytest.raises(Damaged):
        Store.open(killed, key=KEY)
    assert everything(killed) == before


def test_a_tree_made_from_another_base_is_never_taken_in(tmp_path: Path) -> None:
    """Nor how far back a delta's base lies: any tree of the same size would do."""
    store = fresh_store(tmp_path / "r.git", KEY)
    for number in range(40):
        put(store, {f"d/{number % 5}{'n' * 40}": b"%d" % number})
        store.flush()
    store.abandon()
    journal = journal_of(tmp_path / "r.git")
    raw = journal.read_bytes()
    entries = scan("journal", raw, KEY.public.verifies).entries
    deltas = [entry.offset for entry in entries if raw[entry.offset] >> 4 & 7 == pack.OFS_DELTA]
    stops = set()
    ids = [entry.oid for entry in entries]
    for at in deltas[::13]:
        _, _, body = read_head(raw, at)
        for other in [entry.offset for entry in entries if entry.offset < at][-60::3]:
            distance = pack.distance(at - other)
            changed = raw[:body] + distance + raw[body + len(distance) :]
            found = scan("journal", changed, KEY.public.verifies)
            if [entry.oid for entry in found.entries] != ids:  # another base may give the same tree
                stops.add(found.stop)
    assert stops == {Stop.TORN, Stop.SPOILT}


def test_damage_in_the_very_last_flush_can_t_be_told_from_a_torn_tail(killed: Path) -> None:
    """Documented in storage §3: the flush is cut, although its own head can still be found."""
    journal, ends = journal_of(killed), ends_of(killed)
    raw = bytearray(journal.read_bytes())
    raw[ends[2] + 5] ^= 0xFF
    journal.write_bytes(raw)
    assert names_in(killed) == ("1", "2", "3")


def test_a_journal_of_another_repository_is_foreign(killed: Path, tmp_path: Path) -> None:
    """Copied in by mistake, signed by the same host: reported, never guessed at."""
    other = Store.create(
        tmp_path / "o.git", repository_id="other", key=KEY, first=first_files("other"), at=AT, limits=LIMITS
    )
    put(other, {"theirs": b"x"})
    other.flush()
    other.abandon()
    shutil.copy(journal_of(tmp_path / "o.git"), killed / "waypost" / "journal" / "00000009.jpack")
    before = everything(killed)
    with pytest.raises(ForeignJournal):
        Store.open(killed, key=KEY)
    assert everything(killed) == before


def test_another_host_s_flush_is_never_built_on(killed: Path) -> None:
    """The journal is whole but signed by a key that isn't ours: damage, not a tail."""
    before = everything(killed)
    with pytest.raises(Unsigned):
        Store.open(killed, key=SigningKey.generate())
    assert everything(killed) == before


@pytest.mark.parametrize("merge", [False, True])
def test_a_commit_that_somebody_put_onto_the_branch_is_named(killed: Path, merge: bool) -> None:  # noqa: FBT001 - a case
    """A stock git may write refs, also a merge; the host never builds on what it hasn't signed."""
    settings = ["-c", "user.name=x", "-c", "user.email=x@x"]
    first = git(killed, *settings, "commit-tree", "-p", "log", "-m", "mine", "log^{tree}").strip()
    above = [first] if merge else []
    flags = [flag for parent in ("log", *above) for flag in ("-p", parent)]
    theirs = git(killed, *settings, "commit-tree", *flags, "-m", "theirs", "log^{tree}").strip()
    git(killed, "update-ref", "refs/heads/log", theirs)
    with pytest.raises(Unsigned, match="has not signed"):
        Store.open(killed, key=KEY)


@pytest.fixture(name="enclosed", scope="module")
def _enclosed(tmp_path_factory: pytest.TempPathFactory) -> bytes:
    """What somebody might send by mail: a journal of another deployment of this host, with heads far ahead of ours."""
    folder = tmp_path_factory.mktemp("other")
    first = first_files("other")
    other = Store.create(folder / "o.git", repository_id="other", key=KEY, first=first, at=AT, limits=LIMITS)
    for number in range(60):
        put(other, {"theirs": b"%d" % number})
        other.flush()
    other.abandon()
    journal = journal_of(folder / "o.git").read_bytes()
    return journal[: scan("journal", journal, KEY.public.verifies).end]


@pytest.mark.parametrize("padding", [0, 50, 200_000])
def test_heads_within_a_mail_are_no_heads_of_ours(killed: Path, enclosed: bytes, padding: int) -> None:
    """A crash that tears the flush of such a mail leaves a torn tail like any other: nothing was damaged."""
    store = Store.open(killed, key=KEY)
    mail = b"From: a@example.com\n\n" + bytes(padding // 2) + enclosed + b"x" * padding
    put(store, {"mail/1.eml": mail, "d/6": b"6"})
    store.flush()
    store.abandon()
    raw = journal_of(killed).read_bytes()
    (flush,) = scan("journal", raw, KEY.public.verifies).flushes
    begin = raw.index(mail[:40]) - 20
    for cut in [*range(begin, flush.end, max(1, (flush.end - begin) // 300)), flush.end - 1]:
        found = scan("journal", raw[:cut] + bytes(900), KEY.public.verifies)
        assert (found.flushes, found.later) == ((), ()), cut
    cut = raw.index(mail[:40]) + len(mail) - 3
    journal_of(killed).write_bytes(raw[:cut] + bytes(len(raw) - cut))
    assert names_in(killed) == ("1", "2", "3", "4", "5")


@pytest.mark.parametrize("at", [1, 3, 9, 4000, -1])
def test_heads_within_a_mail_hide_no_damage(killed: Path, enclosed: bytes, at: int) -> None:
    """The mail's flush was acknowledged, as another one follows: one flipped bit anywhere in it is damage."""
    store = Store.open(killed, key=KEY)
    mail = b"From: a@example.com\n\n" + enclosed + b"\xb0\xff\xff\x7f\x78\x01\x00\xff\xff\x00\x00" * 9
    put(store, {"mail/1.eml": mail})
    store.flush()
    for number in (6, 7):
        put(store, {f"d/{number}": b"%d" % number})
        store.flush()
    store.abandon()
    raw = bytearray(journal_of(killed).read_bytes())
    ends = [pack.HEADER, *ends_of(killed)]
    raw[ends[0] + at if at >= 0 else ends[1] - 1] ^= 0x10
    journal_of(killed).write_bytes(raw)
    before = everything(killed)
    with pytest.raises(Damaged) as caught:
        Store.open(killed, key=KEY)
    assert caught.value.offset == pack.HEADER
    assert caught.value.heads[1].startswith("flush 7 ")
    assert everything(killed) == before


def test_a_journal_that_history_has_already_is_deleted(killed: Path) -> None:
    """An unlinked journal may come back after a power cut; so may one of long ago."""
    journal = journal_of(killed)
    raw = journal.read_bytes()
    store = Store.open(killed, key=KEY)
    put(store, {"d/6": b"6"})
    store.close()
    journal.write_bytes(raw)
    assert names_in(killed) == ("1", "2", "3", "4", "5", "6")
    assert not journal.exists()


@pytest.mark.parametrize("content", [b"", b"PACK", bytes(40), pack.header(0), pack.header(0) + bytes(5000)])
def test_an_empty_journal_is_deleted(killed: Path, content: bytes) -> None:
    """Allocated in advance, or torn while it was made: nothing was ever flushed into it."""
    spare = killed / "waypost" / "journal" / "00000007.jpack"
    spare.write_bytes(content)
    assert names_in(killed) == ("1", "2", "3", "4", "5")
    assert not spare.exists()


def test_flushes_go_on_in_the_next_journal(tmp_path: Path) -> None:
    """Somebody holds the ref's lock, so that sealed journals pile up; then the host is killed."""
    repository = tmp_path / "r.git"
    store = fresh_store(repository, KEY)
    lock = repository / "refs" / "heads" / "log.lock"
    lock.write_bytes(b"")
    tip = git(repository, "rev-parse", "log")
    for number in range(1, 4):
        put(store, {f"d/{number}": b"%d" % number})
        store.seal()
    put(store, {"d/4": b"4"})
    store.flush()
    assert store.read("d/2") == b"2"
    assert git(repository, "rev-parse", "log") == tip
    store.abandon()
    assert open_readonly(repository, KEY.public).entries("d") == ("1", "2", "3", "4")

    held = Store.open(repository, key=KEY)
    assert lock.exists(), "a lock that isn't ours is never removed"
    assert held.entries("d") == ("1", "2", "3", "4")
    put(held, {"d/5": b"5"})
    held.seal()
    assert git(repository, "rev-parse", "log") == tip
    lock.unlink()
    assert [held.wants_seal(at) for at in (0.0, 10.0)] == [False, True]
    held.seal()
    assert git(repository, "cat-file", "blob", "log:d/5") == "5"
    held.close()
    assert names_in(repository) == ("1", "2", "3", "4", "5")


def test_a_reader_touches_nothing(killed: Path) -> None:
    """No byte, no name, no time stamp of the folder changes; and it sees every acknowledged write."""

    def state() -> list[tuple[str, int, int, int]]:
        return [(str(p), p.lstat().st_mtime_ns, p.lstat().st_ctime_ns, p.lstat().st_size) for p in killed.rglob("*")]

    before, files = state(), everything(killed)
    view = open_readonly(killed, KEY.public)
    assert view.read("d/5") == b"5" * 50
    assert view.read("d/lost") is None
    assert (view.flush_number, view.sealed_number, view.repository_id) == (5, 1, REPOSITORY_ID)
    assert (state(), everything(killed)) == (before, files)
    store = Store.open(killed, key=KEY)
    assert (store.head, store.flush_hash) == (view.head, view.flush_hash)
    store.close()


# --- what else may be wrong with the folder ------------------------------------------------------------------------


def _empty_ref(repository: Path) -> None:
    (repository / "refs" / "heads" / "log").write_bytes(b"")


def _missing_commit(repository: Path) -> None:
    (repository / "refs" / "heads" / "log").write_text("1" * 40 + "\n")


def _no_ref(repository: Path) -> None:
    (repository / "refs" / "heads" / "log").unlink()


def _stray_file(repository: Path) -> None:
    (repository / "waypost" / "journal" / "notes.txt").write_text("mine")


def _damaged_pack(repository: Path) -> None:
    for file in (repository / "objects" / "pack").glob("*.pack"):
        file.chmod(0o644)
        file.write_bytes(file.read_bytes()[:12] + b"\xff" * 900)


@pytest.mark.parametrize("damage", [_empty_ref, _missing_commit, _no_ref, _stray_file, _damaged_pack])
def test_a_damaged_folder_is_reported_and_left_alone(killed: Path, damage: Callable[[Path], None]) -> None:
    """Never taken for a new, empty repository: all dedup would be lost, and every mail would run again."""
    damage(killed)
    before = everything(killed)
    with pytest.raises(Damaged):
        Store.open(killed, key=KEY)
    assert everything(killed) == before


def test_a_path_without_a_repository_is_named(tmp_path: Path) -> None:
    """Missing, empty, or a stock repository: said in words."""
    (tmp_path / "empty").mkdir()
    git(tmp_path, "init", "-q", "--bare", "stock.git")
    for name in ("missing", "empty", "stock.git"):
        with pytest.raises(NotARepository, match=name):
            Store.open(tmp_path / name, key=KEY)


def test_a_newer_format_is_named(tmp_path: Path) -> None:
    """An older Waypost doesn't guess at what a later one wrote, whatever fields it added."""
    first = first_files() | {"format.json": b'{"format":1,"repository":"r","epoch":1,"deployment":"d","address":"a"}'}
    store = Store.create(tmp_path / "r.git", repository_id="r", key=KEY, first=first, at=AT)
    put(store, {"format.json": b'{"format":2,"repository":"r","shards":[1]}'})
    store.close()
    with pytest.raises(NewerFormat, match="format is 2"):
        Store.open(tmp_path / "r.git", key=KEY)


def test_recovered_files_are_byte_for_byte_what_was_flushed(killed: Path) -> None:
    """The whole tree, against what the reader without a host showed before."""
    view = open_readonly(killed, KEY.public)
    store = Store.open(killed, key=KEY)
    shown = files_of(store)
    assert shown == {path: view.read(path) for path in shown}
    assert len(shown) == 7
    store.close()


def test_more_objects_than_a_seal_takes_are_recovered_all_the_same(tmp_path: Path) -> None:
    """A seal that waited for the branch's lock, or for space, leaves more in a journal than any seal would."""
    store = fresh_store(tmp_path / "r.git", KEY)
    written = {f"d/{number // 64}/{number}": b"%d" % number for number in range(5000)}
    for leaf in range(0, 5000, 64):
        put(store, dict(list(written.items())[leaf : leaf + 64]))
        store.flush()
    assert store.wants_seal(0.0)
    store.abandon()
    store = Store.open(tmp_path / "r.git", key=KEY)
    assert {path: data for path, data in files_of(store).items() if path.startswith("d/")} == written
    store.close()
    fsck(tmp_path / "r.git")

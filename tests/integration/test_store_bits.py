"""One flipped bit in what isn't sealed: damaged, or at the very end a torn tail; never a guess (storage §3)."""

import os
import random
import shutil
from collections.abc import Iterable
from pathlib import Path

import pytest

from substrate.errors import Damaged, ForeignJournal, Unsigned
from substrate.packs import pack
from substrate.signing.keys import SigningKey
from substrate.storage.readview import open_readonly
from substrate.storage.scan import scan
from substrate.storage.store import Store
from waypost.model.limits import Limits
from waypost.testing.stores import AT, first_files, fresh_store, fsck, git, put

KEY = SigningKey.generate()
REFUSED = -1
REFUSALS = (Damaged, ForeignJournal, Unsigned)
Flushes = dict[int, tuple[int, int, int]]
"""By number: the journal's, and the first byte of the flush and the one behind it."""


def write(path: Path, *, seals: bool) -> None:
    """Nine flushes; with ``seals`` the first five lie in a finished journal: another program has the branch's lock."""
    store = fresh_store(path, KEY, limits=Limits(seal_bytes=64 * 1024))
    lock = path / "refs" / "heads" / "log.lock"
    lock.write_bytes(b"")
    for number in range(1, 10):
        put(store, {f"d/{number}": b"%d" % number * 60, "e/same": b"%d" % (number % 2)})
        store.flush()
        if seals and number == 5:
            store.seal()
    store.abandon()
    lock.unlink()
    (path / "waypost" / "ref.new").unlink(missing_ok=True)
    newest = max((path / "waypost" / "journal").iterdir())
    os.truncate(newest, len(newest.read_bytes().rstrip(b"\0")) + 5000)  # what is reserved takes long to read


def flushes_of(repository: Path) -> Flushes:
    """Where each of them lies."""
    found: Flushes = {}
    for file in sorted((repository / "waypost" / "journal").iterdir()):
        begin = pack.HEADER
        for flush in scan(str(file), file.read_bytes(), KEY.public.verifies).flushes:
            found[flush.head.number - 1] = (int(file.stem), begin, flush.end)
            begin = flush.end
    return found


@pytest.fixture(name="repositories", scope="module")
def _repositories(tmp_path_factory: pytest.TempPathFactory) -> dict[int, Path]:
    """By how many journals hold the nine flushes."""
    folder = tmp_path_factory.mktemp("bits")
    for count in (1, 2):
        write(folder / f"{count}.git", seals=count > 1)
    return {count: folder / f"{count}.git" for count in (1, 2)}


def outcome(repository: Path) -> int:
    """How many of the nine flushes a reader shows, as they were written."""
    try:
        view = open_readonly(repository, KEY.public)
    except REFUSALS:
        return REFUSED
    names = view.entries("d")
    assert names == tuple(map(str, range(1, len(names) + 1)))
    assert all(view.read(f"d/{name}") == name.encode() * 60 for name in names)
    return len(names)


def flip(source: Path, folder: Path, number: int, bits: Iterable[tuple[int, int]], *, last: bool) -> None:
    """Flip each bit (byte of the flush, bit of the byte), alone, in the flush of that number.

    A few mean nothing, such as those that fill up the byte before a stored block: then all is shown.
    """
    repository = folder / "r.git"
    shutil.copytree(source, repository)
    journal, begin, end = flushes_of(source)[number]
    file = repository / "waypost" / "journal" / f"{journal:08d}.jpack"
    file.chmod(0o644)
    raw = file.read_bytes()
    for byte, bit in bits:
        at = begin + byte % (end - begin)
        file.write_bytes(raw[:at] + bytes([raw[at] ^ 1 << bit]) + raw[at + 1 :])
        shown = outcome(repository)
        assert shown in ((REFUSED, 8, 9) if last else (REFUSED, 9)), (
            f"flush {number}, byte {at}, bit {bit}: {shown} are shown"
        )
    shutil.rmtree(repository)


def bits(chance: random.Random, count: int) -> list[tuple[int, int]]:
    """Some, anywhere."""
    return [(chance.randrange(1 << 20), chance.randrange(8)) for _ in range(count)]


PLACES = [(1, 1), (1, 5), (1, 8), (1, 9), (2, 1), (2, 5), (2, 6), (2, 9)]
"""How many journals, and the flush: first, middle, last but one, last; with two, the ends of each."""


@pytest.mark.parametrize(("count", "number"), PLACES)
def test_a_flipped_bit_is_never_guessed_at(
    repositories: dict[int, Path], tmp_path: Path, count: int, number: int
) -> None:
    """Every flush but the last is known to have been acknowledged; the last may count as torn, and never as other."""
    flip(repositories[count], tmp_path, number, bits(random.Random(count * 10 + number), 8), last=number == 9)


@pytest.mark.soak
@pytest.mark.timeout(3600)
@pytest.mark.parametrize(("count", "number"), PLACES)
def test_no_flipped_bit_at_all_is_guessed_at(
    repositories: dict[int, Path], tmp_path: Path, count: int, number: int
) -> None:
    """Every bit of the flush."""
    _, begin, end = flushes_of(repositories[count])[number]
    every = [(byte, bit) for byte in range(end - begin) for bit in range(8)]
    flip(repositories[count], tmp_path, number, every, last=number == 9)


@pytest.mark.parametrize("count", [1, 2])
@pytest.mark.parametrize("single", [False, True])
def test_a_flipped_bit_in_a_journal_s_first_bytes_takes_nothing(
    repositories: dict[int, Path],
    tmp_path: Path,
    count: int,
    single: bool,  # noqa: FBT001 - a case
) -> None:
    """They were synced before the first flush: also where one flush is all there is, it is no torn tail."""
    shutil.copytree(repositories[count], tmp_path / "r.git")
    found = flushes_of(tmp_path / "r.git")
    for file in sorted((tmp_path / "r.git" / "waypost" / "journal").iterdir()):
        raw = file.read_bytes()
        first = min(number for number, (journal, _, _) in found.items() if journal == int(file.stem))
        end = found[first][2]
        whole = raw[:end] + bytes(len(raw) - end) if single and count == 1 else raw
        file.chmod(0o644)
        for bit in range(0, 8 * pack.HEADER, 7):
            file.write_bytes(whole[: bit // 8] + bytes([whole[bit // 8] ^ 1 << bit % 8]) + whole[bit // 8 + 1 :])
            assert outcome(tmp_path / "r.git") in (REFUSED, 1 if whole is not raw else 9)
        file.write_bytes(raw)


def test_what_is_refused_for_a_bit_is_left_as_it_lies(repositories: dict[int, Path], tmp_path: Path) -> None:
    """The writer says the same as the reader, and touches nothing; what is taken for torn is cut, and goes on."""
    for number, opens in ((5, False), (9, True)):
        repository = tmp_path / f"{number}.git"
        shutil.copytree(repositories[2], repository)
        journal, begin, _ = flushes_of(repository)[number]
        file = repository / "waypost" / "journal" / f"{journal:08d}.jpack"
        file.chmod(0o644)
        raw = file.read_bytes()
        file.write_bytes(raw[: begin + 70] + bytes([raw[begin + 70] ^ 4]) + raw[begin + 71 :])
        before = {path: path.read_bytes() for path in repository.rglob("*") if path.is_file()}
        if opens:
            store = Store.open(repository, key=KEY)
            assert store.entries("d")[-1] == "8"
            store.close()
            assert fsck(repository) == ""
            assert git(repository, "cat-file", "blob", "log:d/8") == "8" * 60
            continue
        with pytest.raises(Damaged):
            Store.open(repository, key=KEY)
        assert before == {path: path.read_bytes() for path in repository.rglob("*") if path.is_file()}


# --- journals of another repository --------------------------------------------------------------------------------


@pytest.mark.parametrize("place", [1, 9])
@pytest.mark.parametrize("torn", [False, True])
@pytest.mark.parametrize("theirs", [KEY, SigningKey.generate()], ids=["our key", "their key"])
def test_a_journal_of_another_repository_is_refused_wherever_it_lies(
    repositories: dict[int, Path],
    tmp_path: Path,
    place: int,
    torn: bool,  # noqa: FBT001 - a case
    theirs: SigningKey,
) -> None:
    """Before ours or behind, whole or torn, of this host or of another: nothing of it is taken in, nothing deleted."""
    first = first_files("other")
    other = Store.create(tmp_path / "o.git", repository_id="other", key=theirs, first=first, at=AT)
    for number in range(3):
        put(other, {"d/1": b"%d" % number})
        other.flush()
    other.abandon()
    repository = tmp_path / "r.git"
    shutil.copytree(repositories[1], repository)
    (ours,) = (repository / "waypost" / "journal").glob("*.jpack")
    ours.rename(ours.with_name("00000005.jpack"))
    (journal,) = (
        file for file in (tmp_path / "o.git" / "waypost" / "journal").iterdir() if any(file.read_bytes()[12:])
    )
    raw = journal.read_bytes()
    if torn:
        size = len(raw.rstrip(b"\0")) - 40
        raw = raw[:size] + bytes(len(raw) - size)
    (repository / "waypost" / "journal" / f"{place:08d}.jpack").write_bytes(raw)
    before = {path: path.read_bytes() for path in repository.rglob("*") if path.is_file()}
    assert outcome(repository) == REFUSED
    with pytest.raises(REFUSALS):
        Store.open(repository, key=KEY)
    assert before == {path: path.read_bytes() for path in repository.rglob("*") if path.is_file()}

"""What a store writes, stock git reads: sound, signed, cloneable, one linear history."""

import hashlib
import shutil
from pathlib import Path

import pytest

from substrate.errors import BadObject, BadPath, Broken, NotARepository
from substrate.signing.keys import SigningKey
from substrate.storage.flush import parse_trailer
from substrate.storage.store import Store
from waypost.model.limits import Limits
from waypost.testing.stores import AT, AUTHOR, files_of, first_files, fresh_store, fsck, git, put, verify_commit


@pytest.fixture(name="key", scope="module")
def _key() -> SigningKey:
    return SigningKey.generate()


@pytest.fixture(name="store")
def _store(tmp_path: Path, key: SigningKey) -> Store:
    return fresh_store(tmp_path / "r.git", key)


def test_a_sealed_repository_is_sound_for_git(store: Store, tmp_path: Path, key: SigningKey) -> None:
    """The promise of storage: fsck --strict is clean, log and clone work, heads verify."""
    for number in range(100):
        put(
            store,
            {f"runs/a/{number:03d}.json": b"x" * number, "s/log.jsonl": b"line\n" * number},
            subject=f"e {number}",
        )
        if number % 3 == 0:
            store.flush()
    put(store, {"last": b""}, deletes=("s/",))
    store.close()
    repository = tmp_path / "r.git"
    assert fsck(repository) == ""
    assert git(repository, "rev-list", "--count", "log").strip() == "102"
    assert "Good" in verify_commit(repository, "log", key.public)
    git(tmp_path, "clone", "-q", "r.git", "copy")
    assert max(p.name for p in (tmp_path / "copy" / "runs" / "a").iterdir()) == "099.json"
    assert (tmp_path / "copy" / "last").exists()
    assert not (tmp_path / "copy" / "s").exists()
    assert git(repository, "bundle", "create", str(tmp_path / "b"), "log") is not None
    shutil.rmtree(tmp_path / "copy")


def test_a_directory_over_its_bound_is_seen(store: Store, tmp_path: Path) -> None:
    """A test of the check that every repository of these tests goes through: git itself has no such bound."""
    put(store, {f"mail/{number:03d}.eml": b"" for number in range(257)})
    store.close()
    assert fsck(tmp_path / "r.git") == "mail has 257 entries\n"


def test_only_the_last_commit_of_a_flush_is_its_head(store: Store, tmp_path: Path) -> None:
    """Number and hash stand where the signature does, and nowhere else."""
    for number in (1, 2, 3):
        put(store, {"a": b"%d" % number}, subject=f"write {number}")
    assert store.pending == 3
    store.flush()
    store.close()
    raws = [git(tmp_path / "r.git", "cat-file", "commit", f"log~{back}") for back in range(3)]
    assert [("gpgsig" in raw, "Flush: 2 " in raw) for raw in raws] == [(True, True), (False, False), (False, False)]
    assert "write 3" in raws[0]


def test_the_identities_are_principal_and_host(store: Store, tmp_path: Path, key: SigningKey) -> None:
    """Author says who wished it, committer who wrote it (decision 14); the date is the event's."""
    put(store, {"a": b""}, subject="append StepCompleted extract r1#2 to run_1")
    store.close()
    line = git(tmp_path / "r.git", "log", "-1", "--format=%an <%ae>|%cn|%ce|%ct|%at|%s", "log").strip()
    assert line == (
        f"{AUTHOR}|waypost host|{key.fingerprint}|{AT // 1000}|{AT // 1000}|append StepCompleted extract r1#2 to run_1"
    )


def test_the_flush_hash_follows_from_a_clone(store: Store, tmp_path: Path) -> None:
    """Recomputed with git alone: a file put unchanged takes no part, a directory that goes is each of its files."""
    put(store, {"d/a": b"1", "d/b": b"2", "keep": b"k"})
    store.flush()
    previous = store.flush_hash
    put(store, {"keep": b"k", "new": b"n"})
    put(store, {"d2/a": b"3"}, deletes=("d/",))
    store.flush()
    made = store.flush_hash
    store.close()
    expected = hashlib.sha256(previous.encode())
    for commit in git(tmp_path / "r.git", "rev-list", "--reverse", "log~2..log").split():
        changed = git(tmp_path / "r.git", "diff-tree", "-r", "--no-renames", "--name-status", f"{commit}~", commit)
        for line in sorted(changed.splitlines(), key=lambda line: line.split("\t")[1]):
            status, path = line.split("\t")
            if status == "D":
                expected.update(f"-{path}\0".encode())
            else:
                data = git(tmp_path / "r.git", "cat-file", "blob", f"{commit}:{path}").encode()
                expected.update(f"+{path}\0{len(data)}\0".encode() + data)
    assert made == expected.hexdigest()
    trailer = parse_trailer(git(tmp_path / "r.git", "cat-file", "commit", "log").encode())
    assert trailer is not None
    assert trailer.hash == made


def test_trees_sort_as_git_sorts(store: Store, tmp_path: Path) -> None:
    """A folder compares as if its name ended with a slash (hostile case: foo, foo.bar, foo/)."""
    put(store, {"foo/x": b"1", "foo.bar": b"1", "foo-bar": b"1", "foo0": b"1"})
    store.close()
    assert git(tmp_path / "r.git", "ls-tree", "--name-only", "log").split()[:4] == ["foo-bar", "foo.bar", "foo", "foo0"]
    assert fsck(tmp_path / "r.git") == ""


def test_commits_are_visible_before_they_are_durable(store: Store) -> None:
    """Positions count commits since opening; a flush says up to where they are durable."""
    assert put(store, {"a": b"1"}) == 1
    assert put(store, {"b/c": b"2"}) == 2
    assert (store.read("a"), store.read("b/c"), store.read("b"), store.read("x/y")) == (b"1", b"2", None, None)
    assert store.entries("b") == ("c",)
    assert store.entries("none") == ()
    assert (store.pending, store.flush_number) == (2, 1)
    assert store.flush() == 2
    assert (store.pending, store.flush_number) == (0, 2)
    assert store.flush() == 2
    store.close()


@pytest.mark.parametrize(
    ("puts", "deletes"),
    [
        ({".git/config": b""}, ()),
        ({"format.json/x": b""}, ()),
        ({"state": b""}, ()),
        ({"a": b"", "a/b": b""}, ()),
        ({}, ("nothing",)),
        ({}, ("nothing/",)),
        ({}, ("state",)),
    ],
)
def test_a_refused_commit_changes_nothing(store: Store, puts: dict[str, bytes], deletes: tuple[str, ...]) -> None:
    """Refused alone: what was visible stays, and the next commit works."""
    before = files_of(store)
    with pytest.raises(BadPath):
        put(store, {"fine": b"x", **puts}, deletes=deletes)
    assert files_of(store) == before
    assert (store.pending, put(store, {"fine": b"x"})) == (0, 1)
    store.close()


def test_an_author_can_t_inject_a_header(store: Store) -> None:
    """The principal is ours, but a subject may hold a step's name."""
    with pytest.raises(BadObject):
        store.commit(author="a\nparent 0 <b@c>", subject="x", puts={"a": b""}, at=AT)
    with pytest.raises(BadObject):
        put(store, {"a": b""}, subject="x\n\nFlush: 9 " + "a" * 64)
    assert store.pending == 0
    store.close()


def test_a_closed_store_refuses_everything(store: Store) -> None:
    """A reply after the end would be a lie."""
    store.close()
    for use in (store.flush, store.seal, lambda: store.read("a"), lambda: put(store, {"a": b""})):
        with pytest.raises(Broken):
            use()
    store.close()


def test_a_repository_is_never_made_over_another(store: Store, tmp_path: Path, key: SigningKey) -> None:
    """``create`` refuses a path that is taken, also by an empty folder."""
    store.close()
    with pytest.raises(NotARepository):
        fresh_store(tmp_path / "r.git", key)
    (tmp_path / "empty").mkdir()
    with pytest.raises(NotARepository):
        fresh_store(tmp_path / "empty", key)


def test_the_id_in_format_json_must_be_the_one_that_the_chain_begins_with(tmp_path: Path, key: SigningKey) -> None:
    """Otherwise nobody could recompute flush 1."""
    with pytest.raises(NotARepository):
        Store.create(tmp_path / "r.git", repository_id="other", key=key, first=first_files(), at=AT)


def test_a_big_file_and_many_flushes_outgrow_the_journal(tmp_path: Path, key: SigningKey) -> None:
    """A mail larger than what was reserved still goes in, and seals follow one another."""
    store = fresh_store(tmp_path / "r.git", key, limits=Limits(seal_objects=40))
    big = bytes(range(256)) * 40_000
    put(store, {"mail/big.eml": big})
    store.flush()
    assert store.read("mail/big.eml") == big
    for number in range(60):
        put(store, {f"d{number % 7}/{number:02d}": b"%d" % number})
        store.flush()
        if store.wants_seal(0.0):
            store.seal()
    shown = files_of(store)
    assert shown["mail/big.eml"] == big
    assert len(shown) == 63
    store.close()
    assert fsck(tmp_path / "r.git") == ""
    again = Store.open(tmp_path / "r.git", key=key)
    assert files_of(again) == shown
    again.close()


def test_a_seal_is_due_by_size_by_rest_and_by_age(tmp_path: Path, key: SigningKey) -> None:
    """2 s after the last flush, 5 s after the first, or at once when the journal is full (storage §3)."""
    store = fresh_store(tmp_path / "r.git", key, limits=Limits(seal_objects=30))
    assert not store.wants_seal(100.0)
    put(store, {"a": b"1"})
    store.flush()
    assert [store.wants_seal(at) for at in (200.0, 201.9, 202.0)] == [False, False, True]
    for step in range(4):
        put(store, {"a": b"again %d" % step})
        store.flush()
        assert not store.wants_seal(202.5 + step * 0.5)
    assert store.wants_seal(205.0)
    store.seal()
    assert not store.wants_seal(206.0)
    for number in range(30):
        put(store, {f"b/{number}": b""})
    store.flush()
    assert store.wants_seal(206.0)
    store.close()


def test_sealed_journals_go_away(store: Store, tmp_path: Path) -> None:
    """A journal's name goes when the branch has moved: a host that runs for months keeps two at most."""
    for number in range(5):
        put(store, {f"a/{number}": b""})
        store.seal()
        assert len(list((tmp_path / "r.git" / "waypost" / "journal").iterdir())) <= 2
    store.close()


def test_git_s_own_housekeeping_harms_nothing(store: Store, tmp_path: Path, key: SigningKey) -> None:
    """An external gc packs the refs and rewrites packs that have no .keep: ours stay, and writing goes on."""
    for number in range(20):
        put(store, {f"a/{number}": b"%d" % number})
        store.seal()
    packs = sorted((tmp_path / "r.git" / "objects" / "pack").glob("*.pack"))
    git(tmp_path / "r.git", "gc", "--prune=now", "-q")
    assert not (tmp_path / "r.git" / "refs" / "heads" / "log").exists()
    assert set(packs) <= set((tmp_path / "r.git" / "objects" / "pack").glob("*.pack"))
    put(store, {"after": b"gc"})
    store.seal()
    assert git(tmp_path / "r.git", "cat-file", "blob", "log:after") == "gc"
    store.close()
    again = Store.open(tmp_path / "r.git", key=key)
    assert again.read("a/7") == b"7"
    again.close()
    assert fsck(tmp_path / "r.git") == ""


def test_a_push_to_the_branch_is_refused(store: Store, tmp_path: Path) -> None:
    """Administrators write through the host; a commit that it hasn't signed never gets onto the branch."""
    store.close()
    git(tmp_path, "clone", "-q", "r.git", "copy")
    git(tmp_path / "copy", "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty", "-m", "mine")
    assert "rejected" in git(tmp_path / "copy", "push", "origin", "HEAD:log", check=False)

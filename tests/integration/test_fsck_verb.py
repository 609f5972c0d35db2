"""``waypost fsck`` over real repositories: clean, live, cloned, damaged; it says where, and it changes no byte."""

import json
import shutil
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pygit2
import pytest

from substrate import SigningKey, layout
from substrate.checking.fsck import Finding, Looked, fsck
from substrate.errors import NothingToSalvage
from substrate.signing.keys import PublicKey
from substrate.storage.scan import scan
from substrate.upkeep.salvage import salvage
from waypost.host.datadir.directory import DataDir, lay_out, prepare
from waypost.host.exits import Exit
from waypost.testing import cases
from waypost.testing.corrupted import Bad, World
from waypost.testing.desk import message
from waypost.testing.stores import git
from waypost.testing.verbs import verb

KEY = SigningKey.generate()
CLAIMED = layout.mail_path(7)
"""The mail that ``World`` leaves claimed."""


@pytest.fixture(name="data", scope="module")
def _data(tmp_path_factory: pytest.TempPathFactory) -> DataDir:
    """A data directory with one deployment, whose host has just been killed: the newest flush is in its journal."""
    data = prepare(tmp_path_factory.mktemp("host") / ".waypost", allow_network=True)
    lay_out(data)
    data.public_key.write_text(KEY.public.line() + "\n", encoding="ascii")
    world = World(data.repo("expenses"), KEY)
    world.desk.enqueue(message("in the journal@x"))
    world.store.flush()
    world.store.abandon()
    return data


@pytest.fixture(name="repository")
def _repository(data: DataDir, tmp_path: Path) -> Path:
    """A copy of its repository, to be spoilt."""
    return Path(shutil.copytree(data.repo("expenses"), tmp_path / "r.git"))


def everything(folder: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(path): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}


def rules(repository: Path, key: PublicKey | None = None) -> set[str]:
    """The rules that are found broken."""
    return {each.rule for each in fsck(repository, Looked(), key=key)}


def spoil(repository: Path) -> None:
    """Other bytes in the place of some of one mail, in whichever pack has it."""
    old = b"Message-ID: <claimed@x>"
    (file,) = [each for each in (repository / "objects" / "pack").glob("*.pack") if old in each.read_bytes()]
    file.chmod(0o644)
    file.write_bytes(file.read_bytes().replace(old, old.upper(), 1))


# --- clean ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("tip", [False, True])
def test_a_clean_repository_is_clean_and_untouched(data: DataDir, *, tip: bool) -> None:
    """By its deployment's name and as all of the data, the newest flush, in the journal, included."""
    before = everything(data.path)
    flags = ("--tip",) if tip else ()
    done = verb("fsck", *flags, data=data.path)
    assert (done.status, done.err) == (Exit.OK, "")
    assert done.out.startswith("expenses: clean: ")
    assert verb("fsck", "expenses", *flags, data=data.path).out == done.out
    assert everything(data.path) == before
    looked = Looked()
    assert list(fsck(data.repo("expenses"), looked, key=KEY.public, tip=tip)) == []
    assert looked.deployment == "expenses"


def test_the_journal_is_looked_into(data: DataDir, repository: Path) -> None:
    """What was acknowledged counts, sealed or not."""
    with_it, without = Looked(), Looked()
    assert list(fsck(data.repo("expenses"), with_it)) == []
    shutil.rmtree(repository / "waypost")
    assert list(fsck(repository, without)) == []
    assert with_it.commits == without.commits + 1


@pytest.mark.parametrize("bare", [True, False])
def test_a_clone_is_checked_by_its_path(repository: Path, tmp_path: Path, *, bare: bool) -> None:
    """With or without a working tree, and without a data directory."""
    git(tmp_path, "clone", "-q", *(("--bare",) if bare else ()), str(repository), str(tmp_path / "clone"))
    done = verb("fsck", str(tmp_path / "clone"), cwd=tmp_path)
    assert (done.status, done.err) == (Exit.OK, "")
    assert ": clean: " in done.out


def test_beside_a_writer_nothing_is_found(tmp_path: Path) -> None:
    """A host goes on writing, sealing and merging meanwhile; what is found is nothing."""
    world = World(tmp_path / "r.git", KEY)
    done = threading.Event()

    def check() -> list[Finding]:
        found: list[Finding] = []
        while True:
            last = done.is_set()  # so that one more check begins after the writer's last commit
            found += fsck(world.path, Looked(), key=KEY.public)
            if last:
                return found

    with ThreadPoolExecutor(1) as pool:
        findings = pool.submit(check)
        for number in range(10):
            world.desk.enqueue(message(f"meanwhile{number}@x"))
            world.store.seal()
            while world.store.merging:
                world.store.merge()
        done.set()
        assert findings.result() == []
    world.store.close()


# --- findings ---------------------------------------------------------------------------------------------------------


def test_a_finding_names_commit_rule_path_value_and_what_to_do(repository: Path, tmp_path: Path) -> None:
    """In words and in JSON."""
    shutil.rmtree(repository / "waypost")
    Bad(puts={layout.mail_path(1): b"another mail"}).write(repository)
    commit = git(repository, "rev-parse", "log").strip()
    done = verb("fsck", str(repository), cwd=tmp_path)
    assert done.status == Exit.REFUSED
    assert f"write-once: commit {commit[:12]} {layout.mail_path(1)}: a mail's bytes were changed" in done.out
    assert "  to do: " in done.out
    assert done.out.splitlines()[-1].startswith(f"{repository}: ")
    (checked,) = json.loads(verb("fsck", str(repository), "--json", cwd=tmp_path).out)["repositories"]
    found = {each["rule"]: each for each in checked["broken"]}
    assert found["write-once"]["commit"] == commit
    assert found["write-once"]["path"] == layout.mail_path(1)
    assert all(each["advice"] and each["says"] and each["value"] for each in found.values())


def test_the_tip_shows_what_is_wrong_now_and_no_history(repository: Path, tmp_path: Path) -> None:
    """A bad commit that a later one has put right is history."""
    shutil.rmtree(repository / "waypost")
    Bad(puts={layout.mail_path(1): b"another mail"}).write(repository)
    assert verb("fsck", str(repository), "--tip", cwd=tmp_path).status == Exit.REFUSED
    Bad(puts={layout.mail_path(1): message("m0@x")}).write(repository)
    assert verb("fsck", str(repository), "--tip", cwd=tmp_path).status == Exit.OK
    assert verb("fsck", str(repository), cwd=tmp_path).status == Exit.REFUSED


def test_a_link_in_a_tree_is_found(repository: Path) -> None:
    """No file system that a tree is checked out to may be led elsewhere."""
    shutil.rmtree(repository / "waypost")
    store = pygit2.Repository(str(repository))
    tip = store.references["refs/heads/log"].target
    index = pygit2.Index()
    index.read_tree(store[tip].peel(pygit2.Tree))
    index.add(pygit2.IndexEntry("link", store.create_blob(b"/etc/passwd"), pygit2.enums.FileMode.LINK))
    who = pygit2.Signature("supervisor", "supervisor@deployment.waypost", 1, 0)
    store.create_commit("refs/heads/log", who, who, "link\n", index.write_tree(store), [tip])
    assert rules(repository) == {"plain-file"}


def test_a_damaged_value_is_found_in_the_commit_that_brought_it(repository: Path) -> None:
    """And what other commits hold is checked all the same."""
    spoil(repository)
    found = list(fsck(repository, Looked(), key=KEY.public))
    assert {each.rule for each in found} == {"readable"}
    assert CLAIMED in {each.path for each in found}


def test_a_history_that_breaks_off_is_checked_from_there(repository: Path, tmp_path: Path) -> None:
    """A shallow clone says where its history begins, and the oldest tree is held against the rules as a whole."""
    git(tmp_path, "clone", "-q", "--bare", "--depth=3", f"file://{repository}", str(tmp_path / "shallow"))
    looked = Looked()
    (finding,) = fsck(tmp_path / "shallow", looked)
    assert (finding.rule, looked.commits) == ("readable", 3)


# --- what can't be looked at ------------------------------------------------------------------------------------------


def test_what_can_t_be_looked_at_is_said_in_words(data: DataDir, tmp_path: Path) -> None:
    """Exit 2, so that a script doesn't take it for a clean bill."""
    (tmp_path / "empty").mkdir()
    for what, words in (
        ("nosuch", "no deployment nosuch"),
        (str(tmp_path / "nowhere"), "no git repository lies there"),
        (str(tmp_path / "empty"), "no git repository lies there"),
    ):
        done = verb("fsck", what, data=data.path)
        assert done.status == Exit.UNSEEN
        assert words in done.err
        assert "Traceback" not in done.err
    assert verb("fsck", cwd=tmp_path).status == Exit.UNSEEN
    assert verb("fsck", "expenses", "--key", str(tmp_path / "empty"), data=data.path).status == Exit.UNSEEN


# --- salvage ----------------------------------------------------------------------------------------------------------


@pytest.fixture(name="killed")
def _killed(tmp_path: Path) -> Path:
    """A repository with four flushes in its journal, and nothing sealed since."""
    world = World(tmp_path / "k.git", KEY)
    for number in range(4):
        world.desk.enqueue(message(f"flush{number}@x"))
        world.store.flush()
    world.store.abandon()
    return tmp_path / "k.git"


def test_a_sound_repository_is_copied_whole(killed: Path, tmp_path: Path) -> None:
    """Every file of the newest flush, and every log; the repository isn't touched."""
    before = everything(killed)
    done = verb("fsck", str(killed), "--salvage", str(tmp_path / "out"), cwd=tmp_path)
    assert (done.status, done.err) == (Exit.OK, "")
    assert everything(killed) == before
    assert (tmp_path / "out" / "files" / layout.STATE).exists()
    assert b"flush3@x" in b"".join((tmp_path / "out" / "files" / "mail" / "1" / "00").joinpath(name).read_bytes()
                                   for name in ("0000000016.eml",))  # fmt: skip
    logs = sorted((tmp_path / "out" / "logs").iterdir())
    assert len(logs) == 6
    assert json.loads((tmp_path / "out" / "salvaged.json").read_bytes())["lost"] == []


def test_what_lies_before_the_damage_is_copied_and_the_journal_with_it(killed: Path, tmp_path: Path) -> None:
    """No host starts on it, because an acknowledged flush can't be read; all before that one is saved."""
    (journal,) = [file for file in (killed / "waypost" / "journal").iterdir() if file.read_bytes()[12:].strip(b"\0")]
    raw = bytearray(journal.read_bytes())
    second = scan("journal", bytes(raw), KEY.public.verifies).flushes[1]
    raw[second.end + 5 : second.end + 45] = b"\0" * 40
    journal.write_bytes(raw)
    made = salvage(killed, tmp_path / "out", KEY.public)
    assert made.journals == (journal.name,)
    assert (tmp_path / "out" / "journals" / journal.name).read_bytes() == bytes(raw)
    mails = {path.name for path in (tmp_path / "out" / "files" / "mail").rglob("*.eml")}
    assert {"0000000013.eml", "0000000014.eml"} <= mails
    assert "0000000015.eml" not in mails
    assert "readable" in rules(killed, KEY.public), "and the check says so"
    assert verb("fsck", str(killed), "--salvage", str(tmp_path / "again"), cwd=tmp_path).status == Exit.REFUSED


def test_a_spoilt_file_is_lost_alone(killed: Path, tmp_path: Path) -> None:
    """And it is named, with the reason."""
    spoil(killed)
    made = salvage(killed, tmp_path / "out", KEY.public)
    assert [each.path for each in made.lost] == [CLAIMED]
    done = verb("fsck", str(killed), "--salvage", str(tmp_path / "again"), cwd=tmp_path)
    assert done.status == Exit.REFUSED
    assert f"lost: {CLAIMED}" in done.err


def test_nothing_is_written_over_and_nothing_is_made_of_nothing(killed: Path, tmp_path: Path) -> None:
    """A folder that exists stays as it is; a repository without a readable commit says so."""
    (tmp_path / "there").mkdir()
    assert verb("fsck", str(killed), "--salvage", str(tmp_path / "there"), cwd=tmp_path).status == Exit.UNSEEN
    assert not list((tmp_path / "there").iterdir())
    for file in (killed / "objects" / "pack").iterdir():
        file.unlink()
    shutil.rmtree(killed / "waypost")
    with pytest.raises(NothingToSalvage):
        salvage(killed, tmp_path / "out")
    assert not (tmp_path / "out").exists()


# --- the hostile list of damaged repositories -------------------------------------------------------------------------


def ref(repository: Path) -> Path:
    """The branch."""
    return repository / "refs" / "heads" / "log"


def no_index(repository: Path) -> None:
    """Every pack is without one."""
    for file in (repository / "objects" / "pack").glob("*.idx"):
        file.unlink()


def bad_trailers(repository: Path) -> None:
    """The last byte of every pack."""
    for file in (repository / "objects" / "pack").glob("*.pack"):
        file.chmod(0o644)
        raw = file.read_bytes()
        file.write_bytes(raw[:-1] + bytes([raw[-1] ^ 1]))


def hostile_config(repository: Path) -> None:
    """Stock git would run it."""
    git(repository, "config", "core.fsmonitor", f"touch {repository}/pwned; false")


def stale_ref(repository: Path) -> None:
    """An older value comes back: a history that is whole, and shorter; ``verify --receipt`` and the host tell."""
    older = git(repository, "rev-parse", "log~3").strip()
    ref(repository).write_text(f"{older}\n", encoding="ascii")


DAMAGES: dict[str, tuple[Callable[[Path], object], Exit]] = {
    "ref lock left by a crash": (lambda r: ref(r).with_suffix(".lock").write_bytes(b""), Exit.OK),
    "index.lock left": (lambda r: (r / "index.lock").write_bytes(b""), Exit.OK),
    "config.lock left": (lambda r: (r / "config.lock").write_bytes(b""), Exit.OK),
    "empty loose object (event blob)": (spoil, Exit.REFUSED),
    "NUL-filled loose object": (spoil, Exit.REFUSED),
    "empty ref file": (lambda r: ref(r).write_bytes(b""), Exit.UNSEEN),
    "ref to a missing commit": (lambda r: ref(r).write_text(f"{1:040d}\n", encoding="ascii"), Exit.REFUSED),
    "stale packed ref shadows nothing": (stale_ref, Exit.OK),
    "pack index missing": (no_index, Exit.REFUSED),
    "pack with bad trailer byte": (bad_trailers, Exit.REFUSED),
    "hostile config in the data repo": (hostile_config, Exit.OK),
    "read-only objects folder": (lambda r: (r / "objects").chmod(0o555), Exit.OK),
}
"""What is done to the repository, and how the check ends. A history that is only short is for ``verify``."""

ELSEWHERE = {
    *("fanout directory removed during write", "D/F conflict of refs", "tree entry .git", "tree entry empty name"),
    *("tree sort: foo, foo.bar, foo/", "commit date before 1970", "clock goes back between commits"),
    *("author name with newline/<>", "GIT_DIR in the environment"),
}
"""Rows about writing, and not about what lies there: test_git_damage_cases has them."""


@pytest.mark.parametrize("name", DAMAGES)
def test_a_damaged_repository_is_told_in_words(name: str, repository: Path, tmp_path: Path) -> None:
    """A finding, or that it couldn't look; never a traceback, and nothing is touched or run."""
    shutil.rmtree(repository / "waypost")
    damage, status = DAMAGES[name]
    damage(repository)
    before = everything(repository)
    done = verb("fsck", str(repository), cwd=tmp_path)
    assert done.status == status, done
    assert done.out or done.err
    assert everything(repository) == before
    assert not (repository / "pwned").exists()


def test_every_damage_of_the_list_has_been_thought_about() -> None:
    """A row that is added must be looked at."""
    if not cases.available():
        pytest.skip(cases.MISSING)
    assert {row["name"] for row in cases.rows("git_damage.jsonl")} == DAMAGES.keys() | ELSEWHERE


def test_a_directory_that_can_t_be_read_is_taken_from_an_older_commit(repository: Path, tmp_path: Path) -> None:
    """And that it is older is said."""
    shutil.rmtree(repository / "waypost")
    Bad(puts={layout.mail_path(20): b"late"}).write(repository)
    tree = git(repository, "rev-parse", "log:mail/1/00").strip()
    (repository / "objects" / tree[:2] / tree[2:]).unlink()
    assert "readable" in rules(repository)
    made = salvage(repository, tmp_path / "out")
    (lost,) = made.lost
    assert (lost.path, "as of commit" in lost.why) == ("mail/1/00", True)
    assert (tmp_path / "out" / "files" / CLAIMED).exists()
    assert not (tmp_path / "out" / "files" / layout.mail_path(20)).exists()


def test_without_a_branch_the_journals_are_salvaged(killed: Path, tmp_path: Path) -> None:
    """Whatever has happened to the reference, the newest whole flush is in the journal."""
    ref(killed).unlink()
    made = salvage(killed, tmp_path / "out", KEY.public)
    assert made.flush > 1
    assert b"flush3@x" in (tmp_path / "out" / "files" / layout.mail_path(16)).read_bytes()

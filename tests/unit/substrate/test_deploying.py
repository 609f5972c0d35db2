"""Code in a repository: a tree by its hash, written once; the record of what runs; names that git can bear."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from substrate import layout
from substrate.errors import BadPath
from substrate.messages import Deploy, Refused
from substrate.operations import Change, Settled
from substrate.packs.code_names import spell, unspell
from substrate.packs.objects import check_path
from substrate.rules import Commit, Ground, judge
from substrate.rules.code import code_of
from waypost.model.code import FILE, FILES, TOTAL, Deployed, decode, deployed, encode, is_path, is_secret, tree_hash
from waypost.model.declaration import Declared
from waypost.model.errors import Invalid
from waypost.model.limits import DEFAULT
from waypost.testing import cases
from waypost.testing.desk import ADDRESS, REPOSITORY, Desk, message

CODE = {"flow.py": b"x = 1\n", "shop/__init__.py": b"", "data/two words.txt": b"data", ".gitignore": b"*.pyc"}
DECLARED = Declared(name="expenses", address=ADDRESS)


def record(files: dict[str, bytes], module: str = "flow") -> Deployed:
    """What is deployed with these files."""
    return deployed(files, root="", module=module, declared=DECLARED)


def test_a_tree_is_stored_whole_under_its_hash_and_read_back() -> None:
    """With its record, in one commit; every name as it was."""
    desk = Desk()
    change = desk.do(Deploy(record=record(CODE), files=CODE))
    assert isinstance(change, Change)
    assert change.subject == f"deploy flow as {record(CODE).tree[:12]}"
    assert code_of(desk.index, record(CODE).tree) == CODE
    found = decode(desk.tree.read(layout.DEPLOYED) or b"")
    assert (found, found.declaration, found.definition) == (record(CODE), DECLARED, DECLARED.digest())


def test_the_same_code_again_is_no_commit() -> None:
    """A host that starts anew with what is deployed writes nothing."""
    desk = Desk()
    desk.must(Deploy(record=record(CODE), files=CODE))
    assert desk.do(Deploy(record=record(CODE), files=CODE)) == Settled()


def test_going_back_to_code_that_was_deployed_writes_its_record_alone() -> None:
    """A tree stays for ever: what a run began on can be read in any clone."""
    desk = Desk()
    first, second = {"flow.py": b"1"}, {"flow.py": b"2"}
    for files in (first, second):
        desk.must(Deploy(record=record(files), files=files))
    change = desk.do(Deploy(record=record(first), files=first))
    assert isinstance(change, Change)
    assert list(change.puts) == [layout.DEPLOYED]
    assert code_of(desk.index, record(second).tree) == second


@pytest.mark.parametrize(
    "files",
    [
        {"flow.py": b"other"},
        {f"f{n}.py": b"" for n in range(FILES + 1)},
        {"large.bin": b"\0" * (FILE + 1)},
        {f"f{n}.bin": b"\0" * FILE for n in range(TOTAL // FILE + 1)},
    ],
    ids=["another tree", "too many", "too large", "too much"],
)
def test_what_is_no_tree_of_code_is_refused(files: dict[str, bytes]) -> None:
    """By the repository's owner too, whoever has looked before."""
    desk = Desk()
    named = record(CODE if len(files) == 1 and b"other" in files.values() else files)
    assert desk.code(Deploy(record=named, files=files)) == "code"
    assert desk.tree.read(layout.DEPLOYED) is None


@pytest.mark.parametrize("shown", [b"[]", b'{"schedules":[{"id":"daily","when":"soon"}]}', b'{"schedules":7}'])
def test_code_whose_schedules_cannot_be_read_is_not_deployed(shown: bytes) -> None:
    """Another version may declare them otherwise: nobody would know when it is due, so it isn't said to run."""
    desk = Desk()
    strange = msgspec.structs.replace(record(CODE), declared=msgspec.Raw(shown))
    refused = desk.do(Deploy(record=strange, files=CODE))
    assert isinstance(refused, Refused)
    assert (refused.code, layout.DEPLOYED in refused.why) == ("code", True)
    assert desk.tree.read(layout.DEPLOYED) is None


def test_a_run_names_the_tree_that_it_began_on() -> None:
    """And a tree that isn't there is named by none, once code is deployed."""
    desk = Desk()
    desk.begin()
    desk.must(Deploy(record=record(CODE), files=CODE))
    with pytest.raises(AssertionError, match="named"):
        desk.start(message("m1@x"))


names = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=12)


@given(st.lists(names, min_size=1, max_size=4).map("/".join))
def test_every_path_of_a_tree_has_one_spelling_that_git_can_bear(path: str) -> None:
    """Blanks, umlauts, dashes, dots, `.git` in any case: nothing that is in a tree makes ``git fsck`` complain."""
    if not is_path(path):
        with pytest.raises(BadPath):
            spell(path)
        return
    spelled = spell(path)
    check_path(spelled)
    assert unspell(spelled) == path
    assert layout.place_of(layout.code_path("ab" * 32, path)) == layout.Place("code", key="ab" * 32, name=path)


@given(st.text("ax%2e./-G", max_size=8))
def test_no_other_spelling_is_read(spelled: str) -> None:
    """Else two files of one tree could have one name."""
    try:
        path = unspell(spelled)
    except BadPath:
        return
    assert spell(path) == spelled


@given(st.dictionaries(names, st.binary(max_size=4), max_size=4), st.dictionaries(names, st.binary(max_size=4)))
def test_two_trees_have_two_hashes(one: dict[str, bytes], other: dict[str, bytes]) -> None:
    """Whatever order their files are named in."""
    assert tree_hash(dict(reversed(one.items()))) == tree_hash(one)
    assert (tree_hash(one) == tree_hash(other)) == (one == other)


def test_the_hash_of_a_tree_is_the_documented_one() -> None:
    """A format for ever."""
    assert tree_hash({}) == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855"
    assert tree_hash({"b": b"2\n", "a/c": b""}) == tree_hash({"a/c": b"", "b": b"2\n"})
    assert tree_hash({"a": b"1"}) == "df1190f7f39ade60e708c3d6899036b2e33ada6fed5aa8b54bb4a22e9466f11d"


@pytest.mark.parametrize(
    "name", [".env", ".env.local", "a/.env/x", "k.pem", "K.PEM", "x/server.key", "id_rsa", "id_x.py"]
)
def test_names_that_look_like_secrets(name: str) -> None:
    """In any case, in any folder."""
    assert is_secret(name)


@pytest.mark.parametrize("name", ["env.py", "keys.py", "pem.txt", "paid_x.py", "x/keyed", "idle.py"])
def test_names_that_do_not(name: str) -> None:
    """A warning that comes too often is not read."""
    assert not is_secret(name)


@pytest.mark.parametrize("raw", [b"", b"[]", b"{}", encode(record(CODE)).replace(b'"root":""', b'"root":"/etc"')])
def test_a_record_that_is_none_is_refused(raw: bytes) -> None:
    """It is read from a repository that anybody may have pushed to."""
    with pytest.raises(Invalid, match=r"state/code\.json"):
        decode(raw)


@pytest.mark.parametrize("row", cases.rows("names.tsv"), ids=lambda row: row["name(json)"][:24])
def test_a_hostile_name_is_refused_or_stands_as_another(row: dict[str, str]) -> None:
    """A file may be called what it likes; what git or a system would trip over never stands in a tree as it is."""
    name = json.loads(row["name(json)"])
    if not is_path(name) or len(name.encode()) > 80:
        with pytest.raises(BadPath):
            spell(name)
        return
    spelled = spell(name)
    check_path(spelled)
    assert unspell(spelled) == name
    if row["right_outcome"].startswith(("refuse", "encode")):
        assert spelled != name


def test_a_name_that_cannot_be_kept_is_refused_with_its_tree() -> None:
    """Whoever has looked at it before: the repository's owner looks again."""
    desk, files = Desk(), {"a/../flow.py": b""}
    assert desk.code(Deploy(record=record(files), files=files)) == "code"


def test_deployed_code_may_be_named_again_as_it_is() -> None:
    """It is what is there already: nothing was changed."""
    desk = Desk()
    desk.must(Deploy(record=record(CODE), files=CODE))
    path = layout.code_path(record(CODE).tree, "flow.py")
    ground = Ground(repository=REPOSITORY, address=ADDRESS, limits=DEFAULT)
    same = Commit(author="supervisor", puts={path: CODE["flow.py"]})
    assert judge(desk.index, same, ground).broken == ()
    other = Commit(author="supervisor", puts={path: b""})
    assert [each.rule for each in judge(desk.index, other, ground).broken] == ["write-once"]


def test_a_declaration_of_another_waypost_is_refused_in_words() -> None:
    """Its hash holds, whatever this one reads of it."""
    strange = msgspec.structs.replace(record(CODE), declared=msgspec.Raw(b'{"name":"x","colour":"red"}'))
    with pytest.raises(Invalid, match="declaration can't be read"):
        _ = decode(encode(strange)).declaration


def test_a_path_is_relative_unicode_without_control_marks() -> None:
    """What no file system or no page could show is none."""
    assert is_path("a b/ü.py")
    assert not any(map(is_path, ("", "/a", "a//b", "a/./b", "../a", "a\n", "\udcff", "a" * 1001)))

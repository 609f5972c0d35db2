"""Names, identities and commits: what may become part of a git object."""

import json

import pytest

from substrate import layout
from substrate.errors import BadObject, BadPath
from substrate.packs import objects
from waypost.testing import cases


@pytest.mark.parametrize(
    "path", ["a", "runs/1/00/x.json", ".env", "a..b", "x-rf", "Readme", "00", "a" * 255, "grants/%2egit.json", "@,+=%_"]
)
def test_an_ordinary_path_is_allowed(path: str) -> None:
    """What the layout and ordinary code folders use."""
    objects.check_path(path)


@pytest.mark.parametrize(
    "path",
    [
        *("", "/", "/a", "a/", "a//b", ".", "..", "a/../b", "a/.", ".git", "a/.GIT/b", ".git.", ".gitmodules"),
        *("git~1", "a b", "a\\b", "a\0b", "a\nb", "a:b", "caf\u00e9", "-rf", "a/-rf", "trailing.", "a" * 256, "a*"),
        "x/" * 600 + "x",
    ],
)
def test_a_path_that_something_trips_over_is_refused(path: str) -> None:
    """Git, NTFS, HFS, a shell: refused before a tree is made of it."""
    with pytest.raises(BadPath):
        objects.check_path(path)


@pytest.mark.parametrize("row", cases.rows("names.tsv"), ids=lambda row: row["name(json)"][:24])
def test_hostile_names_are_refused_or_encoded(row: dict[str, str]) -> None:
    """Every name of the list: as a raw component it is refused or is plain; as a step's name it is encoded."""
    name = json.loads(row["name(json)"])
    try:
        objects.check_path(name)
    except BadPath:
        assert row["right_outcome"]
    else:
        assert name.isascii()
        assert name.casefold() not in {".git", "git~1"}
    if name:
        objects.check_path(layout.step_grants_path(name))
    else:
        with pytest.raises(BadPath):
            layout.step_grants_path(name)


@pytest.mark.parametrize("identity", ["a <b@c>", "waypost host <SHA256:x/+y>", "\u00e9 <e@x>"])
def test_an_identity_is_name_and_address(identity: str) -> None:
    """Principals and the host's own."""
    assert objects.check_identity(identity) == identity.encode()


@pytest.mark.parametrize("identity", ["", "a", "a <b", "a\nb <c@d>", "a <b> <c@d>", "a <b c>", " <x@y>", "a. <x@y>"])
def test_an_identity_can_t_inject_a_header(identity: str) -> None:
    """A newline or an angle bracket in an author would become part of the commit's structure."""
    with pytest.raises(BadObject):
        objects.check_identity(identity)


@pytest.mark.parametrize("subject", ["", "  ", "two\nlines", "a\0b", "x" * 1001])
def test_a_subject_is_one_line(subject: str) -> None:
    """A second line could be read as a trailer."""
    with pytest.raises(BadObject):
        objects.check_subject(subject)


def test_a_clock_before_1970_counts_as_1970() -> None:
    """Git can't hold a negative date."""
    assert (objects.commit_date(-5), objects.commit_date(1_999)) == (b" 0 +0000", b" 1 +0000")


def test_a_signed_commit_is_taken_apart_as_git_does() -> None:
    """The payload is the commit without its signature header, byte for byte."""
    plain = b"tree " + b"a" * 40 + b"\nparent " + b"b" * 40 + b"\nauthor A <a@a> 1 +0000\ncommitter C <c@c> 1 +0000"
    signed = objects.parse_commit(plain + b"\ngpgsig one\n two\n \n three\n\nsubject\n")
    assert signed.signature == b"one\ntwo\n\nthree"
    assert signed.payload == plain + b"\n\nsubject\n"
    assert (signed.tree, signed.parent) == (b"\xaa" * 20, b"\xbb" * 20)


@pytest.mark.parametrize(
    "data",
    [
        b"",
        b"tree x\n\n",
        b"tree " + b"a" * 40 + b"\nauthor a\n\nx",
        b"tree "
        + b"a" * 40
        + b"\nparent "
        + b"b" * 40
        + b"\nparent "
        + b"c" * 40
        + b"\nauthor a\ncommitter b\n\nmerge",
    ],
)
def test_what_is_no_linear_commit_is_refused(data: bytes) -> None:
    """A merge can't stand in a log with one line."""
    with pytest.raises(BadObject):
        objects.parse_commit(data)


@pytest.mark.parametrize("data", [b"100644 a", b"100644 a\0short", b"nonsense" * 5])
def test_a_broken_tree_is_refused(data: bytes) -> None:
    """A tree that ends within a line is damage, not a shorter tree."""
    with pytest.raises(BadObject):
        list(objects.parse_tree(data))

"""What is said where something is looked for that isn't there, or can't be written: what helps."""

import errno
from pathlib import Path

import pytest

from substrate import SigningKey
from substrate.errors import FlushFailed
from waypost.host.keeping.git import bundle
from waypost.host.keeping_errors import GitFailed, NoSuchDeployment
from waypost.testing.stores import fresh_store

MANY = tuple(f"d{number:04}" for number in range(2000))


@pytest.mark.parametrize(
    ("name", "known", "hint"),
    [
        ("expences", (), "check the name: there is none yet"),
        ("expences", ("digest", "expenses", "orders"), "check the name: there is expenses, digest, orders"),
        ("x" * 10_000, ("digest",), "check the name: there is digest"),
    ],
    ids=["none", "one that is meant", "nothing like it"],
)
def test_the_name_that_is_meant_comes_first(name: str, known: tuple[str, ...], hint: str) -> None:
    """It is mostly one letter that is wrong."""
    assert NoSuchDeployment(name, known).hint == hint


@pytest.mark.parametrize("name", ["d19999", "something else"])
def test_of_thousands_a_few_are_named_and_the_rest_is_counted(name: str) -> None:
    """A message of a hundred kilobytes hides what it says."""
    error = NoSuchDeployment(name, MANY)
    assert len(error.hint) < 200
    assert error.hint.endswith(" and 1,992 more; `waypost why --json` has them all")
    assert ("d1999" in error.hint) == (name == "d19999")


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.ENOSPC, "free some space"),
        (errno.EDQUOT, "free some space"),
        (errno.EFBIG, "`ulimit -f`"),
        (errno.EMFILE, "`ulimit -n`"),
        (errno.EIO, "look after the disk"),
        (None, "look after the disk"),
    ],
)
def test_what_mends_a_write_that_failed_is_what_its_number_says(number: int | None, words: str) -> None:
    """A quota isn't mended by another disk, nor a limit by more space."""
    assert words in FlushFailed("r.git", "no", number).hint


def test_a_disk_that_git_finds_full_is_said_to_need_space(tmp_path: Path) -> None:
    """What git says of it is about a file of git's own."""
    fresh_store(tmp_path / "r.git", SigningKey.generate()).close()
    with Path("/dev/full").open("r+b", buffering=0) as full, pytest.raises(GitFailed) as refused:
        bundle(tmp_path / "r.git", full)
    assert (refused.value.hint or "").startswith("free some space, or name a place on another disk")

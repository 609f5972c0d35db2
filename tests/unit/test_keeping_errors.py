"""Which names are said where a deployment is looked for that isn't there: a few, and those that may be meant."""

import pytest

from waypost.host.keeping_errors import NoSuchDeployment

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

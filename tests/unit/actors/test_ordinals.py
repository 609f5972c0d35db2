"""A frozen set of numbers: what a plain set says, and small."""

import sys

from hypothesis import given
from hypothesis import strategies as st

from actors.logic.ordinals import NONE

NUMBERS = st.integers(0, 10_000)


@given(st.lists(st.tuples(st.booleans(), NUMBERS)), NUMBERS)
def test_it_holds_what_a_set_holds_and_never_changes(steps: list[tuple[bool, int]], asked: int) -> None:
    """Every version stays as it was when the next one was made of it."""
    versions = [(NONE, frozenset[int]())]
    for adds, number in steps:
        made, plain = versions[-1]
        versions.append((made.with_(number), plain | {number}) if adds else (made.without(number), plain - {number}))
    for made, plain in versions:
        for number in {asked, *plain, *(number for _, number in steps)}:
            assert (number in made) == (number in plain)
        assert bool(made.pieces) == bool(plain), "what is empty takes no room"


def test_a_hundred_thousand_numbers_take_less_than_twenty_kilobytes() -> None:
    """It stands in for what would be a record for each run."""
    made = NONE
    for number in range(100_000):
        made = made.with_(number)
    assert sum(map(sys.getsizeof, made.pieces.values())) + sys.getsizeof(made.pieces) < 20_000

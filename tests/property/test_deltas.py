"""Deltas make what they say, whatever the two versions are."""

from hypothesis import given
from hypothesis import strategies as st

from substrate.packs import pack

LINES = st.lists(st.sampled_from([b"aaaa", b"bbbb", b"cc" * 200, b"d"]), max_size=40).map(b"".join)


@given(LINES, LINES)
def test_a_delta_makes_the_new_version(old: bytes, new: bytes) -> None:
    """Shared beginnings and ends that overlap are where such code goes wrong."""
    assert pack.apply_delta(old, pack.delta(old, new)) == new


@given(st.binary(max_size=200), st.binary(max_size=200), st.integers(0, 70_000))
def test_long_copies_are_cut_as_git_wants_them(start: bytes, end: bytes, size: int) -> None:
    """65,536 bytes are git's unwritten default and need a size of nothing."""
    old = bytes(size)
    assert pack.apply_delta(old, pack.delta(old, start + old + end)) == start + old + end

"""Names from outside become path components that nothing can trip over."""

import string

from hypothesis import given
from hypothesis import strategies as st

from substrate import layout


@given(st.integers(0, 2**62))
def test_radix_and_its_inverse_agree(ordinal: int) -> None:
    """A run's path follows from its name, and the ordinals of a directory from the directory."""
    assert ordinal in layout.unradix(layout.radix(ordinal))


@given(st.text(min_size=1, max_size=120))
def test_an_encoded_name_is_harmless(name: str) -> None:
    """Whatever a step is called: plain ASCII, never dotted, dashed or empty, and never longer than 100."""
    encoded = layout.encode_name(name)
    assert set(encoded) <= set(string.ascii_lowercase + string.digits + "_%")
    assert 0 < len(encoded) <= 100
    if not encoded.startswith("%%"):
        assert layout.decode_name(encoded) == name


@given(st.text(min_size=1, max_size=40), st.text(min_size=1, max_size=40))
def test_two_names_never_share_a_file(one: str, other: str) -> None:
    """Also on a disk that takes ``Readme`` and ``readme`` for the same."""
    assert (layout.encode_name(one).casefold() == layout.encode_name(other).casefold()) == (one == other)

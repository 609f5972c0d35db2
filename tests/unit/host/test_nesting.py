"""How deep brackets are nested, by a pass that has no stack."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from substrate.errors import NotARepository
from substrate.storage.opening import read_format
from waypost.host.reading.narrate import Narrator
from waypost.model import events as ev
from waypost.model.errors import Invalid
from waypost.model.nesting import too_deep
from waypost.model.signals import payload
from waypost.model.values import DEPTH


def depth_of(value: object) -> int:
    """As a reader with a stack finds it."""
    if isinstance(value, dict):
        return 1 + max(map(depth_of, value.values()), default=0)
    return 1 + max(map(depth_of, value), default=0) if isinstance(value, list) else 0


VALUES = st.recursive(
    st.text('[]{}\\"a', max_size=4) | st.integers(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text('[{\\"', max_size=3), inner, max_size=3),
    max_leaves=12,
)


@given(value=VALUES, most=st.integers(0, 6))
def test_it_finds_what_a_reader_with_a_stack_finds(value: object, most: int) -> None:
    """Brackets within strings are text."""
    assert too_deep(json.dumps(value).encode(), most) == (depth_of(value) > most)


@pytest.mark.parametrize(
    "raw", [b"[" * 500_000, b"]" * 500_000, b'"' + b"\\" * 500_000, b'["' * 250_000, b"[]" * 250_000], ids=range(5)
)
def test_what_is_no_json_takes_one_pass_and_no_stack(raw: bytes) -> None:
    """It is asked of whatever comes; what it says of such bytes is for the parser to mend."""
    assert too_deep(raw) == (raw[:2] in {b"[[", b'["'})


@pytest.mark.parametrize("depth", [DEPTH + 1, 900, 100_000])
def test_a_signal_is_nested_no_deeper_than_any_reader_of_it_can_follow(depth: int) -> None:
    """At the door there is more stack left than where it is read later: what passed only here would be damage there."""
    with pytest.raises(Invalid, match=f"more than {DEPTH} levels"):
        payload(b"[" * depth + b"]" * depth, 1_000_000)
    assert payload(b"[" * DEPTH + b"]" * DEPTH, 1_000_000)


def test_what_another_version_or_a_stranger_has_nested_is_said_and_ends_nobody() -> None:
    """A repository may come from anywhere, and a log from a time with other bounds."""
    deep = b"[" * 50_000 + b"]" * 50_000
    with pytest.raises(NotARepository):
        read_format("r.git", b'{"x":' + deep + b"}")
    value = ev.Value(inline=msgspec.Raw(deep))
    done = ev.RunCompleted(result=value)
    assert Narrator().tell(done).startswith("completed: [[[[")

"""Bounds that an operator sets for one host: by name, within reason, and refused in words."""

import pytest

from waypost.cli.bounds import MAY_BE_SET, bounds
from waypost.host.errors import Usage
from waypost.model.limits import DEFAULT


def test_each_bound_that_is_offered_can_be_set() -> None:
    """A name that no record has would be found by whoever needs it first."""
    assert bounds(()) == DEFAULT
    for name in MAY_BE_SET:
        assert getattr(bounds([f"{name}=7"]), name) == 7
    two = bounds(["backoff_cap=2.5", "crash_exits=5"])
    assert (two.backoff_cap, two.crash_exits, two.crash_total) == (2.5, 5, DEFAULT.crash_total)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("frame=1", "sets no bound"),
        ("backoff_cap", "sets no bound"),
        ("backoff_cap=", "is no bound"),
        ("backoff_cap=0", "is no bound"),
        ("backoff_cap=-1", "is no bound"),
        ("backoff_cap=nan", "is no bound"),
        ("backoff_cap=inf", "is no bound"),
        ("crash_exits=2.5", "is no bound"),
        ("crash_exits=0", "is no bound"),
    ],
)
def test_what_is_no_bound_is_refused_before_anything_starts(text: str, words: str) -> None:
    """A host that ran with another bound than was asked for would be found out when it matters."""
    with pytest.raises(Usage, match=words) as refused:
        bounds([text])
    assert refused.value.hint

"""Time stamps: the short way of reading the one form that events carry says what the long way says."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waypost.model.errors import Invalid
from waypost.model.times import stamp, unstamp

LAST = 253_402_300_799_999
"""Unix ms of the end of the year 9999."""


@given(st.integers(-62_135_596_800_000, LAST))
def test_a_stamp_is_read_as_it_was_written(wall: int) -> None:
    """The clock of a replayed run is the one that it had."""
    assert unstamp(stamp(wall)) == wall


@pytest.mark.parametrize(
    ("text", "wall"),
    [
        ("1970-01-01T00:00:01.5Z", 1500),
        ("1970-01-01T01:00:01.000+01:00", 1000),
        ("1970-01-01T00:00:01Z", 1000),
        ("1970-W01-4T00:00:01.000Z", 1000),
        ("19700101T000001.001Z", 1001),
    ],
)
def test_any_other_iso_form_with_a_zone_is_read_too(text: str, wall: int) -> None:
    """Repositories of other systems have them."""
    assert unstamp(text) == wall


@pytest.mark.parametrize(
    "text",
    [
        "",
        "yesterday",
        "1970-01-01T00:00:01.000",
        "1970-01-01T00:00:61.000Z",
        "1970-13-01T00:00:01.000Z",
        "1970-01-01T00:00:01.0x0Z",
        "1970-01-01T00:00:01.\N{ARABIC-INDIC DIGIT ONE}00Z",
        "1970-01-01T00:00:0\N{ARABIC-INDIC DIGIT ONE}.100Z",
        "19700101T000000.1.1.000Z",
    ],
)
def test_what_is_no_moment_is_refused(text: str) -> None:
    """Whichever way it takes."""
    with pytest.raises(Invalid):
        unstamp(text)

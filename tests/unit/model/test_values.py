"""The round-trip rule: what a caller sees is what the log holds, or the value is refused with its path."""

import dataclasses
import datetime as dt
import enum
import math
import os
from collections.abc import Callable, Iterator
from decimal import Decimal
from typing import Any

import msgspec
import pytest

from waypost.model.values import Codec, ValueNotStorable, digest, returned_by
from waypost.testing import cases

UTC = dt.UTC
NAIVE = dt.datetime(2026, 3, 29, 2, 30)  # noqa: DTZ001 - naive on purpose


@dataclasses.dataclass
class Point:
    """A dataclass."""

    x: int
    tail: tuple[int, ...] = ()


@dataclasses.dataclass
class Labelled(Point):
    """One with a field that its base doesn't have."""

    label: str = ""


class Claim(msgspec.Struct):
    """A Struct."""

    amount: Decimal
    lines: list[Point] = []


class Colour(enum.Enum):
    """An enum."""

    RED = "r"


class Foreign:
    """What msgspec can't read back."""


@pytest.mark.parametrize(
    ("value", "annotation"),
    [
        (Point(1, (1, 2)), Point),
        (Claim(Decimal("1.10"), [Point(3)]), Claim),
        ({1: "a"}, dict[int, str]),
        (b"\x00\xff", bytes),
        (Colour.RED, Colour),
        ({1, 2}, set[int]),
        ((1, "x"), tuple[int, str]),
        (2**200, int),
        (None, Point | None),
        (dt.datetime(2026, 1, 1, tzinfo=UTC), dt.datetime),
        (dt.time(9, 30), dt.time),
        (dt.timedelta(days=3, microseconds=1), dt.timedelta),
        ([1, "a", None, {"k": [True]}], Any),
        (1.0, Any),
        (2**63, Any),
        ("é\0", Any),
        ({Decimal("1.5"): 1}, dict[Decimal, int]),
    ],
)
def test_a_value_that_its_annotation_describes_comes_back_equal_and_of_its_type(value: Any, annotation: Any) -> None:
    """Live and replay both see the decoded value, so it must be what the step returned."""
    codec = Codec(annotation)
    stored = codec.store(value)
    assert stored.value == value
    assert type(stored.value) is type(value)
    assert codec.load(stored.raw) == value


@pytest.mark.parametrize(
    ("value", "annotation", "path"),
    [
        (Point(1), Any, "$"),
        ((1, 2), Any, "$"),
        ({"a": [{"b": (1,)}]}, Any, "$['a'][0]['b']"),
        (Claim(Decimal(1), [Point("s")]), Claim, "$"),  # type: ignore[arg-type]  # the point of the row
        ([Claim(Decimal("NaN"))], list[Claim], "$[0].amount"),
        ({1: "a"}, Any, "$[1]"),
        ({1: "a", "1": "b"}, Any, "$[1]"),
        (math.nan, Any, "$"),
        ([math.inf], list[float], "$[0]"),
        (Labelled(1, label="w"), Point, "$"),
        ("\ud800", str, "$"),
        ({"a": "\udc00"}, Any, "$['a']"),
        (NAIVE, dt.datetime, "$"),
        (1 + 2j, Any, "$"),
        ([object()], Any, "$[0]"),
        ({"x": Foreign()}, Any, "$['x']"),
        (True, float, "$"),
        ({True}, set[int], "$"),
    ],
)
def test_a_value_that_would_change_is_refused_with_its_path(value: Any, annotation: Any, path: str) -> None:
    """Handing the workflow something else than the step returned is the one thing that must not happen."""
    with pytest.raises(ValueNotStorable) as caught:
        Codec(annotation).store(value)
    assert caught.value.path == path, caught.value


def test_a_value_that_contains_itself_is_refused_where_it_does() -> None:
    """A cycle would otherwise exhaust the stack."""
    ring: list[Any] = [1]
    ring.append({"x": ring})
    with pytest.raises(ValueNotStorable) as caught:
        Codec(Any).store(ring)
    assert caught.value.path == "$[1]['x']"


def test_the_same_part_twice_is_no_cycle() -> None:
    """Sharing is lost by JSON but equality isn't."""
    part = [1]
    assert Codec(Any).store({"a": part, "b": part}).value == {"a": [1], "b": [1]}


@pytest.mark.parametrize("annotation", ["str | dt.datetime", "Foreign", "list[Foreign]", "NotThere", "Iterator[int]"])
def test_an_annotation_that_cannot_be_read_back_is_refused_at_once(annotation: str) -> None:
    """A bad annotation is an error of the file, not of the run that first meets it."""

    def step() -> Any: ...

    step.__annotations__["return"] = annotation
    with pytest.raises(ValueNotStorable, match="step"):
        returned_by(step)


def test_other_annotations_of_the_function_need_not_exist_at_run_time() -> None:
    """Parameters are often annotated with imports that only the type checker sees."""

    def step(x: "OnlyForTheChecker") -> "int":  # type: ignore[name-defined]  # noqa: F821 - the point of the test
        return int(x)

    assert returned_by(step).store(3).value == 3


def test_an_int_where_a_float_is_promised_is_a_float_live_too() -> None:
    """Live and replay must not differ even in repr."""
    assert repr(Codec(float).store(3).value) == "3.0"


def test_a_digest_does_not_depend_on_the_order_of_sets_and_dicts() -> None:
    """It is compared across processes."""
    assert digest(({"b": 1, "a": {3, 1, 2}}, 1)) == digest(({"a": {2, 3, 1}, "b": 1}, 1))
    assert digest([1]) != digest(["1"])


def test_a_digest_of_a_value_without_json_form_is_refused() -> None:
    """A lock as a step's argument can't be compared in a replay."""
    with pytest.raises(ValueNotStorable, match=r"\$\[0\]"):
        digest([object()])


def test_a_recorded_value_that_no_longer_fits_is_an_error_in_words() -> None:
    """The annotation may have been changed since the step was recorded."""
    with pytest.raises(ValueNotStorable, match="doesn't fit"):
        Codec(int).load(b'"text"')


# --- the hostile rows of step_values.jsonl --------------------------------------------------------------------------


def refused(value: Any, annotation: Any = Any, **options: Any) -> str:
    with pytest.raises(ValueNotStorable) as caught:
        Codec(annotation).store(value, **options)
    return str(caught.value)


def _nan() -> None:
    assert "nan" in refused(float("nan"))


def _negative_zero() -> None:
    stored = Codec(float).store(-0.0).value
    assert isinstance(stored, float)
    assert math.copysign(1, stored) == -1


def _big_int() -> None:
    assert Codec(int).store(2**200).value == 2**200
    assert Codec(Any).store(2**200).value == 2**200


def _bytes() -> None:
    refused(b"\x00\xff")
    assert Codec(bytes).store(b"\x00\xff").value == b"\x00\xff"


def _naive_datetime() -> None:
    assert "time zone" in refused(NAIVE, dt.datetime)


def _decimal() -> None:
    refused(Decimal("0.1"))
    assert Codec(Decimal).store(Decimal("0.1")).raw == b'"0.1"'


def _set() -> None:
    # Under `set[int]` a set is kept: the caller gets the decoded set, built from the same bytes in every replay, and
    # the child's hash seed is fixed. Under no annotation it is refused, as the row says.
    refused({1, 2})
    assert Codec(set[int]).store({1, 2}).value == {1, 2}


def _int_keys() -> None:
    refused({1: "a"})
    assert Codec(dict[int, str]).store({1: "a"}).value == {1: "a"}


def _colliding_keys() -> None:
    refused({1: "a", "1": "b"})
    refused({1: "a", "1": "b"}, dict[int, str])


def _nul() -> None:
    assert Codec(str).store("a\x00b").value == "a\x00b"


def _deep() -> None:
    nested: list[Any] = []
    for _ in range(2000):
        nested = [nested]
    assert "deeper" in refused(nested)


def _huge() -> None:
    assert "a value may have" in refused(os.urandom(10**6), bytes, limit=10**5)


def _custom_object() -> None:
    assert "Foreign" in refused(Foreign())


def _generator() -> None:
    assert "generator" in refused(i for i in [1])


def _aliasing() -> None:
    shared = [1]
    stored = Codec(Any).store({"a": shared, "b": shared})
    assert isinstance(stored.value, dict)
    stored.value["a"].append(2)
    assert stored.value["b"] == [1]
    assert Codec(Any).load(stored.raw) == {"a": [1], "b": [1]}


ELSEWHERE = {"exception whose str() raises": "no value: handled in test_child_faults.py"}

HANDLERS: dict[str, Callable[[], None]] = {
    "nan": _nan,
    "neg zero": _negative_zero,
    "2^200": _big_int,
    "bytes": _bytes,
    "datetime naive": _naive_datetime,
    "Decimal": _decimal,
    "set": _set,
    "int keys": _int_keys,
    'key 1 and "1"': _colliding_keys,
    "NUL in text": _nul,
    "deep 2000": _deep,
    "100 MB bytes": _huge,
    "custom object": _custom_object,
    "generator": _generator,
    "mutable aliasing": _aliasing,
}


def _names() -> Iterator[str]:
    return (row["name"] for row in cases.rows("step_values.jsonl"))


@pytest.mark.parametrize("name", sorted(HANDLERS))
def test_hostile_values_have_their_right_outcome(name: str) -> None:
    """Each row of the collection that is a value."""
    HANDLERS[name]()


def test_every_row_has_a_handler_or_a_reason() -> None:
    """A row that is added must be looked at."""
    if not cases.available():
        pytest.skip(cases.MISSING)
    assert set(_names()) == HANDLERS.keys() | ELSEWHERE.keys()

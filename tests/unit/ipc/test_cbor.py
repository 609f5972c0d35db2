"""The strict CBOR of the wire, against every hostile item that is known to have hurt somebody."""

import math
import tracemalloc
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal

import pytest

from ipc import cbor
from ipc.errors import BadCbor, NotEncodable, WrongSequence
from ipc.sealed import VERSION, Bounds, Direction, Lane, unseal
from waypost.testing import cases

ROWS = cases.rows("cbor_frames.tsv")


def _refused(data: bytes) -> None:
    with pytest.raises(BadCbor):
        cbor.decode(data)


def _refused_as_a_sequence_number(data: bytes) -> None:
    """A boolean is a plain value; that it doesn't number a frame is the envelope's rule."""
    value = cbor.decode(data)
    assert isinstance(value, dict)
    lane = Lane("control", Direction.UP, bytes(16))
    body = cbor.encode([cbor.encode([VERSION, "up", bytes(16), value["seq"], None]), bytes(64)])
    with pytest.raises(WrongSequence):
        unseal(lane, 1, body, verify=lambda _signed, _tag: True, tag_size=64, bounds=Bounds(4096, 32))


def _exact_integer(data: bytes) -> None:
    assert cbor.decode(data) == {"seq": 2**53 + 1}


def _accepted_byte_exact(data: bytes) -> None:
    assert cbor.decode(data) == bytes(5000)


REFUSED = [
    "array_len_2^61",
    "array_len_2^64-1",
    "bytes_len_2^63",
    "bytes_len_1GiB",
    "map_len_2^64-1",
    "nested_arrays_20000",
    "nested_tags_5000",
    "nested_headers_each_claim_rest",
    "dup_key_int_enc",
    "dup_key_true_1",
    "nonminimal_len",
    "indef_bytes_chunk_wrong_type",
    "indef_map_odd",
    "break_in_definite",
    "tag29_unset",
    "tag_unknown_as_key",
    "map_as_key",
    "bignum_of_array",
    "bigfloat_exp_huge",
    "epoch_huge",
    "date_string_bad",
    "mime_tag",
    "ip_bad",
    "set_unhashable",
    "inf_seq",
    "undefined",
    "simple_false_2byte",
    "ai_31_uint",
    "surrogate_utf8",
    "trailing_bytes",
    "truncated_map",
]
HANDLERS: dict[str, Callable[[bytes], None]] = {
    **dict.fromkeys(REFUSED, _refused),
    "bool_seq": _refused_as_a_sequence_number,
    "seq_2^53+1": _exact_integer,
    "bytes_5000": _accepted_byte_exact,
}


def test_every_hostile_item_has_its_handler() -> None:
    """A row that is added later must be thought about, not skipped."""
    assert {row["name"] for row in ROWS} <= set(HANDLERS)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row["name"])
def test_a_hostile_item_ends_in_its_right_outcome_and_costs_little(row: dict[str, str]) -> None:
    """A typed refusal, never another exception, and no memory that its few bytes don't justify."""
    data = bytes.fromhex(row["hex"])
    tracemalloc.start()
    try:
        HANDLERS[row["name"]](data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 16 * 2**20


@pytest.mark.parametrize(
    "tag", [0, 1, 2, 3, 4, 5, 24, 25, 28, 29, 30, 35, 36, 37, 52, 100, 256, 258, 1300, 55799, 2**40]
)
def test_no_tag_is_interpreted(tag: int) -> None:
    """Tags run parsers, import modules and build sets; none has a meaning here, not even the one that means nothing."""
    head = bytes((0xC0 | tag,)) if tag < 24 else b"\xdb" + tag.to_bytes(8, "big")
    with pytest.raises(BadCbor, match=f"tag {tag}$"):
        cbor.decode(head + b"\x41\x01")


@pytest.mark.parametrize(
    "spelling",
    [
        "f93e00",
        "fa3fc00000",
        "1801",
        "190001",
        "7801 61",
        "9801 00",
        "b801 6161 00",
        "f97e00",
        "f97c00",
        "f9fc00",
        "e0",
        "f8ff",
    ],
)
def test_a_second_spelling_or_a_value_that_is_not_plain_is_refused(spelling: str) -> None:
    """One value, one form: what was verified is then what was meant."""
    _refused(bytes.fromhex(spelling))


def test_an_empty_item_is_refused() -> None:
    """A frame of no bytes reaches the decoder."""
    _refused(b"")


@pytest.mark.parametrize("kind", [b"\x81", b"\xa1\x61a"])
def test_nesting_stops_at_the_limit(kind: bytes) -> None:
    """32 deep is allowed, 33 isn't, for arrays and maps alike."""
    cbor.decode(kind * 32 + b"\x00")
    _refused(kind * 33 + b"\x00")


def test_a_frame_full_of_one_byte_items_is_bounded() -> None:
    """The most items that fit into a frame: memory is bounded by the frame's limit and the time isn't quadratic."""
    count = 200_000
    data = b"\x9a" + count.to_bytes(4, "big") + b"\xa0" * count
    tracemalloc.start()
    try:
        assert len(cbor.decode(data)) == count  # type: ignore[arg-type]  # an array by construction
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < 200 * count


PLAIN: list[object] = [
    None,
    True,
    0,
    -1,
    2**64 - 1,
    -(2**64),
    1.5,
    -0.0,
    "",
    "é漢😀",
    b"\xf7\xf9\xe0",
    [],
    {},
    {"a": [1, {"b": [None]}], "ü": b""},
]


@pytest.mark.parametrize("value", PLAIN, ids=repr)
def test_a_plain_value_survives_the_wire(value: object) -> None:
    """Also where its bytes look like the beginning of a refused item."""
    assert cbor.decode(cbor.encode(value)) == value


def test_what_has_a_plain_form_is_given_it() -> None:
    """Messages may hold what msgspec can write down; the other end's types read it back."""
    assert cbor.decode(cbor.encode({"at": datetime(2026, 1, 2, tzinfo=UTC), "n": Decimal("1.10"), "t": (1, 2)})) == {
        "at": "2026-01-02T00:00:00Z",
        "n": "1.10",
        "t": [1, 2],
    }


def _inside_itself() -> object:
    value: list[object] = []
    value.append(value)
    return value


@pytest.mark.parametrize(
    "value",
    [2**64, -(2**64) - 1, math.nan, math.inf, [-math.inf], "\ud800", {1: 2}, object(), _inside_itself()],
    ids=["big", "small", "nan", "inf", "-inf", "surrogate", "int key", "object", "cycle"],
)
def test_a_value_without_a_plain_form_is_refused_by_the_sender(value: object) -> None:
    """The peer would have to treat it as an attack; the mistake is ours and must show here."""
    with pytest.raises(NotEncodable):
        cbor.encode(value)


def test_the_sender_refuses_what_is_nested_too_deep() -> None:
    """Both ends count alike."""
    value: object = 0
    for _ in range(32):
        value = [value]
    cbor.encode(value)
    with pytest.raises(NotEncodable):
        cbor.encode([value])

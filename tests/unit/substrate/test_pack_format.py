"""Pack entries, deltas and indexes, byte for byte as git's documentation has them."""

import zlib

import pytest

from substrate.errors import BadObject
from substrate.packs import pack
from substrate.packs.objects import Kind, object_id
from substrate.packs.unpack import read_entry


@pytest.mark.parametrize(
    ("kind", "size", "expected"),
    [(Kind.COMMIT, 0, "10"), (Kind.BLOB, 15, "3f"), (Kind.BLOB, 16, "b001"), (Kind.TREE, 300, "ac12")],
)
def test_an_entry_head_carries_kind_and_size(kind: Kind, size: int, expected: str) -> None:
    """Worked by hand from gitformat-pack: four bits of size in the first byte, then seven each."""
    assert pack.entry_head(kind << 4, size).hex() == expected


@pytest.mark.parametrize(
    ("back", "expected"), [(1, "01"), (127, "7f"), (128, "8000"), (16511, "ff7f"), (16512, "808000")]
)
def test_a_distance_has_one_spelling(back: int, expected: str) -> None:
    """The offset encoding adds one per further byte, so that no number can be written twice."""
    assert pack.distance(back).hex() == expected


@pytest.mark.parametrize("size", [0, 1, 65_535, 65_536, 200_000])
def test_a_stored_stream_is_zlib(size: int) -> None:
    """Git inflates it with zlib, below and above the limit of one stored block."""
    data = bytes(range(256)) * (size // 256) + bytes(size % 256)
    assert zlib.decompress(pack.stored(data)) == data


@pytest.mark.parametrize("compress", [False, True])
@pytest.mark.parametrize("size", [0, 5, 70_000])
def test_an_entry_reads_back_whatever_follows_it(size: int, compress: bool) -> None:  # noqa: FBT001 - a parameter of the test
    """A journal goes on behind every entry: the reader must stop exactly at its end."""
    data = bytes(size)
    raw = pack.whole(Kind.BLOB, data, compress=compress)
    found = read_entry(b"before" + raw + b"\x9dafter" * 50, 6, 6 + len(raw) + 300, {})
    assert (found.kind, found.data, found.end) == (Kind.BLOB, data, 6 + len(raw))


def test_an_entry_cut_anywhere_is_no_entry() -> None:
    """A torn tail is found at every byte of it."""
    for raw in (pack.whole(Kind.BLOB, b"a" * 300), pack.whole(Kind.BLOB, b"abc" * 100, compress=True)):
        for cut in range(len(raw)):
            with pytest.raises(BadObject):
                read_entry(raw[:cut] + b"\0" * 400, 0, cut, {})


def test_an_entry_that_promises_another_size_is_refused() -> None:
    """Neither a bomb nor a short stream passes for the object it claims to be."""
    for claimed in (3, 9, 1 << 40):
        raw = pack.entry_head(Kind.BLOB << 4, claimed) + zlib.compress(b"sevenby")
        with pytest.raises(BadObject):
            read_entry(raw, 0, len(raw), {})


def test_a_tree_delta_finds_its_base() -> None:
    """The base is named by how far back it lies, and only trees are bases here."""
    old, new = b"x" * 300, b"x" * 150 + b"new" + b"x" * 150
    raw = b"." * 12 + pack.whole(Kind.TREE, old)
    at = len(raw)
    raw += pack.tree_delta(old, new, at - 12)
    assert read_entry(raw, at, len(raw), {12: old}).data == new
    with pytest.raises(BadObject):
        read_entry(raw, at, len(raw), {})


@pytest.mark.parametrize(
    "change",
    [b"", b"\x05", b"\x04\x04\x90\x04", b"\x05\x03\x90", b"\x05\x03\x90\x05", b"\x05\x09\x90\x05", b"\x05\x01\x00"],
)
def test_a_broken_delta_is_refused(change: bytes) -> None:
    """Against the five bytes ``abcde``: cut, of another base, making too much or too little, or reserved."""
    with pytest.raises(BadObject):
        pack.apply_delta(b"abcde", change)


def test_an_index_counts_and_sorts() -> None:
    """The fan-out counts ids up to each first byte; ids are sorted and keep their CRC and offset."""
    one, two = object_id(Kind.BLOB, b"1"), object_id(Kind.BLOB, b"2")
    made = pack.index_file([pack.Indexed(two, 2, 40), pack.Indexed(one, 1, 12)], b"s" * 20)
    low, high = sorted([(one, 1, 12), (two, 2, 40)])
    assert made[:8] == b"\xfftOc\0\0\0\x02"
    assert made[8 + 255 * 4 : 8 + 256 * 4] == b"\0\0\0\x02"
    assert made[1032:1072] == low[0] + high[0]
    assert made[1072:1088] == bytes([0, 0, 0, low[1], 0, 0, 0, high[1], 0, 0, 0, low[2], 0, 0, 0, high[2]])
    assert made[1088:1108] == b"s" * 20


def test_object_ids_are_gits() -> None:
    """The empty blob and the empty tree have ids that everybody knows."""
    assert object_id(Kind.BLOB, b"").hex() == "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391"
    assert object_id(Kind.TREE, b"").hex() == "4b825dc642cb6eb9a060e54bf8d69288fbee4904"

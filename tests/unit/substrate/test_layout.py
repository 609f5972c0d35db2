"""The layout of storage §1: every path has one spelling, and one meaning."""

import pytest

from substrate import layout
from substrate.errors import BadPath
from waypost.model.ids import RunId

KEY = "ab" * 32
RUN = RunId("run_31305_0011223344556677")
MAILBOX = "expenses@example.com"
BOX = layout.address_key(MAILBOX)

PLACES = [
    (layout.FORMAT, layout.Place("format")),
    (layout.STATE, layout.Place("state")),
    (layout.event_path(RUN, 7), layout.Place("event", run=RUN, number=7)),
    (layout.segment_path(RUN, 65), layout.Place("segment", run=RUN, number=65)),
    (layout.blob_path(RUN, KEY), layout.Place("blob", run=RUN, key=KEY)),
    (layout.grants_path(RUN), layout.Place("grants", run=RUN)),
    (layout.sealed_log_path(RUN), layout.Place("sealed-log", run=RUN)),
    (layout.sealed_grants_path(RUN), layout.Place("sealed-grants", run=RUN)),
    (layout.sealed_blob_path(RUN, KEY), layout.Place("sealed-blob", run=RUN, key=KEY)),
    (layout.inbox_path(MAILBOX, 3, KEY), layout.Place("inbox", number=3, key=KEY, address=BOX)),
    (layout.hold_path(MAILBOX, 3, KEY), layout.Place("hold", number=3, key=KEY, address=BOX)),
    (
        layout.processing_path(MAILBOX, 3, KEY, 2),
        layout.Place("processing", number=3, key=KEY, address=BOX, attempt=2),
    ),
    (layout.consumed_path(MAILBOX, 70, KEY), layout.Place("consumed", number=70, key=KEY, address=BOX)),
    (layout.watermark_path(MAILBOX), layout.Place("watermark", address=BOX)),
    (layout.mail_path(64), layout.Place("mail", number=64)),
    (layout.outbox_path(5, KEY), layout.Place("outbox", number=5, key=KEY)),
    (layout.step_grants_path("read_claim"), layout.Place("step-grants", name="read_claim")),
    (layout.schedule_path("Nightly *"), layout.Place("schedule", name="Nightly *")),
    (f"code/{KEY[:2]}/{KEY}/flows/expenses.py", layout.Place("code", key=KEY, name="flows/expenses.py")),
]


@pytest.mark.parametrize(("path", "place"), PLACES, ids=[place.kind for _, place in PLACES])
def test_every_path_can_be_read_back(path: str, place: layout.Place) -> None:
    """The validator and the reader find out from the name alone what a file is."""
    assert layout.place_of(path) == place


@pytest.mark.parametrize(
    ("ordinal", "directory"),
    [(0, "1/00"), (63, "1/00"), (64, "1/01"), (64 * 63, "1/63"), (64 * 64, "2/01/00"), (64 * 489 + 9, "2/07/41")],
)
def test_radix_is_the_documented_one(ordinal: int, directory: str) -> None:
    """The worked example of storage §1 (2/07/41) and the edges around a new digit: the format is final."""
    assert layout.radix(ordinal) == directory
    assert ordinal in layout.unradix(directory)


@pytest.mark.parametrize(
    "path",
    [
        "",
        "other.json",
        "format.json/x",
        "runs/1/00/run_64_0011223344556677/grants.json",
        "runs/1/01/run_64_001122334455667/grants.json",
        "runs/1/01/run_064_0011223344556677/grants.json",
        "runs/1/01/run_64_0011223344556677/events/7.json",
        "runs/1/01/run_64_0011223344556677/events.jsonl",
        "sealed/1/01/run_64_0011223344556677/events/0000000007.json",
        "runs/1/01/run_64_0011223344556677/segments/00/00/0000000064.jsonl",
        f"queue/{BOX}/inbox/1/00/0000000003.json",
        f"queue/{BOX}/inbox/1/01/0000000003-{KEY}.json",
        f"queue/{BOX}/processing/1/00/0000000003-{KEY}.01.json",
        f"queue/{BOX}/lost/1/00/0000000003-{KEY}.json",
        f"queue/{BOX}/consumed/1/03/ac/{KEY}.json",
        f"queue/{BOX}/consumed/03/ab/{KEY}.json",
        f"queue/{BOX}/consumed/1/64/ab/{KEY}.json",
        f"queue/{BOX}/consumed/2/00/03/ab/{KEY}.json",
        f"queue/{MAILBOX}/watermark.json",
        "mail/2/00/00/0000000001.eml",
        "mail/1/64/0000004096.eml",
        "mail/1/00/00000000001.eml",
        "mail/1/00/0000000001.txt",
        "grants/Read.json",
        "runs/../format.json",
    ],
)
def test_no_path_has_a_second_spelling(path: str) -> None:
    """A file in the wrong place is found, not read as if it lay where it should."""
    with pytest.raises(BadPath):
        layout.place_of(path)


def test_a_segment_must_start_where_segments_start() -> None:
    """64 events each: a first seq in between would overlap its neighbour."""
    for first in (0, 2, 64, 66, 256 * 64**3 + 1):
        with pytest.raises(BadPath):
            layout.segment_path(RUN, first)


def test_a_key_in_a_path_is_always_a_hash() -> None:
    """No caller can slip a raw message id into a path."""
    with pytest.raises(BadPath):
        layout.inbox_path(MAILBOX, 1, "<id@example.com>")


def test_what_has_no_place_gets_no_path() -> None:
    """A negative ordinal would come out as a directory of another one, an empty name as a hidden file."""
    with pytest.raises(BadPath):
        layout.mail_path(-1)
    with pytest.raises(BadPath):
        layout.step_grants_path("")


def test_ancestors_are_the_directories_above() -> None:
    """Whoever looks for conflicts needs each directory once, outermost first."""
    assert list(layout.ancestors("a/b/c")) == ["a", "a/b"]


def test_directories_are_bounded_as_ordinals_grow() -> None:
    """The first 300,000 ordinals: no directory of the radix gets more than 64 entries (storage §1)."""
    seen: dict[str, set[str]] = {}
    for ordinal in range(0, 300_000, 64):
        parts = ("mail", *layout.radix(ordinal).split("/"))
        for depth in range(1, len(parts)):
            seen.setdefault("/".join(parts[:depth]), set()).add(parts[depth])
    assert max(map(len, seen.values())) == 64

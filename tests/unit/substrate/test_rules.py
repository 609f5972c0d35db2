"""The rule book: every hostile name and value has its right outcome, every rule its words."""

import itertools
import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from substrate import layout, principals
from substrate.errors import BadPath
from substrate.messages import Claim, Reject
from substrate.operations.buckets import BUCKET_AGE, Watermark, watermark
from substrate.rules import RULES, Broken, Commit, Ground, advice, broken, judge
from substrate.rules.commit import seq_in, tail_of
from waypost.model import events as ev
from waypost.model.ids import RunId
from waypost.model.limits import Limits
from waypost.testing import cases
from waypost.testing.corrupted import started
from waypost.testing.desk import ADDRESS, REPOSITORY, Desk, Files, first_files, message

BOX = layout.address_key(ADDRESS)
DIRECTORIES = (
    "",
    "runs/",
    "sealed/1/00/",
    "state/",
    "mail/1/00/",
    "outbox/1/00/",
    f"queue/{BOX}/inbox/1/00/",
    "queue/",
)


def refused(desk: Desk, commit: Commit, limits: Limits | None = None) -> tuple[Broken, ...]:
    """What a commit would break."""
    ground = Ground(repository=REPOSITORY, address=ADDRESS, limits=limits or desk.limits)
    return judge(desk.index, commit, ground).broken


def appended(desk: Desk, run: RunId, raw: bytes, *, author: str = "workflow-process") -> set[str]:
    """The rules that say no to these bytes as the next event of a run."""
    path = layout.event_path(run, desk.index.known(run).seq + 1)
    return {each.rule for each in refused(desk, Commit(author=author, puts={path: raw}))}


@pytest.fixture(name="desk")
def _desk() -> Desk:
    made = Desk()
    made.begin()
    return made


# --- the book ---------------------------------------------------------------------------------------------------------


def test_every_rule_says_what_it_is_and_what_to_do() -> None:
    """A finding is for somebody who reads it at night."""
    for rule in RULES.values():
        assert rule.says.endswith(".")
        assert rule.source.startswith("storage §")
        assert advice(rule.name)


def test_a_finding_is_one_line_of_bounded_length() -> None:
    """What offends may be many megabytes of somebody else's text."""
    told = broken("record", "some/path", "x" * 10_000)
    assert str(told).startswith("record: some/path: xxx")
    assert len(str(told)) < 300


def test_every_event_has_its_authors() -> None:
    """A kind that the table forgot would be anybody's, or nobody's."""
    assert principals.TABLE.keys() == set(ev.Event.__subclasses__())


# --- hostile names and values -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("row", cases.rows("names.tsv"), ids=lambda row: row["name(json)"][:24])
def test_no_hostile_name_is_a_place_in_the_repository(row: dict[str, str], desk: Desk) -> None:
    """As a file, as a directory, with the endings that ours have: whatever made such a commit, it is refused."""
    name = json.loads(row["name(json)"])
    for directory, ending in itertools.product(DIRECTORIES, ("", ".json", ".eml", "/x.json")):
        path = f"{directory}{name}{ending}"
        (found,) = refused(desk, Commit(author="supervisor", puts={path: b"{}"}))
        assert (found.rule, found.path) == ("path", path)


STORED: dict[str, tuple[str, str]] = {
    "nan": ("NaN", "record"),
    "neg zero": ("-0.0", ""),
    "2^200": (str(2**200), ""),
    "NUL in text": ('"a\\u0000b"', ""),
    "deep 2000": ("[" * 2000 + "]" * 2000, "record"),
    "100 MB bytes": ('"' + "x" * 2_000_000 + '"', "event-size"),
}
"""By row, what could reach the log, and the rule that refuses it; where none does, it is kept as it is."""

NEVER_STORED = {
    *("bytes", "datetime naive", "Decimal", "set", "int keys", 'key 1 and "1"', "custom object", "generator"),
    *("exception whose str() raises", "mutable aliasing"),
}
"""Python values that never become JSON, or other JSON: ``waypost.model.values`` and the child see to them."""


@pytest.mark.parametrize(("depth", "rule"), [(254, set[str]()), (255, {"record"})])
def test_what_is_nested_too_deep_is_refused_whatever_the_parser_takes(depth: int, rule: set[str], desk: Desk) -> None:
    """Some Pythons have stack for thousands of levels, others fail at less than one: the bound is the same for all."""
    run = desk.start(message("m1@x"))
    desk.append(run, started(1))
    known = desk.index.known(run)
    value = b"[" * depth + b"]" * depth  # and the event and its output around it
    raw = b'{"seq":%d,"type":"StepCompleted","at":"%s","prev":"%s","call":"r1#1","output":{"inline":%s}}' % (
        known.seq + 1, known.changed.encode(), known.prev.encode(), value,
    )  # fmt: skip
    assert appended(desk, run, raw) == rule


@pytest.mark.parametrize("name", STORED)
def test_a_hostile_value_is_refused_or_kept_byte_for_byte(name: str, desk: Desk) -> None:
    """The storage's side of the collection: what is in the log can always be read again."""
    text, rule = STORED[name]
    run = desk.start(message("m1@x"))
    desk.append(run, started(1))
    known = desk.index.known(run)
    raw = b'{"seq":%d,"type":"StepCompleted","at":"%s","prev":"%s","call":"r1#1","output":{"inline":%s}}' % (
        known.seq + 1, known.changed.encode(), known.prev.encode(), text.encode(),
    )  # fmt: skip
    found = appended(desk, run, raw)
    assert found == ({rule} if rule else set())
    if not rule:
        event = ev.decode(raw)
        assert isinstance(event, ev.StepCompleted)
        assert isinstance(event.output.inline, msgspec.Raw)
        assert bytes(event.output.inline).decode() == text


def test_every_hostile_value_has_been_thought_about() -> None:
    """A row that is added must be looked at."""
    if not cases.available():
        pytest.skip(cases.MISSING)
    assert {row["name"] for row in cases.rows("step_values.jsonl")} == STORED.keys() | NEVER_STORED


# --- what the corruptions don't reach ---------------------------------------------------------------------------------


def test_a_child_opens_no_more_calls_than_it_may(desk: Desk) -> None:
    """And the supervisor's events, which close calls, are let through."""
    run = desk.start(message("m1@x"))
    desk.append(run, started(1), started(2))
    known = desk.index.known(run)
    _, raw = ev.stored(started(3), seq=known.seq + 1, at=known.changed, prev=known.prev)
    commit = Commit(author="workflow-process", puts={layout.event_path(run, known.seq + 1): raw})
    assert refused(desk, commit) == ()
    (found,) = refused(desk, commit, Limits(open_calls=2))
    assert (found.rule, found.value) == ("open-calls", "3 open calls")
    _, raw = ev.stored(ev.RunPaused(code="operator"), seq=known.seq + 1, at=known.changed, prev=known.prev)
    paused = Commit(author="supervisor", puts={layout.event_path(run, known.seq + 1): raw})
    assert refused(desk, paused, Limits(open_calls=1)) == ()


def test_a_child_writes_to_no_run_that_has_not_begun(desk: Desk) -> None:
    """Its first event would be one that only the host may write; and it was given nothing."""
    _, raw = ev.stored(started(1), seq=1, at="2026-11-29T08:00:00.000Z", prev="0" * 64)
    run = RunId("run_9_00112233445566aa")
    assert {"fence", "legal"} <= appended(desk, run, raw)


def test_a_watermark_never_falls(desk: Desk) -> None:
    """What was dropped would be looked for again."""
    for day in range(12):
        arrival = desk.enqueue(message(f"m{day}@x"))
        desk.must(Claim(arrival))
        desk.must(Reject(arrival, "test"))
        desk.wall += BUCKET_AGE
    assert desk.drop_old()
    mark = watermark(desk.index, ADDRESS)
    lower = Watermark(first=mark.first - 1, closed=("2026-11-29T08:00:00.000Z", *mark.closed))
    commit = Commit(author="supervisor", puts={layout.watermark_path(ADDRESS): msgspec.json.encode(lower)})
    (found,) = refused(desk, commit)
    assert found.rule == "watermark"


def test_unreadable_grounds_are_a_finding_and_no_crash() -> None:
    """What lies there may be damaged already: the commit on top of it is refused, and the host goes on."""
    files = Files(first_files())
    desk = Desk(files)
    desk.begin()
    run = desk.start(message("m1@x"))
    del files.files[layout.event_path(run, 1)]
    segment = {layout.segment_path(run, 1): b"{}\n" * 64}
    found = refused(desk, Commit(author="supervisor", puts=segment))
    assert {each.rule for each in found} & {"append-only", "record"}


EVENT = "runs/1/00/run_{}_0011223344556677/events/{}.json"
PATHS = st.one_of(
    st.builds(EVENT.format, st.integers(-1, 99), st.text("0123456789", max_size=12)),
    st.text("abrunsevents/_0123456789.json", max_size=60),
)  # fmt: skip


@given(path=PATHS)
def test_the_quick_reading_of_a_path_is_the_layouts(path: str) -> None:
    """Most paths are an event's, and are read by a shorter way that must say the same."""
    above, _, name = path.rpartition("/")
    run = tail_of(above)
    seq = None if run is None else seq_in(name)
    try:
        place = layout.place_of(path)
    except BadPath:
        place = None
    if place is not None and place.kind == "event":
        assert (run, seq) == (place.run, place.number)
    else:
        assert seq is None or run is None

"""What is sent to a child: everything, once, in order, and the bulky parts a few at a time, whatever the sizes."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from actors.logic.child.outbox import BULK_UNDER_WAY, Blob, Outbox, pump, push, written
from ipc import cbor
from ipc.messages import (
    BUNDLE,
    AppendResponse,
    BlobChunk,
    EventsCommitted,
    GrantsUpdated,
    RunLive,
    RunLog,
    ToChild,
    single,
)
from waypost.model.limits import DEFAULT

RUN = "run_0_" + "0" * 16
EVENTS = st.lists(st.binary(min_size=1, max_size=30), min_size=1, max_size=8).map(tuple)
ITEMS = st.one_of(
    st.builds(RunLog, run=st.just(RUN), events=EVENTS),
    st.builds(EventsCommitted, run=st.just(RUN), events=EVENTS),
    st.just(RunLive(run=RUN)),
    st.builds(Blob, id=st.integers(0, 9), data=st.binary(max_size=50)),
)


def said(item: Any) -> list[Any]:
    """What an item comes to, however it was divided."""
    match item:
        case EventsCommitted():
            return [("event", event) for event in item.events]
        case Blob() | BlobChunk():
            return [("blob", item.id, byte) for byte in item.data] or [("empty blob", item.id)]
        case _:
            return [item]


@given(st.lists(st.one_of(ITEMS, st.none()), max_size=25), st.sampled_from((40, 1000, 100_000)))
def test_everything_leaves_once_and_in_order(items: list[Any], page: int) -> None:
    """None stands for a bulky frame that has left. A ``page`` is small enough for no bundle, for some, for one."""
    outbox, left, under_way = Outbox(), list[ToChild](), 0
    for item in [*items, *[None] * 200]:
        if item is None:
            under_way = max(0, under_way - 1)
            outbox = written(outbox)
        else:
            outbox = push(outbox, (item,), page=page)
        outbox, leaving = pump(outbox, chunk=16, page=page)
        under_way += sum(effect.report for effect in leaving)
        assert under_way <= BULK_UNDER_WAY
        assert outbox.light >= 0
        for effect in leaving:
            messages = single(effect.payload)
            assert effect.report == any(isinstance(message, RunLog | BlobChunk) for message in messages)
            assert len(messages) == 1 or len(cbor.encode(effect.payload)) <= page
            left += messages
    assert (outbox.waiting, outbox.light, outbox.blobs) == ((), 0, 0)
    assert [word for item in items if item is not None for word in said(item)] == [w for p in left for w in said(p)]


@pytest.mark.parametrize(
    ("before", "kinds"),
    [
        ((), ["RunLog", "RunLog"]),
        ((RunLive(run=RUN),), ["RunLive", "RunLog", "RunLog"]),
        (
            (RunLive(run=RUN), EventsCommitted(run=RUN, events=(b"x" * 30,))),
            ["RunLive EventsCommitted", "RunLog", "RunLog"],
        ),
    ],
    ids=["bulk alone", "behind a small one", "behind two that leave together"],
)
def test_the_third_page_of_a_log_waits_for_one_of_two_to_leave(before: tuple[ToChild, ...], kinds: list[str]) -> None:
    """Each fills a frame; what was before them is out of their way at once, and what comes behind keeps its place."""
    logs = [RunLog(run=RUN, events=(bytes([number]) * 1000,)) for number in range(3)]
    last = RunLive(run=RUN)
    outbox, leaving = pump(push(Outbox(), (*before, *logs, last), page=1000), chunk=16, page=1000)
    assert [" ".join(type(each).__name__ for each in single(effect.payload)) for effect in leaving] == kinds
    assert outbox.waiting == (logs[2], last)
    assert pump(push(outbox, (last,), page=1000), chunk=16, page=1000)[1] == ()
    outbox, leaving = pump(written(outbox), chunk=16, page=1000)
    assert [single(effect.payload) for effect in leaving] == [(logs[2],), (last,)]
    assert (outbox.waiting, outbox.bulk) == ((), BULK_UNDER_WAY)


@given(EVENTS)
def test_a_batch_is_divided_so_that_each_part_fits(events: tuple[bytes, ...]) -> None:
    """A frame has a limit; one event that is bigger than a page travels alone."""
    batch = EventsCommitted(run=RUN, events=events)
    outbox, leaving = pump(push(Outbox(), (batch,), page=40), chunk=16, page=40)
    assert outbox == Outbox()
    for effect in leaving:
        assert isinstance(effect.payload, EventsCommitted)
        assert sum(map(len, effect.payload.events)) <= 40 or len(effect.payload.events) == 1


def test_a_bundle_is_cut_where_it_would_not_fit_into_a_frame() -> None:
    """Whatever is in it: a frame that is too large ends the child that is to get it, again and again."""
    long = AppendResponse(id=1, refused="\N{EARTH GLOBE EUROPE-AFRICA}" * 2000, code="limit")
    grants = GrantsUpdated(grants=b"x" * 60_000, sha256="0" * 64)
    small = AppendResponse(id=2)
    sent: list[ToChild] = [*[long] * 600, *[grants] * 100, *[small] * 1000]
    outbox, leaving = pump(push(Outbox(), sent, page=DEFAULT.page), chunk=DEFAULT.chunk, page=DEFAULT.page)
    assert outbox == Outbox()
    frames = [single(effect.payload) for effect in leaving]
    assert [message for frame in frames for message in frame] == sent
    assert all(len(cbor.encode(effect.payload)) < DEFAULT.frame for effect in leaving)
    assert max(map(len, frames)) == BUNDLE


@given(st.binary(max_size=200))
def test_a_blob_says_its_size_and_where_each_part_belongs(data: bytes) -> None:
    """An empty one, too, is one part."""
    outbox, chunks = push(Outbox(), (Blob(7, data),), page=40), list[BlobChunk]()
    while outbox.waiting:
        outbox, leaving = pump(written(written(outbox)), chunk=16, page=40)
        chunks += [effect.payload for effect in leaving if isinstance(effect.payload, BlobChunk)]
    assert b"".join(chunk.data for chunk in chunks) == data
    assert {chunk.size for chunk in chunks} == {len(data)}
    assert [chunk.offset for chunk in chunks] == [16 * number for number in range(len(chunks))]

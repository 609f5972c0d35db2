"""How long a consumed mail's id is refused: buckets close, stay for the horizon, and are dropped whole."""

import base64
import hashlib
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from substrate import layout
from substrate.errors import Damaged
from substrate.messages import Accepted, Claim, Enqueue, Reject, TakeUp
from substrate.operations import Settled
from substrate.operations.buckets import BUCKET_AGE, DIRECTORY_ENTRIES, PORTION, Watermark, drop, due, watermark
from substrate.runlog import leaves
from substrate.signing.keys import SigningKey
from substrate.storage.store import Store
from waypost.model import events as ev
from waypost.model.errors import Invalid
from waypost.model.ids import RunId
from waypost.model.limits import Limits
from waypost.model.times import stamp
from waypost.testing.clock import START
from waypost.testing.desk import ADDRESS, REPOSITORY, Desk, Files, call, first_files, message

WEEK = 7 * BUCKET_AGE
NOTHING = ev.RunCompleted(result=ev.Value(inline=msgspec.Raw(b"null")))


def reject(desk: Desk, name: str) -> None:
    """Accept a mail and consume it, without a run."""
    arrival = desk.enqueue(message(name))
    desk.must(Claim(arrival))
    desk.must(Reject(arrival, "test"))


def days(count: int, desk: Desk | None = None) -> Desk:
    """A mail a day, consumed at once: m0@x on the first."""
    desk = desk or Desk()
    desk.begin()
    for day in range(count):
        reject(desk, f"m{day}@x")
        desk.wall += BUCKET_AGE
    desk.wall -= BUCKET_AGE
    desk.check()
    return desk


@given(
    st.lists(st.integers(0, 40), max_size=12),
    st.integers(0, 60),
    st.floats(0.1, 30, allow_nan=False),
)
def test_no_bucket_goes_before_its_time_and_at_most_a_days_at_once(
    hours: list[int], now: int, retention_days: float
) -> None:
    """Whatever the clock said when they were closed, also backwards: nothing younger than the horizon is forgotten."""
    closed = [START + sum(hours[: n + 1]) * 3_600_000 for n in range(len(hours))]
    wall = START + now * BUCKET_AGE // 2
    count = due(Watermark(closed=tuple(map(stamp, closed))), wall, retention_days * 86_400)
    gone = closed[:count]
    assert all(at + int(retention_days * BUCKET_AGE) <= wall + 1 for at in gone)
    assert not gone or gone[-1] - gone[0] < BUCKET_AGE
    if count < len(closed):
        following = closed[count]
        assert following + retention_days * BUCKET_AGE > wall - 1 or following - closed[0] >= BUCKET_AGE


def test_an_id_is_refused_for_a_week_after_it_was_consumed_and_then_no_more() -> None:
    """Longer than senders try again; and what is kept of the past doesn't grow for ever."""
    desk = days(2)
    assert watermark(desk.index, ADDRESS) == Watermark(closed=(stamp(desk.wall),))
    desk.wall += WEEK - 1
    assert desk.drop_old() == 0
    assert isinstance(desk.do(Enqueue(message("m0@x"))), Settled)
    desk.wall += 1
    assert desk.drop_old() == 1
    assert desk.changes[-1].subject == "drop bucket 0 of consumed mail"
    assert watermark(desk.index, ADDRESS) == Watermark(first=1)
    assert isinstance(desk.do(Enqueue(message("m1@x"))), Settled)
    assert desk.must(Enqueue(message("m0@x"))).outcome == "enqueued"
    assert desk.tree.read(layout.mail_path(1)) == message("m0@x")
    desk.check()


def test_a_big_bucket_is_dropped_at_once_and_cleared_away_in_portions() -> None:
    """No append waits for thousands of files; and what is half cleared away is never asked, nor taken for a whole."""
    desk = Desk()
    desk.begin()
    for number in range(100):
        reject(desk, f"m{number}@x")
    desk.wall += BUCKET_AGE
    reject(desk, "next@x")
    desk.wall += WEEK
    first = drop(desk.index, desk.context, another=True)
    assert first is not None
    assert (first.value, len(first.deletes)) == (True, PORTION)
    commits = len(desk.changes)
    assert desk.drop_old() == 1
    assert len(desk.changes) - commits > 2
    assert desk.changes[-1].subject == "clear away bucket 0 of consumed mail"
    assert desk.index.entries(layout.bucket_dir(ADDRESS, 0)) == ()
    assert drop(desk.index, desk.context, another=False) is None
    assert isinstance(desk.do(Enqueue(message("next@x"))), Settled)
    desk.check()


def test_a_clock_that_jumps_a_year_costs_one_days_ids_at_each_start() -> None:
    """And none of the others, when it is put right."""
    desk = days(5)
    desk.wall += 365 * BUCKET_AGE
    assert desk.drop_old() == 1
    desk.wall -= 365 * BUCKET_AGE
    assert desk.drop_old() == 0
    known = [isinstance(desk.do(Enqueue(message(f"m{day}@x"))), Settled) for day in range(5)]
    assert known == [False, True, True, True, True]
    desk.check()


def test_the_bucket_that_is_open_is_never_dropped() -> None:
    """It may take an entry at any moment; one that nothing is added to just stays."""
    desk = days(1)
    desk.wall += 100 * WEEK
    assert desk.drop_old() == 0
    assert isinstance(desk.do(Enqueue(message("m0@x"))), Settled)


def test_an_id_that_a_live_run_was_given_is_a_duplicate_at_any_age() -> None:
    """A run may wait for months; a redelivery of the mail that started it must not start another."""
    desk = days(1)
    run = desk.start(message("live@x"))
    asked = desk.must(Enqueue(message("live@x", text="another")))
    assert asked.outcome == "on-hold"
    for day in range(3):
        desk.wall += WEEK
        reject(desk, f"later{day}@x")
        desk.drop_old()
    assert watermark(desk.index, ADDRESS).first > 0
    again = desk.do(Enqueue(message("live@x")))
    assert again == Settled(Accepted("already-present", run, 2, "consumed"))
    assert desk.must(Enqueue(message("live@x", text="a third"))).outcome == "on-hold"
    desk.reopen(desk.tree)
    assert desk.do(Enqueue(message("live@x"))) == again

    desk.append(run, NOTHING)
    assert desk.must(Enqueue(message("live@x"))).outcome == "enqueued"
    desk.check()


def forgotten_but_by_its_run() -> tuple[Desk, RunId, bytes]:
    """A live run that was given two mails long ago, the second under an id that is no text; and that second one."""
    desk = Desk()
    desk.begin()
    run = desk.start(message("m1@x"))
    desk.append(run, ev.SignalAwaited(call=call(1), park="input", seen=1))
    second = message("m2@x", answers="m1@x").replace(b"<m2@x>", b"<m2\xff@x>")
    arrival = desk.enqueue(second)
    desk.must(Claim(arrival))
    desk.must(TakeUp(arrival=arrival, wait=call(1)))
    desk.wall += BUCKET_AGE
    reject(desk, "later@x")
    desk.wall += WEEK
    assert desk.drop_old() == 1
    return desk, run, second


def test_each_mail_that_a_live_run_was_given_is_a_duplicate_at_any_age() -> None:
    """Not only the one that started it: an answer that is redelivered must not answer the next question, too."""
    desk, run, second = forgotten_but_by_its_run()
    assert desk.do(Enqueue(second)) == Settled(Accepted("already-present", run, 2, "consumed"))
    assert desk.do(Enqueue(message("m1@x"))) == Settled(Accepted("already-present", run, 1, "consumed"))
    other = message("m3@x").replace(b"<m3@x>", base64.b64encode(b"<m2\xff@x>"))
    assert desk.must(Enqueue(other)).outcome == "enqueued"  # an id that only looks like the other in the log
    desk.check()


@pytest.mark.parametrize(("found", "said"), [(None, "the file is missing"), (message("m9@x"), "none of its mails")])
def test_a_mail_of_a_live_run_that_is_not_there_is_damage_and_its_redelivery_no_new_mail(
    found: bytes | None, said: str
) -> None:
    """The log says that the run was given it: to let it in again because its bytes are gone would do it twice."""
    desk, _, second = forgotten_but_by_its_run()
    assert isinstance(desk.tree, Files)
    if found is None:
        del desk.tree.files[layout.mail_path(2)]
    else:
        desk.tree.files[layout.mail_path(2)] = found
    with pytest.raises(Damaged, match=said):
        desk.do(Enqueue(second))
    assert 4 not in desk.index.queue


@pytest.mark.parametrize("found", [b"", b"{}", b"[1]", b"\xff"])
def test_a_consumed_entry_that_cannot_be_read_is_damage_and_not_the_senders_fault(found: bytes) -> None:
    """Whoever sends the mail again would else be told that the mail is no good."""
    desk = Desk()
    desk.begin()
    desk.start(message("m1@x"))
    assert isinstance(desk.tree, Files)
    (path,) = (path for path in desk.tree.files if path.startswith(layout.queue_dir(ADDRESS, "consumed")))
    desk.tree.files[path] = found
    with pytest.raises(Damaged, match=path.rpartition("/")[2]):
        desk.do(Enqueue(message("m1@x")))


def test_what_a_run_sent_is_no_mail_that_it_was_given() -> None:
    """A mail of ours that comes back to us by way of a list is one that was never here."""
    desk = Desk()
    desk.begin()
    run = desk.start(message("m1@x"))
    desk.index.threads.belongs(hashlib.sha256(b"<sent@x>").hexdigest(), run)
    assert desk.must(Enqueue(message("sent@x"))).outcome == "enqueued"


def test_ids_that_are_chosen_to_lie_in_one_directory_close_the_bucket() -> None:
    """Every directory is bounded, also when somebody computes ids for it."""
    desk = Desk()
    desk.begin()
    made = (f"{number}@x" for number in range(10**9))
    chosen = (name for name in made if hashlib.sha256(f"<{name}>".encode()).hexdigest().startswith("00"))
    for _ in range(DIRECTORY_ENTRIES + 1):
        reject(desk, next(chosen))
    assert (desk.index.state.bucket, desk.index.state.bucket_entries) == (1, 1)
    desk.check()


def test_buckets_of_before_there_was_a_watermark_count_as_closed_when_the_next_one_closes() -> None:
    """What is not known of them must not make them go too early."""
    desk = days(4)
    assert isinstance(desk.tree, Files)
    del desk.tree.files[layout.watermark_path(ADDRESS)]
    desk.reopen(desk.tree)
    desk.wall += BUCKET_AGE
    reject(desk, "next@x")
    assert watermark(desk.index, ADDRESS) == Watermark(closed=(stamp(desk.wall),) * 4)
    desk.check()


def test_a_watermark_that_cannot_be_read_is_damage_and_not_a_fresh_one() -> None:
    """To guess that nothing was dropped, or everything, would be to guess."""
    desk = days(2)
    assert isinstance(desk.tree, Files)
    desk.tree.files[layout.watermark_path(ADDRESS)] = b'{"first":-1}'
    with pytest.raises(Damaged, match="watermark"):
        desk.do(Enqueue(message("m0@x")))


@pytest.mark.parametrize("retention", [0, -1, float("nan"), float("inf")])
def test_a_horizon_that_is_none_is_refused(retention: float) -> None:
    """It would let every redelivery start another run."""
    with pytest.raises(Invalid, match="horizon"):
        Limits(retention=retention)


def test_run_ids_are_not_used_twice_when_their_mail_is_forgotten() -> None:
    """The same mail, months later, is another run."""
    desk = Desk()
    desk.begin()
    first = desk.start(message("m1@x"))
    desk.append(first, NOTHING)
    desk.wall += BUCKET_AGE
    reject(desk, "m2@x")
    desk.wall += WEEK
    assert desk.drop_old() == 1
    second = desk.start(message("m1@x"))
    assert first != second
    desk.check()


def test_what_is_remembered_of_a_closed_bucket_is_what_lies_in_it() -> None:
    """An enqueue asks every bucket; to read a directory of each again for every mail would take milliseconds."""
    desk = days(3)
    for day in range(3):
        key = hashlib.sha256(f"<m{day}@x>".encode()).hexdigest()
        directory = layout.consumed_path(ADDRESS, day, key).rpartition("/")[0]
        assert desk.index.packed(directory) == bytes.fromhex(key)
        assert isinstance(desk.do(Enqueue(message(f"m{day}@x"))), Settled)


def test_keys_are_taken_from_the_bytes_of_a_sealed_directory_as_from_one_that_isn_t_sealed(tmp_path: Path) -> None:
    """A key that was overlooked there would let a redelivered mail start a second run."""
    path, key = tmp_path / "r.git", SigningKey.generate()
    Store.create(path, repository_id=REPOSITORY, key=key, first=first_files(), at=START).close()
    store = Store.open(path, key=key)
    desk = days(2, Desk(store))
    for number in range(40):  # so many that some lie beside each other
        reject(desk, f"{number}@x")
    desk.wall += BUCKET_AGE
    reject(desk, "last@x")
    names = {f"{at}/{name}" for at, name in leaves(store, layout.queue_dir(ADDRESS, "consumed"))}
    for _ in range(2):
        for directory in names:
            keys = [bytes.fromhex(name.removesuffix(".json")) for name in store.entries(directory)]
            assert desk.folded().packed(directory) == b"".join(keys)
        store.seal()
    store.close()

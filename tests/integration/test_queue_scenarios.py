"""Every row of the hostile queue scenarios: one handler by name.

On a real store where a restart or git takes part; the right outcome is in each row.
"""

from collections.abc import Callable, Iterator
from pathlib import Path

import msgspec
import pytest

from substrate import SigningKey, layout, runlog
from substrate.messages import Accepted, Append, BeginGeneration, Claim, Enqueue, TakeUp, WorkflowProcess
from substrate.operations import Change, Settled
from substrate.operations.buckets import due, watermark
from substrate.rules import Commit, Ground, judge
from substrate.storage.store import Store
from waypost.model import events as ev
from waypost.model.errors import Invalid
from waypost.model.ids import Generation
from waypost.model.limits import Limits
from waypost.model.queue import encode
from waypost.model.run import Ended
from waypost.testing import cases
from waypost.testing.desk import ADDRESS, REPOSITORY, STARTED, Desk, call, first_files, message
from waypost.testing.stores import AT, fsck, git

HOUR = 3_600_000
M1 = message("m1@x")


class Kept(Desk):
    """A desk on a real store that can be killed and started again."""

    def __init__(self, folder: Path) -> None:
        self.path, self.key = folder / "r.git", SigningKey.generate()
        store = Store.create(self.path, repository_id=REPOSITORY, key=self.key, first=first_files(), at=AT)
        super().__init__(store)
        self.begin()

    @property
    def store(self) -> Store:
        """The store under it."""
        assert isinstance(self.tree, Store)
        return self.tree

    def kill(self) -> None:
        """Kill -9, then the next start: what was flushed is there, the rest isn't."""
        self.store.abandon()
        self.reopen(Store.open(self.path, key=self.key))

    def queued(self, state: str) -> list[int]:
        """Arrivals in a state of the queue, as the tree has them."""
        found = runlog.leaves(self.store, layout.queue_dir(ADDRESS, state))
        return [layout.place_of(f"{directory}/{name}").number or 0 for directory, name in found]

    def refused_again(self, raw: bytes = M1) -> Accepted:
        """The mail is a duplicate."""
        decided = self.do(Enqueue(raw))
        assert isinstance(decided, Settled)
        assert isinstance(decided.value, Accepted)
        return decided.value


@pytest.fixture
def kept(tmp_path: Path) -> Iterator[Kept]:
    made = Kept(tmp_path)
    yield made
    made.store.abandon()


def same_mail_twice(desk: Kept) -> None:
    desk.enqueue(M1)
    assert desk.refused_again().place == "inbox"
    assert desk.queued("inbox") == [1]


def duplicate_after_consumed(desk: Kept) -> None:
    desk.start(M1)
    assert desk.refused_again().place == "consumed"


def duplicate_after_purge_and_restart(desk: Kept) -> None:
    for number in range(1, 20):
        desk.start(message(f"m{number}@x"))
    desk.wall += 23 * HOUR
    desk.store.flush()
    desk.kill()
    assert desk.refused_again().arrival == 1


def window_not_refreshed(desk: Kept) -> None:
    # The window counts from consumption; a duplicate extends nothing, and finds its mail until the window is over.
    run = desk.start(M1)
    desk.append(run, ev.RunFailed(error=ev.Fault(type="X", message="")))
    for hour in range(8 * 24):
        desk.wall += HOUR
        if hour % 24 == 0:
            desk.start(message(f"next{hour}@x"))
        desk.drop_old()
        assert desk.refused_again().arrival == 1
    desk.wall += HOUR  # a week after its bucket was closed
    assert desk.drop_old() == 1
    assert isinstance(desk.do(Enqueue(M1)), Change)


def crash_before_the_ack(desk: Kept) -> None:
    desk.enqueue(M1)
    desk.store.flush()
    desk.kill()
    desk.refused_again()
    assert desk.queued("inbox") == [1]


def crash_after_the_run_finished(desk: Kept) -> None:
    # Consumption isn't a second step after the run: it is in the commit that started it.
    run = desk.start(M1)
    desk.append(run, ev.RunFailed(error=ev.Fault(type="X", message="")))
    desk.store.flush()
    desk.kill()
    assert isinstance(desk.index.known(run).run, Ended)
    assert desk.queued("inbox") == desk.queued("processing") == []
    desk.refused_again()


def crash_inside_the_take_up(desk: Kept) -> None:
    run = desk.start(M1)
    desk.store.flush()
    desk.kill()
    assert desk.code(TakeUp(arrival=1, start=STARTED)) == "not-claimed"
    assert desk.index.known(run).seq == 1


def fresh_mail_during_replay(desk: Kept) -> None:
    for name in ("m1@x", "m2@x"):
        desk.must(Claim(desk.enqueue(message(name))))
    desk.store.flush()
    desk.kill()
    desk.enqueue(message("m3@x"))
    desk.must(BeginGeneration())
    assert list(desk.index.queue) == desk.queued("inbox") == [1, 2, 3]


def equal_timestamps(desk: Kept) -> None:
    # The row's tiebreak is the id; here order is the arrival ordinal and time takes no part (storage §5).
    for name in ("m_b@x", "m_a@x"):
        desk.enqueue(message(name))
    desk.store.flush()
    before = [item.queued.entry.id for item in desk.index.queue.values()]
    desk.kill()
    assert [item.queued.entry.id for item in desk.index.queue.values()] == before == ["<m_b@x>", "<m_a@x>"]


def odd_times(desk: Kept) -> None:
    # No caller gives a time of receipt; the host's own clock may say anything, and no clock can refuse mail.
    for number, wall in enumerate((0, -1, 2**40)):
        desk.wall = wall
        desk.enqueue(message(f"m{number}@x"))
    desk.store.flush()
    assert desk.queued("inbox") == [1, 2, 3]


def clock_forward_and_back(desk: Kept) -> None:
    desk.wall += 365 * 24 * HOUR
    desk.start(M1)
    desk.wall -= 365 * 24 * HOUR
    desk.start(message("m2@x"))
    desk.refused_again()


def poison_mail(desk: Kept) -> None:
    # The attempt is in the claim's own commit, before anybody parses the mail; a restart isn't blocked by it.
    desk.enqueue(M1)
    desk.enqueue(message("m2@x"))
    for attempt in (1, 2, 3):
        assert desk.must(Claim(1)) == attempt
        desk.store.flush()
        desk.kill()
        desk.must(BeginGeneration())
        assert desk.queued("hold" if attempt == desk.limits.attempts else "inbox").count(1) == 1
    assert desk.index.on_hold[1].why == "poison"
    desk.must(Claim(2))


def long_run(desk: Kept) -> None:
    desk.enqueue(M1)
    desk.must(Claim(1))
    desk.wall += 2 * HOUR
    assert desk.code(Claim(1)) == "not-queued"


def watchdog_on_a_slow_run(desk: Kept) -> None:
    run = desk.start(M1)
    arrival = desk.enqueue(message("m2@x", answers="m1@x"))
    assert desk.index.queue[arrival].queued.entry.run == run
    desk.must(Claim(arrival))
    assert desk.code(TakeUp(arrival=arrival, start=STARTED)) == "live"


def recovery_in_the_same_millisecond(desk: Kept) -> None:
    run = desk.start(M1)
    desk.must(BeginGeneration())  # the clock stands still
    assert not desk.index.queue
    by = WorkflowProcess(Generation(2))
    started = ev.StepStarted(call=call(1), step="s", arguments="0" * 64)
    assert desk.code(Append(by=by, run=run, events=(started,))) == "not-given"


def enqueue_while_gc_runs(desk: Kept) -> None:
    for number in range(1, 61):
        desk.enqueue(message(f"m{number}@x"))
        desk.store.flush()
        if number % 20 == 0:
            desk.store.seal()
            git(desk.path, "gc", "--prune=now", "-q")
    assert desk.queued("inbox") == list(range(1, 61))
    assert [desk.store.read(layout.mail_path(n)) for n in (1, 60)] == [M1, message("m60@x")]
    desk.store.seal()
    assert fsck(desk.path) == ""


def redelivery_without_an_id(desk: Kept) -> None:
    # No Message-ID: the id is the hash of the raw bytes, so a new trace header makes another mail; documented.
    raw = b"From: bob@example.com\r\nSubject: s\r\n\r\ntext\r\n"
    desk.enqueue(raw)
    desk.enqueue(b"Received: by relay.example\r\n" + raw)
    entries = [item.queued.entry for item in desk.index.queue.values()]
    assert entries[0].run != entries[1].run
    assert entries[0].bare == entries[1].bare


def prune_above_the_watermark(desk: Kept) -> None:
    # No operation removes a single entry; a bucket goes whole, and not before its time.
    desk.start(M1)
    desk.wall += 25 * HOUR
    desk.start(message("m2@x"))
    assert desk.drop_old() == 0
    before = watermark(desk.index, ADDRESS)
    assert (before.first, len(before.closed)) == (0, 1)
    assert due(before, desk.wall + 7 * 24 * HOUR - 1, desk.limits.retention) == 0


def no_horizon(_desk: Kept) -> None:
    for retention in (0, -1, float("nan"), None):
        with pytest.raises((Invalid, TypeError)):
            Limits(retention=retention)  # type: ignore[arg-type] # None is one of the row's


def refused(desk: Kept, puts: dict[str, bytes], deletes: tuple[str, ...] = ()) -> set[str]:
    """The rules by which a commit is refused, whatever would have made it."""
    commit = Commit(author="supervisor", puts=puts, deletes=deletes)
    ground = Ground(repository=REPOSITORY, address=ADDRESS, limits=desk.limits)
    return {each.rule for each in judge(desk.index, commit, ground).broken}


def consumed(desk: Kept) -> str:
    """The path of the one consumed entry."""
    root = layout.bucket_dir(ADDRESS, 0)
    return next(f"{root}/{hh}/{name}" for hh in desk.index.entries(root) for name in desk.index.entries(f"{root}/{hh}"))


def same_id_in_two_states(desk: Kept) -> None:
    # No operation makes it; and if one did, the rules would say no before it is written.
    arrival = desk.enqueue(M1)
    entry = desk.index.queue[arrival].queued.entry
    done = msgspec.structs.replace(entry, consumed=entry.received, rejected="test")
    assert "one-place" in refused(desk, {layout.consumed_path(ADDRESS, 0, entry.key): encode(done)})
    assert "one-place" in refused(desk, {layout.processing_path(ADDRESS, arrival, entry.key, 1): encode(entry)})


def consumed_bytes_changed(desk: Kept) -> None:
    # The same; nor may it go, but with its bucket.
    desk.start(M1)
    path = consumed(desk)
    raw = desk.index.read(path) or b""
    assert "write-once" in refused(desk, {path: raw.replace(b"bob@", b"eve@")})
    assert "bucket" in refused(desk, {}, (path,))


HANDLERS: dict[str, Callable[[Kept], None]] = {
    "same mail twice": same_mail_twice,
    "duplicate after consumed": duplicate_after_consumed,
    "duplicate after purge of other entries + restart": duplicate_after_purge_and_restart,
    "window not refreshed by rejected duplicates": window_not_refreshed,
    "crash after inbox commit, before ack": crash_before_the_ack,
    "crash after run finished, before markConsumed": crash_after_the_run_finished,
    "crash inside markConsumed (ref moved, ack not sent)": crash_inside_the_take_up,
    "fresh mail during start-up replay": fresh_mail_during_replay,
    "equal timestamps": equal_timestamps,
    "receivedAt 0 / negative / float": odd_times,
    "clock forward 1 year then back": clock_forward_and_back,
    "poison mail kills the HOST process while parsing": poison_mail,
    "long run > visibility timeout": long_run,
    "dispatch watchdog fires on a slow run": watchdog_on_a_slow_run,
    "recovery adopts a run started in the same millisecond": recovery_in_the_same_millisecond,
    "enqueue while gc runs": enqueue_while_gc_runs,
    "redelivery with new Received headers, no Message-ID": redelivery_without_an_id,
    "same id in two states": same_id_in_two_states,
    "consumed bytes changed": consumed_bytes_changed,
    "prune above the watermark": prune_above_the_watermark,
    "retention horizon 0 / negative / None": no_horizon,
}


@pytest.mark.parametrize("row", cases.rows("queue_scenarios.jsonl"), ids=lambda row: row["name"])
def test_every_scenario_of_the_queue_comes_out_right(row: dict[str, str], kept: Kept) -> None:
    """Each of these has cost somebody else a lost mail or a second run."""
    HANDLERS[row["name"]](kept)
    kept.check()


def test_every_scenario_has_a_handler() -> None:
    """A new row can't pass by not being looked at, and no handler is left without its row."""
    if not cases.available():
        pytest.skip(cases.MISSING)
    names = {row["name"] for row in cases.rows("queue_scenarios.jsonl")}
    assert names == HANDLERS.keys()

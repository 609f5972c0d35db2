"""What the rules say where it seldom comes to it: on damaged grounds, of a seal in steps, of what changes nothing."""

import hashlib
from collections.abc import Collection, Mapping
from typing import Any  # a field's value is its field's

import msgspec
import pytest
from msgspec import UNSET

from substrate import layout
from substrate.messages import (
    Claim,
    Drain,
    DrainDeployment,
    Enqueue,
    HoldDeployment,
    MailDelivered,
    NoteDrain,
    PutBlob,
    QueueMail,
    Recorded,
    Reject,
    ResumeDeployment,
)
from substrate.operations import Change
from substrate.operations.buckets import state_file
from substrate.operations.sealing import seal_run
from substrate.rules import Commit, Ground, judge, proposed
from substrate.rules.judge import judge_all
from substrate.rules.plain import plain_append
from substrate.rules.whole_runs import Counts, every_run
from waypost.model import events as ev
from waypost.model.ids import RunId, message_key
from waypost.model.limits import DEFAULT, Limits
from waypost.model.queue import Outgoing, encode
from waypost.testing.corrupted import NULL, completed, started
from waypost.testing.desk import ADDRESS, BOSS, REPOSITORY, Desk, Files, call, first_files, message
from waypost.testing.misdeeds import renamed_epoch

VALUE = b'"a value"'
NAME = hashlib.sha256(VALUE).hexdigest()
GROUND = Ground(repository=REPOSITORY, address=ADDRESS, limits=DEFAULT)
NOBODY = RunId("run_9_00112233445566aa")
"""A run that nobody has begun."""


class Place:
    """A desk over files that can be spoilt behind its back; with a run that has a value, and mail in the outbox."""

    def __init__(self) -> None:
        self.tree = Files(first_files())
        self.files = self.tree.files
        self.desk = Desk(self.tree)
        by = self.desk.begin()
        self.run = self.desk.start(message("m1@x"))
        self.desk.must(PutBlob(by=by, run=self.run, sha256=NAME, data=VALUE))
        self.desk.append(self.run, started(1), completed(1, ev.Value(blob=NAME)))
        self.desk.must(QueueMail(by=by, run=self.run, call=call(2), to=(BOSS,), subject="s", text="t"))

    def end(self) -> Commit:
        """The run ends; the commit that seals it."""
        self.desk.must(MailDelivered(1))
        self.desk.append(self.run, ev.RunCompleted(result=NULL))
        change = seal_run(self.desk.index, self.run)
        assert isinstance(change, Change)
        return proposed(change)

    def rules(
        self, puts: Mapping[str, bytes], deletes: Collection[str] = (), limits: Limits = DEFAULT
    ) -> list[tuple[str, str]]:
        """The rules that such a commit of the host's would break, each with the path."""
        commit = Commit(author="supervisor", puts=puts, deletes=deletes)
        found = judge(self.desk.index, commit, msgspec.structs.replace(GROUND, limits=limits)).broken
        return [(broken.rule, broken.path) for broken in found]

    def path(self, root: str) -> str:
        """The one file below it."""
        (path,) = (path for path in self.files if path.startswith(f"{root}/"))
        return path


@pytest.fixture(name="place")
def _place() -> Place:
    return Place()


# --- damaged grounds --------------------------------------------------------------------------------------------------


def test_a_run_that_cannot_be_read_takes_nothing_in(place: Place) -> None:
    """Its state is unknown, so none of its events can be judged; the finding names the event that is damaged."""
    place.files[layout.event_path(NOBODY, 1)] = b"{}"
    assert place.rules({layout.event_path(NOBODY, 2): b"{}"}) == [("record", f"{NOBODY}, event 1")]


def test_a_mail_whose_entry_cannot_be_read_stays_where_it_is(place: Place) -> None:
    """Nobody could say whether the entry that comes after it is the same one."""
    arrival = place.desk.enqueue(message("m2@x"))
    old = layout.inbox_path(ADDRESS, arrival, message_key(b"<m2@x>"))
    new = layout.processing_path(ADDRESS, arrival, message_key(b"<m2@x>"), 1)
    raw = place.files[old]
    assert place.rules({new: raw}, [old]) == []
    place.files[old] = b"{}"
    assert place.rules({new: raw}, [old]) == [("record", old)]


def test_an_outbox_entry_that_cannot_be_read_stays_where_it_is(place: Place) -> None:
    """It could be a mail that was never sent."""
    path = place.path(layout.OUTBOX)
    place.files[path] = b"{}"
    assert place.rules({}, [path]) == [("record", path)]


def test_a_run_of_a_tree_that_has_no_event_is_a_finding(place: Place) -> None:
    """Its grants say that it was begun; the others are looked at all the same."""
    state = place.desk.index.state
    counts = Counts()
    assert list(every_run(place.tree, state, GROUND, counts)) == []
    assert (counts.runs, counts.events) == (1, 4)
    place.files[layout.grants_path(NOBODY)] = b"{}"
    (found,) = every_run(place.tree, state, GROUND, counts)
    assert (found.rule, found.path) == ("missing", layout.run_dir(NOBODY))


def test_a_format_that_cannot_be_read_begins_no_epoch(place: Place) -> None:
    """Nobody could say what stays of it."""
    state = place.desk.index.state
    held = state_file(msgspec.structs.replace(state, held="restore"))
    puts = {**renamed_epoch().puts, **held}
    assert place.rules(puts) == []
    assert place.rules({**puts, layout.FORMAT: b"{}"}) == [("record", layout.FORMAT)]


def test_since_when_it_is_held_stays_and_goes_with_it(place: Place) -> None:
    """People are told it; an epoch that begins says it anew."""
    place.desk.must(DrainDeployment("ann"))
    place.desk.must(HoldDeployment())
    state = place.desk.index.state
    assert (state.held, isinstance(state.held_at, str)) == ("drain", True)
    later = msgspec.structs.replace(state, held_at="2026-11-29T09:00:00.000Z")
    assert place.rules(state_file(later)) == [("format", layout.STATE)]
    assert place.rules(state_file(msgspec.structs.replace(state, held_at=UNSET))) == [("format", layout.STATE)]
    assert place.rules(state_file(msgspec.structs.replace(state, held=""))) == [("format", layout.STATE)]
    assert place.rules(state_file(msgspec.structs.replace(state, held="", held_at=UNSET))) == []
    place.desk.must(ResumeDeployment("ann"))
    assert place.desk.index.state.held_at is UNSET


def test_a_drain_stays_as_it_was_recorded_until_it_is_over(place: Place) -> None:
    """Whoever goes on with it knows who wanted it, and since when; it may end, and it isn't made another one."""
    place.desk.must(DrainDeployment("ann"))
    state = place.desk.index.state
    assert isinstance(state.drain, Drain)
    other = msgspec.structs.replace(state.drain, to="end")
    assert place.rules(state_file(msgspec.structs.replace(state, drain=other))) == [("drain", layout.STATE)]
    assert place.rules(state_file(msgspec.structs.replace(state, held="drain"))) == [("drain", layout.STATE)]
    assert place.rules(state_file(msgspec.structs.replace(state, drain=UNSET))) == []
    assert place.rules(state_file(msgspec.structs.replace(state, held="drain", drain=UNSET))) == []


# --- sealing ----------------------------------------------------------------------------------------------------------


def test_what_the_clock_of_a_drain_has_counted_only_rises(place: Place) -> None:
    """A host that has counted less than another one before it would keep a deployment in service for longer."""
    place.desk.must(DrainDeployment("ann", end=True))
    place.desk.must(NoteDrain(7_500))
    state = place.desk.index.state
    assert isinstance(state.drain, Drain)
    drain = state.drain
    changed = {
        "more": (msgspec.structs.replace(drain, spent=7_501), []),
        "less": (msgspec.structs.replace(drain, spent=7_499), [("drain", layout.STATE)]),
        "none": (msgspec.structs.replace(drain, spent=UNSET), [("drain", layout.STATE)]),
        "of another": (msgspec.structs.replace(drain, spent=9_000, by="bob"), [("drain", layout.STATE)]),
        "over": (UNSET, []),
    }
    for name, (after, found) in changed.items():
        assert place.rules(state_file(msgspec.structs.replace(state, drain=after))) == found, name
    place.desk.must(ResumeDeployment("ann"))
    place.desk.must(DrainDeployment("ann"))
    state = place.desk.index.state
    assert isinstance(state.drain, Drain)
    counted = msgspec.structs.replace(state.drain, spent=1)
    assert place.rules(state_file(msgspec.structs.replace(state, drain=counted))) == [("drain", layout.STATE)]


def test_a_value_goes_to_the_sealed_form_in_the_commit_that_takes_it_from_the_run(place: Place) -> None:
    """Between two commits it would be nowhere."""
    commit = place.end()
    assert place.rules(commit.puts, commit.deletes) == []
    left = {path: raw for path, raw in commit.puts.items() if path != layout.sealed_blob_path(place.run, NAME)}
    assert place.rules(left, commit.deletes) == [("seal", layout.blob_path(place.run, NAME))]


def test_a_value_that_has_gone_ahead_stays_there(place: Place) -> None:
    """A run with large values moves those first; until its log follows, it isn't sealed, and they are all that is."""
    place.end()
    old, new = layout.blob_path(place.run, NAME), layout.sealed_blob_path(place.run, NAME)
    assert place.rules({new: VALUE}, [old]) == []
    place.files[new] = place.files.pop(old)
    assert place.rules({}, [new]) == [("sealed", new)]


# --- what changes nothing, or takes nothing of worth ------------------------------------------------------------------


def test_the_same_bytes_again_break_no_rule(place: Place) -> None:
    """What is written once may be told twice, and what goes and comes in one commit stays."""
    place.desk.enqueue(message("m2@x"))
    rejected = place.desk.enqueue(message("m3@x"))
    place.desk.must(Claim(rejected))
    place.desk.must(Reject(rejected, "test"))
    effect = layout.consumed_path(ADDRESS, 0, message_key(b"<m1@x>"))  # and its event would have to come again, too
    again = {path: raw for path, raw in place.files.items() if path.startswith(("runs/", "queue/")) and path != effect}
    assert {layout.place_of(path).kind for path in again} == {"event", "blob", "grants", "inbox", "consumed"}
    for path, raw in again.items():
        assert place.rules({path: raw}) == [], path
        assert place.rules({path: raw}, [path]) == [], path
    place.desk.append(place.run, *[each for number in range(3, 36) for each in (started(number), completed(number))])
    segment = layout.segment_path(place.run, 1)
    assert place.rules({segment: place.files[segment]}) == []
    assert place.rules({segment: b"{}\n" * layout.FAN}) == [("append-only", segment)]
    commit = place.end()
    place.desk.fold_away()
    assert place.rules(commit.puts) == []


def test_what_is_no_record_may_be_taken_away(place: Place) -> None:
    """What a step was granted; but by a name that is one."""
    path = layout.step_grants_path("s")
    place.files[path] = b"{}"
    assert place.rules({}, [path]) == []
    assert place.rules({}, ["grants/S.json"]) == [("path", "grants/S.json")]


def test_a_notice_leaves_the_outbox_with_no_event_and_a_runs_mail_with_its_own(place: Place) -> None:
    """A notice belongs to no run, so there is no log that could say what became of it."""
    entry = Outgoing(ordinal=2, message_id="<n@x>", to=(BOSS,), sha256=message_key(b"hello"), about=1, message="hello")
    mail, notice = place.path(layout.OUTBOX), layout.outbox_path(2, entry.key)
    place.files[notice] = encode(entry)
    assert place.rules({}, [notice]) == []
    assert place.rules({}, [mail]) == [("outbox", mail)]


def test_a_mail_is_as_long_as_it_may_be(place: Place) -> None:
    """To the byte."""
    raw = message("m2@x")
    change = place.desk.decide(Enqueue(raw))
    assert isinstance(change, Change)
    assert place.rules(change.puts, limits=Limits(mail=len(raw))) == []
    path = layout.mail_path(place.desk.index.state.arrival)
    assert place.rules(change.puts, limits=Limits(mail=len(raw) - 1)) == [("value-size", path)]


# --- the short way ----------------------------------------------------------------------------------------------------


def appended(place: Place, run: RunId, event: ev.AnyEvent, author: str = "workflow-process", **said: Any) -> Commit:
    """Somebody's next event, with what it says of itself in memory changed."""
    known = place.desk.index.known(run)
    path = layout.event_path(run, known.seq + 1)
    _, raw = ev.stored(event, seq=known.seq + 1, at=known.changed, prev=known.prev)
    recorded = Recorded(msgspec.structs.replace(ev.decode(raw), **said), raw)
    return Commit(author=author, puts={path: raw}, recorded=(recorded,))


@pytest.mark.parametrize(
    ("event", "said", "rule"),
    [
        (started(3), {"seq": 9}, "sequence"),
        (started(3), {"prev": "0" * 64}, "chain"),
        (completed(3), {}, "legal"),
    ],
    ids=["another number", "another chain", "a step that never began"],
)
def test_the_short_way_leaves_what_may_not_follow_to_the_rules(
    place: Place, event: ev.AnyEvent, said: dict[str, Any], rule: str
) -> None:
    """It has no words of its own for what is wrong."""
    good = appended(place, place.run, started(3))
    assert plain_append(place.desk.index, good, GROUND) is not None
    bad = appended(place, place.run, event, **said)
    assert plain_append(place.desk.index, bad, GROUND) is None
    assert {broken.rule for broken in judge_all(place.desk.index, bad, GROUND).broken} == {rule}


def test_the_short_way_begins_no_run(place: Place) -> None:
    """A run begins with its grants and its mail: more than events in files of their own."""
    child = appended(place, NOBODY, started(1))
    host = appended(place, NOBODY, ev.RunPaused(code="operator"), "supervisor")
    for bad, rule in ((child, "fence"), (host, "legal")):
        assert plain_append(place.desk.index, bad, GROUND) is None
        assert rule in {broken.rule for broken in judge(place.desk.index, bad, GROUND).broken}


def test_nobody_goes_on_with_a_run_that_has_ended(place: Place) -> None:
    """A child that was too slow to hear of it is told by the run's own rule, and not by the fence."""
    place.end()
    late = appended(place, place.run, started(3))
    assert [broken.rule for broken in judge(place.desk.index, late, GROUND).broken] == ["terminal"]

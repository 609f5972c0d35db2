"""A schedule comes further: each tick with its mail in one commit, once, whatever overlaps or comes again."""

import dataclasses

import msgspec
import pytest
from msgspec import UNSET

from substrate import layout, questions
from substrate.errors import Damaged
from substrate.messages import Cancel, Claim, Deploy, Pause, Planned, Reject, TakeUp, Tick, Ticked
from substrate.operations import Change
from substrate.operations.grants import grants_of
from substrate.resting import next_deadline
from substrate.rules import Commit, Ground, judge
from substrate.ticking import MOST_WAITING, began, decode, encode, next_tick, soonest
from waypost.model import events as ev
from waypost.model import mail
from waypost.model.code import deployed, tree_hash
from waypost.model.declaration import Declared, Runs
from waypost.model.errors import Invalid
from waypost.model.ids import RunId
from waypost.model.schedule import Overlap, Schedule, schedule, tick_id, tick_of
from waypost.model.times import stamp
from waypost.testing.clock import START
from waypost.testing.desk import ADDRESS, BOSS, REPOSITORY, STARTED, Desk, Files, call

MINUTE = 60_000
CODE = {"flow.py": b"x = 1\n"}
PATH = layout.schedule_path("daily")


def every(minutes: int, overlap: Overlap = "skip", name: str = "daily") -> Schedule:
    """A schedule of so many minutes."""
    return schedule(f"*/{minutes} * * * *", name=name, overlap=overlap)


def deploy(desk: Desk, *schedules: Schedule, files: dict[str, bytes] | None = None) -> None:
    """Code that declares these schedules is what runs from now on."""
    declared = Declared(name="expenses", address=ADDRESS, schedules=schedules or UNSET)
    files = CODE if files is None else files
    desk.must(Deploy(record=deployed(files, root="", module="flow", declared=declared), files=files))


def scheduled(overlap: Overlap = "skip", runs: Runs = "thread") -> Desk:
    """A deployment whose schedule began at START, with a child."""
    desk = Desk(runs=runs)
    desk.begin()
    deploy(desk, every(1, overlap))
    return desk


def at(minute: int) -> int:
    """So many minutes after START, in Unix ms."""
    return START + minute * MINUTE


def tick(desk: Desk, minute: int) -> Ticked:
    """It is so late, and the tick is dealt with."""
    desk.wall = max(desk.wall, at(minute))
    found: Ticked = desk.must(Tick(schedule="daily", after=stood(desk).reached, last=at(minute), due=at(minute)))
    desk.check()
    return found


def stood(desk: Desk, name: str = "daily") -> Ticked:
    """What the schedule's file says."""
    return decode(desk.tree.read(layout.schedule_path(name)) or b"")


def taken_up(desk: Desk, ticked: Ticked) -> RunId:
    """The newest tick's mail has begun its run."""
    assert ticked.arrival is not UNSET
    desk.must(Claim(ticked.arrival))
    start = dataclasses.replace(STARTED, code=tree_hash(CODE))
    run: RunId = desk.must(TakeUp(arrival=ticked.arrival, start=start))
    return run


def ended(desk: Desk, run: RunId) -> None:
    """The run completes."""
    desk.append(run, ev.RunCompleted(result=ev.Value(inline=msgspec.Raw(b"1"))))


# --- a tick and its mail ----------------------------------------------------------------------------------------------


def test_a_tick_is_one_commit_with_its_mail_and_how_far_the_schedule_has_come():
    """A host that dies sees both or neither: no tick is lost, and none comes twice."""
    desk = scheduled()
    ticked = tick(desk, 1)
    change = desk.changes[-1]
    assert {layout.place_of(path).kind for path in change.puts} == {"schedule", "inbox", "mail", "state"}
    assert ticked == stood(desk)
    assert (ticked.last, ticked.fate) == (stamp(at(1)), "sent")
    assert change.subject == f"enqueue mail 1 for {ticked.run}: schedule daily was due at {ticked.last}"


def test_the_id_of_a_ticks_mail_is_schedule_and_tick_and_no_mail_can_name_it():
    """So it is the same whoever makes it, and nobody outside can take its place."""
    desk = scheduled()
    ticked = tick(desk, 1)
    assert ticked.arrival is not UNSET
    entry = desk.index.queue[ticked.arrival].queued.entry
    assert entry.id == tick_id("daily", at(1))
    found = tick_of(entry.id)
    assert found is not None
    assert found.schedule == "daily"
    raw = desk.tree.read(layout.mail_path(ticked.arrival)) or b""
    assert mail.scan(raw).id != entry.id.encode()
    forged = raw.replace(mail.scan(raw).id, entry.id.encode())
    assert mail.scan(forged).id != entry.id.encode()


def test_a_ticks_mail_says_what_it_is_to_a_person_and_is_answered_by_nobody():
    """It is from the deployment itself, and automatic; its run may mail whom the workflow names, and not itself."""
    desk = scheduled()
    ticked = tick(desk, 1)
    run = taken_up(desk, ticked)
    assert ticked.arrival is not UNSET
    read = mail.parse(desk.tree.read(layout.mail_path(ticked.arrival)) or b"")
    assert (read.sender, read.subject, read.automatic) == (ADDRESS, f"Schedule daily: {ticked.last}", True)
    assert "daily (*/1 * * * * in UTC)" in read.text
    assert grants_of(desk.index, run).mail == (BOSS,)


def test_the_same_tick_twice_is_refused_and_changes_nothing():
    """Two hosts, or an answer that was lost: the second one is behind, and is told so."""
    desk = scheduled()
    before = stood(desk).reached
    tick(desk, 1)
    assert desk.code(Tick(schedule="daily", after=before, last=at(1), due=at(1))) == "moved"
    assert len(desk.index.queue) == 1


@pytest.mark.parametrize(
    ("after", "last", "due"), [(0, 1, 0), (0, 0, 0), (0, 0, None), (0, 0, 5)], ids=["other", "same", "none", "no head"]
)
def test_what_is_no_tick_is_refused(after, last, due):
    """A scheduler that has gone wrong mustn't move a schedule."""
    desk = scheduled()
    wrong = Tick(schedule="daily", after=at(after), last=at(last), due=None if due is None else at(due))
    assert desk.code(wrong) == "due"


def test_a_schedule_that_isnt_deployed_is_refused():
    """Its code may have been replaced a moment ago."""
    desk = scheduled()
    assert desk.code(Tick(schedule="weekly", after=START, last=at(1), due=at(1))) == "schedule"
    deploy(desk, files={"flow.py": b"2"})
    assert desk.code(Tick(schedule="daily", after=START, last=at(1), due=at(1))) == "schedule"


# --- what was missed, and clocks that go back ------------------------------------------------------------------------


def test_what_is_left_out_is_recorded_without_a_mail():
    """So a start tells it once, and the next one goes on from there."""
    desk = scheduled()
    ticked = desk.must(Tick(schedule="daily", after=START, last=at(30)))
    assert (ticked.fate, ticked.last) == ("missed", stamp(at(30)))
    assert not desk.index.queue
    assert desk.changes[-1].subject == f"schedule daily leaves out what was missed up to {ticked.last}"


def test_after_the_clock_went_back_a_tick_that_had_its_mail_gets_no_other_one():
    """The schedule goes on after an interval at most; what comes again is known by its id."""
    desk = scheduled()
    run = taken_up(desk, tick(desk, 5))
    ended(desk, run)
    back = desk.must(Tick(schedule="daily", after=at(5), last=at(4)))
    assert (back.fate, back.last) == ("set-back", stamp(at(4)))
    assert tick(desk, 5).fate == "repeated"
    assert not desk.index.queue
    assert tick(desk, 6).fate == "sent"


def test_a_tick_that_waits_and_comes_again_waits_once():
    """The clock went back while it waited: it has no mail yet by which it could be known."""
    desk = scheduled("queue")
    taken_up(desk, tick(desk, 1))
    tick(desk, 5)
    desk.must(Tick(schedule="daily", after=at(5), last=at(4)))
    assert tick(desk, 5).fate == "repeated"
    assert stood(desk).waiting == (stamp(at(5)),)


def test_a_rejected_ticks_mail_is_known_too():
    """Once accepted is once accepted."""
    desk = scheduled()
    ticked = tick(desk, 5)
    assert ticked.arrival is not UNSET
    desk.must(Claim(ticked.arrival))
    desk.must(Reject(ticked.arrival, "test"))
    desk.must(Tick(schedule="daily", after=at(5), last=at(4)))
    assert tick(desk, 5).fate == "repeated"


# --- overlap ----------------------------------------------------------------------------------------------------------


def test_a_tick_is_skipped_while_the_run_of_the_one_before_has_not_ended():
    """The default: two runs of one schedule never stand side by side."""
    desk = scheduled("skip")
    ticked = tick(desk, 1)
    assert tick(desk, 2).fate == "skipped"  # its mail waits
    run = taken_up(desk, ticked)
    after = tick(desk, 3)
    assert (after.fate, after.last, after.run) == ("skipped", stamp(at(3)), run)
    assert desk.changes[-1].subject == f"schedule daily was due at {after.last}, and {run} has not ended"
    ended(desk, run)
    assert tick(desk, 4).fate == "sent"


def test_ticks_wait_in_order_for_the_run_of_the_one_before():
    """Each has its run in the end; a restart keeps them, because they are in the schedule's file."""
    desk = scheduled("queue")
    run = taken_up(desk, tick(desk, 1))
    assert [tick(desk, minute).fate for minute in (2, 3)] == ["waiting", "waiting"]
    head = Tick(schedule="daily", after=at(3), last=at(3), due=at(2))
    assert desk.code(head) == "under-way"
    ended(desk, run)
    assert tick(desk, 4).waiting == (stamp(at(2)), stamp(at(3)), stamp(at(4)))
    for minute in (2, 3, 4):
        ticked = desk.must(Tick(schedule="daily", after=at(4), last=at(4), due=at(minute)))
        assert (ticked.fate, ticked.last) == ("sent", stamp(at(4)))
        assert desk.index.queue[ticked.arrival].queued.entry.id == tick_id("daily", at(minute))
        ended(desk, taken_up(desk, ticked))
        desk.check()
    assert stood(desk).waiting == ()
    assert tick(desk, 5).fate == "sent"


def test_only_so_many_ticks_wait():
    """A run that never ends mustn't grow the file for ever; what is left out is recorded."""
    desk = scheduled("queue")
    taken_up(desk, tick(desk, 1))
    for minute in range(2, MOST_WAITING + 3):
        desk.wall = at(minute)
        ticked = desk.must(Tick(schedule="daily", after=stood(desk).reached, last=at(minute), due=at(minute)))
        assert ticked.fate == ("waiting" if minute < MOST_WAITING + 2 else "skipped")
    assert len(stood(desk).waiting) == MOST_WAITING


def test_a_tick_asks_for_the_end_of_the_run_of_the_one_before():
    """In the commit of its own mail; that run's code may clean up."""
    desk = scheduled("cancel")
    run = taken_up(desk, tick(desk, 1))
    ticked = tick(desk, 2)
    assert ticked.fate == "cancelled"
    assert ticked.run != run
    asked = desk.events(run)[-1]
    assert isinstance(asked, ev.CancelRequested)
    assert (asked.origin, asked.by) == ("self", "schedule daily")
    assert asked.reason == f"schedule daily was due again at {ticked.last}"


def test_a_run_whose_end_was_asked_for_already_is_not_asked_again():
    """The third tick finds the second one's run, or that one still cleaning up: it has its mail all the same."""
    desk = scheduled("cancel")
    run = taken_up(desk, tick(desk, 1))
    taken_up(desk, tick(desk, 2))
    tick(desk, 3)
    assert [isinstance(each, ev.CancelRequested) for each in desk.events(run)].count(True) == 1


def test_a_paused_run_is_cancelled_at_once():
    """No code of it may be started, so nobody can clean up, and nobody has to wait."""
    desk = scheduled("cancel")
    run = taken_up(desk, tick(desk, 1))
    desk.must(Pause(run=run, code="operator", detail=""))
    assert tick(desk, 2).fate == "cancelled"
    assert isinstance(desk.events(run)[-1], ev.RunCancelled)


def test_what_waits_is_sent_also_under_a_policy_by_which_nothing_would_wait():
    """Other code says skip now; what the old one has promised is kept, and nothing is added to it."""
    desk = scheduled("queue")
    run = taken_up(desk, tick(desk, 1))
    tick(desk, 2)
    deploy(desk, every(1, "skip"), files={"flow.py": b"2"})
    ended(desk, run)
    assert tick(desk, 3).fate == "skipped"
    assert desk.must(Tick(schedule="daily", after=at(3), last=at(3), due=at(2))).fate == "sent"


def test_a_run_that_somebody_else_has_cancelled_is_not_asked_again():
    """It is cleaning up; the tick has its mail, and the run's log one request."""
    desk = scheduled("cancel")
    run = taken_up(desk, tick(desk, 1))
    desk.must(Cancel(run=run, by="ann", reason="enough", origin="hub-admin"))
    ticked = tick(desk, 2)
    assert (ticked.fate, ticked.run != run) == ("sent", True)
    assert [isinstance(each, ev.CancelRequested) for each in desk.events(run)].count(True) == 1


def test_what_waits_is_sent_before_a_tick_that_would_cancel():
    """Other code says cancel now: ticks that wait go first, in their order, and what is in their way is ended."""
    desk = scheduled("queue")
    run = taken_up(desk, tick(desk, 1))
    tick(desk, 2)
    deploy(desk, every(1, "cancel"), files={"flow.py": b"2"})
    assert tick(desk, 3).fate == "skipped"
    assert isinstance(desk.events(run)[-1], ev.CancelRequested)
    assert tick(desk, 4).fate == "skipped"  # it cleans up
    assert [isinstance(each, ev.CancelRequested) for each in desk.events(run)].count(True) == 1
    desk.append(run, ev.RunCancelled())
    assert tick(desk, 5).fate == "skipped"  # nobody has sent the first of them yet
    assert desk.must(Tick(schedule="daily", after=at(5), last=at(5), due=at(2))).fate == "sent"
    assert tick(desk, 6).fate == "skipped"  # its mail is not taken up yet


def test_a_paused_run_in_the_way_of_what_waits_is_cancelled_at_once():
    """Else it would be in the way for ever."""
    desk = scheduled("queue")
    run = taken_up(desk, tick(desk, 1))
    tick(desk, 2)
    deploy(desk, every(1, "cancel"), files={"flow.py": b"2"})
    desk.must(Pause(run=run, code="operator", detail=""))
    assert tick(desk, 3).fate == "skipped"
    assert isinstance(desk.events(run)[-1], ev.RunCancelled)
    assert desk.must(Tick(schedule="daily", after=at(3), last=at(3), due=at(2))).fate == "sent"


def test_a_mail_that_nobody_has_taken_up_yet_is_not_followed_by_another():
    """There is nothing to cancel, and one of the two will do."""
    desk = scheduled("cancel")
    tick(desk, 1)
    assert tick(desk, 2).fate == "skipped"


@pytest.mark.parametrize("overlap", ["skip", "queue", "cancel"])
def test_where_one_run_has_all_mail_a_tick_overlaps_its_unread_mail_only(overlap):
    """Such a run never ends, and must not be cancelled by the clock that feeds it."""
    desk = scheduled(overlap, runs="deployment")
    first = tick(desk, 1)
    run = taken_up(desk, first)
    second = tick(desk, 2)
    assert (second.fate, second.run) == ("sent", run)
    assert tick(desk, 3).fate == ("waiting" if overlap == "queue" else "skipped")
    deploy(desk, every(1, "cancel"), files={"flow.py": b"2"})
    desk.must(Claim(int(second.arrival or 0)))
    desk.must(Reject(int(second.arrival or 0), "test"))
    assert tick(desk, 4).fate == ("skipped" if overlap == "queue" else "sent")
    assert not any(isinstance(each, ev.CancelRequested) for each in desk.events(run))


# --- deploying --------------------------------------------------------------------------------------------------------


def test_a_new_schedule_counts_from_the_commit_that_deployed_it():
    """Not from 1970, and not from the last full hour."""
    desk = Desk()
    desk.wall = at(7) + 1
    deploy(desk, every(5))
    assert stood(desk) == began(every(5), at(7) + 1)
    assert next_tick(Planned(every(5), stood(desk)), desk.wall) == at(10)


def test_a_schedule_that_is_deployed_again_goes_on_where_it_was():
    """Other code under the same schedule loses no tick and repeats none."""
    desk = scheduled()
    before = tick(desk, 1)
    desk.wall = at(30)
    deploy(desk, every(1, "queue"), files={"flow.py": b"2"})
    assert stood(desk) == before


def test_another_expression_under_the_same_name_begins_anew():
    """What the old one missed isn't the new one's; and what it had isn't due again, though the clock went back."""
    desk = scheduled()
    tick(desk, 3)
    desk.wall = at(2)
    deploy(desk, every(2), files={"flow.py": b"2"})
    assert stood(desk) == began(every(2), at(3))


def test_a_schedule_that_is_no_longer_declared_goes_with_the_code():
    """Its runs go on; the history has what it was. Declared once more, it begins anew."""
    desk = scheduled()
    tick(desk, 1)
    deploy(desk, every(1, name="other"), files={"flow.py": b"2"})
    assert desk.tree.entries(layout.SCHEDULES) == ("other.json",)
    desk.wall = at(9)
    deploy(desk, every(1), files={"flow.py": b"3"})
    assert stood(desk) == began(every(1), at(9))


# --- what is asked ----------------------------------------------------------------------------------------------------


def test_the_schedules_are_read_in_the_order_in_which_they_are_declared():
    """A list for people is in their own order."""
    desk = Desk()
    deploy(desk, every(5, name="b"), every(3, name="a"))
    found = questions.read_schedules(desk.index)
    assert [each.schedule.id for each in found] == ["b", "a"]
    assert soonest(desk.index, desk.wall) == at(3)
    assert soonest(Desk().index, desk.wall) is None


def test_a_last_tick_in_the_future_holds_for_one_interval_and_is_to_be_recorded_at_once():
    """Whoever sleeps until the next tick would else sleep until the clock has caught up, perhaps for years."""
    one = Planned(every(5), msgspec.structs.replace(began(every(5), START), last=stamp(at(500))))
    assert next_tick(one, at(1)) == at(1)
    assert next_tick(one, at(499)) == at(505)
    assert next_tick(one, at(500)) == at(505)


def test_the_next_deadline_of_a_deployment_is_a_timer_or_a_tick_whichever_comes_first():
    """Whoever lets a deployment sleep must wake it for both."""
    desk = scheduled()
    assert next_deadline(desk.index, desk.wall) == at(1)
    run = taken_up(desk, tick(desk, 1))
    assert next_deadline(desk.index, desk.wall) == at(2)
    desk.append(run, ev.TimerSet(call=call(1), timer="r1#1", delay=30.0, seen=1))
    assert next_deadline(desk.index, desk.wall) == at(1) + 30_000
    assert next_deadline(Desk().index, desk.wall) is None


def test_a_zone_that_is_gone_has_no_tick_and_harms_no_other():
    """A zone database may lose a name; the other schedules go on."""
    desk = Desk()
    gone = msgspec.structs.replace(every(1, name="gone"), tz="Mars/Olympus")
    deploy(desk, gone, every(5))
    assert soonest(desk.index, desk.wall) == at(5)


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{}",
        b"[]",
        encode(began(every(1), START)).replace(b"daily", b"\xff"),
        encode(began(every(1), START)).replace(b"2026-11-29", b"2026-13-29"),
        encode(msgspec.structs.replace(began(every(1), START), waiting=(stamp(START),) * (MOST_WAITING + 1))),
    ],
)
def test_a_file_that_is_none_is_refused_in_words(raw):
    """Who reads it gets an error with a name, never a traceback."""
    with pytest.raises(Invalid, match=r"schedules/<id>\.json"):
        decode(raw)


def test_what_is_deployed_and_cannot_be_read_is_damage():
    """A tick must not be taken for one that nobody has declared."""
    files = Desk().tree
    assert isinstance(files, Files)
    desk = Desk(files)
    deploy(desk, every(1))
    files.files[layout.DEPLOYED] = b'{"colour":"red"}'
    with pytest.raises(Damaged):
        desk.do(Tick(schedule="daily", after=START, last=at(1), due=at(1)))


def test_a_damaged_file_is_said_to_be_damaged():
    """The scheduler is told, and so is whoever asks."""
    files = Desk().tree
    assert isinstance(files, Files)
    desk = Desk(files)
    deploy(desk, every(1))
    files.files[PATH] = b"{}"
    for act in (
        lambda: desk.do(Tick(schedule="daily", after=START, last=at(1), due=at(1))),
        lambda: questions.read_schedules(desk.index),
    ):
        with pytest.raises(Damaged, match=layout.SCHEDULES):
            act()


# --- the rules --------------------------------------------------------------------------------------------------------


def rules(desk: Desk, puts: dict[str, bytes], *deletes: str) -> set[str]:
    """What such a commit breaks."""
    ground = Ground(repository=REPOSITORY, address=ADDRESS, limits=desk.limits)
    commit = Commit(author="supervisor", puts=puts, deletes=deletes)
    return {each.rule for each in judge(desk.index, commit, ground).broken}


@pytest.mark.parametrize(
    "changed",
    [
        {"since": stamp(at(1))},
        {"last": stamp(at(1))},
        {"last": stamp(at(1)), "fate": "sent"},
        {"last": stamp(at(1)), "fate": "sent", "arrival": 1, "run": RunId("run_1_0000000000000000")},
        {"last": stamp(at(1)), "fate": "waiting"},
        {"last": stamp(at(1)), "fate": "skipped", "arrival": 1},
        {"last": stamp(at(1)), "fate": "set-back"},
        {"last": stamp(at(-1)), "fate": "missed"},
        {"last": stamp(START), "fate": "skipped"},
        {"fate": "skipped"},
        {"id": "other"},
        {"expression": "0 0 * * *"},
    ],
)
def test_a_schedules_file_moves_by_one_tick_and_nothing_else(changed):
    """Whatever made such a commit: it would lose a tick, repeat one, or claim a mail that isn't there."""
    desk = scheduled()
    raw = encode(msgspec.structs.replace(stood(desk), **changed))
    assert rules(desk, {PATH: raw}) & {"schedule", "name"}


def test_a_schedule_comes_and_goes_with_what_is_deployed_only():
    """A file alone would be a schedule that no code has, or a code that has lost its schedule."""
    desk = scheduled()
    assert rules(desk, {}, PATH) == {"schedule"}
    assert rules(desk, {layout.schedule_path("x"): encode(began(every(1, name="x"), START))}) == {"schedule"}
    assert rules(desk, {PATH: b"{}"}) == {"record"}


def test_a_schedule_that_was_lost_is_not_put_back_by_hand():
    """Nobody could say how far it had come: it begins anew with the next deployment, by the rule for that."""
    files = Desk().tree
    assert isinstance(files, Files)
    desk = Desk(files)
    deploy(desk, every(1))
    raw = files.files.pop(PATH)
    assert rules(desk, {PATH: raw}) == {"schedule"}


def test_a_mail_cannot_pass_for_a_tick():
    """What a workflow takes for the clock's word comes with the schedule that ticked."""
    desk = scheduled()
    change = desk.decide(Tick(schedule="daily", after=START, last=at(1), due=at(1)))
    assert isinstance(change, Change)
    puts = {path: raw for path, raw in change.puts.items() if path != PATH}
    assert rules(desk, puts) == {"schedule"}
    other = encode(msgspec.structs.replace(decode(change.puts[PATH]), last=stamp(at(2))))
    assert "schedule" in rules(desk, {**change.puts, PATH: other})

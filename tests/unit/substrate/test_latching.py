"""The latch in the repository: set once, kept whatever comes, lifted by an operator; and whom it ends."""

import msgspec
import pytest

from substrate import layout
from substrate import state as files
from substrate.messages import (
    BeginGeneration,
    Cancel,
    Claim,
    DrainDeployment,
    HoldDeployment,
    LatchDeployment,
    Pause,
    Refused,
    ResetDeployment,
    ResumeDeployment,
    TakeUp,
)
from substrate.operations import Settled
from substrate.operations.latching import PORTION
from substrate.rules import Commit, Ground, judge
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.limits import DEFAULT
from waypost.testing.desk import ADDRESS, REPOSITORY, STARTED, Desk, Files, call, first_files, message
from waypost.testing.families import Family
from waypost.testing.misdeeds import LATCH

OFTEN = "3 exits within 2 s, the last one ended by SIGSEGV"


def begun() -> Desk:
    """A deployment with a child, and nothing else."""
    desk = Desk()
    desk.begin()
    return desk


def test_a_latch_is_written_once_and_kept_until_it_is_lifted() -> None:
    """Whatever else is written meanwhile: mail comes, and its run is numbered; the latch says what it said."""
    desk = begun()
    latch = desk.must(LatchDeployment(detail=OFTEN))
    assert desk.index.state.latch == latch
    assert (latch.reason, latch.detail) == ("crash-looping", OFTEN)
    assert desk.do(LatchDeployment(detail="again")) == Settled(latch)
    desk.enqueue(message("m1@x"))
    assert desk.index.state.latch == latch
    desk.check()
    desk.must(ResetDeployment(by="ann"))
    assert desk.changes[-1].subject == "reset the deployment after crash-looping, by ann"
    assert desk.code(ResetDeployment(by="bob")) == "not-latched"
    desk.must(BeginGeneration())
    desk.check()


def test_the_other_verb_names_the_one_that_helps() -> None:
    """Nothing goes on by itself in either."""
    desk = begun()
    desk.must(LatchDeployment(detail=OFTEN))
    latched = desk.do(ResumeDeployment(by="ann"))
    assert isinstance(latched, Refused)
    assert ("crash-looping" in latched.why, "`waypost reset`" in latched.hint) == (True, True)
    desk.must(ResetDeployment(by="ann"))
    desk.must(DrainDeployment("ann"))
    desk.must(HoldDeployment())
    held = desk.do(ResetDeployment(by="ann"))
    assert isinstance(held, Refused)
    assert ("held, after drain" in held.why, "`waypost resume`" in held.hint) == (True, True)


def test_a_deployment_that_was_never_latched_is_written_as_ever() -> None:
    """A format on disk is for ever: older repositories have no such field, and none is put into them."""
    assert b"latch" not in files.encode(files.State())
    assert files.decode_state(files.encode(files.State(latch=LATCH))).latch == LATCH


def test_what_is_kept_of_an_exit_is_bounded() -> None:
    """It is written again with every mail that comes."""
    desk = begun()
    desk.must(LatchDeployment(detail="x" * 5000))
    assert len(files.encode(desk.index.state)) < 1500
    desk.check()


def test_live_runs_stay_as_they_are() -> None:
    """A crash loop is no verdict on anybody's run."""
    desk = begun()
    run = desk.start(message("m1@x"))
    desk.must(LatchDeployment(detail=OFTEN))
    assert isinstance(desk.index.known(run).run, fold.Driven)


def test_where_it_says_so_runs_fail_and_parked_and_paused_ones_do_not() -> None:
    """Who waits for a person loses nothing by it; and who fails is told in the reference's words."""
    desk = begun()
    runs = [desk.start(message(f"m{number}@x")) for number in range(3)]
    desk.append(runs[1], ev.SignalAwaited(call=call(1), park="input", seen=1))
    desk.must(Pause(run=runs[2], code="operator", detail="look at it"))
    assert desk.must(LatchDeployment(detail=OFTEN, fail=True)) is None
    assert not desk.index.state.latch
    assert desk.must(LatchDeployment(detail=OFTEN, fail=True)) == desk.index.state.latch
    states = [type(desk.index.known(run).run) for run in runs]
    assert states == [fold.Ended, fold.Parked, fold.Paused]
    end = desk.events(runs[0])[-1]
    assert isinstance(end, ev.RunFailed)
    assert end.error == ev.Fault(type="CrashLoop", message=f"workflow-process crash-looped: {OFTEN}")
    desk.check()


def test_a_run_that_is_being_cancelled_ends_so_and_keeps_nobody_from_the_latch() -> None:
    """Its log takes no other end; refused as a whole, the loop would never have been latched."""
    desk = begun()
    runs = [desk.start(message(f"m{number}@x")) for number in range(2)]
    desk.must(Cancel(run=runs[0], reason="enough", origin="supervisor-operator"))
    assert desk.must(LatchDeployment(detail=OFTEN, fail=True)) is None
    assert desk.must(LatchDeployment(detail=OFTEN, fail=True)) == desk.index.state.latch
    ends = [desk.events(run)[-1] for run in runs]
    assert [type(end) for end in ends] == [ev.RunCancelled, ev.RunFailed]
    desk.check()


def test_a_family_fails_together() -> None:
    """A parked child goes with its parent, as it would with any other end of it."""
    family = Family()
    run = family.root()
    child, parked = family.child(run, call(1)), family.child(run, call(2))
    family.desk.append(parked, ev.SignalAwaited(call=call(1), park="input", seen=1))
    while family.desk.must(LatchDeployment(detail=OFTEN, fail=True)) is None:
        family.check()
    assert not family.desk.live()
    assert [ev.kind(family.desk.events(each)[-1]) for each in (run, child, parked)] == [
        "RunFailed",
        "RunFailed",
        "RunCancelled",
    ]
    family.check()


def test_a_failure_that_no_event_can_hold_fails_nobody_and_latches_nothing() -> None:
    """All of a portion or none: no run has failed of a crash loop that isn't told to the others."""
    desk = begun()
    runs = [desk.start(message(f"m{number}@x")) for number in range(2)]
    before = len(desk.changes)
    assert desk.code(LatchDeployment(detail="x" * desk.limits.event, fail=True)) == "too-large"
    assert len(desk.changes) == before
    assert not desk.index.state.latch
    assert all(isinstance(desk.index.known(run).run, fold.Driven) for run in runs)


def test_many_runs_fail_a_portion_at_a_time() -> None:
    """No commit grows with how many there are; killed in between, the rest fails at the next latch."""
    desk = begun()
    for number in range(PORTION + 1):
        desk.start(message(f"m{number}@x"))
    answers = [desk.must(LatchDeployment(detail=OFTEN, fail=True)) for _ in range(3)]
    assert [answer is not None for answer in answers] == [False, False, True]
    assert max(len(change.puts) for change in desk.changes[-3:]) == PORTION
    assert not desk.index.driven()
    desk.check()


def test_a_run_that_is_taken_up_as_the_latch_falls_stays_live() -> None:
    """Dispatch may have asked for it before it learnt of the exit; its child is the next one."""
    desk = begun()
    arrival = desk.enqueue(message("m1@x"))
    desk.must(Claim(arrival))
    desk.must(LatchDeployment(detail=OFTEN))
    run = desk.must(TakeUp(arrival=arrival, start=STARTED))
    assert isinstance(desk.index.known(run).run, fold.Driven)
    desk.check()


def test_no_generation_begins_under_a_latch() -> None:
    """Whoever forgets the latch is refused in words; claims go back with the generation after the reset."""
    desk = begun()
    arrival = desk.enqueue(message("m1@x"))
    desk.must(Claim(arrival))
    desk.must(LatchDeployment(detail=OFTEN))
    assert desk.code(BeginGeneration()) == "latched"
    desk.must(ResetDeployment(by="ann"))
    desk.must(BeginGeneration())
    assert not desk.index.queue[arrival].claimed
    desk.check()


@pytest.mark.parametrize(
    ("before", "after", "broken"),
    [
        ({}, {"latch": LATCH}, False),
        ({"latch": LATCH}, {}, False),
        ({"latch": LATCH}, {"latch": LATCH}, False),
        ({"latch": LATCH}, {"latch": msgspec.structs.replace(LATCH, detail="another")}, True),
        ({"latch": LATCH}, {"latch": LATCH, "generation": 1}, True),
        ({"latch": LATCH}, {"generation": 1}, True),
        ({}, {"latch": LATCH, "generation": 1}, True),
    ],
)
def test_the_rule_knows_what_may_follow(before, after, broken) -> None:
    """A host that forgot the latch would be found by it, and refused."""
    desk = Desk(Files({**first_files(), layout.STATE: files.encode(files.State(**before))}))
    commit = Commit(author="supervisor", puts={layout.STATE: files.encode(files.State(**after))})
    ground = Ground(repository=REPOSITORY, address=ADDRESS, limits=DEFAULT)
    assert bool([each for each in judge(desk.index, commit, ground).broken if each.rule == "latch"]) == broken
    assert not [each for each in judge(desk.index, commit, ground).broken if each.rule != "latch"]

"""The barrier: nothing runs before the child holds what is granted, and whatever keeps it back is told."""

from dataclasses import replace

import pytest

from actors.credentials import AskAgain, Assembled, Barred, NotAssembled
from actors.draining import Doze
from actors.logic.dispatch.barrier import (
    PATIENCE,
    READING,
    SOON,
    UNANSWERED,
    Assembling,
    Clear,
    Closed,
    Deferred,
    Lingering,
    TurnedAway,
)
from actors.logic.dispatch.state import Open
from actors.logic.dispatch.turn import Setup
from actors.logic.supervisor.why import sentence
from actors.messages import GenerationDown, Woken
from ipc.deliveries import CredentialsUpdated, SourcesUpdated
from ipc.messages import GrantsUpdated, RunStart
from substrate import layout
from substrate.messages import Cancel, ChangeGrants, TakeUp
from waypost.model import events as ev
from waypost.model.grants import granted, read_snapshot
from waypost.model.ids import Generation
from waypost.model.limits import Limits
from waypost.testing.dispatch_bench import RUN, START, Bench, step
from waypost.testing.paper import Paper
from waypost.testing.sayings import check
from waypost.testing.supervision import RUNNING, SETUP

ASKED = (("read", "github"),)
GIVE = ChangeGrants(by="ann", step="read", give=granted(secrets=["github"]))
TAKE = ChangeGrants(by="ann", step="read", take=granted(secrets=["github"]))
VALUES = CredentialsUpdated(serial=1, bindings={"read": ("github",)}, materials={"github": b"s3cret"})


def kept(*, secrets: tuple[tuple[str, str], ...] = ()) -> Bench:
    """A dispatch with a keeper of credentials; the step ``read`` is granted one."""
    limits = Limits()
    setup = Setup(start=replace(START, secrets=secrets), limits=limits, steps=("read", "pay"), keeper=True)
    bench = Bench(limits, setup=setup)
    bench.do(GIVE)
    bench.flush()
    return bench


def gate(bench: Bench) -> object:
    """Where the gate stands."""
    assert isinstance(bench.state, Open)
    return bench.state.barrier.gate


def keeper(bench: Bench, *, passing: bool | None = None, sources: SourcesUpdated | None = None) -> None:
    """The keeper answers what it was asked last: with the values, or that they aren't to be had."""
    correlation = bench.wanted[-1].correlation
    if passing is None:
        bench.tell(Assembled(correlation, VALUES, sources))
    else:
        bench.tell(NotAssembled(correlation, passing, "secret github: its command ended with 1"))


def test_grants_then_credentials_then_the_run_and_no_mail_is_claimed_before() -> None:
    """The order on the one channel is the delivery (storage §5)."""
    bench = kept()
    bench.up()
    bench.mail()
    assert bench.wanted[-1].bindings == {"read": ("github",)}
    assert not bench.requests
    keeper(bench, sources=SourcesUpdated(serial=1, sources=()))
    bench.settle()
    kinds = bench.kinds()
    assert kinds == ["GrantsUpdated", "CredentialsUpdated", "SourcesUpdated", "RunStart", "RunLog", "RunLive"]


def test_run_start_names_the_hash_of_what_the_child_holds() -> None:
    """Also after a change: a child that holds another hash refuses the run."""
    bench = kept()
    bench.up()
    keeper(bench)
    bench.do(TAKE)
    bench.flush()
    keeper(bench)
    bench.mail()
    bench.settle()
    first, second = (each for each in bench.sent if isinstance(each, GrantsUpdated))
    (start,) = (each for each in bench.sent if isinstance(each, RunStart))
    assert start.grants == second.sha256 != first.sha256
    assert not read_snapshot(second.grants, second.sha256).steps


def test_what_is_granted_reaches_a_running_child_once_it_is_durable() -> None:
    """A value must not be given out on a grant that a power cut takes back."""
    bench = kept()
    bench.up()
    keeper(bench)
    bench.mail()
    bench.settle()
    bench.sent.clear()
    bench.do(TAKE)
    assert bench.kinds() == []
    bench.flush()
    assert bench.kinds() == ["GrantsUpdated"]
    assert bench.wanted[-1].bindings == {}


def test_every_child_is_told_anew() -> None:
    """The one that follows a crash or a recycling holds nothing of what its predecessor was told."""
    bench = kept()
    bench.up()
    keeper(bench)
    bench.mail()
    bench.settle()
    bench.child(1, step("r1#1"))
    bench.flush()
    bench.crash()
    bench.sent.clear()
    bench.up()
    bench.settle()
    assert bench.kinds() == ["GrantsUpdated"]
    keeper(bench)
    bench.settle()
    assert bench.kinds() == ["CredentialsUpdated", "RunStart", "RunLog", "RunLive"]


def test_a_passing_failure_defers_with_a_growing_pause_and_says_why() -> None:
    """The mail stays where it is, nobody counts an attempt, and `why` knows."""
    bench = kept()
    bench.up()
    bench.mail()
    keeper(bench, passing=True)
    assert isinstance(gate(bench), Deferred)
    assert not bench.requests
    delays = []
    for _ in range(7):
        wake = bench.wakes[-1]
        assert wake.mono is not None
        delays.append(wake.mono - bench.now.mono)
        bench.tell(wake.message)
        assert isinstance(gate(bench), Assembling)
        keeper(bench, passing=True)
    assert delays == [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]
    assert bench.barred == ["secret github: its command ended with 1"]
    bench.tell(bench.wakes[-1].message)
    keeper(bench)
    bench.settle()
    assert bench.barred == ["secret github: its command ended with 1", ""]
    assert len(bench.paper.log(RUN)) == 1


def test_a_lasting_failure_fails_the_run_that_a_mail_begins_in_the_commit_that_begins_it() -> None:
    """Never silently: it is in the history with its reason, and no child sees it."""
    bench = kept()
    bench.up()
    bench.mail()
    keeper(bench, passing=False)
    bench.settle()
    started, failed = bench.paper.log(RUN)
    assert isinstance(started, ev.RunStarted)
    assert isinstance(failed, ev.RunFailed)
    assert (failed.error.type, failed.error.message) == ("CredentialMissing", "secret github: its command ended with 1")
    assert "RunStart" not in bench.kinds()


def test_a_run_that_has_begun_waits_where_a_credential_is_gone_for_good() -> None:
    """Weeks of work aren't thrown away for a line in the operator's file; it is asked for again, and `why` says so."""
    bench = kept()
    bench.up()
    keeper(bench)
    bench.mail()
    bench.settle()
    bench.child(1, step("r1#1"))
    bench.flush()
    bench.crash()
    bench.up()
    keeper(bench, passing=False)
    bench.settle()
    assert isinstance(gate(bench), TurnedAway)
    assert not isinstance(bench.paper.log(RUN)[-1], ev.RunFailed)
    assert bench.barred
    bench.tell(bench.wakes[-1].message)
    keeper(bench)
    bench.settle()
    assert bench.kinds()[-3:] == ["RunStart", "RunLog", "RunLive"]


def test_a_secret_that_is_not_granted_fails_the_run_without_asking_the_keeper_for_it() -> None:
    """That is in the repository's own order: the take-up itself sees that it isn't granted."""
    bench = kept(secrets=ASKED)
    bench.do(TAKE)
    bench.flush()
    bench.up()
    keeper(bench)
    bench.mail()
    bench.settle()
    failed = bench.paper.log(RUN)[-1]
    assert isinstance(failed, ev.RunFailed)
    assert failed.error.type == "GrantMissing"
    assert bench.wanted[-1].bindings == {}


def test_a_revoke_leaves_a_run_that_has_begun_alive_also_in_the_next_child() -> None:
    """The step that asks for what it has no longer is told so; nothing is lost before it does."""
    bench = kept(secrets=ASKED)
    bench.up()
    keeper(bench)
    bench.mail()
    bench.settle()
    bench.child(1, step("r1#1"))
    bench.do(TAKE)
    bench.flush()
    keeper(bench)
    bench.crash()
    bench.up()
    keeper(bench)
    bench.settle()
    assert bench.kinds()[-3:] == ["RunStart", "RunLog", "RunLive"]


@pytest.mark.parametrize("cancelled", [False, True])
def test_grants_that_can_not_be_read_end_a_run_that_would_go_on(*, cancelled: bool) -> None:
    """Nobody guesses what it may still do; one whose end was asked for has that end, and no other."""
    bench = kept()
    bench.up()
    keeper(bench)
    bench.mail()
    bench.settle()
    bench.child(1, step("r1#1"))
    if cancelled:
        bench.do(Cancel(run=RUN, reason="enough", origin="supervisor-operator"))
    bench.flush()
    spoilt = _reopened(bench, b"[]")
    spoilt.up()
    keeper(spoilt)
    spoilt.settle()
    end = spoilt.paper.log(RUN)[-1]
    if cancelled:
        assert isinstance(end, ev.RunCancelled)
        assert (end.code, "can't be read" in end.detail) == ("past-grace", True)
    else:
        assert isinstance(end, ev.RunFailed)
        assert end.error.type == "GrantsUnreadable"
    assert "RunStart" not in spoilt.kinds()


def test_an_answer_to_an_earlier_question_changes_nothing() -> None:
    """What the keeper found for grants that have changed meanwhile isn't what the steps may read."""
    bench = kept()
    bench.up()
    early = bench.wanted[-1].correlation
    bench.do(TAKE)
    bench.flush()
    before = len(bench.sent)
    bench.tell(Assembled(early, VALUES))
    bench.tell(NotAssembled(early, passing=False, why="x"))
    assert isinstance(gate(bench), Assembling)
    assert len(bench.sent) == before
    assert not bench.barred


def test_an_answer_for_a_child_that_has_gone_changes_nothing() -> None:
    """The next child is asked for by itself."""
    bench = kept()
    bench.up()
    bench.tell(GenerationDown(Generation(1), unexpected=False))
    keeper(bench)
    assert gate(bench) == Closed()
    bench.up()
    assert isinstance(gate(bench), Assembling)


def test_without_a_keeper_the_gate_is_open_at_once() -> None:
    """A deployment that has no secrets pays for none."""
    bench = Bench()
    bench.up()
    assert gate(bench) == Clear()
    assert not bench.wanted


@pytest.mark.parametrize("passing", [True, False])
def test_code_that_does_not_load_asks_for_nothing(*, passing: bool) -> None:
    """No value is given to a child that runs nothing."""
    bench = kept()
    bench.up(broken="SyntaxError")
    assert not bench.wanted
    assert not bench.sent
    bench.tell(NotAssembled(99, passing, "x"))
    assert gate(bench) == Closed()


def test_the_take_up_carries_the_reason() -> None:
    """So that the one commit can hold it."""
    bench = kept()
    bench.up()
    keeper(bench, passing=False)
    bench.mail()
    bench.answer()
    (take_up,) = bench.asked
    assert isinstance(take_up, TakeUp)
    assert take_up.barred == ev.Fault(type="CredentialMissing", message="secret github: its command ended with 1")


def _reopened(bench: Bench, raw: bytes) -> Bench:
    """The same repository with another host, after somebody has written this as a step's grants."""
    files = bench.paper.files()
    files.files[layout.step_grants_path("read")] = raw
    paper = Paper(limits=bench.limits, files=files)
    return Bench(bench.limits, paper, Setup(start=START, limits=bench.limits, keeper=True))


def test_what_is_not_granted_is_told_as_soon_as_a_child_is_there() -> None:
    """The operator learns it from `why`, before the first mail has failed."""
    bench = Bench(setup=Setup(start=replace(START, secrets=ASKED), limits=Limits(), steps=("read",)))
    bench.up()
    assert bench.barred == ["not granted: secret github to step read"]
    bench.do(GIVE)
    bench.flush()
    assert bench.barred[1:] == [""]


def test_who_was_denied_asks_at_once_when_the_keeper_has_more() -> None:
    """An operator has listed what was missing: nobody waits for the pause to end; who has all of it asks nothing."""
    bench = kept()
    bench.up()
    keeper(bench, passing=False)
    asked = len(bench.wanted)
    bench.tell(AskAgain())
    assert len(bench.wanted) == asked + 1
    keeper(bench)
    assert gate(bench) == Clear()
    bench.tell(AskAgain())
    assert len(bench.wanted) == asked + 1


def test_why_nothing_runs_is_a_sentence_with_the_command_that_helps() -> None:
    """Whoever is woken by it pastes one line."""
    name, generation = SETUP.spec.name, RUNNING.books.generation
    for told, line in (
        (Barred(generation, "x", lacks=(("read", "github"),)), f"waypost grants set {name} read --secret github"),
        (Barred(generation, "x", lacks=(("@run", "github"),)), f"waypost grants set {name} --secret github"),
        (Barred(generation, "x", file="grants/read.json"), f"waypost grants show {name}"),
        (Barred(generation, "x", unlisted=True), "waypost credentials reload"),
        (Barred(generation, "x"), "waypost credentials check"),
        (Barred(generation, "x", reading=True), "waypost credentials check"),
    ):
        books = replace(RUNNING.books, barred=replace(told, since=1))
        said = sentence(SETUP, replace(RUNNING, books=books))
        check(said)
        assert (said.command, said.since) == (line, "1970-01-01T00:00:00.001Z")


def test_a_keeper_that_never_answers_is_asked_again_and_said() -> None:
    """It may have died over the question: nobody waits for ever without `why` knowing."""
    bench = kept()
    bench.up()
    bench.mail()
    bench.tell(bench.wakes[-1].message)
    assert (gate(bench), bench.barred) == (Lingering(1, 0, 3), [READING])
    wake = bench.wakes[-1]
    assert wake.mono == bench.now.mono + PATIENCE - SOON
    bench.tell(wake.message)
    assert isinstance(gate(bench), Deferred)
    assert bench.barred == [READING, UNANSWERED]
    bench.tell(bench.wakes[-1].message)
    keeper(bench)
    bench.settle()
    assert len(bench.paper.log(RUN)) == 1


def test_while_a_secret_is_read_for_the_first_time_why_says_so_and_not_what_was_before_its_grant() -> None:
    """A command may have ten seconds: nobody who has granted it is told meanwhile that it isn't granted."""
    bench = Bench(setup=Setup(start=replace(START, secrets=ASKED), limits=Limits(), steps=("read",), keeper=True))
    bench.up()
    keeper(bench)
    bench.do(GIVE)
    bench.flush()
    lacks = "not granted: secret github to step read"
    assert bench.barred == [lacks, ""]
    bench.tell(bench.wakes[-1].message)
    assert bench.barred == [lacks, "", READING]
    keeper(bench)
    assert bench.barred == [lacks, "", READING, ""]


def test_one_that_could_not_be_read_is_said_until_it_is() -> None:
    """What failed is more than that it is tried once more."""
    bench = kept()
    bench.up()
    keeper(bench, passing=True)
    bench.tell(bench.wakes[-1].message)
    bench.tell(bench.wakes[-1].message)
    assert isinstance(gate(bench), Lingering)
    assert bench.barred == ["secret github: its command ended with 1"]


@pytest.mark.parametrize("answer", [None, True], ids=["not answered yet", "not to be had now"])
def test_a_mail_that_waits_for_a_credential_keeps_its_deployment_awake(*, answer: bool | None) -> None:
    """Only dispatch asks for it again: in a deployment that sleeps an accepted mail would lie for ever."""
    bench = kept()
    bench.up()
    bench.mail()
    if answer is not None:
        keeper(bench, passing=answer)
    bench.tell(Doze(Generation(1)))
    assert bench.rested == [None]
    if answer is not None:
        again = gate(bench)
        assert isinstance(again, Deferred)
        bench.tell(Woken(again.token))
    keeper(bench)
    bench.settle()
    assert any(isinstance(sent, RunStart) for sent in bench.sent)


def test_a_credential_that_cannot_be_had_keeps_nobody_awake_for_whom_there_is_no_mail() -> None:
    """Whatever comes wakes it, and then it is asked for."""
    bench = kept()
    bench.up()
    keeper(bench, passing=True)
    bench.tell(Doze(Generation(1)))
    assert isinstance(bench.state, Open)
    assert bench.rested == [bench.state.position]

"""A run starts a child run: by one commit with its mail, once for each call, and only where it may."""

import hashlib

import msgspec
import pytest

from substrate import layout
from substrate.messages import ChangeGrants, Claim, Enqueue, Pause, ReadRuns, SpawnChild, TakeUp, WorkflowProcess
from substrate.operations.grants import grants_of
from substrate.questions import read_runs
from substrate.rules import Commit, Ground, judge
from waypost.model import events as ev
from waypost.model import mail
from waypost.model.child_mail import child_id, input_of
from waypost.model.grants import RUN, granted
from waypost.model.ids import Generation, RunId, idempotency_key
from waypost.model.limits import Limits
from waypost.model.run import Ended, Parked
from waypost.testing.desk import ADDRESS, BOSS, REPOSITORY, SENDER, call, message
from waypost.testing.families import FAILED, ONE, START, Family

FIRST = call(1)


def refusal(family: Family, run: RunId) -> str:
    """Why the newest call has no child."""
    event = family.desk.events(run)[-1]
    assert isinstance(event, ev.ChildRefused), event
    family.check()
    return event.reason


# --- the commit -------------------------------------------------------------------------------------------------------


def test_a_child_is_spawned_in_one_commit_with_the_mail_that_starts_it() -> None:
    """A host that dies sees both or neither: no child is lost, and none comes twice."""
    family = Family()
    run = family.root()
    child = family.spawn(run, FIRST, input=b'{"line":1}', seen=1)
    change = family.desk.changes[-1]
    assert {layout.place_of(path).kind for path in change.puts} == {"event", "inbox", "mail", "state"}
    assert change.subject == f"spawn {child} for r1#1 of {run}"
    assert change.author == "supervisor"
    event = family.desk.events(run)[-1]
    assert isinstance(event, ev.ChildSpawned)
    assert event.arguments == hashlib.sha256(b'{"line":1}').hexdigest()
    raw = family.desk.tree.read(layout.mail_path(family.mail_of(run, FIRST))) or b""
    assert input_of(raw) == b'{"line":1}'
    assert isinstance(family.state(run), Parked)
    family.check()


def test_a_childs_mail_is_from_the_deployment_itself_and_nobody_can_take_its_place() -> None:
    """Its id is one that only the host can make; a mail with the header that it has is another mail."""
    family = Family()
    run = family.root()
    family.spawn(run, FIRST)
    arrival = family.mail_of(run, FIRST)
    entry = family.desk.index.queue[arrival].queued.entry
    assert (entry.id, entry.starts) == (child_id(run, FIRST), True)
    raw = family.desk.tree.read(layout.mail_path(arrival)) or b""
    read = mail.parse(raw)
    assert (read.sender, read.automatic) == (ADDRESS, True)
    copied = family.desk.must(Enqueue(raw))
    assert copied.run != entry.run


def test_what_the_child_records_of_its_parent_comes_from_the_parents_log() -> None:
    """Nothing that a mail says makes anybody somebody's child."""
    family = Family()
    run = family.root()
    child = family.child(run, FIRST, workflow="ask")
    below = family.child(child, FIRST)
    began = family.ledger(child).started
    assert began.parent == ev.Parent(run=run, call=FIRST, workflow="ask", depth=1)
    assert began.origin == idempotency_key(REPOSITORY, family.ledger(run).started.origin, FIRST)
    assert family.ledger(below).started.parent == ev.Parent(run=child, call=FIRST, workflow="pay", depth=2)
    assert family.ledger(below).started.origin == idempotency_key(REPOSITORY, began.origin, FIRST)
    family.check()


def test_a_child_may_mail_whom_its_parent_may() -> None:
    """It acts on behalf of whoever wrote the mail that began all of it."""
    family = Family()
    run = family.root()
    below = family.child(family.child(run, FIRST), FIRST)
    assert grants_of(family.desk.index, below).mail == (SENDER, BOSS)


def test_the_same_call_twice_has_one_child() -> None:
    """A request is repeated when its answer was lost: while the child is queued, while it goes on, and after."""
    family = Family()
    run = family.root()
    asked = family.spawning(run, FIRST)
    child = family.spawn(run, FIRST)
    commits = len(family.desk.changes)
    family.desk.must(asked)
    assert len(family.desk.changes) == commits
    family.take_up(run, FIRST)
    family.desk.must(asked)
    family.desk.append(child, ONE)
    family.desk.must(asked)
    while family.desk.fold_away():
        pass
    family.desk.must(asked)
    assert [type(event) for event in family.desk.events(run)].count(ev.ChildSpawned) == 1


# --- who may ----------------------------------------------------------------------------------------------------------


def test_an_operators_list_says_which_children_may_be_started_and_without_one_the_code_does() -> None:
    """As for mail: to grant or take back makes the list, and it holds at once."""
    family = Family()
    run = family.root()
    family.spawn(run, call(1))
    family.desk.must(ChangeGrants(by="ann", step=RUN, take=granted(children=["pay"])))
    family.desk.must(family.spawning(run, call(2)))
    assert "no grant to start pay; `waypost grants set expenses --workflow pay` gives it" in refusal(family, run)
    family.spawn(run, call(3), workflow="ask")
    family.desk.must(ChangeGrants(by="ann", step=RUN, give=granted(children=["pay"])))
    family.spawn(run, call(4))
    family.desk.must(ChangeGrants(by="ann", step=RUN, declared=True))
    assert not family.desk.index.granted.steps
    family.check()


def test_a_child_that_the_code_has_not_is_refused_to_the_run_and_to_an_operator() -> None:
    """A misspelt name would else be a grant of nothing, or a run that nobody can drive."""
    family = Family()
    run = family.root()
    family.desk.must(family.spawning(run, FIRST, workflow="pya"))
    assert refusal(family, run) == "the deployed code has no child workflow 'pya'"
    assert family.desk.code(ChangeGrants(by="ann", step=RUN, give=granted(children=["pya"]))) == "workflow"
    assert family.desk.code(ChangeGrants(by="ann", step="read", give=granted(children=["pay"]))) == "workflow"


@pytest.mark.parametrize(
    ("limits", "other", "why"),
    [
        (Limits(child_input=10), {"input": b'"123456789"'}, "its arguments have 11 bytes as JSON; at most 10"),
        (Limits(children=1), {}, "a run may have 1 child runs at a time"),
        (Limits(child_depth=0), {}, "child runs may lie 0 deep"),
    ],
    ids=["input", "children", "depth"],
)
def test_a_child_over_a_bound_is_refused_to_the_workflow(limits: Limits, other: dict[str, bytes], why: str) -> None:
    """The code can catch it; nothing was started, and the call has its outcome."""
    family = Family(limits=limits)
    run = family.root()
    if limits.children == 1:
        family.spawn(run, call(7))
    family.desk.must(family.spawning(run, FIRST, **other))
    assert why in refusal(family, run)
    assert FIRST not in family.ledger(run).children


def test_children_of_children_go_as_deep_as_the_bound_and_no_deeper() -> None:
    """A child that starts itself anew ends at the bound, not when the disk is full."""
    family = Family(limits=Limits(child_depth=3))
    run = family.root()
    for _ in range(3):
        run = family.child(run, FIRST)
    family.desk.must(family.spawning(run, FIRST))
    assert "child runs may lie 3 deep" in refusal(family, run)


def test_a_request_that_breaks_the_protocol_is_refused_and_leaves_nothing() -> None:
    """An older process, a run of another one, a call that is none, an input that is no JSON."""
    family = Family()
    run = family.root()
    commits = len(family.desk.changes)
    assert family.desk.code(family.spawning(run, call(1, "x"))) == "call"
    assert family.desk.code(family.spawning(run, FIRST, input=b"[1]\n")) == "input"
    assert family.desk.code(family.spawning(run, FIRST, input=b"{")) == "input"
    assert family.desk.code(family.spawning(run, FIRST, seen=9)) == "seen"
    assert family.desk.code(family.spawning(RunId("run_9_0000000000000009"), FIRST)) == "not-given"
    old = SpawnChild(by=WorkflowProcess(Generation(9)), run=run, call=FIRST, workflow="pay", input=b"1", seen=0)
    assert family.desk.code(old) == "generation"
    family.desk.must(Pause(run=run, code="operator", detail=""))
    assert family.desk.code(family.spawning(run, FIRST)) == "paused"
    assert family.desk.code(family.spawning(run, FIRST, workflow="pya")) == "paused"
    assert len(family.desk.changes) == commits + 1


# --- which run --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("runs", ["thread", "message", "deployment"])
def test_a_childs_run_is_a_new_one_and_no_mail_from_outside_goes_to_it(runs: str) -> None:
    """With one run for the deployment's life its later mails go to that run, not to the newest child."""
    family = Family(runs=runs)  # type: ignore[arg-type]  # it is one of the three
    run = family.root()
    child = family.child(run, FIRST)
    queued = family.spawn(run, call(2))
    assert len({run, child, queued}) == 3
    later = family.desk.must(Enqueue(message("later@x"))).run
    assert later == run if runs == "deployment" else later not in {run, child, queued}
    family.desk.settle()
    family.check()
    family.desk.reopen(family.desk.tree)
    again = family.desk.must(Enqueue(message("again@x"))).run
    assert again == run if runs == "deployment" else again not in {run, child, queued}


def test_the_run_that_a_deployment_has_is_known_after_its_children_are_sealed() -> None:
    """The index that is built anew from sealed logs must not take a child for it either."""
    family = Family(runs="deployment")
    run = family.root()
    for number in (1, 2):
        family.desk.append(family.child(run, call(number)), ONE)
    while family.desk.fold_away():
        pass
    family.desk.reopen(family.desk.tree)
    assert family.desk.must(Enqueue(message("later@x"))).run == run
    family.check()


def test_a_child_without_a_parent_that_awaits_it_begins_no_run() -> None:
    """Nobody would be told of its end; so its mail goes with its parent."""
    family = Family()
    run = family.root()
    family.spawn(run, FIRST)
    arrival = family.claim(run, FIRST)
    family.desk.append(run, ONE)  # the mail is consumed by the same commit
    assert family.desk.code(TakeUp(arrival=arrival, start=START)) == "not-claimed"
    assert family.desk.code(Claim(arrival)) == "not-queued"


def test_a_mail_that_names_a_call_which_has_no_such_child_begins_nothing() -> None:
    """Whatever has left it there: a run's parent is who says so in its own log."""
    family = Family()
    run = family.root()
    family.spawn(run, FIRST)
    del family.files.files[layout.event_path(run, 2)]
    family.desk.reopen(family.desk.tree)
    assert family.desk.code(TakeUp(arrival=family.claim(run, FIRST), start=START)) == "parent"


def test_a_list_of_runs_says_whose_child_each_is() -> None:
    """Queued, at work, ended and sealed: the same."""
    family = Family()
    run = family.root()
    family.spawn(run, call(1))
    family.child(run, call(2))
    family.desk.append(family.child(run, call(3)), FAILED)
    while family.desk.fold_away():
        pass
    found = read_runs(family.desk.index, ReadRuns())
    assert [(line.state, line.parent) for line in found] == [
        ("failed", run),
        ("running", run),
        ("queued", run),
        ("running", ""),
    ]
    assert found[0].subject == f"Child pay of {run}"
    family.desk.settle()
    assert read_runs(family.desk.index, ReadRuns()) == found


# --- the rules --------------------------------------------------------------------------------------------------------


def _judged(family: Family, commit: Commit) -> set[str]:
    verdict = judge(family.desk.index, commit, Ground(repository=REPOSITORY, address=ADDRESS, limits=Limits()))
    return {each.rule for each in verdict.broken}


def _of(family: Family) -> Commit:
    """What the newest commit wrote; to be judged on the desk before it."""
    change = family.desk.changes[-1]
    return Commit(author=change.author, puts=change.puts, deletes=change.deletes)


def _twins() -> tuple[Family, Family, RunId]:
    """The same deployment twice, and its run."""
    one, other = Family(), Family()
    run = one.root()
    assert other.root() == run
    return one, other, run


def test_a_child_without_its_mail_and_a_mail_without_its_child_break_the_rule() -> None:
    """Half of the commit would be a run that waits for ever, or one that nobody awaits."""
    one, other, run = _twins()
    one.spawn(run, FIRST)
    whole = _of(one)
    assert not _judged(other, whole)
    logs = {path: raw for path, raw in whole.puts.items() if "/events/" in path}
    rest = {path: raw for path, raw in whole.puts.items() if "/events/" not in path}
    assert "child" in _judged(other, Commit(author="supervisor", puts=logs))
    assert _judged(other, Commit(author="supervisor", puts=rest)) == {"child"}
    event = ev.decode(next(iter(logs.values())))
    assert isinstance(event, ev.ChildSpawned)
    changed = msgspec.structs.replace(event, arguments="0" * 64)
    raw = ev.stored(changed, seq=event.seq, at=event.at, prev=event.prev)[1]
    assert _judged(other, Commit(author="supervisor", puts={**rest, next(iter(logs)): raw})) == {"child"}


def test_a_childs_mail_has_the_input_that_its_parents_log_names() -> None:
    """A mail of another kind under its id is none, and an entry that can't be read is another rule's."""
    one, other, run = _twins()
    one.spawn(run, FIRST)
    whole = dict(_of(one).puts)
    (path,) = (path for path in whole if path.startswith("mail/"))
    (entry,) = (path for path in whole if "/inbox/" in path)
    plain = b"From: a@x\r\n\r\n[1]"
    renamed = whole[entry].replace(
        hashlib.sha256(whole[path]).hexdigest().encode(), hashlib.sha256(plain).hexdigest().encode()
    )
    assert "child" in _judged(other, Commit(author="supervisor", puts={**whole, path: plain, entry: renamed}))
    spoilt = whole[entry].replace(b'"starts":true', b'"starts":7')
    assert "record" in _judged(other, Commit(author="supervisor", puts={**whole, entry: spoilt}))


def test_no_run_begins_as_somebodys_child_by_another_mail_and_none_of_a_childs_without_its_parent() -> None:
    """By the mail's id alone it is known which it is."""
    one, other, _ = _twins()
    for family in (one, other):
        family.desk.must(Claim(family.desk.enqueue(message("m@x"))))
    one.desk.must(TakeUp(arrival=2, start=START))
    change = one.desk.changes[-1]
    run = one.desk.must(Enqueue(message("m@x"))).run
    path = layout.event_path(run, 1)
    began = ev.decode(change.puts[path])
    assert isinstance(began, ev.RunStarted)
    lied = msgspec.structs.replace(began, parent=ev.Parent(run=run, call=FIRST, workflow="pay", depth=1))
    raw = ev.stored(lied, seq=1, at=began.at, prev=began.prev)[1]
    commit = Commit(author="supervisor", puts={**change.puts, path: raw}, deletes=change.deletes)
    assert _judged(other, commit) == {"child"}
    one, other, run = _twins()
    for family in (one, other):
        family.spawn(run, FIRST)
        family.claim(run, FIRST)
    one.desk.must(TakeUp(arrival=2, start=START))
    commit = _of(one)
    assert not _judged(other, commit)
    del other.files.files[layout.event_path(run, 2)]
    other.desk.reopen(other.desk.tree)
    assert _judged(other, commit) == {"child"}


def test_a_child_process_can_spawn_nothing_by_itself() -> None:
    """The grant is checked by the host: the same commit in its name is refused."""
    one, other, run = _twins()
    one.spawn(run, FIRST)
    assert "author" in _judged(other, msgspec.structs.replace(_of(one), author="workflow-process"))


def test_a_run_that_only_ended_is_nobodys_parent() -> None:
    """For the states that this file names."""
    family = Family()
    run = family.root()
    family.desk.append(run, ONE)
    assert isinstance(family.state(run), Ended)
    assert family.desk.code(family.spawning(run, FIRST)) == "terminal"

"""Granting and taking back: one commit each, in the log's order, and what is in force decides from that commit on."""

import hashlib
from dataclasses import replace

import msgspec
import pytest

from substrate import layout
from substrate.messages import (
    Append,
    ChangeGrants,
    Claim,
    Deploy,
    GrantsChanged,
    Hub,
    QueueMail,
    Refused,
    Start,
    TakeUp,
    WorkflowProcess,
)
from substrate.operations import Change, Settled
from substrate.rules.commit import Commit, Sorted
from substrate.rules.grants import granted as rules_on_grants
from substrate.rules.grants import readable
from waypost.model import events as ev
from waypost.model import grants as model
from waypost.model.code import deployed
from waypost.model.declaration import Declared, StepDeclared
from waypost.model.grants import RUN, StepGrants, granted
from waypost.model.ids import RunId
from waypost.testing.desk import ADDRESS, BOSS, SENDER, STARTED, Desk, Files, call, message

CFO = "cfo@example.com"
FLOW = {"flow.py": b"x"}
DECLARED = Declared(
    name="expenses",
    address=ADDRESS,
    mail_to=(BOSS, CFO),
    steps=(StepDeclared(name="fetch", asynchronous=False, secrets=("github",)),),
)
RECORD = deployed(FLOW, root="", module="flow", declared=DECLARED)
BEGUN = replace(STARTED, code=RECORD.tree)
ASKING = replace(BEGUN, secrets=DECLARED.asked())


def change(step: str, *, give: StepGrants = model.NOTHING, take: StepGrants = model.NOTHING) -> ChangeGrants:
    """What ann asks for."""
    return ChangeGrants(by="ann", step=step, give=give, take=take)


def begun(desk: Desk, name: str, start: Start = BEGUN) -> RunId:
    """A mail comes and is taken up."""
    arrival = desk.enqueue(message(name))
    desk.must(Claim(arrival))
    run: RunId = desk.must(TakeUp(arrival=arrival, start=start))
    return run


def mailed(desk: Desk, run: RunId, to: str, *, number: int) -> ev.AnyEvent:
    """The event that follows when the run's child asks for a mail."""
    by = WorkflowProcess(desk.index.known(run).run.ledger.generation)  # type: ignore[union-attr]  # the run is live
    desk.must(QueueMail(by=by, run=run, call=call(number), to=(to,), subject="s", text="t"))
    return desk.events(run)[-1]


@pytest.fixture(name="desk")
def _desk() -> Desk:
    made = Desk()
    made.begin()
    made.must(Deploy(record=RECORD, files=FLOW))
    return made


def test_a_grant_is_one_file_in_one_commit_that_says_who() -> None:
    """An audit reads the log: who gave what to which step, and when; the file's hash is its content's."""
    desk = Desk()
    found = desk.do(change("fetch", give=granted(secrets=["github"])))
    assert isinstance(found, Change)
    path = layout.step_grants_path("fetch")
    assert (found.author, found.subject) == ("supervisor", "grant to fetch, by ann")
    assert found.puts == {path: b'{"secrets":["github"]}'}
    assert not found.deletes
    (fact,) = found.facts
    assert isinstance(fact, GrantsChanged)
    assert fact.now.taken.steps[0].content_hash == hashlib.sha256(desk.tree.read(path) or b"").hexdigest()
    assert isinstance(desk.do(change("fetch", give=granted(secrets=["github"]))), Settled)
    desk.check()


def test_what_is_taken_back_to_the_last_leaves_no_file() -> None:
    """Nothing granted is nothing there: the directory has what matters."""
    desk = Desk()
    desk.must(change("fetch", give=granted(secrets=["github", "ledger"])))
    assert desk.must(change("fetch", take=granted(secrets=["github"]))) == granted(secrets=["ledger"])
    assert desk.must(change("fetch", take=granted(secrets=["ledger"]))) == model.NOTHING
    assert desk.tree.read(layout.step_grants_path("fetch")) is None
    assert desk.changes[-1].subject == "revoke from fetch, by ann"
    desk.check()


def test_mail_is_as_declared_until_an_operator_says_otherwise(desk: Desk) -> None:
    """Whoever deploys a file by hand has read whom it writes to; whoever takes one away leaves the others."""
    run = begun(desk, "m@x")
    assert isinstance(mailed(desk, run, BOSS, number=1), ev.MailQueued)
    assert desk.must(change(RUN, take=granted(mail=[BOSS]))) == granted(mail=[CFO])
    refused = mailed(desk, run, BOSS, number=2)
    assert isinstance(refused, ev.MailFailed)
    assert f"waypost grants set expenses --mail {BOSS}" in refused.reason
    assert isinstance(mailed(desk, run, CFO, number=3), ev.MailQueued)
    assert isinstance(mailed(desk, run, SENDER, number=4), ev.MailQueued)
    desk.must(ChangeGrants(by="ann", step=RUN, declared=True))
    assert isinstance(mailed(desk, run, BOSS, number=5), ev.MailQueued)
    desk.check()


def test_everybody_of_a_domain_may_be_mailed_and_asked_where_an_operator_says_so(desk: Desk) -> None:
    """Outgoing mail and approvals go by the same grants."""
    run = begun(desk, "m@x")
    desk.must(change(RUN, give=granted(mail=["*@partner.example"])))
    request = mailed(desk, run, "anna@partner.example", number=1)
    assert isinstance(request, ev.MailQueued)
    assert isinstance(mailed(desk, run, "anna@evil.partner.example", number=2), ev.MailFailed)
    asking = ev.SignalAwaited(call=call(3), park="approval", seen=0, who=("bo@partner.example",))
    asking = msgspec.structs.replace(asking, request=request.message_id)
    desk.append(run, asking)
    stranger = ev.SignalAwaited(call=call(4), park="approval", seen=0, who=("bo@evil.example",))
    assert desk.code(Append(by=Hub("root"), run=run, events=(stranger,))) == "grants"


def test_neither_a_sender_nor_a_workflow_can_make_a_pattern() -> None:
    """Anybody can write a mail from `*@example.com`; it must not open a whole domain."""
    desk = Desk()
    desk.begin()
    arrival = desk.enqueue(message("m@x", sender="*@victim.example"))
    desk.must(Claim(arrival))
    run: RunId = desk.must(TakeUp(arrival=arrival, start=replace(STARTED, mail_to=("*@boss.example",))))
    assert isinstance(mailed(desk, run, "anna@victim.example", number=1), ev.MailFailed)
    assert isinstance(mailed(desk, run, "anna@boss.example", number=2), ev.MailFailed)
    desk.must(change(RUN, give=granted(mail=["cfo@example.com"])))
    assert isinstance(mailed(desk, run, "anna@victim.example", number=3), ev.MailFailed)
    assert isinstance(mailed(desk, run, "anna@boss.example", number=4), ev.MailFailed)
    assert isinstance(mailed(desk, run, "cfo@example.com", number=5), ev.MailQueued)


def test_an_address_that_a_workflow_made_up_can_not_end_an_operators_command(desk: Desk) -> None:
    """The message names a command to be pasted, and the address is the child's."""
    run = begun(desk, "m@x")
    refused = mailed(desk, run, "`reboot`@evil.example", number=1)
    assert isinstance(refused, ev.MailFailed)
    assert "--mail '`reboot`@evil.example'" in refused.reason


def test_a_run_records_what_was_in_force_at_its_start(desk: Desk) -> None:
    """Later changes are in the log by themselves; what the run began with is in its genesis."""
    desk.must(change("fetch", give=granted(secrets=["github"])))
    run = begun(desk, "m@x")
    raw = desk.tree.read(layout.grants_path(run)) or b""
    steps = msgspec.json.decode(raw)["steps"]
    assert [(each["stepId"], each["grants"]) for each in steps] == [("fetch", {"secrets": ["github"]})]
    assert steps[0]["contentHash"] == model.content_hash(granted(secrets=["github"]))
    desk.must(change("fetch", take=granted(secrets=["github"])))
    assert desk.tree.read(layout.grants_path(run)) == raw
    desk.check()


def test_a_run_that_asks_for_what_is_not_granted_begins_and_fails_in_one_commit(desk: Desk) -> None:
    """It is in the history with its reason and the way on; no child is given it, and the mail isn't lost."""
    run = begun(desk, "m@x", ASKING)
    started, failed = desk.events(run)
    assert isinstance(started, ev.RunStarted)
    assert isinstance(failed, ev.RunFailed)
    assert failed.error.type == "GrantMissing"
    assert "secret github to step fetch" in failed.error.message
    assert "waypost grants set expenses fetch --secret github" in failed.error.message
    assert desk.index.standing(run) == "ended"
    desk.must(change("fetch", give=granted(secrets=["github"])))
    assert len(desk.events(begun(desk, "n@x", ASKING))) == 1
    desk.check()


def test_what_bars_a_run_for_good_from_elsewhere_is_recorded_as_well(desk: Desk) -> None:
    """Credentials are the host's to find: that there are none is told with the take-up."""
    arrival = desk.enqueue(message("m@x"))
    desk.must(Claim(arrival))
    fault = ev.Fault(type="CredentialMissing", message="no credential github")
    run: RunId = desk.must(TakeUp(arrival=arrival, start=BEGUN, barred=fault))
    assert desk.events(run)[-1] == msgspec.structs.replace(desk.events(run)[-1], error=fault)
    assert desk.index.standing(run) == "ended"
    desk.check()


def test_grants_that_can_not_be_read_begin_no_run_and_are_replaced_by_an_operators_word(desk: Desk) -> None:
    """Nobody guesses what a file was to say; and nobody has to repair it by hand."""
    path = layout.step_grants_path("fetch")
    assert isinstance(desk.tree, Files)
    desk.tree.files[path] = b'{"secrets":["b","a"]}'
    desk.reopen(desk.tree)
    run = begun(desk, "m@x")
    failed = desk.events(run)[-1]
    assert isinstance(failed, ev.RunFailed)
    assert failed.error.type == "GrantsUnreadable"
    assert path in failed.error.message
    desk.must(change("fetch", give=granted(secrets=["github"])))
    assert len(desk.events(begun(desk, "n@x"))) == 1
    desk.check()


def test_a_file_in_the_reference_systems_form_grants_nothing_and_hinders_nobody() -> None:
    """An import once left such files; nothing has read them since."""
    desk = Desk()
    assert isinstance(desk.tree, Files)
    path = layout.step_grants_path("fetch")
    desk.tree.files[path] = b'{"grants":[{"resource":"tool:posix","action":"invoke"}]}'
    desk.reopen(desk.tree)
    desk.begin()
    assert len(desk.events(desk.start(message("m@x")))) == 1
    assert not desk.index.granted.taken.steps
    assert not list(readable(path, desk.tree.files[path]))
    assert [each.rule for each in readable(path, b'{"secrets":["b","a"]}')] == ["grants"]


@pytest.mark.parametrize(
    ("step", "give", "code"),
    [
        ("fecth", granted(secrets=["github"]), "step"),
        ("", granted(secrets=["github"]), "step"),
        ("F" * 60, granted(secrets=["github"]), "step"),
        ("fetch", granted(mail=[BOSS]), "mail"),
        ("fetch", granted(secrets=[f"{n:064}" for n in range(300)]), "too-large"),
    ],
)
def test_what_would_grant_nothing_or_too_much_is_refused(desk: Desk, step: str, give: StepGrants, code: str) -> None:
    """A step that is misspelt, a grant that no code would ever use, a file without a bound."""
    assert desk.code(change(step, give=give)) == code
    assert not desk.tree.entries(layout.GRANTS)


def test_no_more_is_granted_in_all_than_a_frame_holds(desk: Desk) -> None:
    """Each of them is within its own bound; a child must be told all of them at once, or none could begin."""
    assert isinstance(desk.tree, Files)
    most = granted(secrets=[f"{number:064}" for number in range(200)])
    several = model.SNAPSHOT // len(model.encode(most))
    desk.tree.files |= {layout.step_grants_path(f"s{number}"): model.encode(most) for number in range(several)}
    desk.reopen(desk.tree)
    refused = desk.do(change(RUN, give=most))
    assert isinstance(refused, Refused)
    assert (refused.code, f"they may have {model.SNAPSHOT}" in refused.why) == ("too-large", True)
    desk.must(change("s0", take=most))
    assert desk.must(change(RUN, give=granted(secrets=["github"]))) == granted(secrets=["github"])


def test_a_file_whose_name_cannot_be_read_back_grants_nothing_and_bars_runs(desk: Desk) -> None:
    """Its step is known by a hash alone, so nobody can say whose grants they are."""
    assert isinstance(desk.tree, Files)
    path = layout.step_grants_path("F" * 60)
    desk.tree.files[path] = b'{"secrets":["github"]}'
    desk.reopen(desk.tree)
    assert not desk.index.granted.steps
    assert "too long" in desk.index.granted.unreadable[path]
    failed = desk.events(begun(desk, "m@x"))[-1]
    assert isinstance(failed, ev.RunFailed)
    assert (failed.error.type, path in failed.error.message) == ("GrantsUnreadable", True)


def test_a_step_that_is_gone_can_still_be_taken_its_grants_back(desk: Desk) -> None:
    """The next deployment may bring the name again, and would have them."""
    assert isinstance(desk.tree, Files)
    desk.tree.files[layout.step_grants_path("old")] = b'{"secrets":["github"]}'
    desk.reopen(desk.tree)
    assert desk.must(change("old", take=granted(secrets=["github"]))) == model.NOTHING


def test_the_record_of_another_version_keeps_no_operator_from_granting(desk: Desk) -> None:
    """What it declares can't be read here: then no step is known to be misspelt."""
    assert isinstance(desk.tree, Files)
    desk.tree.files[layout.DEPLOYED] = b'{"colour":"red"}'
    desk.reopen(desk.tree)
    assert desk.must(change("fecth", give=granted(secrets=["github"]))) == granted(secrets=["github"])


def test_more_files_of_grants_than_may_be_are_a_finding() -> None:
    """Put there by whomever."""
    desk = Desk()
    assert isinstance(desk.tree, Files)
    desk.tree.files |= {layout.step_grants_path(f"s{n}"): b'{"secrets":["a"]}' for n in range(model.STEPS)}
    desk.reopen(desk.tree)
    more = layout.step_grants_path("one_more")
    commit = Commit(author="supervisor", puts={more: b'{"secrets":["github"]}'})
    made = Sorted(others={more: layout.place_of(more)})
    assert [each.rule for each in rules_on_grants(desk.index, commit, made)] == ["grants"]


def test_no_more_steps_have_grants_than_a_directory_and_a_frame_hold() -> None:
    """Every directory is bounded, and the snapshot travels in one frame."""
    desk = Desk()
    for number in range(model.STEPS):
        desk.must(change(f"s{number}", give=granted(secrets=["github"])))
    assert desk.code(change("one_more", give=granted(secrets=["github"]))) == "too-large"
    desk.check()

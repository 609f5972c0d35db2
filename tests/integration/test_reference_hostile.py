"""A source that its own system would never have written: everything odd is said, and nothing odd gets in."""

import base64
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from substrate import Reader, verify
from substrate.errors import RuleBroken
from substrate.operations import Change
from substrate.reference import arrivals
from substrate.signing.keys import PublicKey
from substrate.storage.readview import open_readonly
from waypost.host.keeping.importing import Imported, NoAddress, Order, carry_out, dry_run
from waypost.model import events as ev
from waypost.model.ids import Deployment, RunId
from waypost.testing import reference as made

ROOT = "addresses/run_dep%40bench.example"
STARTED = made.event(1, "RunStarted", runId="a", trigger={"payload": made.payload("a@x")}, consumedMessageId="<a@x>")
PAYLOAD = {"signalName": "__signal__:c", "signalId": "<b@x>", "payload": made.payload("b@x")}


def imported(
    where: Path, main: Mapping[str, bytes], *queue: Mapping[str, bytes], modes: Mapping[str, int] | None = None
) -> tuple[Imported, Reader]:
    """Import a source with these branches; what came of it, which verifies."""
    source = made.Reference(where / "theirs.git")
    source.commit("main", {".gitignore": b"", **main})
    for each in queue:
        source.commit("events", each, modes)
    data = where / "data"
    done = carry_out(data, Order(source=source.path, name=Deployment("d"), address=None, steps={}))
    key, path = PublicKey.load(data / "keys" / "host.ed25519.pub"), data / "repos" / "d.git"
    assert verify(path, key).faults == ()
    return done, Reader(open_readonly(str(path), key))


def envelope(name: str, received: object, **more: object) -> bytes:
    """An entry's body."""
    return made.compact({"messageId": f"<{name}>", "receivedAt": received, "address": made.ADDRESS, **more})


def test_what_is_odd_in_a_queue_is_said_and_the_rest_is_taken(tmp_path: Path) -> None:
    """Each with its path; an entry that isn't what its name says could be anybody's."""
    raw = base64.b64encode(made.mail("good@x")).decode()
    files = {
        "addresses/%zz/inbox/x": b"",
        "addresses/file": b"",
        "other": b"",
        f"{ROOT}/watermark.json": b"[]",
        f"{ROOT}/strange": b"",
        f"{ROOT}/inbox/sub/x": b"",
        f"{ROOT}/inbox/1-<link@x>.json": b"/etc/passwd",
        f"{ROOT}/inbox/1-<other@x>.json": envelope("good@x", 1, rawMessage=raw),
        f"{ROOT}/inbox/7-<good@x>.json": envelope("good@x", 7, rawMessage=raw),
        f"{ROOT}/processing/8-<good@x>.json": envelope("good@x", 8, rawMessage=raw),
        f"{ROOT}/inbox/9-<junk@x>.json": envelope("junk@x", 9, rawMessage=base64.b64encode(b"no mail").decode()),
        f"{ROOT}/inbox/10-<same@x>.json": envelope("same@x", 10, rawMessage=raw),
        f"{ROOT}/consumed/<bad@x>.json": envelope("bad@x", 1, consumedAt="never", runId="a"),
    }
    done, found = imported(tmp_path, {}, files, modes={f"{ROOT}/inbox/1-<link@x>.json": 0o120000})
    said = {left.path.removeprefix(f"events:{ROOT}/"): left.why for left in done.left}
    assert said.keys() == {
        "events:addresses/%zz",
        "events:addresses/file",
        "events:other",
        "watermark.json",
        "strange",
        "inbox/sub",
        "inbox/1-<link@x>.json",
        "inbox/1-<other@x>.json",
        "processing/8-<good@x>.json",
        "inbox/9-<junk@x>.json",
        "inbox/10-<same@x>.json",
        "consumed/<bad@x>.json",
    }
    assert "isn't a mail" in said["inbox/9-<junk@x>.json"] or "not a mail" in said["inbox/9-<junk@x>.json"]
    assert "the same bytes is there already" in said["inbox/10-<same@x>.json"]
    assert [(line.entry.id, line.place) for line in found.queue()] == [("<good@x>", "inbox")]
    assert done.runs == ()


def test_one_message_starts_one_run_whoever_else_claims_it(tmp_path: Path) -> None:
    """Two runs that name one message: the first has it, the other a mail of its own that says so."""
    logs = {**made.sealed("a", [STARTED]), **made.sealed("b", [STARTED])}
    done, found = imported(tmp_path, logs, made.queued("a@x", made.BEGAN, made.mail("a@x")))
    begun = [ev.decode(found.page(RunId(run.run), limit=1).events[0]) for run in done.runs]
    ids = [each.mail.id for each in begun if isinstance(each, ev.RunStarted)]
    assert ids[0] == "<a@x>"
    assert ids[1].startswith("sha256:")
    assert [left.path for left in done.left] == ["runs/b seq 1"]
    assert [(line.entry.id, line.place) for line in found.queue()] == []


def test_a_mail_that_a_run_was_given_without_waiting_for_it_goes_to_no_other(tmp_path: Path) -> None:
    """It lies in processing there, and its run's log says that it came: it is filed, not given out again."""
    log = [STARTED, made.event(2, "SignalReceived", **PAYLOAD)]
    queue = made.queued("b@x", made.BEGAN, made.mail("b@x"), place="processing")
    done, found = imported(tmp_path, made.one_a_file("a", log), queue)
    lines = {line.entry.id: line for line in found.queue(consumed=True)}
    assert (lines["<b@x>"].place, lines["<b@x>"].entry.rejected) == ("consumed", "imported")
    assert (done.queued, done.filed) == (0, 1)


def test_names_and_messages_that_are_too_long_for_ours_are_cut_and_lie_whole_in_the_old_log(tmp_path: Path) -> None:
    """An event has at most 1 MiB here, also where each character of a message takes six bytes in JSON."""
    failed = {"error": {"message": "\U0001f600" * 300_000, "code": "E" * 2000}, "retriesExhausted": True}
    log = [
        STARTED,
        made.event(2, "StepStarted", stepId="s" * 5000, attempt=1, input={"ref": "inline:1"}),
        made.event(3, "StepFailed", stepId="s" * 5000, attempt=1, **failed),
        made.event(4, "SignalAwaited", stepId="s", signalName="\U0001f600" * 300_000, parkKind="input"),
        made.event(5, "RunFailed", error={"message": "\x01" * 300_000}),
        made.event(6, "StepStarted", stepId="late", attempt=1, input={"ref": "inline:1"}),
    ]
    done, found = imported(tmp_path, made.sealed("a", log), made.queued("z@x", made.BEGAN, made.mail("z@x")))
    events = [ev.decode(raw) for raw in found.page(RunId(done.runs[0].run), limit=1 << 30).events]
    kinds = [ev.kind(each) for each in events if each.original]
    assert kinds == ["RunStarted", "StepStarted", "StepFailed", "SignalAwaited", "RunFailed"]
    assert isinstance(events[-1], ev.RunFailed)
    assert len(events[-1].error.message) == 131_072
    assert any("after the run's end" in left.why for left in done.left)
    live = tmp_path / "live"
    live.mkdir()
    done, found = imported(live, made.sealed("a", log[:4]), made.queued("z@x", made.BEGAN, made.mail("z@x")))
    last = ev.decode(found.page(RunId(done.runs[0].run), limit=1 << 30).events[-1])
    assert isinstance(last, ev.RunFailed)
    assert last.error.type == "Imported"
    assert "can't go on here" in last.error.message


def test_an_address_that_none_can_have_here_must_be_replaced(tmp_path: Path) -> None:
    """There any text is one; here mail must be able to reach it."""
    source = made.Reference(tmp_path / "theirs.git")
    source.commit("main", made.sealed("a", [STARTED]))
    source.commit("events", made.queued("a@x", 1, None, address="run_a b ü@x"))
    asked = Order(source=source.path, name=Deployment("d"), address=None, steps={})
    with pytest.raises(NoAddress, match="run_a b"):
        dry_run(asked)
    moved = Order(source=source.path, name=Deployment("d"), address="desk@example.com", steps={})
    assert dry_run(moved).address == "desk@example.com"


def test_a_step_without_grants_that_can_be_read_is_said(tmp_path: Path) -> None:
    """And its repository's other files are; nothing is granted by guessing."""
    agents = {"good": b'{"grants":[{"resource":"secret:github","action":"read"}]}', "bad": b"{}", "none": None}
    steps: dict[str, Path] = {}
    for name, raw in agents.items():
        agent = made.Reference(tmp_path / f"{name}.git")
        agent.commit("main", {"state/turns.jsonl": b"", **({} if raw is None else {"state/grants.json": raw})})
        steps[name] = agent.path
    source = made.Reference(tmp_path / "theirs.git")
    source.commit("main", made.sealed("a", [STARTED]))
    said = dry_run(Order(source=source.path, name=Deployment("d"), address="d@example.com", steps=steps))
    assert said.grants == ("good",)
    assert {left.path for left in said.left} == {
        "good:state/turns.jsonl",
        "bad:state/turns.jsonl",
        "none:state/turns.jsonl",
        "bad:state/grants.json",
        "none:state/grants.json",
    }


def test_an_import_that_would_break_a_rule_ends_and_leaves_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever a source makes us do: the rule book stands between any decision and the disk."""
    honest = arrivals.rejection

    def forgetful(*arguments: Any) -> Change:
        change = honest(*arguments)
        return Change(author=change.author, subject=change.subject, puts={}, deletes=change.deletes, facts=change.facts)

    monkeypatch.setattr(arrivals, "rejection", forgetful)
    queue = made.consumed("a@x", made.BEGAN, "a", rejection="refused")
    with pytest.raises(RuleBroken):
        imported(tmp_path, {}, queue)
    assert list((tmp_path / "data" / "repos").iterdir()) == []

"""What a repository of the reference system may hold, and what becomes of it; what it may not."""

import json
from collections.abc import Mapping
from pathlib import Path

import pytest
from msgspec import UNSET

from substrate import Reader, verify
from substrate.effects import To
from substrate.files.disk import Disk
from substrate.messages import Done, ReleaseHeld, Submit
from substrate.settings import Settings
from substrate.signing.keys import PublicKey, SigningKey
from substrate.storage.readview import open_readonly
from substrate.writer import Writer
from waypost.acting import Reply
from waypost.host.datadir.lock import HostLock
from waypost.host.errors import HostRuns
from waypost.host.keeping.importing import Exists, NoAddress, NothingToImport, Order, carry_out, dry_run
from waypost.model import events as ev
from waypost.model.ids import Deployment, RunId
from waypost.model.limits import DEFAULT
from waypost.model.times import Now, stamp
from waypost.testing import reference as made
from waypost.testing.stores import fresh_store, fsck, git

STEP = made.event(2, "StepStarted", stepId="s", attempt=1, input={"ref": "inline:null"})
DONE = [
    made.event(1, "RunStarted", runId="a", definitionHash="7b7d", trigger={"type": "manual", "payload": None}),
    STEP,
    made.event(3, "StepCompleted", stepId="s", attempt=1, output={"ref": "inline:1"}),
    made.event(4, "RunCompleted"),
]


def order(source: Path, address: str | None = None, name: str = "taken") -> Order:
    return Order(source=source, name=Deployment(name), address=address, steps={})


def repository(
    where: Path,
    main: Mapping[str, bytes],
    *events: Mapping[str, bytes],
    modes: Mapping[str, int] | None = None,
) -> Path:
    """A repository with this main branch, and one commit of the queue for each of ``events``."""
    source = made.Reference(where / "theirs.git")
    source.commit("main", {".gitignore": b"keys/\n", **main}, modes)
    for each in events:
        source.commit("events", each)
    return source.path


def taken(data: Path) -> Reader:
    key = PublicKey.load(data / "keys" / "host.ed25519.pub")
    path = data / "repos" / "taken.git"
    assert verify(path, key).faults == ()
    assert fsck(path) == ""
    return Reader(open_readonly(str(path), key))


def places(found: Reader) -> dict[str, str]:
    return {line.entry.id: line.place for line in found.queue(consumed=True)}


def test_each_mail_comes_to_the_place_that_it_had_and_none_is_given_out_twice(tmp_path: Path) -> None:
    """What waits, waits; what was claimed and belongs to nobody goes back; what a run has, no other run gets."""
    waits, again, mine = made.mail("waits@x"), made.mail("again@x"), made.mail("mine@x")
    old, gone, taken_up = made.mail("old@x"), made.mail("gone@x"), made.mail("done@x")
    now = made.BEGAN
    history = made.queued("done@x", now - 300, taken_up)
    queue = {
        **made.queued("waits@x", now + 20, waits),
        **made.queued("again@x", now + 10, again, place="processing"),
        **made.queued("mine@x", now + 5, mine, place="processing"),
        **made.queued("old@x", now - 100, old),
        **made.queued("bare@x", now + 1, None),
        **made.queued("gone@x", now + 2, gone),
        **made.consumed("gone@x", now + 2, "a"),
        **made.consumed("done@x", now - 300, "a"),
        **made.consumed("refused@x", now - 200, "a", rejection="workflow_run_terminal"),
        **made.watermark(now - 50),
    }
    run = [
        made.event(
            1, "RunStarted", runId="a", trigger={"payload": made.payload("mine@x")}, consumedMessageId="<mine@x>"
        ),
        STEP,
    ]
    done = carry_out(tmp_path / "data", order(repository(tmp_path, made.one_a_file("a", run), history, queue)))
    found = taken(tmp_path / "data")
    assert places(found) == {
        "<waits@x>": "inbox",
        "<again@x>": "inbox",
        "<old@x>": "hold",
        "<mine@x>": "consumed",
        "<done@x>": "consumed",
        "<gone@x>": "consumed",
        "<refused@x>": "consumed",
    }
    lines = {line.entry.id: line.entry for line in found.queue(consumed=True)}
    assert lines["<again@x>"].arrival < lines["<waits@x>"].arrival
    assert lines["<old@x>"].why == "stale"
    assert str(lines["<old@x>"].held) > lines["<old@x>"].received == stamp(now - 100)
    assert lines["<refused@x>"].rejected == "workflow_run_terminal"
    assert lines["<done@x>"].consumed == stamp(now - 200)
    assert lines["<waits@x>"].received == stamp(now + 20)
    assert [found.mail(lines[name].arrival) for name in ("<waits@x>", "<mine@x>", "<done@x>")] == [
        waits,
        mine,
        taken_up,
    ]
    assert {each.path.rpartition("/")[2]: each.why for each in done.left} == {
        f"{now + 1}-<bare@x>.json": "the message itself isn't there; ask its sender for it",
        f"{now + 2}-<gone@x>.json": "the same message id has an entry at another place",
        "<refused@x>.json": "the bytes of the mail are gone, or can't be taken: its id is filed without them",
    }
    assert (done.queued, done.held, done.filed) == (2, 1, 3)


def test_a_sealed_log_and_one_file_an_event_are_the_same_log(tmp_path: Path) -> None:
    """There a crash leaves a finished run unsealed for good; nobody may notice that here."""
    logs: list[list[bytes]] = []
    for form in (made.sealed, made.one_a_file):
        where = tmp_path / form.__name__
        where.mkdir()
        done = carry_out(where, order(repository(where, form("a", DONE)), "a@example.com"))
        page = taken(where).page(RunId(done.runs[0].run), after=0, limit=1 << 20)
        logs.append([_without_ids(raw) for raw in page.events])
        assert not done.runs[0].was_live
    assert logs[0] == logs[1]


def _without_ids(raw: bytes) -> bytes:
    """An event but for what differs between any two repositories."""
    fields = json.loads(raw)
    for name in ("prev", "imported", "mail", "origin"):
        fields.pop(name, None)
    return json.dumps(fields).encode()


def test_a_run_of_many_events_and_large_values_is_taken_over_whole(tmp_path: Path) -> None:
    """Its log goes into segments, its old one into several parts, each commit bounded."""
    big = json.dumps("x" * 300_000)
    steps: list[bytes] = []
    for seq in range(2, 602, 2):
        name, output = f"s{seq}", f"inline:{big if seq < 42 else 1}"
        steps.append(made.event(seq, "StepStarted", stepId=name, attempt=1, input={"ref": "inline:null"}))
        steps.append(made.event(seq + 1, "StepCompleted", stepId=name, attempt=1, output={"ref": output}))
    log = [DONE[0], *steps, made.event(602, "RunCompleted")]
    source = repository(tmp_path, made.sealed("a", log))
    done = carry_out(tmp_path / "data", order(source, "a@example.com"))
    found = taken(tmp_path / "data")
    run = RunId(done.runs[0].run)
    events = [ev.decode(raw) for raw in found.page(run, after=0, limit=1 << 30).events]
    assert sum(1 for each in events if each.original) == len(log)
    parts = [str(each.blob) for each in events if isinstance(each, ev.Foreign) and each.was == "log"]
    assert len(parts) > 1
    assert b"".join(found.blob(run, part) or b"" for part in parts) == b"".join(raw + b"\n" for raw in log)
    values = [each.output.blob for each in events if isinstance(each, ev.StepCompleted) and each.output.blob]
    assert len(values) == 20
    assert found.blob(run, str(values[0])) == big.encode()


HOSTILE: dict[str, tuple[dict[str, bytes], str]] = {
    "a gap in a log": (made.one_a_file("b", [DONE[0], DONE[2]]), "the log has a gap"),
    "a seq that its name doesn't say": ({"runs/b/events/1.json": DONE[1]}, "the event says seq 2"),
    "no JSON": ({"runs/b/events/1.json": b"{"}, "not JSON"),
    "both forms": ({**made.sealed("b", DONE), **made.one_a_file("b", DONE)}, "both forms"),
    "a strange name": ({"runs/b/events/01.json": DONE[0]}, "no event has such a name"),
    "a directory for an event": ({"runs/b/events/1.json/x": b""}, "no event has such a name"),
    "an empty sealed log": ({"runs/b/events.jsonl": b"\n\n"}, "its log is empty"),
    "a sealed log with a gap": ({"runs/b/events.jsonl": DONE[0] + b"\n" + DONE[3]}, "the log has a gap"),
    "an event over the limit": ({"runs/b/events/1.json": DONE[0] + b" " * (8 << 20)}, "at most 8388608 are read"),
    "a log over the limit": ({"runs/b/events.jsonl": b"\n" * (65 << 20)}, "at most 67108864 are read"),
    "no log": ({"runs/b/grants.json": b"{}"}, "no event yet; its files: grants.json"),
    "a file for a run": ({"runs/b": b"{}"}, "it is no directory"),
    "a strange file": ({"control/x": b""}, "no deployment there has such a file"),
    "a deep directory": ({"runs/b/" + "d/" * 40 + "x": b""}, "lie in one another"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_breaks_the_rules_of_its_own_system_is_left_and_said(name: str, tmp_path: Path) -> None:
    """With its path and a reason; the run beside it would be taken over all the same."""
    files, why = HOSTILE[name]
    said = dry_run(order(repository(tmp_path, {**made.sealed("a", DONE), **files}), "a@example.com"))
    assert [run.name for run in said.runs] == ["a"]
    assert any(why in left.why for left in said.left), said.left


def test_the_rest_of_a_hostile_repository_is_taken_over(tmp_path: Path) -> None:
    """All of it at once: what is left is said line by line, and what is good is here."""
    files = {f"{path.replace('runs/b', f'runs/b{number}')}": data
             for number, (rows, _) in enumerate(HOSTILE.values()) for path, data in rows.items()}  # fmt: skip
    source = repository(tmp_path, {**made.sealed("a", DONE), **files})
    done = carry_out(tmp_path / "data", order(source, "a@example.com"))
    assert [run.name for run in done.runs] == ["a"]
    assert len(done.left) == len(HOSTILE)
    assert taken(tmp_path / "data").runs()[0].state == "completed"


def test_names_of_strangers_lead_nowhere(tmp_path: Path) -> None:
    """A run's name is text here, a path nowhere; a link isn't followed, a file under a wrong hash is no value."""
    names = {"runs/..": b"", "runs/%2e%2e/events/1.json": DONE[0], "runs/-x\x1b[2J/events/1.json": DONE[0]}
    files = {**names, "runs/link/events/1.json": b"/etc/passwd", f"runs/-x\x1b[2J/blobs/{'0' * 64}": b"1"}
    del files["runs/.."]
    source = repository(tmp_path, files, modes={"runs/link/events/1.json": 0o120000})
    done = carry_out(tmp_path / "data", order(source, "a@example.com"))
    assert [run.name for run in done.runs] == ["%2e%2e", "-x\x1b[2J"]
    assert {left.path for left in done.left} == {"runs/link", f"runs/-x\x1b[2J/blobs/{'0' * 64}"}
    assert b"root:" not in b"".join(path.read_bytes() for path in (tmp_path / "data").rglob("*") if path.is_file())
    taken(tmp_path / "data")


def test_a_reply_to_a_run_that_was_live_starts_one_that_names_it(tmp_path: Path) -> None:
    """Its sender goes on talking to somebody; what was said before is one click away."""
    reply = made.mail("b@x", answers="a@x")
    run = [
        made.event(1, "RunStarted", runId="a", trigger={"payload": made.payload("a@x")}, consumedMessageId="<a@x>"),
        made.event(2, "SignalAwaited", stepId="s", signalName="__signal__:c", parkKind="input"),
    ]
    source = repository(tmp_path, made.one_a_file("a", run), made.queued("b@x", made.BEGAN, reply))
    done = carry_out(tmp_path / "data", order(source))
    (line,) = (each for each in taken(tmp_path / "data").queue() if each.place == "inbox")
    assert (line.entry.starts, line.entry.old) == (True, done.runs[0].run)
    assert done.runs[0].was_live
    assert [left.why for left in done.left] == [
        "the bytes of the mail <a@x> are gone, or can't be taken: made from the record"
    ]


def test_a_stale_mail_can_be_let_in_and_starts_its_run(tmp_path: Path) -> None:
    """It was acknowledged where it came from; whoever knows that it was never answered has a way."""
    queue = {**made.queued("old@x", made.BEGAN, made.mail("old@x")), **made.watermark(made.BEGAN + 1)}
    carry_out(tmp_path, order(repository(tmp_path, made.sealed("a", DONE), queue)))
    (line,) = taken(tmp_path).queue()
    now = Now(made.BEGAN, 0.0)
    writer = Writer.open(
        tmp_path / "repos" / "taken.git",
        Settings(deployment="taken", address=made.ADDRESS, message_id=str),
        key=SigningKey.load(tmp_path / "keys" / "host.ed25519"),
        disk=Disk(),
        limits=DEFAULT,
        now=now,
    )
    answers = [*writer.submit(Submit(what=ReleaseHeld(line.entry.arrival)), To(1), now), *writer.close(now)]
    assert [type(each.value) for each in answers if isinstance(each, Reply)] == [Done]
    (after,) = taken(tmp_path).queue()
    assert (after.place, after.entry.starts, after.entry.run, after.entry.why) == ("inbox", True, line.entry.run, UNSET)


def test_a_repository_with_a_working_tree_is_read_by_its_branches(tmp_path: Path) -> None:
    """As the reference keeps its own; what lies in the working tree is nobody's word."""
    source = repository(tmp_path, made.sealed("a", DONE))
    git(tmp_path, "clone", "-q", "--branch", "main", str(source), "tree")
    (tmp_path / "tree" / "runs" / "a" / "events.jsonl").write_bytes(b"")
    assert [run.name for run in dry_run(order(tmp_path / "tree", "a@example.com")).runs] == ["a"]


def test_only_the_two_branches_that_count_are_read(tmp_path: Path) -> None:
    """Packed or loose, beside whatever else lies among the refs: a symbolic one, a lock, a link that leads nowhere."""
    source = repository(tmp_path, made.sealed("a", DONE))
    git(source, "pack-refs", "--all")
    heads = source / "refs" / "heads"
    heads.mkdir(parents=True, exist_ok=True)
    (heads / "other").write_text("ref: refs/heads/main\n")
    (heads / "main.lock").write_text("")
    (heads / "link").symlink_to("/nowhere")
    said = dry_run(order(source, "a@example.com"))
    assert [run.name for run in said.runs] == ["a"]
    assert [(left.path, left.why) for left in said.left] == [("other:", "no other branch than main and events is read")]


def test_an_import_never_writes_over_anything(tmp_path: Path) -> None:
    """Not over a deployment, not beside a host, not under an address that is taken; and it says what to do."""
    source, data = repository(tmp_path, made.sealed("a", DONE)), tmp_path / "data"
    with pytest.raises(NoAddress):
        carry_out(data, order(source))
    carry_out(data, order(source, "a@example.com"))
    before = {path: path.read_bytes() for path in (data / "repos").rglob("*") if path.is_file()}
    with pytest.raises(Exists, match="the name"):
        carry_out(data, order(source, "b@example.com"))
    with pytest.raises(Exists, match="the address"):
        carry_out(data, order(source, "a@example.com", "other"))
    with HostLock.take(data / "host.lock", command=("waypost", "run"), since=""), pytest.raises(HostRuns):
        carry_out(data, order(source, "b@example.com", "other"))
    assert {path: path.read_bytes() for path in (data / "repos").rglob("*") if path.is_file()} == before


def test_what_is_no_such_repository_is_refused_in_words(tmp_path: Path) -> None:
    """A bundle, a folder, one of ours, an agent's, one without runs: each with what to do next."""
    bundle = tmp_path / "theirs.bundle"
    bundle.write_bytes(b"# v2 git bundle\n")
    agent = made.Reference(tmp_path / "agent.git")
    agent.commit("main", {"state/grants.json": b'{"grants":[]}'})
    empty = made.Reference(tmp_path / "empty.git")
    empty.commit("main", {"README.md": b""})
    broken = made.Reference(tmp_path / "broken.git")
    broken.commit("main", made.sealed("a", DONE))
    (broken.path / "refs" / "heads" / "main").write_text("f" * 40 + "\n")
    other = made.Reference(tmp_path / "sha256.git")
    other.commit("main", made.sealed("a", DONE))
    (other.path / "refs" / "heads" / "main").write_text("f" * 64 + "\n")
    for path, words in (
        (bundle, "git clone --mirror"),
        (tmp_path, "no git repository"),
        (tmp_path / "missing", "no git repository"),
        (agent.path, "--grants STEP=REPOSITORY"),
        (empty.path, "holds no runs"),
        (broken.path, "missing"),
        (other.path, "no object id"),
    ):
        with pytest.raises(NothingToImport) as refused:
            dry_run(order(path, "a@example.com"))
        assert words in f"{refused.value.message} {refused.value.hint}"


def test_a_repository_of_ours_is_none_of_theirs(tmp_path: Path) -> None:
    """Moving one of ours is what backup and restore are for."""
    fresh_store(tmp_path / "ours.git", SigningKey.generate()).close()
    with pytest.raises(NothingToImport, match="no branch main"):
        dry_run(order(tmp_path / "ours.git", "a@example.com"))

"""Sealing finished runs: what moves where, what waits, and that nobody who reads can tell."""

import hashlib
from collections.abc import Sequence

import msgspec
import pytest

from substrate import layout, runlog
from substrate.indexing.covering import open_derived
from substrate.indexing.index import Index
from substrate.messages import (
    Append,
    Claim,
    Enqueue,
    MailDelivered,
    MailUndeliverable,
    PutBlob,
    Question,
    QueueMail,
    ReadBlob,
    ReadLog,
    ReadRuns,
    Refused,
    Supervisor,
    TakeUp,
    Unpause,
    WorkflowProcess,
)
from substrate.operations import sealing
from substrate.operations.sealing import seal_run
from substrate.questions import answer
from waypost.model import events as ev
from waypost.model.ids import Generation, RunId
from waypost.testing.desk import ADDRESS, BOSS, REPOSITORY, STARTED, Desk, call, message

NULL = ev.Value(inline=msgspec.Raw(b"null"))
CHILD = WorkflowProcess(Generation(1))
DONE = ev.RunCompleted(result=NULL)


def begun() -> tuple[Desk, RunId]:
    desk = Desk()
    desk.begin()
    return desk, desk.start(message("m1@x"))


def finished(desk: Desk, name: str, *, answers: str | None = None) -> RunId:
    """A run that has ended; with ``answers``, in the thread of that mail."""
    run = desk.start(message(name, answers=answers))
    desk.append(run, DONE)
    return run


def files(desk: Desk, root: str) -> dict[str, bytes]:
    """What lies under ``runs`` or ``sealed``."""
    return {
        path: desk.tree.read(path) or b"" for path in getattr(desk.tree, "files", {}) if path.startswith(f"{root}/")
    }


def value(desk: Desk, run: RunId, number: int, size: int) -> str:
    """A step whose result is a blob; its name."""
    data = b'"%s"' % (b"%d" % number * size)[:size]
    name = hashlib.sha256(data).hexdigest()
    desk.must(PutBlob(by=CHILD, run=run, sha256=name, data=data))
    step = ev.StepStarted(call=call(number), step="s", arguments="0" * 64)
    desk.append(run, step, ev.StepCompleted(call=call(number), output=ev.Value(blob=name)))
    return name


def steps(first: int, count: int) -> list[ev.AnyEvent]:
    return [
        each
        for number in range(first, first + count)
        for each in (
            ev.StepStarted(call=call(number), step="s", arguments="0" * 64),
            ev.StepCompleted(call=call(number), output=NULL),
        )
    ]


class Watched:
    """A tree that keeps a list of the files that are read."""

    def __init__(self, desk: Desk) -> None:
        self.desk = desk
        self.seen: list[str] = []

    def read(self, path: str) -> bytes | None:
        """A file's bytes."""
        self.seen.append(path)
        return self.desk.tree.read(path)

    def entries(self, path: str) -> tuple[str, ...]:
        """The names in a directory."""
        return self.desk.tree.entries(path)

    def several(self, directory: str, names: Sequence[str]) -> list[bytes | None]:
        """Files of one directory."""
        return [self.read(f"{directory}/{name}") for name in names]

    def directory_id(self, path: str) -> str:
        """A directory's id."""
        return self.desk.tree.directory_id(path)

    def directory(self, oid: bytes) -> bytes:
        """A directory by its id."""
        return self.desk.tree.directory(oid)


def test_a_finished_run_becomes_one_file_byte_for_byte() -> None:
    """Segments and tail in one file, one event a line; its values and its grants beside it; nothing stays behind."""
    desk, run = begun()
    name = value(desk, run, 1, 70_000)
    desk.append(run, *steps(2, 40), DONE)
    raws, grants = list(runlog.events(desk.index, run)), desk.tree.read(layout.grants_path(run))
    blob = desk.tree.read(layout.blob_path(run, name))
    assert desk.fold_away() == run
    assert files(desk, "runs") == {}
    assert files(desk, "sealed") == {
        layout.sealed_log_path(run): b"".join(raw + b"\n" for raw in raws),
        layout.sealed_grants_path(run): grants,
        layout.sealed_blob_path(run, name): blob,
    }
    assert desk.changes[-1].subject == f"seal {run}"
    assert desk.changes[-1].facts == ()
    assert desk.fold_away() is None
    desk.check()


def test_every_question_is_answered_as_before() -> None:
    """Log, pages, values, mails, lists and refusals: where a run's bytes lie is nobody's business."""
    desk, run = begun()
    name = value(desk, run, 1, 70_000)
    desk.append(run, *steps(2, 40), DONE)
    live = desk.start(message("m2@x"))
    mail = hashlib.sha256(message("m1@x")).hexdigest()
    questions: list[Question] = [
        *(ReadLog(run=run, after=after, limit=limit) for after in (0, 1, 63, 64, 83, 84, 99) for limit in (1, 900)),
        ReadBlob(run=run, sha256=name, by=Supervisor()),
        ReadBlob(run=run, sha256=mail, by=Supervisor()),
        ReadBlob(run=run, sha256=name, by=CHILD),
        ReadBlob(run=run, sha256="0" * 64, by=Supervisor()),
        ReadRuns(),
        ReadRuns(limit=1),
    ]
    before = [answer(desk.index, question) for question in questions]
    refused = [desk.code(Append(by=CHILD, run=run, events=(DONE,))), desk.code(Unpause(run=run, by="me"))]
    known = desk.index.known(run)
    desk.fold_away()
    for _ in range(2):
        assert [answer(desk.index, question) for question in questions] == before
        assert [desk.code(Append(by=CHILD, run=run, events=(DONE,))), desk.code(Unpause(run=run, by="me"))] == refused
        again = desk.index.known(run)
        assert (again.run, again.seq, again.prev) == (known.run, known.seq, known.prev)
        assert [desk.index.standing(each) for each in (run, live, RunId("run_9_0000000000000009"))] == [
            "ended",
            "live",
            "absent",
        ]
        desk.reopen(desk.tree)


def test_what_has_not_come_to_its_end_is_not_sealed() -> None:
    """Live, paused or with mail in the outbox: something may still follow, and a sealed log never changes."""
    desk, run = begun()
    refused = seal_run(desk.index, run)
    assert isinstance(refused, Refused)
    assert refused.code == "not-ended"
    for number in (1, 2):
        desk.must(QueueMail(by=CHILD, run=run, call=call(number), to=(BOSS,), subject="s", text="t"))
    desk.append(run, DONE)
    refused = seal_run(desk.index, run)
    assert isinstance(refused, Refused)
    assert refused.code == "unsent"
    desk.must(MailDelivered(1))
    assert desk.fold_away() is None
    desk.must(MailUndeliverable(2, "no such user"))
    assert [ev.kind(event) for event in desk.events(run)][-3:] == ["RunCompleted", "MailSent", "MailFailed"]
    assert desk.fold_away() == run
    refused = seal_run(desk.index, run)
    assert isinstance(refused, Refused)
    assert refused.code == "sealed"
    desk.must(MailDelivered(1))  # said twice: still no error
    lines = answer(desk.index, ReadRuns())
    assert isinstance(lines, tuple)
    (line,) = lines
    assert (line.state, line.seq) == ("completed", 6)
    desk.check()


def test_large_values_go_ahead_so_that_no_commit_grows_with_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """Some in each commit; the log comes last and says that the run is sealed. A start in between goes on."""
    monkeypatch.setattr(sealing, "STEP", 100_000)
    desk, run = begun()
    names = [value(desk, run, number, 70_000) for number in range(1, 6)]
    desk.append(run, DONE)
    before = [answer(desk.index, ReadBlob(run=run, sha256=name, by=Supervisor())) for name in names]
    sizes = []
    while desk.fold_away() is not None:
        sizes.append(sum(path.startswith("sealed/") and "/blobs/" in path for path in desk.changes[-1].puts))
        assert [answer(desk.index, ReadBlob(run=run, sha256=name, by=Supervisor())) for name in names] == before
        assert desk.index.standing(run) == "ended"
        desk.check()
        desk.reopen(desk.tree)
    assert sizes == [2, 2, 1]
    assert files(desk, "runs") == {}


def test_a_reply_to_a_sealed_run_starts_a_new_one_that_names_it() -> None:
    """By the id of a mail that it was given and by one that it sent, before and after a restart."""
    desk, run = begun()
    desk.must(QueueMail(by=CHILD, run=run, call=call(1), to=(BOSS,), subject="s", text="t"))
    sent = desk.index.outbox[1].outgoing.message_id
    desk.must(MailDelivered(1))
    desk.append(run, DONE)
    for number, answered in enumerate(("m1@x", sent), 2):
        assert desk.fold_away() is not None
        desk.reopen(desk.tree)
        before = desk.index.threads.find(b"<m1@x>")
        assert before == desk.index.threads.find(sent.encode())
        new = finished(desk, f"m{number}@x", answers=answered)
        begin = desk.events(new)[0]
        assert isinstance(begin, ev.RunStarted)
        assert begin.after == before
        assert desk.index.threads.find(b"<m1@x>") == new  # the newest of the thread, from whichever id
        desk.check()


def test_a_mail_that_waits_for_a_run_which_is_sealed_meanwhile_is_rerouted() -> None:
    """Sealing closes no door: the mail starts a new run that names the old one, as before the seal."""
    desk, run = begun()
    arrival = desk.enqueue(message("m2@x", answers="m1@x"))
    desk.append(run, DONE)
    desk.fold_away()
    assert desk.code(Claim(99)) == "not-queued"
    desk.must(Claim(arrival))
    assert desk.code(TakeUp(arrival=arrival, start=STARTED)) == "ended"
    new = desk.must(TakeUp(arrival=arrival, start=STARTED, reroute=True))
    assert new != run
    desk.check()


def test_one_run_for_a_deployments_life_is_found_when_it_is_sealed() -> None:
    """`runs="deployment"`: the next mail names the newest run, though nothing of it is in memory."""
    desk = Desk(runs="deployment")
    desk.begin()
    run = finished(desk, "m1@x")
    desk.fold_away()
    desk.reopen(desk.tree)
    desk.enqueue(message("m2@x"))
    assert [item.queued.entry.old for item in desk.index.queue.values()] == [run]


def test_an_accepted_mail_stays_known_when_its_run_is_sealed() -> None:
    """Redelivered within the horizon it is a duplicate."""
    desk, run = begun()
    desk.append(run, DONE)
    desk.fold_away()
    assert desk.must(Enqueue(message("m1@x"))).outcome == "already-present"


def test_runs_are_listed_newest_first_and_no_run_is_read_for_it() -> None:
    """Of 100,000 runs a list of ten looks at ten cards."""
    desk = Desk()
    desk.begin()
    runs = [finished(desk, f"m{number}@x") for number in range(1, 71)]
    for _ in range(68):
        desk.fold_away()
    live = desk.start(message("live@x"))
    desk.enqueue(message("queued@x"))
    desk.check()
    lines = answer(desk.index, ReadRuns(limit=6))
    assert isinstance(lines, tuple)
    assert [(line.run, line.state) for line in lines[1:]] == [
        (live, "running"),
        *((run, "completed") for run in runs[:-5:-1]),
    ]
    assert lines[0].state == "queued"
    assert lines[4].subject == "about m68@x"
    paged = [answer(desk.index, ReadRuns(limit=1, before=lines[at].run)) for at in range(5)]
    assert [line for page in paged for line in page] == list(lines[1:]), "a list in portions is the same list"
    watched = Watched(desk)
    index = Index(watched, ADDRESS, desk.limits, open_derived(None, desk.tree, REPOSITORY))
    watched.seen.clear()
    assert answer(index, ReadRuns(limit=6)) == lines
    read = [path for path in watched.seen if path.startswith(("runs/", "sealed/"))]
    assert read == [], "what is said of each run is in the derived index"


def test_opening_reads_no_log_that_is_sealed() -> None:
    """Whatever has been sealed, a start costs what is live."""
    desk = Desk()
    desk.begin()
    for number in range(1, 10):
        finished(desk, f"m{number}@x")
        desk.fold_away()
    watched = Watched(desk)
    Index(watched, ADDRESS, desk.limits, open_derived(None, desk.tree, REPOSITORY))
    assert [path for path in watched.seen if path.startswith(("sealed/", "mail/"))] == []


@pytest.mark.parametrize(
    "name", ["", "run_", "run_../../x@h", "run_1", "../run_1_0000000000000001", "run_01_" + "0" * 16]
)
def test_what_is_no_run_id_has_no_run(name: str) -> None:
    """A child may say anything: it is told that there is no such run, and nothing looks for a path made of it."""
    desk, _ = begun()
    run = RunId(name)
    assert desk.index.standing(run) == "absent"
    assert desk.code(Append(by=CHILD, run=run, events=(DONE,))) == "not-given"
    for question in (ReadLog(run=run, limit=1), ReadBlob(run=run, sha256="0" * 64, by=CHILD)):
        assert isinstance(answer(desk.index, question), Refused)

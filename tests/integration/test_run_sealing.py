"""Finished runs fold away by themselves: on a real disk, killed at every point of it, beside appends and readers."""

import itertools
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest

from substrate import Reader, SubstrateActor, layout, runlog, verify
from substrate.effects import To
from substrate.files.disk import Disk
from substrate.files.folder import Folder
from substrate.messages import (
    Append,
    BeginGeneration,
    Claim,
    Done,
    Enqueue,
    MailDelivered,
    Open,
    Operation,
    PutBlob,
    QueueMail,
    ReadLog,
    ReadRuns,
    Submit,
    TakeUp,
    WorkflowProcess,
)
from substrate.operations import sealing
from substrate.storage.readview import open_readonly
from substrate.storage.store import Store
from waypost.model import events as ev
from waypost.model.ids import Generation, RunId, message_key
from waypost.model.limits import Limits
from waypost.shell import request
from waypost.testing.clock import START, ManualClock
from waypost.testing.desk import BOSS, STARTED, call, message
from waypost.testing.disks import Died, DyingDisk
from waypost.testing.patience import PATIENCE
from waypost.testing.stores import fsck, git
from waypost.testing.writer_here import KEY, SETTINGS, WriterHere

LIMITS = Limits(seal_bytes=64 * 1024)
NULL = ev.Value(inline=msgspec.Raw(b"null"))
CHILD = WorkflowProcess(Generation(1))
VALUE = b'"' + b"v" * 70_000 + b'"'


class Host(WriterHere):
    """A writer whose journals are small, and its runs."""

    def __init__(self, path: Path, disk: Disk | None = None) -> None:
        super().__init__(path, disk, limits=LIMITS)

    def start(self, name: str, answers: str | None = None) -> RunId:
        """A run."""
        arrival = self.ask(Enqueue(message(name, answers=answers))).arrival
        self.ask(Claim(arrival))
        run: RunId = self.ask(TakeUp(arrival=arrival, start=STARTED))
        return run

    def sealed(self) -> list[RunId]:
        """Which runs are sealed, by what a reader sees."""
        view = open_readonly(self.path, KEY.public)
        return [run for run in runlog.run_ids(view, layout.SEALED) if runlog.is_sealed(view, run)]


def end(run: RunId) -> Append:
    return Append(by=CHILD, run=run, events=(ev.RunCompleted(result=NULL),))


def story(host: Host) -> Iterator[tuple[RunId, int]]:
    """Two runs that end, one with large values and one whose mail goes out late; each acknowledged (run, seq)."""
    first, second = host.start("m1@x"), host.start("m2@x")
    yield from ((first, 1), (second, 1))
    name = message_key(VALUE)
    host.ask(PutBlob(by=CHILD, run=first, sha256=name, data=VALUE))
    begun = ev.StepStarted(call=call(1), step="s", arguments="0" * 64)
    returned = ev.StepCompleted(call=call(1), output=ev.Value(blob=name))
    yield first, host.ask(Append(by=CHILD, run=first, events=(begun, returned)))
    host.ask(QueueMail(by=CHILD, run=first, call=call(2), to=(BOSS,), subject="s", text="t" * 65_000))
    host.ask(QueueMail(by=CHILD, run=second, call=call(1), to=(BOSS,), subject="s", text="t"))
    host.ask(MailDelivered(1))
    yield first, 5
    yield first, host.ask(end(first))
    yield second, host.ask(end(second))
    host.ask(MailDelivered(2))
    yield second, 4
    host.rest()


@pytest.fixture(autouse=True)
def _small_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sealing, "STEP", 60_000)


@pytest.fixture(name="template", scope="module")
def _template(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("sealing") / "template.git"
    host = Host(path)
    host.ask(BeginGeneration())
    host.close()
    return path


def test_a_finished_run_is_sealed_after_its_flush_in_a_turn_of_its_own(template: Path, tmp_path: Path) -> None:
    """Its own signed commit by the host itself; who waited for the end is answered before that."""
    shutil.copytree(template, tmp_path / "r.git")
    host = Host(tmp_path / "r.git")
    list(story(host))
    first, second = host.sealed()
    assert host.ask(ReadRuns())[0].run == second
    host.close()
    log = git(tmp_path / "r.git", "log", "--format=%an %s").splitlines()
    seals = [line for line in reversed(log) if " seal run_" in line]
    assert seals == [f"supervisor seal {first}: values first", f"supervisor seal {first}", f"supervisor seal {second}"]
    assert git(tmp_path / "r.git", "ls-tree", "log:runs", check=False).startswith("fatal")
    assert fsck(tmp_path / "r.git") == ""
    report = verify(tmp_path / "r.git", KEY.public)
    assert report.faults == ()
    assert (report.runs, report.events) == (2, 10)
    host = Host(tmp_path / "r.git")
    assert not host.mailbox
    new = host.start("m3@x", answers="m1@x")
    begun = ev.decode(host.ask(ReadLog(run=new, limit=1)).events[0])
    assert isinstance(begun, ev.RunStarted)
    assert begun.after == first
    host.close()


def test_appends_go_on_between_two_seals(template: Path, tmp_path: Path) -> None:
    """A sweep of many runs takes one a turn: what came meanwhile is taken up first."""
    shutil.copytree(template, tmp_path / "r.git")
    host = Host(tmp_path / "r.git")
    live = host.start("live@x")
    for number in range(6):
        host.ask(end(host.start(f"m{number}@x")))
    host.writer.void("killed")
    host = Host(tmp_path / "r.git")
    order: list[str] = []
    before = len(host.sealed())
    for number in range(1, 40):
        step = ev.StepStarted(call=call(number), step="s", arguments="0" * 64)
        host.hear(host.writer.submit(Submit(what=Append(by=CHILD, run=live, events=(step,))), To(), host.now))
        order.append(host.turn())
    assert before < 6
    assert order.count("FoldAway") >= 6 - before
    assert not any(one == other == "FoldAway" for one, other in itertools.pairwise(order))
    host.rest()
    assert len(host.sealed()) == 6
    assert host.ask(ReadLog(run=live, limit=1)).last == 40
    host.close()
    assert verify(tmp_path / "r.git", KEY.public).faults == ()


def check(path: Path, acknowledged: dict[RunId, int]) -> None:
    """After a crash: every acknowledged event is there, nothing is in two places, and the sweep goes on to the end."""
    reader = Reader.open(path, KEY.public)
    for run, seq in acknowledged.items():
        assert len(list(reader.log(run))) >= seq
    logs = {line.run: list(reader.log(line.run)) for line in reader.runs() if line.seq}
    ended = {line.run for line in reader.runs() if line.state == "completed"}
    host = Host(path)
    unsent = {added.outgoing.run for added in host.writer.snapshot().outbox}
    host.rest()
    assert set(host.sealed()) == ended - unsent
    assert {run: list(host.ask(ReadLog(run=run, limit=10**6)).events) for run in logs} == logs
    for number, run in enumerate(sorted(logs, key=lambda each: each.split("_")[1]), 1):
        answer = host.ask(Enqueue(message(f"again{number}@x", answers=f"m{number}@x")))
        assert (answer.run == run) == (run not in ended)
    host.close()
    assert fsck(path) == ""
    assert verify(path, KEY.public).faults == ()


def points(template: Path, folder: Path) -> tuple[int, int]:
    """How many points the opening passes, and how many it and the story."""
    shutil.copytree(template, folder / "count.git")
    disk = Disk()
    host = Host(folder / "count.git", disk)
    opened = disk.points
    list(story(host))
    host.close()
    return opened, disk.points


@pytest.mark.parametrize("part", [0, *(pytest.param(part, marks=pytest.mark.torture) for part in range(1, 8))])
def test_a_death_at_any_point_leaves_each_run_whole_and_is_made_up_for(
    template: Path, tmp_path: Path, part: int
) -> None:
    """Every point of the whole story, in eight parts; every second one dies half-way through its write."""
    _, total = points(template, tmp_path)
    assert total > 60
    for at in range(1 + part, total + 1, 8):
        path = tmp_path / "r.git"
        shutil.copytree(template, path)
        acknowledged: dict[RunId, int] = {}
        with pytest.raises(Died):
            play(path, DyingDisk(at, half=at % 16 < 8), acknowledged)
        check(path, acknowledged)
        shutil.rmtree(path)


def play(path: Path, disk: Disk, acknowledged: dict[RunId, int]) -> None:
    host = Host(path, disk)
    try:
        acknowledged.update(story(host))  # as far as it comes
        host.close()
    except Died:
        host.writer.void("killed")
        raise


def test_a_second_death_in_the_sweep_is_made_up_for_as_well(template: Path, tmp_path: Path) -> None:
    """The start after a crash may be killed while it recovers and while it seals, and again."""
    opened, total = points(template, tmp_path)
    path = tmp_path / "r.git"
    for first in range(opened + 20, total, 13):
        shutil.copytree(template, path)
        acknowledged: dict[RunId, int] = {}
        with pytest.raises(Died):
            play(path, DyingDisk(first), acknowledged)
        for second in (3, 9, 14, 18, 21):
            disk = DyingDisk(second)
            try:
                host = Host(path, disk)
            except Died:
                continue
            try:
                host.rest()
            except Died:
                host.writer.void("killed")
            else:
                host.writer.void("killed, too")
        check(path, acknowledged)
        shutil.rmtree(path)


def test_the_index_may_be_lost_or_left_behind_at_any_time(template: Path, tmp_path: Path) -> None:
    """Derived: deleted, or one of an older state, threads still go on where they were."""
    path = tmp_path / "r.git"
    shutil.copytree(template, path)
    index = Path(Folder(str(path)).derived)
    host = Host(path)
    host.ask(end(host.start("m1@x")))
    host.close()
    older = index.read_bytes()
    host = Host(path)
    host.ask(end(host.start("m2@x", answers="m1@x")))
    host.rest()
    second = host.sealed()[-1]
    host.close()
    for damage in (lambda: index.write_bytes(older), index.unlink, lambda: shutil.rmtree(index.parent)):
        damage()
        host = Host(path)
        accepted = host.ask(Enqueue(message(f"{id(damage)}@x", answers="m1@x")))
        queued = [item.entry for item in host.writer.snapshot().queue]
        assert {entry.old for entry in queued if entry.run == accepted.run and entry.starts} == {second}
        host.close()


def test_a_run_that_can_not_be_read_keeps_nobody_from_anything(template: Path, tmp_path: Path) -> None:
    """Its grants are gone: it stays as it is, is reported, and the runs behind it are sealed."""
    path = tmp_path / "r.git"
    shutil.copytree(template, path)
    host = Host(path)
    host.start("m1@x")
    host.close()
    store = Store.open(path, key=KEY)
    (broken,) = runlog.run_ids(store)
    author = "supervisor <supervisor@deployment.waypost>"
    store.commit(author=author, subject="lose", puts={}, deletes=(layout.grants_path(broken),), at=START)
    store.close()
    host = Host(path)
    host.ask(end(broken))
    sound = host.start("m2@x")
    host.ask(end(sound))
    host.rest()
    assert host.sealed() == [sound]
    assert host.ask(ReadLog(run=broken, limit=1)).last == 2
    host.close()
    assert layout.grants_path(broken) in {fault.path for fault in verify(path, KEY.public).faults}


def test_what_only_moves_is_stored_once(template: Path, tmp_path: Path) -> None:
    """A sealed value names the object that was there: the pack grows by the log, not by the values."""
    path = tmp_path / "r.git"
    shutil.copytree(template, path)
    store = Store.open(path, key=KEY)
    blob = bytes(range(256)) * 4000
    author = "supervisor <supervisor@deployment.waypost>"
    store.commit(author=author, subject="put", puts={"runs/a": blob}, at=START)
    store.seal()
    store.commit(author=author, subject="move", puts={"sealed/a": blob}, deletes=("runs/a",), at=START)
    store.close()
    assert git(path, "cat-file", "-s", "log:sealed/a").strip() == str(len(blob))
    assert sum(file.stat().st_size for file in (path / "objects" / "pack").glob("*.pack")) < 1.5 * len(blob)
    assert git(path, "fsck", "--strict", "--full", "--no-progress") == ""


def test_the_actor_seals_by_itself_and_at_its_start(template: Path, tmp_path: Path) -> None:
    """Nobody asks for it: the run that ended, and the one that a crash left."""
    path = tmp_path / "r.git"
    shutil.copytree(template, path)
    host = Host(path)
    host.ask(end(host.start("left@x")))
    host.writer.void("killed")
    ref = SubstrateActor.start(path, SETTINGS, KEY, clock=ManualClock(), limits=LIMITS)
    try:

        def submit(what: Operation) -> Any:
            result = request(ref, Submit(what=what), timeout=PATIENCE)
            assert isinstance(result, Done), result
            return result.value

        assert isinstance(request(ref, Open(), timeout=PATIENCE), Done)
        arrival = submit(Enqueue(message("m1@x"))).arrival
        submit(Claim(arrival))
        submit(end(submit(TakeUp(arrival=arrival, start=STARTED))))
        for _ in range(8):  # each answer comes after what the actor had told itself before it
            request(ref, Submit(what=ReadRuns()), timeout=PATIENCE)
    finally:
        ref.stop()
    log = git(path, "log", "--format=%s").splitlines()
    assert sum(line.startswith("seal run_") for line in log) == 2
    assert verify(path, KEY.public).faults == ()

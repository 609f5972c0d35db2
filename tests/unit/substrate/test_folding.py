"""A finished run's log, gathered in portions: the same bytes, the same object, and no portion that is long."""

import zlib
from collections.abc import Sequence
from pathlib import Path

import msgspec
import pytest

from substrate import layout, runlog
from substrate.effects import Again, To
from substrate.errors import Damaged
from substrate.files.disk import Disk
from substrate.folding import Folding
from substrate.messages import Append, Done, FoldAway, Stage, Submit, WorkflowProcess
from substrate.operations import Change
from substrate.operations.sealing import seal_run
from substrate.packs.objects import Kind, object_id
from substrate.rules import Ground, judge, proposed
from substrate.runlog import Tree
from substrate.settings import Settings, message_ids
from substrate.signing.chain import Chain, Proven, chained
from substrate.signing.keys import SigningKey
from substrate.storage.readview import open_readonly
from substrate.storage.store import Store
from substrate.writer import Writer
from waypost.acting import Reply
from waypost.model import events as ev
from waypost.model.ids import Generation, RunId
from waypost.model.limits import DEFAULT
from waypost.model.times import Now
from waypost.testing.clock import START
from waypost.testing.desk import ADDRESS, REPOSITORY, Desk, call, first_files, message
from waypost.testing.stores import fsck

KEY = SigningKey.generate()
NULL = ev.Value(inline=msgspec.Raw(b"null"))
STEPS = 70
PORTIONS = [1, 700, 20_000, 10**6]


def finished(desk: Desk, number: int = 1, steps: int = STEPS) -> RunId:
    """A run that has ended."""
    run = desk.start(message(f"m{number}@x"))
    for step in range(1, steps + 1):
        desk.append(
            run,
            ev.StepStarted(call=call(step), step="s", arguments="a" * 64),
            ev.StepCompleted(call=call(step), output=NULL),
        )
    desk.append(run, ev.RunCompleted(result=NULL))
    return run


@pytest.fixture(name="desk", scope="module")
def _desk() -> Desk:
    desk = Desk()
    desk.begin()
    finished(desk)
    finished(desk, 2, 3)
    return desk


def gathered(tree: Tree, run: RunId, portion: int) -> tuple[bytes, int]:
    """The log, and in how many steps it was gathered."""
    folding, steps = Folding(tree, run, REPOSITORY, portion), 1
    while folding.step():
        steps += 1
    assert folding.log is not None
    return folding.log, steps


@pytest.mark.parametrize("portion", PORTIONS)
def test_a_log_in_portions_is_the_log(desk: Desk, portion: int) -> None:
    """Byte for byte, and where it is long with the id and the compressed form that it would have got anyway."""
    for run in list(desk.index.finished):
        raws = list(runlog.events(desk.index, run))
        log, steps = gathered(desk.index, run, portion)
        assert log == b"".join(raw + b"\n" for raw in raws)
        if not isinstance(log, Proven):
            assert steps == 1
            assert len(log) < portion
            continue
        assert steps >= len(raws) / max(1, portion // 256)
        assert log.oid == object_id(Kind.BLOB, log)
        assert zlib.decompress(log.deflated) == log
        assert (log.chain.newest, log.chain.count) == (ev.digest(raws[-1]), len(raws))
        assert chained(raws, log.chain.newest, log.chain.genesis) == 0


@pytest.mark.parametrize("portion", PORTIONS)
def test_the_commit_that_seals_is_the_same_for_git_and_for_the_rules(tmp_path: Path, portion: int) -> None:
    """What was hashed and compressed beforehand is stored as it is; stock git finds nothing wrong with it."""
    Store.create(tmp_path / "r.git", repository_id=REPOSITORY, key=KEY, first=first_files(), at=START).close()
    desk = Desk(Store.open(tmp_path / "r.git", key=KEY))
    desk.begin()
    run = finished(desk)
    log, _ = gathered(desk.index, run, portion)
    change = seal_run(desk.index, run, log)
    assert isinstance(change, Change)
    ground = Ground(repository=REPOSITORY, address=ADDRESS, limits=DEFAULT)
    assert not judge(desk.index, proposed(change), ground).broken
    desk._commit(change)
    desk.check()
    assert isinstance(desk.tree, Store)
    desk.tree.close()
    assert fsck(tmp_path / "r.git") == ""
    assert Store.open(tmp_path / "r.git", key=KEY).read(layout.sealed_log_path(run)) == log


def test_a_log_that_was_gathered_for_another_run_is_refused(desk: Desk) -> None:
    """That its chain was followed says nothing of whose it is: where it begins and ends does."""
    run, other = list(desk.index.finished)
    log, _ = gathered(desk.index, other, 1)
    assert isinstance(log, Proven)
    change = seal_run(desk.index, run, log)
    assert isinstance(change, Change)
    verdict = judge(desk.index, proposed(change), Ground(repository=REPOSITORY, address=ADDRESS, limits=DEFAULT))
    assert [broken.rule for broken in verdict.broken] == ["seal"]


@pytest.mark.parametrize(("seq", "portion"), [(1, 1), (2, 10**6), (64, 4096), (65, 4096), (130, 20_000)])
def test_a_log_whose_chain_is_broken_is_damage(desk: Desk, seq: int, portion: int) -> None:
    """Whatever portion the fault is in, nothing is sealed."""
    run = next(iter(desk.index.finished))

    class Altered:
        entries = desk.index.entries

        def read(self, path: str) -> bytes | None:
            data = desk.index.read(path)
            if data is None or not path.startswith(layout.run_dir(run)):
                return data
            return data.replace(b'{"seq":%d,"type":"' % seq, b'{"seq":%d,"type":"X' % seq)

        def several(self, directory: str, names: Sequence[str]) -> list[bytes | None]:
            return [self.read(f"{directory}/{name}") for name in names]

    with pytest.raises(Damaged, match=f"event {seq + 1} isn't the next one"):
        gathered(Altered(), run, portion)


def test_a_chain_goes_on_only_with_events_that_name_the_one_before() -> None:
    """What is no event at all names none."""
    for raw in (b"{}", b"not json"):
        chain = Chain("0" * 64)
        assert not chain.follow([raw])
        assert chain.count == 0


def test_others_write_between_two_portions_of_a_long_log(tmp_path: Path) -> None:
    """The writer reads 1,024 events of it a turn; an operation that comes meanwhile is answered before the seal."""
    settings = Settings(deployment="expenses", address=ADDRESS, message_id=message_ids(b"k" * 32, ADDRESS))
    Store.create(tmp_path / "r.git", repository_id=REPOSITORY, key=KEY, first=first_files(), at=START).close()
    desk = Desk(Store.open(tmp_path / "r.git", key=KEY))
    desk.begin()
    run = finished(desk, steps=0)
    other = desk.start(message("m2@x"))
    long = desk.start(message("m3@x"))
    for portion in range(0, 1100, 50):
        steps = range(portion + 1, portion + 51)
        desk.append(long, *(ev.StepStarted(call=call(step), step="s", arguments="a" * 64) for step in steps))
        desk.append(long, *(ev.StepCompleted(call=call(step), output=NULL) for step in steps))
    desk.append(long, ev.RunCompleted(result=NULL))
    assert isinstance(desk.tree, Store)
    desk.tree.close()
    now = Now(START, 0.0)
    writer = Writer.open(tmp_path / "r.git", settings, key=KEY, disk=Disk(), limits=DEFAULT, now=now)
    effects, turns = list(writer.sweep()), list[bool]()
    while Again(FoldAway()) in effects:
        effects = list(writer.fold_away(now))
        step = ev.StepStarted(call=call(len(turns) + 1), step="s", arguments="a" * 64)
        append = Append(by=WorkflowProcess(Generation(1)), run=other, events=(step,))
        answers = writer.submit(Submit(what=append, stage=Stage.COMMITTED), To(token=1), now)
        assert [type(effect.value) for effect in answers if isinstance(effect, Reply)] == [Done]
        effects += writer.flush(now)
        turns.append(runlog.is_sealed(open_readonly(tmp_path / "r.git", KEY.public), long))
    list(writer.close(now))
    assert runlog.is_sealed(open_readonly(tmp_path / "r.git", KEY.public), run)
    assert turns == [*(False for _ in turns[:-1]), True]
    assert len(turns) >= 5, "one for the short run, several for the long one"
    assert fsck(tmp_path / "r.git") == ""

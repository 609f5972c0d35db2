"""The derived index fails at work: nobody who asks or writes is told, and the next start has a file again."""

import logging
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from substrate import Settings, SubstrateActor, message_ids
from substrate.indexing.covering import open_derived
from substrate.indexing.derived import DerivedFile
from substrate.indexing.index import Index
from substrate.indexing.settling import Settling
from substrate.messages import BeginGeneration, Done, Open, Stage, Submit
from waypost.model.limits import DEFAULT
from waypost.shell import ActorBroken, request
from waypost.testing.clock import ManualClock
from waypost.testing.desk import ADDRESS, REPOSITORY
from waypost.testing.indexed import KEY, World, alter, told
from waypost.testing.patience import PATIENCE


def scribbled(world: World, _file: DerivedFile) -> None:
    """Somebody writes over the middle of it."""
    with world.file.open("r+b") as opened:
        opened.seek(4096)
        opened.write(os.urandom(world.file.stat().st_size - 4096))


def cut(world: World, _file: DerivedFile) -> None:
    """A copy over it was given up at once."""
    os.truncate(world.file, 0)


def all_cut(world: World, _file: DerivedFile) -> None:
    """With all that lies beside it: what is mapped of a file that was cut off ends the process that looks there."""
    for each in world.file.parent.iterdir():
        os.truncate(each, 0)


def log_cut(world: World, _file: DerivedFile) -> None:
    """Of the log alone; what SQLite knows of it is another thing then."""
    log = world.file.with_name(world.file.name + "-wal")
    os.truncate(log, log.stat().st_size // 2)


def gone(world: World, _file: DerivedFile) -> None:
    """It may be deleted at any time."""
    shutil.rmtree(world.file.parent)


def closed(_world: World, file: DerivedFile) -> None:
    """Everything fails, as with a disk that has gone."""
    file.close()


def names_of_no_run(world: World, _file: DerivedFile) -> None:
    """SQLite doesn't see a byte that has changed in a text."""
    alter(world.file, "update run set id = 'x' || id")


def names_in_another_kind(world: World, _file: DerivedFile) -> None:
    """Nor that a number is a text."""
    alter(world.file, "update run set id = 7, root = 7", "update or replace deadline set at = 'soon'")


def cards_of_another_kind(world: World, _file: DerivedFile) -> None:
    """A card that is no bytes."""
    alter(world.file, "update run set card = 7")


def readonly(_world: World, file: DerivedFile) -> None:
    """The disk was mounted read-only after an error: it can be read, and not written."""
    file._base.execute("pragma query_only=1")


HARM: tuple[Callable[[World, DerivedFile], None], ...] = (
    scribbled,
    cut,
    all_cut,
    log_cut,
    gone,
    closed,
    names_of_no_run,
    names_in_another_kind,
    cards_of_another_kind,
    readonly,
)


@pytest.mark.parametrize("harm", HARM)
@pytest.mark.parametrize("when", [pytest.param("idle", marks=pytest.mark.torture), "settling"])
def test_whatever_fails_at_work_the_answers_are_those_of_the_repository(
    world: World, harm: Callable[[World, DerivedFile], None], when: str
) -> None:
    """No answer is another one, and no write is refused: before, while and after it is written."""
    file = open_derived(world.file, world.store, REPOSITORY)
    world.desk.index = index = Index(world.store, ADDRESS, DEFAULT, file)
    settling = Settling(index, REPOSITORY)
    world.go_on()
    if when == "settling":
        assert settling.begin()
    harm(world, file)
    world.desk.check()
    settling.finish()
    expected = told(world.store, Index.open(None, world.store, ADDRESS, DEFAULT, REPOSITORY))
    assert told(world.store, index) == expected
    world.run(9, answers="m2@x")
    world.desk.check()
    world.store.seal()
    settling.finish()
    world.desk.check()
    index.close()
    world.check()


def test_it_is_told_once_and_done_without(world: World, caplog: pytest.LogCaptureFixture) -> None:
    """An operator should hear of a disk that fails; a file made now would speak of what may still be lost."""
    file = open_derived(world.file, world.store, REPOSITORY)
    index = Index(world.store, ADDRESS, DEFAULT, file)
    file.close()
    for _ in range(2):
        assert index.threads.find(b"<m9@x>") is None
    (told_once,) = [record for record in caplog.records if record.levelno >= logging.WARNING]
    assert "it is kept in memory for this time" in told_once.getMessage()
    assert not world.file.exists()


def test_what_fails_while_it_is_opened_is_built_again_in_a_file(world: World) -> None:
    """All is durable then, so the file may speak of it, and a host with many runs needn't keep them in memory."""
    file = open_derived(world.file, world.store, REPOSITORY)
    file.close()
    index = Index(world.store, ADDRESS, DEFAULT, file)
    assert world.file.exists()
    index.close()
    world.check()


def test_a_writer_that_ends_for_no_known_reason_leaves_no_index(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If it was the index, the next writer would end by it, too, and the next; so that one builds another."""

    def unforeseen(*_: object) -> None:
        raise LookupError("nobody thought of this")

    settings = Settings(deployment="test", address=ADDRESS, message_id=message_ids(b"k" * 32, ADDRESS))
    file = tmp_path / "r.git" / "waypost" / "derived" / "runs.sqlite"
    for known in (True, False):
        ref = SubstrateActor.start(tmp_path / "r.git", settings, KEY, clock=ManualClock())
        assert isinstance(request(ref, Open(), timeout=PATIENCE), Done)
        assert file.exists()
        with monkeypatch.context() as patch:
            if not known:
                patch.setattr(Index, "apply", unforeseen)
                with pytest.raises(ActorBroken):
                    request(ref, Submit(what=BeginGeneration(), stage=Stage.COMMITTED), timeout=PATIENCE)
            ref.stop()
        assert file.exists() == known

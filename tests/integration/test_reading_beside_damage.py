"""One deployment that can't be read: the others are read as ever, and it is said which one is missing, and why."""

import resource
import shutil
from pathlib import Path

import pytest

from ipc.process import open_descriptors
from substrate import SigningKey
from substrate.messages import Enqueue
from substrate.storage.store import Store
from waypost.host.datadir.directory import DataDir, lay_out, prepare
from waypost.model.ids import RunId
from waypost.testing.clock import START
from waypost.testing.desk import REPOSITORY, Desk, first_files, message
from waypost.testing.lowered import lowered
from waypost.testing.verbs import verb


def lose(data: DataDir, name: str) -> None:
    """Its branch names a commit that isn't there."""
    (data.repo(name) / "refs" / "heads" / "log").write_text("1" * 40 + "\n", encoding="ascii")


@pytest.fixture(name="world")
def _world(tmp_path: Path) -> tuple[DataDir, dict[str, RunId]]:
    data = prepare(tmp_path / "data", allow_network=True)
    lay_out(data)
    key = SigningKey.load_or_create(data.signing_key)
    runs: dict[str, RunId] = {}
    for name in ("one", "two"):
        Store.create(data.repo(name), repository_id=REPOSITORY, key=key, first=first_files(), at=START).close()
        store = Store.open(data.repo(name), key=key)
        desk = Desk(store)
        desk.begin()
        for number in range(len(runs) + 1):
            runs[name] = desk.start(message(f"{number}@x"))
        if name == "two":
            desk.enqueue(message("held@x"))
            desk.must(Enqueue(message("held@x", text="another")))
        store.close()
    return data, runs


def test_the_other_runs_are_listed_and_the_lost_deployment_is_named(world: tuple[DataDir, dict[str, RunId]]) -> None:
    """A list that is short and doesn't say so is a lie; one that shows nothing for one's sake helps nobody."""
    data, runs = world
    lose(data, "two")
    listed = verb("runs", data=data.path)
    assert listed.status == 2
    assert runs["one"] in listed.out
    assert "two isn't listed: " in listed.err


@pytest.mark.parametrize(("which", "said"), [("hold", "id-clash with two/"), ("rejected", "nothing was rejected")])
def test_so_are_the_other_mails_that_no_run_has(world: tuple[DataDir, dict[str, RunId]], which: str, said: str) -> None:
    """One that waits for a decision waits for ever if a neighbour's damage hides it."""
    data, _ = world
    lose(data, "one")
    listed = verb("queue", which, data=data.path)
    assert listed.status == 2
    assert said in listed.out
    assert "one isn't listed: " in listed.err


def test_a_whole_id_is_found_in_what_can_be_read_and_the_beginning_of_one_is_not_guessed(
    world: tuple[DataDir, dict[str, RunId]],
) -> None:
    """``run_1`` may mean one that can't be seen now: whoever answers an approval must not be led to another run."""
    data, runs = world
    lose(data, "two")
    assert verb("why", runs["one"], data=data.path).status == 0
    for text in (runs["two"], "run_1"):
        refused = verb("why", text, data=data.path)
        assert refused.status == 78
        assert str(data.repo("two")) in refused.err
        assert "no run is called" not in refused.err


def test_where_none_can_be_read_the_reason_is_the_answer(world: tuple[DataDir, dict[str, RunId]]) -> None:
    """An empty list would say that there are no runs."""
    data, _ = world
    lose(data, "one")
    lose(data, "two")
    refused = verb("runs", data=data.path)
    assert (refused.status, refused.out) == (78, "")
    assert "1111111111" in refused.err


def test_what_the_system_does_not_let_be_read_hides_nothing_else(world: tuple[DataDir, dict[str, RunId]]) -> None:
    """A folder of another user, a file in place of one: that isn't the history's fault, and not the neighbours'."""
    data, runs = world
    journal = data.repo("two") / "waypost" / "journal"
    journal.rmdir()
    journal.write_bytes(b"")
    listed = verb("runs", data=data.path)
    assert listed.status == 2
    assert runs["one"] in listed.out
    assert f"two isn't listed: {journal}: Not a directory" in listed.err


def test_more_deployments_are_listed_than_may_be_open_at_once(world: tuple[DataDir, dict[str, RunId]]) -> None:
    """Nobody hosts the most of them any more; and one that couldn't be opened would look damaged."""
    data, _ = world
    for number in range(40):
        shutil.copytree(data.repo("one"), data.repo(f"old-{number}"))
    with lowered(resource.RLIMIT_NOFILE, len(open_descriptors()) + 40):
        listed = verb("runs", data=data.path)
    assert (listed.status, listed.err.count("\n")) == (0, 1)
    assert listed.err.startswith("no host runs here")
    assert all(f" old-{number} " in listed.out for number in range(40))

"""What is noted of a deployment that sleeps counts only where its repository is as the note says."""

import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from substrate.files.folder import Folder
from substrate.signing.keys import SigningKey
from substrate.storage.store import Store
from waypost.host.code.notes import note, noted
from waypost.host.datadir.directory import DataDir, lay_out, prepare
from waypost.host.described import Described, Sleep
from waypost.model.code import deployed
from waypost.model.declaration import Declared
from waypost.model.ids import RunId
from waypost.model.installed import Installed, present
from waypost.model.schedule import Schedule, next_after, schedule
from waypost.testing.stores import fresh_store, git, put
from waypost.testing.supervision import a_spec

HERE = Installed("3.11", "0", "")
"""As the sample spec has it."""
FILES = {"orders.py": b"print()\n"}
RECORD = deployed(FILES, root="", module="orders", declared=Declared(name="orders", address="orders@example.com"))
ONE = Described(a_spec(), RECORD, "thread", {}, "c" * 64)
AT = Sleep(1_900_000_000_000, (RunId("run_1_00112233445566aa"),))
NEVER = Sleep(None)
THEN = 1_800_000_000_000


@pytest.fixture
def data(tmp_path: Path) -> DataDir:
    """A data directory with one deployment, all of which is on its branch."""
    data = prepare(tmp_path / "data")
    lay_out(data)
    fresh_store(data.repo("orders"), SigningKey.load_or_create(data.signing_key)).close()
    return data


def opened(data: DataDir) -> Store:
    return Store.open(data.repo("orders"), key=SigningKey.load_or_create(data.signing_key))


@pytest.mark.parametrize("sleep", [AT, NEVER], ids=["until then", "until something comes"])
def test_a_deployment_that_sleeps_is_known_without_opening_it(data: DataDir, sleep: Sleep) -> None:
    """All that its next start needs: what it runs, and when something is to be done."""
    note(data, ONE, sleep, THEN)
    assert noted(data, HERE, THEN) == {"orders": replace(ONE, sleep=sleep)}


def test_what_was_noted_by_a_clock_that_was_ahead_does_not_count(data: DataDir) -> None:
    """Its next tick lies behind that time: it would sleep until then, where it is to hold still for one interval."""
    note(data, ONE, AT, THEN + 1)
    assert noted(data, HERE, THEN) == {}
    assert noted(data, HERE, THEN + 1)


def test_without_a_note_nothing_is_known(data: DataDir) -> None:
    """It is opened, as ever."""
    assert noted(data, HERE, THEN) == {}


def written(data: DataDir) -> None:
    store = opened(data)
    put(store, {"a.txt": b"a"})
    store.close()


def written_and_killed(data: DataDir) -> None:
    store = opened(data)
    put(store, {"a.txt": b"a"})
    store.flush()
    store.abandon()


def opened_and_killed(data: DataDir) -> None:
    opened(data).abandon()


def torn(data: DataDir) -> None:
    path = data.sleeping("orders")
    path.write_bytes(path.read_bytes()[:-10])


def garbage(data: DataDir) -> None:
    data.sleeping("orders").write_bytes(b"\xff\x00" * 100)


def never(data: DataDir) -> None:
    raw = data.sleeping("orders").read_bytes()
    changed = re.sub(rb'"deadline":\d+', b'"deadline":99999999999999999999999', raw)
    assert changed != raw
    data.sleeping("orders").write_bytes(changed)


def enormous(data: DataDir) -> None:
    data.sleeping("orders").write_bytes(b" " * (1024 * 1024 + 1))


def nested(data: DataDir) -> None:
    data.sleeping("orders").write_bytes(b"[" * 100_000)


def renamed(data: DataDir) -> None:
    data.sleeping("orders").rename(data.sleeping("others"))
    data.repo("orders").rename(data.repo("others"))


def gone(data: DataDir) -> None:
    data.repo("orders").rename(data.path / "elsewhere")


def without_a_branch(data: DataDir) -> None:
    Path(Folder(str(data.repo("orders"))).ref).unlink()


def a_stranger(data: DataDir) -> None:
    (Path(Folder(str(data.repo("orders"))).journals) / "note.txt").write_bytes(b"")


@pytest.mark.parametrize(
    "happens",
    [
        *(written, written_and_killed, opened_and_killed, torn, garbage, never, enormous, nested, renamed, gone),
        *(without_a_branch, a_stranger),
    ],
    ids=lambda each: each.__name__,
)
def test_a_note_that_no_longer_holds_does_not_count(data: DataDir, happens: Callable[[DataDir], None]) -> None:
    """Whatever happened since: the repository is the only truth."""
    note(data, ONE, AT, THEN)
    happens(data)
    assert noted(data, HERE, THEN) == {}


@pytest.mark.parametrize("there", [Installed("3.12", "0", ""), Installed("3.11", "1", ""), Installed("3.11", "0", "x")])
def test_another_interpreter_or_other_packages_look_at_the_code_again(data: DataDir, there: Installed) -> None:
    """What runs record of these must be what is there."""
    note(data, ONE, AT, THEN)
    assert noted(data, there, THEN) == {}


def test_a_repository_that_still_has_a_journal_is_not_noted_and_an_older_note_goes(data: DataDir) -> None:
    """Its seal waits for space, or for another program's lock."""
    note(data, ONE, AT, THEN)
    written_and_killed(data)
    note(data, ONE, AT, THEN)
    assert not data.sleeping("orders").exists()


def test_a_branch_that_git_has_packed_is_still_known(data: DataDir) -> None:
    """Whoever collects garbage costs nobody a slow start."""
    note(data, ONE, NEVER, THEN)
    git(data.repo("orders"), "pack-refs", "--all")
    assert "orders" in noted(data, HERE, THEN)


def test_what_can_not_be_noted_is_no_error(data: DataDir, caplog: pytest.LogCaptureFixture) -> None:
    """It only costs time at the next start."""
    data.sleeping("").parent.write_bytes(b"")
    note(data, ONE, NEVER, THEN)
    assert "can't be noted" in caplog.text


def test_what_is_installed_is_told_in_this_process_as_in_a_child() -> None:
    """Else every note would be for nothing."""
    assert present() == present()
    assert len(present().distributions) == 64


def with_schedules(*schedules: Schedule) -> Described:
    declared = Declared(name="orders", address="orders@example.com", schedules=schedules)
    return replace(ONE, record=deployed(FILES, root="", module="orders", declared=declared))


HOURLY, DAILY = (schedule(each, tz="Europe/Berlin") for each in ("0 * * * *", "0 9 * * *"))
TICK = next_after(HOURLY, THEN)
assert TICK is not None


@pytest.mark.parametrize(
    ("schedules", "deadline", "counts"),
    [
        ((HOURLY, DAILY), TICK, True),
        ((HOURLY,), TICK - 1, True),
        ((HOURLY,), None, False),
        ((DAILY, HOURLY), next_after(DAILY, THEN), False),
        ((msgspec.structs.replace(HOURLY, tz="Mars/Olympus"),), None, False),
    ],
    ids=["the soonest", "a timer before it", "none", "only the other's", "its zone is gone still"],
)
def test_a_note_that_leaves_a_tick_out_does_not_count(
    data: DataDir, schedules: tuple[Schedule, ...], deadline: int | None, *, counts: bool
) -> None:
    """As where its zone's file was damaged when it fell asleep, and was put back since: it would sleep for ever."""
    note(data, with_schedules(*schedules), Sleep(deadline), THEN)
    assert bool(noted(data, HERE, THEN)) == counts

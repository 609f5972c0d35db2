"""Which mode is in force, and what a child in it sees: the decisions, without a child."""

import os
import pwd
import sys
from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ipc.box import Box, Entry, Mode, covering
from waypost.host.processes.isolation import NONE, Asked, Isolation, choose, decide, unfit
from waypost.host.processes.isolation_errors import NotIsolated, NoUser, OpensTooMuch
from waypost.host.processes.reserved import Reserved
from waypost.host.processes.sight import Sight, interpreter
from waypost.host.processes.users import assign, closed_to_others, known_users, taken, users

NO = "the kernel refused unshare: Operation not permitted (errno 1)"


def settled(asked: Asked, refused: Mapping[Mode, str], *, root: bool) -> tuple[Mode, str]:
    """The decision on a machine that refuses these modes."""
    return decide(asked, refused.get, root=root)


@pytest.mark.parametrize(
    ("refused", "root", "mode", "why"),
    [
        ({}, False, "namespace", ""),
        ({}, True, "namespace", ""),
        ({"namespace": NO}, True, "uid", f"namespace can't be had, {NO}"),
        ({"namespace": NO}, False, "none", f"namespace can't be had, {NO}"),
        ({"namespace": NO, "uid": "shut"}, True, "none", f"namespace can't be had, {NO}; uid can't be had, shut"),
    ],
)
def test_the_strongest_mode_that_can_be_had_is_in_force_and_says_why_it_is_no_stronger_one(
    *, refused: Mapping[Mode, str], root: bool, mode: Mode, why: str
) -> None:
    """Where nobody asked for one by name."""
    assert settled(Asked(), refused, root=root) == (mode, why)


@pytest.mark.parametrize(
    ("asked", "refused", "root", "why"),
    [
        (Asked(mode="namespace"), {"namespace": NO}, True, "the kernel refused unshare"),
        (Asked(mode="uid"), {}, False, "only a host that is root"),
        (Asked(mode="uid"), {"uid": "shut"}, True, "shut"),
        (Asked(network=False), {"namespace": NO}, True, "only a namespace can be without a network"),
        (Asked(reads=("/srv",)), {"namespace": NO}, False, "only in a namespace is there a choice"),
        (Asked(mode="none", writes=("/srv",)), {}, False, "only in a namespace is there a choice"),
        (Asked(mode="none", processes=9), {}, True, "processes are counted by user"),
        (Asked(processes=9), {"namespace": NO}, False, "processes are counted by user"),
    ],
)
def test_what_was_asked_for_and_can_not_be_had_is_an_error(
    *, asked: Asked, refused: Mapping[Mode, str], root: bool, why: str
) -> None:
    """Never a silent step down: not for a mode, and not for a limit that only a stronger mode gives."""
    with pytest.raises(NotIsolated, match=why) as caught:
        settled(asked, refused, root=root)
    assert "--isolation" in caught.value.hint


@given(
    mode=st.sampled_from([None, "namespace", "uid", "none"]),
    root=st.booleans(),
    network=st.booleans(),
    refused=st.sets(st.sampled_from(["namespace", "uid"])),
)
def test_no_mode_is_in_force_that_was_refused_or_does_not_fit(
    *, mode: Mode | None, root: bool, network: bool, refused: set[Mode]
) -> None:
    """For every machine and wish: what comes out is what was asked for, was tried, and gives what was asked."""
    asked = Asked(mode=mode, network=network)
    try:
        found, why = settled(asked, dict.fromkeys(refused, NO), root=root)
    except NotIsolated:
        assert mode is not None or not network
        return
    assert mode in {None, found}
    assert found not in refused
    assert unfit(asked, found, root=root) is None
    assert bool(why) == (found != "namespace" and mode is None)


def test_what_is_in_force_is_said_with_its_limits_and_its_reason() -> None:
    """One line, the same at start, in `why`, in `verify` and in the status."""
    assert str(NONE) == "none"
    asked = Asked(network=False, memory=1 << 29, processes=64, files=99)
    said = str(Isolation(mode="namespace", asked=asked))
    assert said == "namespace (no network, memory 536870912, processes 64, files 99)"
    assert str(Isolation(mode="none", why="namespace can't be had")) == "none: namespace can't be had"


def test_a_child_that_is_as_free_as_its_host_has_no_box_on_its_command_line() -> None:
    """And one with a user of its own has that of its deployment, or the last of the range while it is looked at."""
    assert NONE.arguments("/srv") == ()
    assert Isolation(asked=Asked(memory=7)).arguments(None) == ("--box", Box(memory=7).text())
    uid = Isolation(mode="uid", root=True)
    assert (uid.box("/srv", 70_007).uid, uid.box("/srv").uid) == (70_007, 79_999)


# --- what is seen --------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A project with a data directory, code in it, and something beside."""
    for name in ("project/.waypost/code/abc", "project/inputs", "beside"):
        (tmp_path / name).mkdir(parents=True)
    (tmp_path / "link").symlink_to("project")
    return tmp_path


def seen(folder: Path, *, reads: tuple[str, ...] = (), writes: tuple[str, ...] = (), home: str = "/home/ann") -> Sight:
    """What is open there, beside the system."""
    return Sight(
        hidden=str(folder / "project/.waypost"),
        home=home,
        reads=tuple(str(folder / path) for path in reads),
        writes=tuple(str(folder / path) for path in writes),
    )


def kinds(sight: Sight, folder: Path, code: str | None = None) -> dict[str, str]:
    """The kinds of the entries in the folder."""
    entries = sight.entries(code)
    assert len({entry.target for entry in entries}) == len(entries)
    depths = [entry.target.count("/") for entry in entries if entry.target != "/"]
    assert depths == sorted(depths)
    inside = [entry for entry in entries if entry.target.startswith(f"{folder}/")]
    return {entry.target.removeprefix(f"{folder}/"): entry.kind for entry in inside}


def test_of_a_project_only_its_code_is_seen(folder: Path) -> None:
    """The folders above it are there and empty; the data directory needs no veil, as nothing shows it."""
    code = str(folder / "project/.waypost/code/abc")
    assert kinds(seen(folder), folder, code) == {"project/.waypost/code/abc": "ro"}


def test_the_data_directory_is_veiled_in_what_is_opened_and_the_code_in_it_is_not(folder: Path) -> None:
    """By its real name, whatever link leads to it."""
    code = str(folder / "project/.waypost/code/abc")
    expected = {"project": "ro", "project/.waypost": "veil", "project/.waypost/code/abc": "ro"}
    assert kinds(seen(folder, reads=("project",)), folder, code) == expected
    by_link = kinds(seen(folder, reads=("link",)), folder, code)
    assert by_link == {"link": "link", **expected}
    link = next(entry for entry in seen(folder, reads=("link",)).entries(code) if entry.target == f"{folder}/link")
    assert link.source == str(folder / "project")


def test_what_is_there_anyhow_is_placed_once(folder: Path) -> None:
    """And what may be written too lies over what may be read."""
    assert kinds(seen(folder, reads=("project", "project/inputs")), folder) == {
        "project": "ro",
        "project/.waypost": "veil",
    }
    both = kinds(seen(folder, reads=("project",), writes=("project/inputs", "nowhere")), folder)
    assert both == {"project": "ro", "project/.waypost": "veil", "project/inputs": "rw"}


def test_the_home_directory_is_empty_unless_it_was_opened(folder: Path) -> None:
    """An interpreter in it is there all the same."""
    home = str(folder / "project")
    assert kinds(seen(folder, home=home), folder) == {"project": "tmp"}
    assert kinds(seen(folder, home=home, reads=("project",)), folder) == {"project": "ro", "project/.waypost": "veil"}
    for path in interpreter():
        if Path(path).exists():
            found = covering(seen(folder, home=str(Path(path).parent)).entries(None), os.path.realpath(path))
            assert found is not None
            assert found.kind in {"ro", "link"}


@pytest.mark.parametrize(
    ("reads", "writes", "why"),
    [
        (("project/.waypost",), (), "lies in the data directory"),
        (("project/.waypost/code",), (), "lies in the data directory"),
        ((), ("project",), "the data directory .* could be replaced"),
        ((), ("link",), "the data directory .* could be replaced"),
        (("/",), (), "the machine itself"),
        (("/proc/1",), (), "the machine itself"),
        ((), (sys.prefix,), "the interpreter .* could be replaced"),
        ((), (str(Path(sys.prefix).parent),), "the interpreter .* could be replaced"),
        ((), (str(Path(sys.prefix) / "lib"),), "the interpreter .* could be replaced"),
    ],
)
def test_what_would_make_isolation_pointless_is_not_opened(
    folder: Path, reads: tuple[str, ...], writes: tuple[str, ...], why: str
) -> None:
    """Keys and history can't be shown, and what the next child or the host runs can't be replaced."""
    with pytest.raises(OpensTooMuch, match=why):
        seen(folder, reads=reads, writes=writes).check()
    with pytest.raises(OpensTooMuch):
        choose(
            Asked(
                reads=tuple(str(folder / path) for path in reads), writes=tuple(str(folder / path) for path in writes)
            ),
            data=str(folder / "project/.waypost"),
            environment={},
        )


FOLDERS = (
    "project",
    "project/inputs",
    "project/.waypost",
    "project/.waypost/code/abc",
    "beside",
    "link",
    "link/inputs",
)
some_folders = st.lists(st.sampled_from(FOLDERS), max_size=3, unique=True).map(tuple)


@given(reads=some_folders, writes=some_folders, home=st.sampled_from(["/home/ann", "project", "project/inputs"]))
@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_whatever_is_opened_the_data_directory_is_not_and_only_writes_can_be_written(
    folder: Path, *, reads: tuple[str, ...], writes: tuple[str, ...], home: str
) -> None:
    """By any name, link or not, in any combination: followed through the entries as the kernel would."""
    where = home if home.startswith("/") else str(folder / home)
    sight = seen(folder, reads=reads, writes=writes, home=where)
    code = str(folder / "project/.waypost/code/abc")
    try:
        sight.check()
    except OpensTooMuch:
        return
    entries = sight.entries(code)
    own = covering(entries, code)
    assert own is not None
    assert (own.kind, own.source) == ("ro", code)
    for entry in entries:
        if entry.kind in {"ro", "rw"}:
            assert entry.target == entry.source, "nothing is seen in two places"
    for name in ("project/.waypost", "project/.waypost/keys", "project/.waypost/code/other"):
        found = covering(entries, str(folder / name))
        assert found is None or found.kind in {"veil", "tmp"}
    opened = {os.path.realpath(folder / path) for path in writes}
    for entry in entries:
        if entry.kind == "rw":
            assert os.path.realpath(entry.source) in opened


def test_a_file_that_is_opened_is_opened_alone(folder: Path) -> None:
    """A socket or a price list, and not the folder that it lies in."""
    (folder / "beside/prices").touch()
    assert Entry("ro", f"{folder}/beside/prices", f"{folder}/beside/prices") in seen(
        folder, reads=("beside/prices",)
    ).entries(None)


# --- users ---------------------------------------------------------------------------------------------------------

names = st.sets(st.sampled_from([f"d{number}" for number in range(9)]))


@settings(max_examples=25)
@given(
    names, st.dictionaries(st.sampled_from(["d1", "d2"]), st.integers(0, 30)), st.sets(st.integers(10, 20)), st.text()
)
def test_users_are_never_shared_and_stay(names: set[str], known: dict[str, int], taken: set[int], salt: str) -> None:
    """Whatever is known, taken or wanted; what is known stays, unless it isn't in the range any more."""
    among = range(10, 22)
    known = {name: uid for name, uid in known.items() if list(known.values()).count(uid) == 1}
    try:
        given = assign(names, known, among=among, taken=taken, salt=salt)
    except NoUser:
        assert len(names) + len(taken) + len(known) > len(among)
        return
    assert names <= given.keys()
    assert len(set(given.values())) == len(given)
    assert set(given.values()) <= set(among)
    for name, uid in given.items():
        assert (uid == known.get(name)) if known.get(name) in among else uid not in taken


def test_users_are_kept(tmp_path: Path) -> None:
    """The same at each start; a file that can't be read is made anew, as nothing belongs to them."""
    path = tmp_path / "users.json"
    among = range(70_000, 80_000)
    with Reserved.begin(tmp_path / "machine") as ours:
        first = users(path, ["a", "b"], among=among, reserved=ours)
        assert users(path, ["a", "b", "c"], among=among, reserved=ours).items() >= first.items()
        assert path.stat().st_mode & 0o077 == 0
        path.write_bytes(b"{")
        assert users(path, ["a", "b"], among=among, reserved=ours) == first


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has users to give")
def test_a_user_that_has_got_a_name_since_is_given_up(tmp_path: Path) -> None:
    """By a person, say, whose processes would end with the child's, and at the next start; and so are odd numbers."""
    path, somebody = tmp_path / "users.json", next(entry.pw_uid for entry in pwd.getpwall() if entry.pw_uid)
    path.write_text(f'{{"a": {somebody}, "b": -5, "c": 0, "d": {2**32}, "e": {2**70}, "f": 70000}}')
    assert known_users(path) == {"f": 70_000}
    with Reserved.begin(tmp_path / "taken") as ours:
        assert users(path, ["a"], among=range(somebody, somebody + 300), reserved=ours)["a"] != somebody


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has users to give")
def test_no_user_is_given_that_another_host_has_while_it_runs(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    """A copy of a data directory has the users of the first: what ends the one's processes would end the other's."""
    machine, among = tmp_path / "machine", range(70_000, 80_000)
    first, copy = tmp_path / "users.json", tmp_path / "copy.json"
    with Reserved.begin(machine) as theirs:
        before = users(first, ["a", "b"], among=among, reserved=theirs)
        copy.write_bytes(first.read_bytes())
        with Reserved.begin(machine) as ours:
            after = users(copy, ["a"], among=among, reserved=ours)
            assert after.keys() == before.keys()
            assert not set(after.values()) & set(before.values())
            assert users(copy, ["a"], among=among, reserved=ours) == after, "and that is kept"
        assert f"a has been user {before['a']}" in caplog.text
        assert users(first, ["a", "b"], among=among, reserved=theirs) == before
    with Reserved.begin(machine) as later:
        assert users(first, ["a", "b"], among=among, reserved=later) == before, "whose host has ended may have its own"


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has users to give")
def test_where_all_users_are_other_hosts_none_is_given(tmp_path: Path) -> None:
    """Better no start than a shared user."""
    machine, among = tmp_path / "machine", range(70_000, 70_002)
    with Reserved.begin(machine) as theirs, Reserved.begin(machine) as ours:
        assert all(theirs.take(uid) for uid in among)
        with pytest.raises(NoUser):
            users(tmp_path / "users.json", ["a"], among=among, reserved=ours)


def test_nobody_elses_user_is_given() -> None:
    """By name, or by a process that runs."""
    assert {0, os.getuid()} <= taken()


def test_what_is_closed_to_others_is_named(tmp_path: Path) -> None:
    """The first folder on the way: it is the one to open."""
    shut, below = tmp_path / "shut", tmp_path / "shut" / "below"
    below.mkdir(parents=True)
    for folder in (tmp_path, *tmp_path.parents[:-2]):
        folder.chmod(0o755)
    shut.chmod(0o700)
    assert closed_to_others(str(below)) == str(shut)
    shut.chmod(0o711)
    below.chmod(0o750)
    assert closed_to_others(str(below)) == str(below)
    below.chmod(0o755)
    assert closed_to_others(str(below)) is None

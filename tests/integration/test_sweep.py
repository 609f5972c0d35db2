"""Whatever runs as a deployment's own user is ended in one call, and nobody else is: always in a pid namespace."""

import os
import resource
import select
import subprocess
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ipc import sweep
from ipc.box import Mode
from ipc.strays import Mark
from waypost.host.datadir.directory import DataDir
from waypost.host.processes import sweeping as shares
from waypost.host.processes.guest import guest
from waypost.host.processes.isolation import Asked, Isolation, choose
from waypost.host.processes.kin import end_leftovers
from waypost.host.processes.reserved import Reserved
from waypost.host.processes.sweeping import Sweeping, end_strays
from waypost.host.processes.users import users
from waypost.testing.own_pids import in_own_pids
from waypost.testing.patience import PATIENCE

OURS, OTHERS = 71_011, 71_012

BECOMES = "import os, signal, threading; user = 3 * [{}]; os.setgroups([]); os.setresgid(*user); os.setresuid(*user)\n"
FLEES = """
if os.fork() == 0:
    os.setsid()
    os.write(1, b".")
    while True:  # each of them is there for a moment
        if os.fork(): os._exit(0)
"""
STOPS = """
os.write(1, b".")
while True:
    try: os.kill(-1, signal.SIGSTOP)
    except ProcessLookupError: pass
"""
KILLS = STOPS.replace("SIGSTOP", "SIGKILL")
WAITS = "os.write(1, b'.'); signal.pause()"
THREADS = """
def flee():
    while True:
        if os.fork() == 0: os._exit(0)
for _ in range(4): threading.Thread(target=flee).start()
os.write(1, b".")
"""


@contextmanager
def running(code: str, uid: int, *, count: int = 1) -> Iterator[int]:
    """So many processes as this user; gives what ends when the last of them has, and all that they have started."""
    reading, writing = os.pipe()
    started = [
        subprocess.Popen(
            [sys.executable, "-I", "-S", "-c", BECOMES.format(uid) + code],
            stdin=subprocess.DEVNULL,
            stdout=writing,
            stderr=subprocess.DEVNULL,
            env={},
        )
        for _ in range(count)
    ]
    os.close(writing)
    for _ in started:
        assert os.read(reading, 1) == b"."
    try:
        yield reading
    finally:
        os.close(reading)
        for each in started:
            each.kill()
            each.wait()


def over(reading: int) -> bool:
    """Whether nobody holds the other end any more, in time."""
    return bool(select.select([reading], [], [], PATIENCE)[0]) and not os.read(reading, 1)


def lives(reading: int) -> bool:
    """Whether somebody holds the other end."""
    return not select.select([reading], [], [], 0)[0]


def swept(reserved: Reserved, *uids: int) -> tuple[int, str]:
    """As the host does it: the status, and what was said."""
    assert reserved.descriptor is not None
    assert os.getppid() == 1, "never outside of a namespace"
    words = (sys.executable, "-I", "-S", sweep.__file__, str(reserved.descriptor), *map(str, uids))
    done = subprocess.run(
        words, env={}, cwd="/", capture_output=True, text=True, pass_fds=(reserved.descriptor,), check=False
    )
    return done.returncode, done.stderr


@pytest.mark.parametrize(("code", "count"), [(WAITS, 3), (FLEES, 4), (THREADS, 2), (STOPS, 1), (KILLS, 1)])
@in_own_pids
def test_all_that_runs_as_a_user_is_ended_and_nobody_else(tmp_path: Path, code: str, count: int) -> None:
    """Also what forks and ends without a pause, in several threads, and what stops or kills whoever comes to end it."""
    with (
        Reserved.begin(tmp_path / "machine") as reserved,
        running(WAITS, OTHERS) as others,
        running(WAITS, 0) as roots,
        running(code, OURS, count=count) as ours,
    ):
        assert reserved.take(OURS)
        assert lives(ours)
        sweeps = 10 if code in (STOPS, KILLS) else 1  # a fight for the processor may be lost for once
        assert any(swept(reserved, OURS) == (0, "") for _ in range(sweeps))
        assert over(ours)
        assert lives(others)
        assert lives(roots)
        assert swept(reserved, OURS, OURS) == (0, ""), "nothing to end is no fault"


@pytest.mark.parametrize("limit", [resource.RLIMIT_NOFILE, resource.RLIMIT_AS])
@in_own_pids
def test_who_limits_the_process_that_ends_its_user_is_ended_all_the_same(tmp_path: Path, limit: int) -> None:
    """As soon as it is the user, its other processes may: here the first one is met at that very moment."""
    first, become = tmp_path / "first", os.setresuid
    first.touch()

    def limited(*ids: int) -> None:
        once = first.exists()
        first.unlink(missing_ok=True)
        become(*ids)
        if once:
            resource.setrlimit(limit, (0, 0))
            bytearray(1 << 24)  # more than it has

    with (
        pytest.MonkeyPatch.context() as patch,
        Reserved.begin(tmp_path / "machine") as reserved,
        running(WAITS, OURS) as ours,
    ):
        assert os.getppid() == 1, "never outside of a namespace"
        patch.setattr(os, "setresuid", limited)
        assert reserved.descriptor is not None
        assert sweep.sweep([OURS], os.dup(reserved.descriptor)) == [(OURS, "")]
        assert not first.exists()
        assert over(ours)


@in_own_pids
def test_a_user_that_another_host_has_reserved_is_left_alone(tmp_path: Path) -> None:
    """Its processes are that host's; once it has ended they are nobody's."""
    place = tmp_path / "machine"
    with Reserved.begin(place) as ours, running(WAITS, OTHERS) as others:
        with Reserved.begin(place) as theirs:
            assert theirs.take(OTHERS)
            assert swept(ours, OTHERS) == (1, f"uid {OTHERS}: another host has reserved it\n")
            assert lives(others)
        assert swept(ours, OTHERS) == (0, "")
        assert over(others)
    with Reserved.begin(place) as next_one:
        assert next_one.take(OTHERS), "who has swept keeps nothing"


@in_own_pids
def test_what_a_child_leaves_is_ended_unless_another_child_has_its_user_by_then(tmp_path: Path) -> None:
    """Where an actor was replaced, the next child may be there before the end of the last one is seen."""
    with Reserved.begin(tmp_path / "machine") as reserved, Sweeping(reserved) as sweeping:
        assert reserved.take(OURS)
        with running(WAITS, OURS) as ours, running(FLEES, OURS) as fleeing:
            end_strays([Mark("last.", OURS)], [Mark("next.", OURS)], sweeping)
            assert lives(ours)
            assert lives(fleeing)
            end_strays([Mark("next.", OURS)], [Mark("other.", OTHERS)], sweeping)
            assert over(ours)
            assert over(fleeing)


@in_own_pids
def test_a_start_ends_what_ran_when_its_host_died_and_asks_for_nobody_else(tmp_path: Path) -> None:
    """Two thousand users, of whom a few had a child: each that is asked for is a process. Who was ended isn't again."""
    (tmp_path / "data").mkdir()
    data, place = DataDir(tmp_path / "data"), tmp_path / "machine"
    data.users.write_text(f'{{"one":{OURS},"two":{OTHERS}}}')
    with Reserved.begin(place) as killed:
        assert killed.take(OURS)
        assert killed.take(OTHERS)
        killed.use(OURS)
    asked: list[int] = []

    class Told(Sweeping):
        def end(self, uids: Iterable[int]) -> None:
            given = list(uids)
            asked.extend(given)
            super().end(given)

    with running(FLEES, OURS, count=2) as ours, Reserved.begin(place) as reserved, Told(reserved) as sweeping:
        assert (reserved.used(OURS), reserved.used(OTHERS)) == (True, False)
        end_leftovers(data, reserved, sweeping)
        assert over(ours)
        assert asked == [OURS]
        assert not reserved.used(OURS)
        end_leftovers(data, reserved, sweeping)
        assert asked == [OURS]


@in_own_pids
def test_a_host_whose_reservation_somebody_removed_keeps_its_children(tmp_path: Path) -> None:
    """A copy of its data directory found its users free, ended what ran as them, and ran its own code as them, too."""
    (tmp_path / "copy").mkdir()
    data, place = DataDir(tmp_path / "copy"), tmp_path / "machine"
    data.users.write_text(f'{{"one":{OURS},"two":{OTHERS}}}')
    with Reserved.begin(place) as first, running(WAITS, OURS) as ours:
        assert first.take(OURS)
        first.use(OURS)
        place.unlink()
        with Reserved.begin(place) as second, Sweeping(second) as sweeping:
            end_leftovers(data, second, sweeping)
            assert lives(ours)
            given = users(data.users, ["one", "two"], among=range(OURS, OTHERS + 9), reserved=second)
        assert given["one"] not in {OURS, OTHERS}
        assert given["two"] == OTHERS


@in_own_pids
def test_a_user_whose_processes_could_not_be_ended_is_one_that_may_have_some(tmp_path: Path) -> None:
    """The next start tries again."""
    place = tmp_path / "machine"
    with Reserved.begin(place) as theirs, Reserved.begin(place) as mine, Sweeping(mine) as sweeping:
        assert theirs.take(OURS)
        mine.use(OURS)
        sweeping.end([OURS])
        assert theirs.used(OURS)


@in_own_pids
def test_what_code_starts_while_it_is_looked_at_ends_with_the_last_look(tmp_path: Path) -> None:
    """Of whichever host: one look must not be cut short by the end of another one."""
    place, isolation = tmp_path / "machine", Isolation(mode="uid", root=True, asked=Asked(uids=range(OURS, OTHERS + 1)))
    with running(FLEES, OTHERS) as left:
        with guest(isolation, place):
            with guest(isolation, place):
                pass
            assert lives(left)
        assert over(left)


@in_own_pids
@pytest.mark.parametrize("mode", ["namespace", "uid"])
def test_a_mode_is_had_while_others_look_at_code(mode: Mode) -> None:
    """It is tried as the user as whom they look: the trial was killed, and a host had no isolation, or didn't start."""
    uids, over = range(OURS, OTHERS + 1), threading.Event()

    def look() -> None:
        while not over.is_set():
            with guest(Isolation(mode="uid", root=True, asked=Asked(uids=uids))):
                pass

    looking = threading.Thread(target=look)
    looking.start()
    try:
        assert choose(Asked(mode=mode, uids=uids), data="/no/where", environment=os.environ).mode == mode
    finally:
        over.set()
        looking.join()


@in_own_pids
def test_a_look_in_a_namespace_is_cut_short_by_nobodys_end(tmp_path: Path) -> None:
    """What is looked at there runs as the same user. It is the last one then, and ends what the other one has left."""
    place, asked = tmp_path / "machine", Asked(uids=range(OURS, OTHERS + 1))
    with running(WAITS, OTHERS) as left:
        with guest(Isolation(mode="namespace", root=True, asked=asked), place):
            with guest(Isolation(mode="uid", root=True, asked=asked), place):
                pass
            assert lives(left)
        assert over(left)


@in_own_pids
def test_what_a_look_that_was_killed_has_left_is_ended_by_the_next_one(tmp_path: Path) -> None:
    """It couldn't do so itself. And where another host's deployment has that user, nothing of it is ended."""
    place, isolation = tmp_path / "machine", Isolation(mode="uid", root=True, asked=Asked(uids=range(OURS, OTHERS + 1)))
    with Reserved.begin(place) as killed:
        assert killed.share(OTHERS)
        killed.use(OTHERS)
    with running(FLEES, OTHERS) as left, guest(isolation, place):
        assert over(left)
    with Reserved.begin(place) as theirs, running(WAITS, OTHERS) as others:
        assert theirs.take(OTHERS)
        theirs.use(OTHERS)
        with guest(isolation, place):
            assert lives(others)
        assert lives(others)


@in_own_pids
def test_who_is_stopped_in_its_turn_keeps_nobody_from_looking(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It was waited for without an end: no host started beside one that stood still in that moment."""
    place, isolation = tmp_path / "machine", Isolation(mode="uid", root=True, asked=Asked(uids=range(OURS, OTHERS + 1)))
    with Reserved.begin(place) as stopped, running(FLEES, OTHERS) as left:
        monkeypatch.setattr(shares, "TURN", 0.0)
        with stopped.turn(OTHERS, PATIENCE) as held, guest(isolation, place), guest(isolation, place):
            assert held
            assert not stopped.take(OTHERS)
        assert lives(left)
        monkeypatch.setattr(shares, "TURN", PATIENCE)
        with guest(isolation, place):
            assert over(left)
    assert caplog.text.count("seems to be stopped") == 2


@in_own_pids
def test_without_a_reservation_nothing_is_swept_and_what_is_seen_is_ended(tmp_path: Path) -> None:
    """A machine without /run, or one where another host has the user: what bears the child's mark is its own."""
    place = tmp_path / "machine"
    with Reserved(None) as nothing, Sweeping(nothing) as sweeping, running(WAITS, OURS) as ours:
        assert (sweeping.apart, sweeping.last) == ((), ())
        sweeping.end([OURS])
        assert lives(ours)
    with Reserved.begin(place) as theirs, Reserved.begin(place) as mine, Sweeping(mine) as sweeping:
        assert theirs.take(OURS)
        with running(WAITS, OURS) as ours:
            sweeping.end([OURS])
            assert lives(ours)


@in_own_pids
def test_neither_the_systems_users_nor_who_has_a_name_here_is_swept(tmp_path: Path) -> None:
    """Whatever it was asked for: a list of users may be damaged. One that is refused keeps none of the others."""
    with Reserved.begin(tmp_path / "machine") as reserved, running(WAITS, OURS) as ours, running(WAITS, 1) as daemons:
        status, said = swept(reserved, 0, 1, 999, 65_534, 2**32 - 1, 2**32, -1, OURS)
        assert status == 1
        assert said.count("it is no user that a deployment is given\n") == 7
        assert over(ours)
        assert lives(daemons)


@in_own_pids
def test_who_isnt_root_sweeps_nothing(tmp_path: Path) -> None:
    """It would signal its own user's processes."""
    with Reserved.begin(tmp_path / "machine") as reserved, running(WAITS, OURS) as ours:
        os.setresuid(OURS, OURS, 0)
        assert reserved.descriptor is not None
        assert sweep.sweep([OURS], reserved.descriptor) == [(OURS, "only root can sweep")]
        os.setresuid(0, 0, 0)
        assert lives(ours)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root reserves")
def test_who_reserves_a_user_waits_for_the_end_of_a_sweep(tmp_path: Path) -> None:
    """Else the next start, a moment after a kill, would find its own users taken and give out others."""
    place = tmp_path / "machine"
    with Reserved.begin(place) as sweeping, Reserved.begin(place) as ours:
        assert sweeping.take(OURS)
        assert sweeping.take(OURS + sweep.SWEPT)
        reading, writing = os.pipe()
        waiting = os.fork()
        if not waiting:
            sweeping.release()  # its copy; the lock stays its parent's
            os.write(writing, b"y" if ours.take(OURS) else b"n")
            os._exit(0)
        inode = f":{place.stat().st_ino} "
        while not any("-> OFDLCK" in line and inode in line for line in Path("/proc/locks").read_text().splitlines()):
            os.sched_yield()
        sweeping.release()
        assert os.read(reading, 1) == b"y"
        os.waitpid(waiting, 0)


@pytest.mark.skipif(os.geteuid() != 0, reason="only root sweeps")
def test_who_sweeps_keeps_nothing_reserved_of_a_host_that_ends_meanwhile(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its guardian is to end what its other deployments have left, and its next start is to have the same users."""
    place = tmp_path / "machine"
    host, meanwhile = Reserved.begin(place), list[bool]()

    def sweeping(_uid: int, _apart: int) -> str:
        host.release()
        with Reserved.begin(place) as next_one:
            meanwhile.append(next_one.take(OTHERS))
        return ""

    monkeypatch.setattr(sweep, "_ended", sweeping)
    assert host.take(OURS)
    assert host.take(OTHERS)
    assert host.descriptor is not None
    assert sweep.sweep([OURS], os.dup(host.descriptor)) == [(OURS, "")]
    assert meanwhile == [True]
    with Reserved.begin(place) as next_one:
        assert next_one.take(OURS)

"""What a child leaves behind is found by its mark and ended, and nothing else is."""

import os
import select
import selectors
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest

from ipc.environment import MARK, child_environment
from ipc.errors import ReservedVariable
from ipc.strays import NO_MARK, Mark, bears, end
from waypost.host.datadir.directory import DataDir
from waypost.host.processes import guardian as guardians
from waypost.host.processes.guardian import Guardian
from waypost.host.processes.guarding import Guarding
from waypost.host.processes.kin import end_leftovers, kin
from waypost.host.processes.reserved import Reserved
from waypost.testing.patience import PATIENCE, eventually

OURS = Mark("0123abcd.one")
WAITS = "import os, signal; print(os.getpid(), flush=True); signal.pause()"
FORKS = """
import os, signal
if os.fork() == 0:
    os.setsid()
    if os.fork() == 0:
        os.environ.clear(); print(os.getpid(), flush=True); signal.pause()
    os._exit(0)
os._exit(0)
"""


@pytest.fixture
def clean() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def started(
    clean: ExitStack, code: str, *, mark: str = "", option: str = "", session: bool = False, environment: bool = True
) -> int:
    """A process that bears a mark, or none; the pid that it says, and it is gone after the test."""
    variable = {MARK: mark} if mark and environment else {}
    process = subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", code, *(("--mark", option) if option else ())],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        env={**variable, "PATH": os.defpath},
        start_new_session=session,
    )
    assert process.stdout is not None
    pid = int(process.stdout.readline())

    def away() -> None:
        for each in (pid, process.pid):
            with suppress(ProcessLookupError):
                os.kill(each, signal.SIGKILL)
        process.communicate()

    clean.callback(away)
    return pid


def ended(pid: int) -> bool:
    """Whether a process ends, or has ended."""
    try:
        pidfd = os.pidfd_open(pid)
    except ProcessLookupError:
        return True
    try:
        return bool(select.select([pidfd], [], [], PATIENCE)[0])
    finally:
        os.close(pidfd)


def test_what_bears_a_mark_is_ended_and_nothing_else(clean: ExitStack) -> None:
    """By its environment where it was executed, by its command line where it only forked and left its session."""
    ours = [
        started(clean, WAITS, mark=OURS.text),
        started(clean, WAITS, mark=OURS.text + "/more", session=True),
        started(clean, FORKS, option=OURS.text),
    ]
    others = [
        started(clean, WAITS),
        started(clean, WAITS, mark="0123abcd.two"),
        started(clean, WAITS, option="x" + OURS.text),
        started(clean, WAITS + f"  # --mark {OURS.text}"),
    ]
    assert all(bears(pid, OURS) for pid in ours)
    assert end(NO_MARK) == 0
    assert end(OURS, NO_MARK) == len(ours)
    assert all(map(ended, ours))
    assert not any(bears(pid, OURS) for pid in (*ours, *others))
    assert all(Path(f"/proc/{pid}").exists() for pid in others)
    assert end(OURS) == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="only root has children of other users")
def test_what_runs_as_a_childs_own_user_is_its_own(clean: ExitStack) -> None:
    """It can't lose that, whatever it does with environment, command line and session."""
    forgets = "import os, signal; os.setresuid(71003, 71003, 71003); os.environ.clear()\n" + WAITS
    ours, other = started(clean, forgets, session=True), started(clean, forgets.replace("71003", "71004"))
    assert end(Mark(uid=71003)) == 1
    assert ended(ours)
    assert bears(other, Mark(uid=71004))


def test_the_marks_of_two_data_directories_differ(tmp_path: Path, clean: ExitStack) -> None:
    """A copy of one is another; a link to one is not. So no host ends what another one's children have started."""
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    (tmp_path / "link").symlink_to("one")
    one, two, link = (kin(DataDir(tmp_path / name)) for name in ("one", "two", "link"))
    assert one == link != two
    left, others = started(clean, WAITS, mark=one + "x"), started(clean, WAITS, mark=two + "x")
    with Reserved.begin(tmp_path / "machine") as reserved:
        assert end_leftovers(DataDir(tmp_path / "link"), reserved) == 1
    assert ended(left)
    assert bears(others, Mark(two))


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can become another user")
def test_a_host_that_starts_ends_no_process_of_a_user_that_another_host_has(tmp_path: Path, clean: ExitStack) -> None:
    """A copied data directory names the users of the first: its start killed the children of the host that runs."""
    (tmp_path / "copy").mkdir()
    copy, machine = DataDir(tmp_path / "copy"), tmp_path / "machine"
    copy.users.write_text('{"expenses":71005}')
    running = started(clean, "import os, signal; os.setresuid(71005, 71005, 71005)\n" + WAITS, session=True)
    with Reserved.begin(machine) as theirs, Reserved.begin(machine) as ours:
        assert theirs.take(71005)
        assert end_leftovers(copy, ours) == 0
        assert bears(running, Mark(uid=71005))
    with Reserved.begin(machine) as ours:
        assert end_leftovers(copy, ours) == 1, "once that host has ended, what is left is nobody's"
    assert ended(running)


def test_no_workflow_can_ask_for_a_mark() -> None:
    """A deployment that listed the variable would be found, and ended, as somebody else's."""
    with pytest.raises(ReservedVariable):
        child_environment({}, None, listed=[MARK])  # type: ignore[arg-type]  # refused before it is looked at


# --- the guardian --------------------------------------------------------------------------------------------------


def test_the_guardian_kills_the_groups_on_its_list_when_its_pipe_ends(clean: ExitStack) -> None:
    """That is what the end of a host looks like; a group that was taken off the list is left alone."""
    listed, also, forgotten = (started(clean, WAITS, session=True) for _ in range(3))
    code = f"""
import os
from waypost.host.processes.guardian import Guardian
guardian = Guardian()
for group in ({listed}, {forgotten}, {also}): guardian.watch(group)
guardian.forget({forgotten})
os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    assert ended(listed)
    assert ended(also)
    assert Path(f"/proc/{forgotten}").exists()


@pytest.mark.parametrize("killed", range(guardians.GUARDIANS))
def test_who_kills_a_host_and_one_of_its_guardians_in_one_instant_has_missed_the_other(
    clean: ExitStack, killed: int
) -> None:
    """Whichever it is. Nobody is left to replace it, and what a child has started must not wait for the next start."""
    listed = started(clean, WAITS, session=True)
    code = f"""
import os
from waypost.host.processes.guardian import GUARDIANS, Guardian
from waypost.host.processes.wires import Wires
guardians = tuple(Guardian() for _ in range(GUARDIANS))
for guardian in guardians: guardian.watch({listed})
wires = Wires(guardians=guardians).start()
victim = guardians[{killed}].pid
os.kill(os.getpid(), 19) if os.fork() else (os.kill(victim, 9), os.kill(os.getppid(), 9))
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    assert ended(listed)


def test_no_name_by_which_a_host_and_its_children_are_killed_is_a_guardians() -> None:
    """Else `pkill -9 -f` of it would end those that are to be the last ones, too."""
    words = (sys.executable, "-m", "waypost.host", "/srv/waypost/x.py")
    guardian = Guardian(words)
    try:
        shown = Path(f"/proc/{guardian.pid}/cmdline")
        eventually(lambda: bool(shown.read_text()), "it has become its program")
        told = shown.read_text()
        assert f"{guardians.NAME}-of-{os.getpid()}\0" in told
        assert not any(word in told for word in ("waypost", "python", "guardian", *words))
    finally:
        guardian.close()


@pytest.mark.parametrize("users", [(71_003, 71_004), ()])
def test_the_last_command_is_given_the_users_that_are_known_by_then(tmp_path: Path, users: tuple[int, ...]) -> None:
    """As those are that have a child; with none there is nothing to be done. Its words are its own, odd ones, too."""
    said = tmp_path / "it's here $HOME"
    os.mkfifo(said)
    last = ("/bin/sh", "-c", 'echo "$@" > "$0"', str(said))
    code = f"""
import os
from waypost.host.processes.guardian import Guardian
guardian = Guardian({last!r})
for uid in (71_003, 71_004, 71_005): guardian.watch_user(uid)
for uid in {{71_003, 71_004, 71_005}} - {set(users)!r}: guardian.forget_user(uid)
print(guardian.pid, flush=True)
os.kill(os.getpid(), 9)
"""
    reading = os.open(said, os.O_RDONLY | os.O_NONBLOCK)
    try:
        done = subprocess.run([sys.executable, "-c", code], check=False, stdout=subprocess.PIPE)
        assert ended(int(done.stdout))
        assert os.read(reading, 100).decode().split() == [str(uid) for uid in users]
    finally:
        os.close(reading)


def test_a_host_that_ends_as_it_should_kills_nothing(clean: ExitStack) -> None:
    """The guardian is dead before its pipe is closed."""
    listed = started(clean, WAITS, session=True)
    guardian = Guardian()
    guardian.watch(listed)
    pid = guardian.pid
    guardian.close()
    assert pid is not None
    assert ended(pid)
    assert guardian.pid is None
    assert Path(f"/proc/{listed}").exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_the_guardian_is_deaf_to_whoever_ends_a_terminals_processes(number: signal.Signals) -> None:
    """It must be the last one."""
    guardian = Guardian()
    try:
        assert guardian.pid is not None
        assert os.getsid(guardian.pid) == guardian.pid
        guardian.watch(2**22 + 1)
        ignored = 0
        while not ignored & 1 << (number - 1):  # the shell has begun once it has said so
            status = Path(f"/proc/{guardian.pid}/status").read_text()
            ignored = int(status.partition("SigIgn:")[2].split()[0], 16)
        os.kill(guardian.pid, number)
        assert Path(f"/proc/{guardian.pid}/stat").read_text().rpartition(")")[2].split()[0] in {"S", "R"}
    finally:
        guardian.close()


def test_a_guardian_that_was_killed_is_replaced_and_told_everything(clean: ExitStack) -> None:
    """An out-of-memory killer takes small processes, too."""
    first, second = (started(clean, WAITS, session=True) for _ in range(2))
    code = f"""
import os
from waypost.host.processes.guardian import Guardian
guardian = Guardian()
guardian.watch({first})
before = guardian.pid
os.kill(before, 9); os.waitid(os.P_PID, before, os.WEXITED | os.WNOWAIT)
guardian.watch({second})
assert guardian.pid != before
os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    assert ended(first)
    assert ended(second)


def test_a_guardian_that_is_killed_while_nobody_has_a_word_for_it_is_replaced_at_once(clean: ExitStack) -> None:
    """A host may have no child to begin or to end for weeks, and be killed in any of them."""
    listed = started(clean, WAITS, session=True)
    code = f"""
import os
from waypost.host.processes import guardian as guardians
from waypost.host.processes.wires import Wires
guardians.BRIEF = 0.0
guardian = guardians.Guardian()
guardian.watch({listed})
wires = Wires(guardians=(guardian,)).start()
before = guardian.pid
os.kill(before, 9)
while guardian.pid in (before, None): os.sched_yield()
wires.close()
os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", code], check=False)
    assert ended(listed)


def test_whoever_guards_the_guardian_watches_the_one_that_there_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """After one that was killed, and after one that a word has replaced; and at the end no descriptor is left."""
    monkeypatch.setattr(guardians, "BRIEF", 0.0)
    guardian, before = Guardian(), len(list(Path("/proc/self/fd").iterdir()))
    with selectors.DefaultSelector() as selector:
        guarding = Guarding((guardian,), selector)
        try:
            guarding.look()
            guarding.look()
            known, heard = {guardian.pid}, list[int]()
            words: tuple[Callable[[], None], ...] = (
                lambda: guarding.ended(heard[-1]),
                lambda: guarding.watch(2**22 + 1),
                lambda: guarding.forget_user(71_003),
            )
            for word in words:
                assert guardian.pid is not None
                os.kill(guardian.pid, signal.SIGKILL)
                ((key, _),) = selector.select(PATIENCE)
                assert key.data is guarding
                heard.append(key.fd)
                word()
                assert guardian.pid not in known
                known.add(guardian.pid)
            guarding.ended(heard[-1])
            assert guardian.pid in known, "what the selector said before a word has replaced it is of the last one"
        finally:
            guarding.close()
            guardian.close()
        nobody = Guarding((), selector)
        nobody.look()
        nobody.watch(1)
        nobody.forget(1)
        nobody.ended(0)
        assert not selector.get_map()
    assert len(list(Path("/proc/self/fd").iterdir())) == before - 1, "the pipe of a guardian has gone, and nothing came"


def test_what_ends_each_guardian_at_its_start_is_not_met_again_and_again(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """One that was there for a moment only is replaced after a pause, or with the next word; and somebody is told."""
    monkeypatch.setattr(guardians, "BRIEF", 600.0)
    guardian = Guardian()
    with selectors.DefaultSelector() as selector:
        guarding = Guarding((guardian,), selector)
        try:
            assert guarding.patience() is None
            guarding.look()
            assert guardian.pid is not None
            os.kill(guardian.pid, signal.SIGKILL)
            ((key, _),) = selector.select(PATIENCE)
            guarding.ended(key.fd)
            guarding.again()
            assert guardian.pid is None
            assert "the guardian was ended by somebody" in caplog.text
            patience = guarding.patience()
            assert patience is not None
            assert 0.0 < patience <= 600.0
            guarding.watch(2**22 + 1)
            assert guardian.pid is not None
            assert guarding.patience() is None
        finally:
            guarding.close()
            guardian.close()


def test_a_guardian_that_was_killed_at_its_start_is_replaced_after_the_pause(clean: ExitStack) -> None:
    """Without a word to it, too: one that ended so was none for as long as no child began or ended, and nobody knew."""
    listed = started(clean, WAITS, session=True)
    code = f"""
import os
from waypost.host.processes import guardian as guardians
from waypost.host.processes.wires import Wires
guardians.BRIEF = 0.2
guardian = guardians.Guardian()
guardian.watch({listed})
wires = Wires(guardians=(guardian,)).start()
for _ in range(2):
    guardian._since += 1000.0
    before = guardian.pid
    os.kill(before, 9)
    while guardian.pid in (before, None): os.sched_yield()
wires.close()
os.kill(os.getpid(), 9)
"""
    subprocess.run([sys.executable, "-c", code], check=False, timeout=PATIENCE)
    assert ended(listed)


def test_a_host_without_a_shell_says_so_and_goes_on(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """The kernel still ends each child; and every child that comes is another try."""
    monkeypatch.setattr(guardians, "SHELL", "/no/shell")
    without = Guardian()
    assert without.pid is None
    assert "there is no guardian" in caplog.text
    monkeypatch.undo()
    without.watch(2**22 + 1)
    assert without.pid is not None
    without.close()


def test_a_guardian_that_doesnt_listen_is_replaced_and_holds_nobody_up(clean: ExitStack) -> None:
    """A stopped one would fill its pipe, and the one thread that serves all children would wait for it."""
    guardian = Guardian()
    try:
        before = guardian.pid
        assert before is not None
        os.kill(before, signal.SIGSTOP)
        for _ in range(20_000):
            guardian.watch(2**22 + 1)
            guardian.forget(2**22 + 1)
            if guardian.pid != before:
                break
        assert guardian.pid not in {before, None}
    finally:
        guardian.close()

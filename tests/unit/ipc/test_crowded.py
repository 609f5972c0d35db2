"""Which limit of processes and threads a child has reached: the kernel's own figures, and what `why` makes of them."""

import os
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from ipc import crowded
from ipc.crowded import Crowd
from waypost.host.reading.deployment_why import sentence_of, threadless, told
from waypost.host.reading.explain import Situation, read
from waypost.host.reading.run_why import why
from waypost.model.ids import run_id
from waypost.model.why import Sentence
from waypost.testing.background import Background
from waypost.testing.samples import BEGAN, log_of
from waypost.testing.sayings import check

CALM = Sentence(waits_for="mail, timers and answers", then="a run begins")
HERE = Situation(name="expenses", address="e@x", hosted=True, state="running", why=CALM)


class Machine:
    """What a kernel would say, in a folder."""

    def __init__(self, folder: Path) -> None:
        self.proc, self.groups = folder / "proc", folder / "cgroup"
        (self.proc / "sys/kernel").mkdir(parents=True)
        (self.proc / "sys/kernel/threads-max").write_text("1000\n")
        (self.proc / "loadavg").write_text("0.1 0.2 0.3 2/200 99\n")

    def process(
        self, pid: int, *, parent: int, threads: int, uid: int = 70_001, soft: str = "64", caps: int = 0
    ) -> None:
        """One of it."""
        place = self.proc / str(pid)
        place.mkdir()
        place.joinpath("stat").write_text(f"{pid} (x) S {parent} {'0 ' * 15}{threads} 0")
        place.joinpath("status").write_text(f"Name:\tx\nUid:\t{uid}\t{uid}\t{uid}\t{uid}\nCapEff:\t{caps:016x}\n")
        place.joinpath("limits").write_text(f"Limit  Soft\nMax processes             {soft}   64   processes\n")
        place.joinpath("cgroup").write_text("0::/system.slice/waypost.service\n")

    def group(self, name: str, current: int, most: str) -> None:
        """A control group."""
        place = self.groups / name
        place.mkdir(parents=True, exist_ok=True)
        place.joinpath("pids.current").write_text(f"{current}\n")
        place.joinpath("pids.max").write_text(f"{most}\n")

    def asked(self, *, boxed: bool = False) -> Crowd | None:
        """The answer for process 7."""
        return crowded.Machine(proc=self.proc, groups=self.groups).crowded(7, boxed=boxed)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    """With room for everybody: 50 threads of the child's user, of 64."""
    made = Machine(tmp_path)
    made.process(7, parent=1, threads=4)
    made.process(8, parent=7, threads=46)
    made.process(9, parent=1, threads=100, uid=0)
    made.group("system.slice", 90, "max")
    made.group("system.slice/waypost.service", 60, "80")
    return made


def test_where_there_is_room_nothing_is_said(machine: Machine) -> None:
    """Nor where the kernel says less than it might."""
    assert machine.asked() is None
    assert crowded.Machine(proc=machine.proc, groups=machine.groups).crowded(4242, boxed=True) is None
    assert crowded.Machine(proc=machine.groups, groups=machine.groups).crowded(7, boxed=True) is None


def test_all_that_its_user_runs_counts(machine: Machine) -> None:
    """RLIMIT_NPROC is of the user, wherever its processes came from; who is root, or may pass it, isn't counted."""
    machine.process(10, parent=1, threads=14)
    assert machine.asked() == Crowd("user", 64, 64)
    (machine.proc / "7/status").write_text("Uid:\t0\t0\t0\t0\nCapEff:\t0000000000000000\n")
    assert machine.asked() is None


@pytest.mark.parametrize("bit", [21, 24])
def test_who_may_pass_the_limit_isnt_held_by_it(machine: Machine, bit: int) -> None:
    """CAP_SYS_ADMIN, CAP_SYS_RESOURCE (getrlimit(2))."""
    machine.process(10, parent=1, threads=14)
    (machine.proc / "7/status").write_text(f"Uid:\t70001\t0\t0\t0\nCapEff:\t{1 << bit:016x}\n")
    assert machine.asked() is None


def test_in_a_namespace_only_what_is_in_there_counts(machine: Machine) -> None:
    """Others of the same user aren't in that user namespace."""
    machine.process(10, parent=1, threads=14)
    assert machine.asked(boxed=True) is None
    machine.process(11, parent=8, threads=14)
    assert machine.asked(boxed=True) == Crowd("user", 64, 64)


@pytest.mark.parametrize("name", ["system.slice", "system.slice/waypost.service"])
def test_a_service_and_whatever_it_is_part_of_may_be_full(machine: Machine, name: str) -> None:
    """Each control group on the way up has a limit of its own."""
    machine.group(name, 80, "80")
    assert machine.asked() == Crowd("service", 80, 80, name.rpartition("/")[2])


def test_a_machine_may_be_full(machine: Machine) -> None:
    """Then nothing else counts."""
    (machine.proc / "loadavg").write_text("0.1 0.2 0.3 2/1000 99\n")
    assert machine.asked() == Crowd("machine", 1000, 1000)


@pytest.mark.parametrize(
    "crowd", [Crowd("user", 64, 64), Crowd("service", 80, 80, "waypost.service"), Crowd("machine", 9, 9)]
)
def test_why_names_the_limit_and_what_raises_it(crowd: Crowd) -> None:
    """Of the deployment beside what it waits for, as it goes on by itself."""
    check(threadless(crowd))
    full = replace(HERE, crowd=crowd)
    check(sentence_of(full))
    answer = told(full)
    assert answer.waits_for == CALM.waits_for
    assert f"{crowd.count} of {crowd.most} processes and threads" in answer.then
    assert not answer.needed
    assert answer.command == ("waypost run --processes 128" if crowd.whose == "user" else "")


def test_why_of_a_run_between_two_steps_says_that_it_waits_for_a_thread() -> None:
    """It was said to be with its code, whose process might be stuck; a fresh process wouldn't help."""
    run = read(run_id(3, b"12345678"), log_of(BEGAN))
    assert why(run, HERE).command == "waypost recycle expenses --reason stuck"
    answer = why(run, replace(HERE, crowd=Crowd("user", 64, 64)))
    assert answer.waits_for.startswith("a thread for its code to run in: 64 of 64")
    assert answer.command == "waypost run --processes 128"
    assert not answer.needed


@pytest.mark.skipif(os.geteuid() != 0, reason="only root may become a user that runs nothing else")
def test_the_kernels_own_figures_are_read_right() -> None:
    """A real process with a real limit: four threads of four, and one more can't be had."""
    code = """
import os, resource, threading
user = 3 * [71_021]
resource.setrlimit(resource.RLIMIT_NPROC, (4, 4)); os.setgroups([]); os.setresgid(*user); os.setresuid(*user)
more, at = threading.Event(), []
def begun():
    try: threading.Thread(target=more.wait, daemon=True).start()
    except RuntimeError: return False
    return True
print(sum(begun() for _ in range(9)), flush=True)
more.wait()
"""
    with Background("-I", "-S", "-c", code, command=(sys.executable,)) as child:
        child.wait_for("3")
        assert crowded.Machine().crowded(child.pid, boxed=False) == Crowd("user", 4, 4)

"""A host's threads keep to one core, because only one of them runs at a time; what it starts may use every one."""

import os
import sys
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from ipc import cores
from ipc.spawn import spawn
from waypost.testing.host_process import HostProcess

GIVEN = frozenset(os.sched_getaffinity(os.getpid()))
"""What this process may use."""
pytestmark = pytest.mark.skipif(len(GIVEN) == 1, reason="on one core there is no choice")
FLOW = Path(__file__).parents[1] / "e2e" / "flows" / "expenses_like.py"


@contextmanager
def waiting() -> Iterator[threading.Thread]:
    """A thread that lives as long as this."""
    enough = threading.Event()
    thread = threading.Thread(target=enough.wait)
    thread.start()
    yield thread
    enough.set()
    thread.join()


def kept(native: int | None) -> frozenset[int]:
    """The cores that a thread may use."""
    assert native is not None
    return frozenset(os.sched_getaffinity(native))


def told(target: object) -> list[frozenset[int]]:
    """What a new thread does, in it: the cores that it finds itself on, one entry each time that it looks."""
    found: list[frozenset[int]] = []
    assert callable(target)
    thread = threading.Thread(target=target, args=(lambda: found.append(kept(threading.get_native_id())),))
    thread.start()
    thread.join()
    return found


def test_threads_that_are_started_together_keep_to_one_core_and_the_others_dont() -> None:
    """The main thread tells what the process was given, and threads of others aren't ours to move."""
    with waiting() as other, ExitStack() as ended:
        with cores.together():
            mine = ended.enter_context(waiting())
        assert len(kept(mine.native_id)) == 1
        assert kept(mine.native_id) < GIVEN
        assert kept(other.native_id) == kept(threading.main_thread().native_id) == GIVEN


@pytest.mark.parametrize("count", [1, 2, 1000])
def test_an_operator_says_how_many_cores_they_keep_to(count: int) -> None:
    """As many as there are, where it is more than that."""
    with ExitStack() as ended:
        with cores.together(count):
            mine = ended.enter_context(waiting())
        assert len(kept(mine.native_id)) == min(count, len(GIVEN))
        assert kept(mine.native_id) <= GIVEN


def test_a_kept_thread_may_use_all_cores_for_as_long_as_it_starts_something() -> None:
    """Also where that fails; and one that isn't kept notices nothing."""

    def look(note: object) -> None:
        assert callable(note)
        cores.keep(threading.get_native_id())
        note()
        with suppress(ZeroDivisionError), cores.all_given():
            note()
            assert 1 / 0
        note()

    before, meanwhile, after = told(look)
    assert len(before) == 1
    assert meanwhile == GIVEN
    assert after == before
    with cores.all_given():
        assert kept(threading.get_native_id()) == GIVEN


def test_a_child_of_a_kept_thread_has_every_core() -> None:
    """Its code may compute in many threads or processes; the host's reason isn't its."""
    said: list[str] = []

    def start() -> None:
        cores.keep(threading.get_native_id())
        child = spawn([sys.executable, "-c", "import os; print(sorted(os.sched_getaffinity(0)))"], {}, b"")
        for descriptor in (child.control, child.events, child.stderr, child.pidfd):
            os.close(descriptor)
        os.waitpid(child.pid, 0)
        with os.fdopen(child.stdout) as words:
            said.append(words.read().strip())

    thread = threading.Thread(target=start)
    thread.start()
    thread.join()
    assert said == [str(sorted(GIVEN))]


def test_the_threads_of_a_host_share_a_core(tmp_path: Path) -> None:
    """The actors of a deployment, the wires, the API: an append goes from hand to hand. The few others only wait."""
    with HostProcess(FLOW, data=tmp_path / "data") as host:
        threads = [int(task.name) for task in Path(f"/proc/{host.pid}/task").iterdir()]
        places = {thread: kept(thread) for thread in threads}
    assert places.pop(host.pid) == GIVEN
    together = [each for each in places.values() if each != GIVEN]
    assert len(together) > len(places) * 2 / 3
    assert len(set(together)) == 1
    assert len(together[0]) == 1

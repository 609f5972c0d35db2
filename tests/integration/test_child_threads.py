"""Each thread of a real child, when it can't say what it is there to say: the process ends, and nobody waits for it."""

import textwrap
from pathlib import Path

import pytest

from waypost.testing.memory_log import MemoryLog
from waypost.testing.scripted_host import ScriptedHost

MAIL = b"From: ann@example.com\r\nMessage-ID: <1@x>\r\nSubject: 7\r\n\r\nplease\r\n"
HEAD = """
import asyncio, ctypes, sys, threading
from waypost import *

flow = Workflow("orders", address="orders@example.com")

class Kind(type):
    def __instancecheck__(cls, instance):
        raise MemoryError

class Picky(Exception, metaclass=Kind):
    pass

@flow.run
async def order(mail):
    return await work()
"""
DEAF = """
@flow.step
def work() -> int:
    for thread in threading.enumerate():
        if thread.name == "waypost-frames":
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident), ctypes.py_object(MemoryError))
    return 1
"""
DUMB = """
@flow.step(raises=(Picky,))
def work() -> int:
    raise ValueError
"""
DUMB_TOO = DUMB.replace("def work", "async def work")
LOOPS_END = """
@flow.step
async def work() -> int:
    asyncio.get_running_loop().call_soon(sys.exit)
    await asyncio.Event().wait()
    return 1
"""


STOPS = """
@flow.step
async def work() -> int:
    asyncio.get_running_loop().stop()
    await asyncio.sleep(0.01)
    return await asyncio.to_thread(lambda: 1)
"""


@pytest.mark.parametrize(
    "step", [DEAF, DUMB, DUMB_TOO, LOOPS_END], ids=["frames", "def step", "async def step", "loop"]
)
def test_a_thread_that_can_say_nothing_more_ends_its_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, step: str
) -> None:
    """Its child would be deaf, or a step at work for ever: where memory is short, that may befall any thread."""
    if step == DEAF:  # while an exception lies ready for a thread that waits, Python 3.11 traces no call of another one
        monkeypatch.delenv("COVERAGE_PROCESS_CONFIG", raising=False)
    file = tmp_path / "flow.py"
    file.write_text(HEAD + textwrap.dedent(step), encoding="utf-8")
    log = MemoryLog()
    log.start(MAIL)
    with ScriptedHost(file, log) as host:
        host.drive()
        assert host.wait_for_exit() == 70
        assert host.output.decode().rstrip().endswith(("MemoryError", "SystemExit"))


def test_a_step_that_stops_the_loop_of_all_async_steps_stops_none(tmp_path: Path) -> None:
    """As a program of its own might, at its end: every async step after it failed, of every run."""
    file = tmp_path / "flow.py"
    file.write_text(HEAD + STOPS, encoding="utf-8")
    log = MemoryLog()
    log.start(MAIL)
    with ScriptedHost(file, log) as host:
        host.drive()
        host.until_ended()
        assert host.kinds()[-2:] == ["StepCompleted", "RunCompleted"]

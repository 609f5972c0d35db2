"""The real child process with child runs: as the one that starts them, and as one itself; `def` and `async`."""

import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from waypost.model import events as ev
from waypost.model.child_events import Parent
from waypost.model.child_mail import Spawner, child_mail
from waypost.model.ids import CallId, RunId
from waypost.testing.memory_log import MemoryLog
from waypost.testing.scripted_host import ScriptedHost

MAIL = b"From: ann@example.com\r\nMessage-ID: <1@x>\r\nSubject: 7\r\n\r\nplease\r\n"
PARENT = RunId("run_0_0011223344556677")
FILE = """
import asyncio
from waypost import *

flow = Workflow("orders", address="orders@example.com")

@flow.step
def read(what: str) -> str:
    return what.upper()

@flow.child
async def pay(item: str) -> str:
    return await read(item)

@flow.child
def ship(items: list[str], fast: bool = False) -> int:
    try:
        receive()
    finally:
        read("clean")
    return len(items)

@flow.run
async def order(mail: Mail) -> str:
    try:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(pay(item)) for item in "abc"]
    except* ChildFailed as failed:
        return_ = str(failed.exceptions[0].reason)
    else:
        return_ = " ".join(task.result() for task in tasks)
    return return_
"""
PLAIN = (
    FILE.replace("@flow.run", "@flow.child")
    + """
@flow.run
def plain(mail: Mail) -> str:
    first = pay("a")
    try:
        return first + pay(mail.subject)
    except ChildFailed as failed:
        return first + failed.reason
"""
)

Start = Callable[..., ScriptedHost]


@pytest.fixture
def start(tmp_path: Path) -> Start:
    """Write a workflow and prepare its host; the test enters it."""

    def make(log: MemoryLog, source: str = FILE) -> ScriptedHost:
        file = tmp_path / "orders.py"
        file.write_text(textwrap.dedent(source), encoding="utf-8")
        return ScriptedHost(file, log)

    return make


def begun() -> MemoryLog:
    """A run of a mail."""
    log = MemoryLog()
    log.start(MAIL)
    return log


def as_child(workflow: str, data: bytes) -> MemoryLog:
    """A run that is a child."""
    log, by = MemoryLog(), Spawner(PARENT, CallId("r1#1"))
    mail = child_mail(address="o@example.com", workflow=workflow, by=by, message_id="<c@x>", date_ms=0, data=data)
    log.start(mail, parent=Parent(run=PARENT, call=by.call, workflow=workflow, depth=1))
    return log


def result(log: MemoryLog) -> str:
    """What the run returned."""
    end = log.events[-1]
    assert isinstance(end, ev.RunCompleted), end
    return bytes(end.result.inline or b"").decode()


def test_a_parent_that_is_killed_between_its_spawns_asks_for_the_rest_in_the_next_process(start: Start) -> None:
    """And for none twice; it ends with what its children came to, in whatever order they did."""
    log = begun()
    with start(log) as first:
        first.drive()
        first.to_the_end(events=3)
        first.kill()
    log.resume()
    with start(log) as second:
        second.drive()
        second.until_parked()
        asked = [(each.call, each.input) for each in (*first.spawned, *second.spawned)]
        assert asked == [(f"r1.{n}#1", b'{"item":"%s"}' % item) for n, item in ((1, b"a"), (2, b"b"), (3, b"c"))]
        for n in (3, 1, 2):
            second.commit(log.child_ended(CallId(f"r1.{n}#1"), result=b'"%d"' % n))
        second.until_ended()
    assert result(log) == '"1 2 3"'


def test_one_that_fails_takes_its_siblings_along(start: Start) -> None:
    """A task group's rule, told to the host."""
    log = begun()
    with start(log) as host:
        host.drive()
        host.until_parked()
        host.commit(log.child_ended(CallId("r1.2#1"), error=ev.Fault(type="ValueError", message="no")))
        host.until_ended()
    assert host.kinds()[-4:] == ["ChildCompleted", "ChildCancelRequested", "ChildCancelRequested", "RunCompleted"]
    assert result(log) == '"no"'


def test_a_def_run_has_its_children_one_after_the_other(start: Start) -> None:
    """It blocks at each, and a failure is raised there."""
    log = begun()
    with start(log, PLAIN) as host:
        host.drive()
        host.until_parked()
        host.commit(log.child_ended(result=b'"A"'))
        host.until(lambda: len(host.spawned) == 2)
        host.until_parked()
        host.commit(log.child_ended(error=ev.Fault(type="ValueError", message=" failed")))
        host.until_ended()
    assert [each.input for each in host.spawned] == [b'{"item":"a"}', b'{"item":"7"}']
    assert result(log) == '"A failed"'


def test_a_def_run_that_is_cancelled_lets_its_child_go(start: Start) -> None:
    """RunCancelled is raised where it waits, and the host is told that nobody does any more."""
    log = begun()
    with start(log, PLAIN) as host:
        host.drive()
        host.until_parked()
        host.commit(log.cancel())
        host.until_ended()
    assert host.kinds()[-3:] == ["CancelRequested", "ChildCancelRequested", "RunCancelled"]


def test_a_child_run_is_its_function_with_its_arguments(start: Start) -> None:
    """An `async` one in a workflow whose run function may be another kind."""
    for source in (FILE, PLAIN):
        log = as_child("pay", b'{"item":"desk"}')
        with start(log, source) as host:
            host.drive()
            host.until_ended()
        assert result(log) == '"DESK"'


def test_a_def_child_that_is_cancelled_cleans_up(start: Start) -> None:
    """By its parent, here; to it that is a cancel like any other."""
    log = as_child("ship", b'{"items":["a","b"]}')
    with start(log) as host:
        host.drive()
        host.until_parked()
        host.commit(log.append([ev.CancelRequested(origin="parent", reason=f"its parent {PARENT} has ended")]))
        host.until_ended()
    assert host.kinds()[-5:] == [
        "CancelRequested",
        "SignalAwaitAbandoned",
        "StepStarted",
        "StepCompleted",
        "RunCancelled",
    ]


def test_a_child_without_code_is_paused_and_says_what_helps(start: Start) -> None:
    """The process goes on with all other runs."""
    log = as_child("pack", b"{}")
    with start(log) as host:
        host.drive()
        host.until(lambda: bool(host.pauses))
    assert host.pauses == ["orders has no child pack any more"]
    paused = log.events[-1]
    assert isinstance(paused, ev.RunPaused)
    assert paused.code == "code-missing"

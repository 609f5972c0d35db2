"""The loop of one run: identities, one outcome at a time, and what it refuses."""

import asyncio
import gc
import socket
import threading
import zlib
from collections.abc import Callable, Coroutine
from typing import Any

import pytest

from waypost import NotReplayable, receive, sleep
from waypost.authoring.requests import AwaitMail
from waypost.authoring.scope import current
from waypost.child.lanes import LaneTask
from waypost.child.loop import WorkflowLoop
from waypost.child.program import Asked, Finished, Gave, GaveUp, Raised, Stuck, Turn, Waiting
from waypost.model.ids import CallId

Body = Callable[[], Coroutine[Any, Any, object]]


class Watched:
    """A loop and the turns that it has made."""

    def __init__(self, body: Body) -> None:
        self.turns: list[Turn] = []
        self.loop = WorkflowLoop.create(body, self.turns.append)
        self.loop.start(1000.0)

    def deliver(self, call: str, value: object = None, now: float = 1000.0) -> Turn:
        """Deliver an outcome; gives the turn that it led to."""
        self.loop.deliver(CallId(call), Gave(value), now)
        return self.turns[-1]

    def end(self) -> object:
        """What the body returned, or the error that it raised."""
        rest = self.turns[-1].rest
        assert isinstance(rest, Finished)
        return rest.outcome.value if isinstance(rest.outcome, Gave) else rest.outcome.error


def calls(turn: Turn) -> list[str]:
    """The calls of a turn, given-up ones with a minus."""
    return [f"-{c.call}" if isinstance(c, GaveUp) else c.call for c in turn.commands]


def test_a_call_is_named_by_its_place_in_the_program() -> None:
    """Lane and number: the same on every Python and in every replay."""

    async def body() -> None:
        await asyncio.gather(sleep(1), asyncio.gather(sleep(2), sleep(3)))
        await asyncio.wait_for(sleep(4), 5)
        await sleep(6)

    watched = Watched(body)
    assert calls(watched.turns[0]) == ["r1.1#1", "r1.2#1", "r1.3#1"]
    for call in ("r1.1#1", "r1.2#1"):
        assert calls(watched.deliver(call)) == []
    # wait_for's own timer comes first, and its task, where Python makes one, works in the caller's lane.
    assert calls(watched.deliver("r1.3#1")) == ["r1#1", "r1#2"]
    assert calls(watched.deliver("r1#2")) == ["-r1#1", "r1#3"]


def test_time_is_the_newest_events() -> None:
    """A run that reads the loop's clock reads the log."""

    async def body() -> list[float]:
        loop = asyncio.get_running_loop()
        before = loop.time()
        await sleep(1)
        return [before, loop.time()]

    watched = Watched(body)
    watched.deliver("r1#1", now=1060.5)
    assert watched.end() == [1000.0, 1060.5]


def test_an_outcome_that_nobody_waits_for_is_dropped() -> None:
    """A timer that fires when its timeout has been left, for one."""

    async def body() -> None:
        await sleep(1)

    watched = Watched(body)
    turn = watched.deliver("r1#7")
    assert turn == Turn((), Waiting())


def test_an_answer_and_a_cancel_in_one_turn_leave_the_mail_to_the_next_receive() -> None:
    """The mail is consumed; it must reach somebody."""

    async def body() -> object:
        first = asyncio.create_task(_receive())
        other = asyncio.create_task(_receive())
        await other
        first.cancel()
        try:
            return await first
        except asyncio.CancelledError:
            return ["again", await receive()]

    watched = Watched(body)
    assert calls(watched.turns[0]) == ["r1.1#1", "r1.2#1"]
    watched.deliver("r1.2#1", "one")
    assert calls(watched.turns[-1]) == ["-r1.1#1", "r1#1"]
    turn = watched.deliver("r1.1#1", "late")  # taken up before the giving-up was recorded
    assert calls(turn) == ["-r1#1"]
    assert watched.end() == ["again", "late"]


async def _receive() -> object:
    return await receive()


def test_mails_that_nobody_took_are_named_at_the_end() -> None:
    """For the terminal event."""

    async def body() -> None:
        task = asyncio.create_task(_receive())
        await sleep(1)
        task.cancel()
        await sleep(2)

    watched = Watched(body)
    watched.deliver("r1#1")
    watched.deliver("r1.1#1", "mail")
    watched.deliver("r1#2")
    assert watched.turns[-1].rest == Finished(Gave(None), (CallId("r1.1#1"),))


def _connect() -> Coroutine[Any, Any, object]:
    return asyncio.open_connection("127.0.0.1", 9)


async def _thread() -> None:
    await asyncio.to_thread(print)


async def _executor() -> None:
    await asyncio.get_running_loop().run_in_executor(None, print)


async def _process() -> None:
    await asyncio.create_subprocess_exec("true")


async def _reader() -> None:
    left, right = socket.socketpair()
    with left, right:
        asyncio.get_running_loop().add_reader(left, print)


async def _signal() -> None:
    asyncio.get_running_loop().add_signal_handler(15, print)


async def _name() -> None:
    await asyncio.get_running_loop().getaddrinfo("localhost", 80)


async def _as_completed() -> None:
    for first in asyncio.as_completed([sleep(1), sleep(2)]):
        await first


async def _factory() -> None:
    asyncio.get_running_loop().set_task_factory(lambda loop, coro: asyncio.Task(coro, loop=loop))


async def _nested_drive() -> None:
    asyncio.get_running_loop().run_until_complete(sleep(1))


async def _callback() -> None:
    failures: list[BaseException] = []

    def call() -> None:
        try:
            asyncio.get_running_loop().call_later(1, print)
        except NotReplayable as refused:
            failures.append(refused)

    asyncio.get_running_loop().call_soon(call)
    await asyncio.sleep(0)
    raise failures[0]


@pytest.mark.parametrize(
    ("body", "instead"),
    [
        (_connect, "step"),
        (_thread, "step"),
        (_executor, "step"),
        (_process, "step"),
        (_reader, "step"),
        (_signal, "step"),
        (_name, "step"),
        (_as_completed, "create_task"),
        (_factory, "create_task"),
        (_nested_drive, "await"),
        (_callback, "task"),
    ],
)
@pytest.mark.filterwarnings("ignore:coroutine .* was never awaited:RuntimeWarning")
def test_what_a_replay_could_not_repeat_is_refused_and_the_alternative_named(body: Body, instead: str) -> None:
    """In the workflow, at the line that asks for it."""
    error = Watched(body).end()
    assert isinstance(error, NotReplayable), error
    assert instead in error.instead
    del error
    gc.collect()  # what was refused is a coroutine that nobody awaited: let Python complain here and not later


@pytest.mark.parametrize("way", ["call_soon_threadsafe", "call_soon", "set_result"])
def test_another_thread_cannot_wake_a_workflow(way: str) -> None:
    """Whatever it brings isn't in the log; nor may it slip in by a future that the workflow made."""
    caught: list[BaseException] = []

    async def body() -> None:
        loop = asyncio.get_running_loop()
        future = loop.create_future()
        future.add_done_callback(print)

        def wake() -> None:
            try:
                match way:
                    case "set_result":
                        future.set_result(1)
                    case _:
                        getattr(loop, way)(print)
            except NotReplayable as refused:
                caught.append(refused)

        thread = threading.Thread(target=wake)
        thread.start()
        thread.join()

    Watched(body)
    assert len(caught) == 1


def test_waiting_for_nothing_durable_is_seen() -> None:
    """No event could ever wake it."""

    async def body() -> None:
        await asyncio.Event().wait()

    assert Watched(body).turns[-1].rest == Stuck()


def test_system_exit_in_a_task_ends_nothing_else() -> None:
    """The loop of asyncio lets it through; this loop must not let it through the child."""

    async def leaves() -> None:
        raise SystemExit(3)

    async def body() -> str:
        try:
            await asyncio.create_task(leaves())
        except SystemExit as left:
            return f"left {left.code}"
        return "stayed"

    assert Watched(body).end() == "left 3"


def test_a_dropped_run_cleans_up_and_asks_for_nothing() -> None:
    """Its tasks are cancelled, so that files are closed; durable calls in there wait for ever and are forgotten."""
    cleaned: list[str] = []

    async def body() -> None:
        try:
            await sleep(1)
        finally:
            cleaned.append("closed")
            await sleep(2)

    watched = Watched(body)
    before = len(watched.turns)
    watched.loop.drop()
    assert cleaned == ["closed"]
    assert len(watched.turns) == before


def test_a_task_nested_too_deep_is_refused() -> None:
    """The call's identity has no room for more."""

    async def deeper(level: int) -> None:
        if level:
            await asyncio.create_task(deeper(level - 1))

    async def body() -> None:
        await deeper(100)

    assert isinstance(Watched(body).end(), NotReplayable)


def test_the_tasks_of_many_runs_are_not_compared_with_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """All runs of a child begin with a task of the same lane, and a child may have thousands: none pays for them."""
    compared: list[object] = []

    def compare(task: LaneTask, other: object) -> bool:
        compared.append(other)
        return task is other

    monkeypatch.setattr(LaneTask, "__eq__", compare)

    async def body() -> None:
        await asyncio.wait([asyncio.create_task(sleep(1)), asyncio.create_task(sleep(2))])

    runs = [Watched(body) for _ in range(200)]
    assert not compared
    tasks = asyncio.all_tasks(runs[0].loop)
    assert {task.lane: hash(task) for task in tasks if isinstance(task, LaneTask)} == {
        lane: zlib.crc32(lane.encode()) for lane in ("r1", "r1.1", "r1.2")
    }


def test_commands_carry_the_request() -> None:
    """What the drive makes events of."""

    async def body() -> object:
        return await receive(timeout="1m")

    watched = Watched(body)
    assert watched.turns[0] == Turn((Asked(CallId("r1#1"), AwaitMail(60.0)),), Waiting())
    watched.loop.deliver(CallId("r1#1"), Raised(TimeoutError("late")), 1060.0)
    assert isinstance(watched.end(), TimeoutError)
    assert current() is not watched.loop  # the scope stays inside the run

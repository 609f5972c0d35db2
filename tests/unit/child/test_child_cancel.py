"""Cancellation in a run's own code: raised once, where it waits; what it may do then; how the run ends."""

import asyncio
from collections.abc import Callable
from typing import Any

import msgspec
import pytest
from msgspec import UNSET

from waypost import Invalid, Workflow, cancel, receive, sleep
from waypost.child import effects as fx
from waypost.child.phase import Phase
from waypost.model import events as ev
from waypost.model.ids import CallId
from waypost.testing.memory_log import MemoryLog
from waypost.testing.memory_run import MemoryRun

MAIL = b"From: ann@example.com\r\nMessage-ID: <1@x>\r\nSubject: 7\r\n\r\nplease\r\n"
orders = Workflow("orders", address="orders@example.com")


@orders.step
def pay(amount: int) -> int:
    """Touches the world."""
    return amount


@orders.step(retries=5)
def shaky() -> int:
    """Never works."""
    raise OSError("no route")


def begun(body: Callable[[], Any]) -> MemoryRun:
    """A run that has gone on as far as it can by itself."""
    flow = Workflow("orders", address="orders@example.com")
    flow.run(body)
    log = MemoryLog()
    log.start(MAIL)
    return MemoryRun(flow, log)


def cancelled(run: MemoryRun) -> ev.RunCancelled:
    """It is cancelled, and goes to its end; and so it does in a child that finds the cancellation in the log."""
    run.log.cancel()
    run.settle()
    return ended(run)


def ended(run: MemoryRun) -> ev.RunCancelled:
    """How it has ended."""
    end = run.log.events[-1]
    assert isinstance(end, ev.RunCancelled), run.log.events
    assert not run.pauses
    return end


def kinds(run: MemoryRun) -> list[str]:
    """The log as names."""
    return [ev.kind(event) for event in run.log.events]


def test_a_run_that_waits_is_cancelled_where_it_waits() -> None:
    """Its timer is called off, and its end is RunCancelled."""

    async def body() -> None:
        await sleep("1h")

    run = begun(body)
    run.settle()
    assert cancelled(run) == run.log.events[-1]
    assert kinds(run) == ["RunStarted", "TimerSet", "CancelRequested", "TimerCancelled", "RunCancelled"]


def test_a_run_may_clean_up_with_steps() -> None:
    """It is told once; what it does then is recorded like everything it does."""

    async def body() -> None:
        try:
            await sleep("1h")
        finally:
            await pay(-420)

    run = begun(body)
    run.settle()
    cancelled(run)
    assert kinds(run)[3:] == ["TimerCancelled", "StepStarted", "StepCompleted", "RunCancelled"]


@pytest.mark.parametrize("events", range(3, 7))
def test_a_clean_up_goes_on_after_a_kill_at_any_event(events: int) -> None:
    """The next child finds the cancellation in the log and takes the same way out."""

    async def body() -> None:
        try:
            await sleep("1h")
        finally:
            await pay(-420)

    run = begun(body)
    run.settle()
    run.log.cancel()
    run.settle(events=events)
    run.abandon()
    run.log.resume()
    again = MemoryRun(run.workflow, run.log, done=run.done)
    again.settle()
    ended(again)
    assert len({key for _, _, key in run.done}) == 1


def test_a_run_that_ignores_it_ends_cancelled_all_the_same() -> None:
    """Who was first is in the log: what the code returns after that is nobody's."""

    async def body() -> str:
        try:
            await sleep("1h")
        except asyncio.CancelledError:
            await pay(1)
        return "done"

    run = begun(body)
    run.settle()
    assert cancelled(run).error is UNSET


def test_an_error_of_the_clean_up_is_kept() -> None:
    """Somebody has to look at what wasn't undone."""

    async def body() -> None:
        try:
            await sleep("1h")
        finally:
            raise ValueError("can't undo")

    run = begun(body)
    run.settle()
    error = cancelled(run).error
    assert isinstance(error, ev.Fault)
    assert (error.type, error.message) == ("ValueError", "can't undo")


def test_a_step_under_way_is_called_off_and_the_end_waits_for_it() -> None:
    """RunCancelled means that nothing of the run works any more."""

    async def body() -> None:
        await pay(1)

    run = begun(body)
    run.settle(events=2)
    cancelled(run)
    assert kinds(run)[1:] == ["StepStarted", "CancelRequested", "CancelPropagated", "RunCancelled"]
    assert run.called_off == ["r1#1"]
    assert run.done == []


def test_the_end_comes_after_a_step_that_returns_in_spite_of_it() -> None:
    """A thread can't be stopped; what it returns is recorded."""

    async def body() -> None:
        await pay(1)

    run = begun(body)
    drive = run.drive
    drive.committed(run.log.events[1:])
    begin = proposed(run)[0]
    run.log.append(begin)
    drive.committed(run.log.events[1:])
    drive.appended(begin, None, "")
    (started,) = (effect for effect in drive.effects() if isinstance(effect, fx.Body))
    drive.committed([ev.decode(run.log.cancel()[0])])
    assert [type(effect) for effect in drive.effects()] == [fx.CallOff]
    assert drive.phase is Phase.LIVE
    drive.body_ended(started.step, fx.Completed(b"1"))
    assert [[ev.kind(event) for event in events] for events in proposed(run)] == [["StepCompleted"], ["RunCancelled"]]


def proposed(run: MemoryRun) -> list[tuple[ev.AnyEvent, ...]]:
    """What it asks to be recorded now."""
    return [effect.events for effect in run.drive.effects() if isinstance(effect, fx.Append)]


def test_a_step_that_the_code_shields_is_not_called_off() -> None:
    """It said that it wants the outcome."""

    async def body() -> None:
        paying = asyncio.ensure_future(pay(1))
        try:
            await asyncio.shield(paying)
        finally:
            await paying

    run = begun(body)
    run.settle(events=2)
    cancelled(run)
    assert run.called_off == []
    assert [name for name, _, _ in run.done] == ["pay"]


def test_a_retry_never_comes_after_a_cancel() -> None:
    """Whoever waits for the back-off of a step is let go at once."""

    async def body() -> None:
        await shaky()

    run = begun(body)
    run.settle()
    tries = len(run.done)
    cancelled(run)
    assert len(run.done) == tries
    assert kinds(run)[-2:] == ["CancelRequested", "RunCancelled"]


def test_a_step_whose_beginning_was_on_its_way_does_not_begin() -> None:
    """The cancellation was recorded before the answer to its StepStarted came."""

    async def body() -> None:
        try:
            await pay(1)
        finally:
            await sleep("1s")

    run = begun(body)
    (begin,) = proposed(run)
    run.log.append(begin)
    run.log.cancel()
    run.drive.committed(run.log.events[1:])
    run.drive.appended(begin, None, "")
    effects = run.drive.effects()
    assert not [effect for effect in effects if isinstance(effect, fx.Body)]
    asked = [effect.events[0] for effect in effects if isinstance(effect, fx.Append)]
    assert [type(event) for event in asked] == [ev.TimerSet, ev.CancelPropagated]


@pytest.mark.parametrize("refused_first", [True, False])
def test_an_end_that_comes_second_becomes_a_cancelled_one(refused_first: bool) -> None:  # noqa: FBT001 - which is first
    """The refusal of its end and the cancellation come by two ways, in either order."""

    async def body() -> int:
        return 7

    run = begun(body)
    (end,) = proposed(run)
    (raw,) = run.log.cancel()

    def refuse() -> None:
        run.drive.appended(end, "the run is being cancelled", "cancelling")

    def tell() -> None:
        run.drive.committed([ev.decode(raw)])

    for take in (refuse, tell) if refused_first else (tell, refuse):
        take()
    assert [[type(event) for event in events] for events in proposed(run)] == [[ev.RunCancelled]]


def test_a_run_ends_itself_by_cancel() -> None:
    """The call doesn't come back, now or in a replay."""
    came_back: list[str] = []

    async def body() -> None:
        try:
            await cancel("nothing to do")
            came_back.append("here")
        finally:
            await pay(1)

    run = begun(body)
    run.settle(events=3)
    run.abandon()
    run.log.resume()
    again = MemoryRun(run.workflow, run.log)
    again.settle()
    ended(again)
    asked = next(event for event in run.log.events if isinstance(event, ev.CancelRequested))
    assert (asked.origin, asked.reason, asked.call) == ("self", "nothing to do", CallId("r1#1"))
    assert came_back == []


def test_an_operator_may_be_quicker_than_the_run_itself() -> None:
    """Then the run's own wish has nothing to do any more."""

    async def body() -> None:
        await cancel("nothing to do")

    run = begun(body)
    run.log.cancel()
    run.drive.committed(run.log.events[1:])
    ask, *_ = run.drive.effects()
    assert isinstance(ask, fx.Ask)
    run.drive.answered(ask.call, ask.request, None)
    assert run.drive.phase is Phase.ENDING


def test_a_wish_that_the_host_refuses_fails_the_run() -> None:
    """It would wait for ever otherwise, for a cancellation that nobody recorded."""

    async def body() -> None:
        await cancel("nothing to do")

    run = begun(body)
    ask, *_ = run.drive.effects()
    assert isinstance(ask, fx.Ask)
    run.drive.answered(ask.call, ask.request, "generation 1 is not at work")
    ((end,),) = proposed(run)
    assert isinstance(end, ev.RunFailed)
    assert end.error.message == "the host refused to cancel it: generation 1 is not at work"


@pytest.mark.parametrize("reason", ["", "  ", "x" * 1001, "two\nlines"])
def test_a_reason_is_one_line(reason: str) -> None:
    """It is shown in lists."""
    with pytest.raises(Invalid):
        _ = cancel(reason)


def test_what_a_task_works_at_that_nobody_awaits_is_called_off_at_the_end() -> None:
    """The function has ended, so nobody would read the outcome; no try follows."""

    async def body() -> None:
        task = asyncio.ensure_future(shaky())
        await sleep("1h")
        await task

    run = begun(body)
    run.settle(events=3)
    cancelled(run)
    assert kinds(run)[-4:] == ["CancelRequested", "TimerCancelled", "CancelPropagated", "RunCancelled"]
    run.abandon()
    log = MemoryLog()
    log.blobs = run.log.blobs
    log.append(ev.decode(ev.proposed(event)) for event in map(_bare, run.log.events[:-1]))
    again = MemoryRun(run.workflow, log)
    again.settle()
    assert isinstance(log.events[-1], ev.RunCancelled)
    assert not again.pauses


def _bare(event: ev.AnyEvent) -> ev.AnyEvent:
    return msgspec.structs.replace(event, seq=0, at="", prev="")


def test_other_tasks_are_cancelled_by_asyncios_rules() -> None:
    """A group's tasks with it; a task that nobody awaits is let go of at the end."""
    seen: list[str] = []

    async def waits(name: str) -> None:
        try:
            await receive()
        except asyncio.CancelledError:
            seen.append(name)
            raise

    async def body() -> None:
        async with asyncio.TaskGroup() as group:
            group.create_task(waits("a"))
            group.create_task(waits("b"))

    run = begun(body)
    run.settle()
    cancelled(run)
    assert sorted(seen) == ["a", "b"]
    assert kinds(run)[-3:] == ["SignalAwaitAbandoned", "SignalAwaitAbandoned", "RunCancelled"]

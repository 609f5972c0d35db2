"""Named signals in a run's own code: before the wait or after it, typed, in order, and the same in a replay."""

import asyncio
import contextlib
from collections.abc import Callable
from typing import Any

import msgspec

from waypost import BadSignal, DeadlinePassed, Invalid, ValueNotStorable, Workflow, signal, sleep
from waypost.model import events as ev
from waypost.testing.memory_log import MemoryLog
from waypost.testing.memory_run import MemoryRun

MAIL = b"From: ann@example.com\r\nMessage-ID: <1@x>\r\nSubject: 7\r\n\r\nplease\r\n"


class Paid(msgspec.Struct):
    """A payload."""

    amount: int


def begun(body: Callable[[], Any]) -> MemoryRun:
    """A run that has gone on as far as it can by itself."""
    flow = Workflow("orders", address="orders@example.com")
    flow.run(body)
    log = MemoryLog()
    log.start(MAIL)
    run = MemoryRun(flow, log)
    run.settle()
    return run


def result(run: MemoryRun) -> object:
    """What it came to, after a replay of all but its end has come to the same."""
    end = run.log.events[-1]
    assert isinstance(end, ev.RunCompleted), run.log.events
    before = MemoryLog()
    before.blobs = run.log.blobs
    before.append(msgspec.structs.replace(event, seq=0, at="", prev="") for event in run.log.events[:-1])
    again = MemoryRun(run.workflow, before)
    again.settle()
    assert not again.pauses
    last = before.events[-1]
    assert isinstance(last, ev.RunCompleted)
    assert last.result == end.result
    return msgspec.json.decode(end.result.inline)  # type: ignore[arg-type]  # small in these tests


def test_a_signal_that_is_waited_for_comes_with_its_type() -> None:
    """As a step's result does."""

    async def body() -> int:
        return (await signal("paid", Paid)).amount

    run = begun(body)
    run.log.signal("paid", b'{"amount":420}')
    run.settle()
    assert result(run) == 420


def test_signals_that_come_first_are_taken_in_their_order() -> None:
    """Nobody waits yet; nothing is lost."""

    async def body() -> list[int]:
        await sleep("1h")
        return [await signal("paid"), await signal("other"), await signal("paid")]

    run = begun(body)
    for name, value in (("paid", b"1"), ("paid", b"2"), ("other", b"3")):
        run.log.signal(name, value)
    run.settle()
    run.log.fire()
    run.settle()
    assert result(run) == [1, 3, 2]


def test_of_two_that_wait_the_first_has_the_first() -> None:
    """By the order in which they began to wait."""

    async def body() -> list[int]:
        return list(await asyncio.gather(signal("paid"), signal("paid")))

    run = begun(body)
    run.log.signal("paid", b"1")
    run.log.signal("paid", b"2")
    run.settle()
    assert result(run) == [1, 2]


def test_a_payload_of_another_type_is_raised_and_the_next_may_fit() -> None:
    """The workflow decides what becomes of it; a bad payload ends nothing by itself."""

    async def body() -> list[Any]:
        try:
            return [await signal("paid", Paid)]
        except BadSignal as bad:
            return [bad.name, "$.amount" in bad.why, (await signal("paid", Paid)).amount]

    run = begun(body)
    run.log.signal("paid", b'{"amount":"much"}')
    run.log.signal("paid", b'{"amount":1}')
    run.settle()
    assert result(run) == ["paid", True, 1]


def test_a_deadline_passes_and_the_signal_that_comes_after_it_is_kept() -> None:
    """One of the two closes the wait, by the log's order."""

    async def body() -> list[Any]:
        try:
            await signal("paid", timeout="1h")
        except DeadlinePassed as late:
            return [late.waited_for, await signal("paid")]
        return []

    run = begun(body)
    run.log.fire()
    run.log.signal("paid", b"1")
    run.settle()
    assert result(run) == ["signal paid", 1]


def test_a_signal_whose_wait_was_given_up_goes_to_the_next() -> None:
    """It was recorded for a wait that the code has left in the same moment."""

    async def body() -> int:
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(signal("paid"), 60)
        value: int = await signal("paid")
        return value

    run = begun(body)
    run.log.now += 60_000
    timer = next(iter(run.log.ledger.timers))
    fired = ev.TimerFired(call=run.log.ledger.timers[timer].call, timer=timer)
    run.log.append([fired])
    run.log.signal("paid", b"5")
    run.settle()
    assert result(run) == 5


def test_a_large_payload_is_fetched() -> None:
    """It lies beside the log."""
    import hashlib

    raw = b'"' + b"x" * 70_000 + b'"'

    async def body() -> int:
        return len(await signal("paid", str))

    run = begun(body)
    name = hashlib.sha256(raw).hexdigest()
    run.log.blobs[name] = raw
    call = next(iter(run.log.ledger.waits))
    run.log.append([ev.SignalReceived(call=call, signal="s", name="paid", payload=ev.Value(blob=name))])
    run.settle()
    assert result(run) == 70_000


def test_what_cannot_be_waited_for_is_said_at_the_call() -> None:
    """Not when the signal comes, a week later."""
    raised: list[str] = []

    async def body() -> None:
        for bad in (lambda: signal(""), lambda: signal("a\nb"), lambda: signal("x", of=object)):
            try:
                await bad()
            except (Invalid, ValueNotStorable) as error:
                raised.append(type(error).__name__)

    begun(body)
    assert raised == ["Invalid", "Invalid", "ValueNotStorable"]


def test_code_that_waits_for_another_signal_is_told_apart_from_what_was_recorded() -> None:
    """A rename must not answer the wrong wait."""

    async def before() -> None:
        await signal("paid")

    async def after() -> None:
        await signal("settled")

    run = begun(before)
    changed = Workflow("orders", address="orders@example.com")
    changed.run(after)
    run.log.resume()
    again = MemoryRun(changed, run.log)
    again.settle()
    assert len(again.pauses) == 1
    assert "signal('paid')" in again.pauses[0]
    assert "signal('settled')" in again.pauses[0]

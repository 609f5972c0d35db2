"""A run's drive against a log that keeps the real rules: steps, retries, waits, mail, pauses, crashes."""

import asyncio
from collections.abc import Callable
from typing import Any

import pytest

from waypost import (
    DeadlinePassed,
    Invalid,
    Mail,
    StepError,
    Workflow,
    approve,
    idempotency_key,
    progress,
    receive,
    send,
    sleep,
)
from waypost.child import effects as fx
from waypost.child.errors import HostBroke
from waypost.child.phase import Phase
from waypost.model import events as ev
from waypost.model.ids import CallId
from waypost.model.run import Parked
from waypost.testing import cases
from waypost.testing.memory_log import MemoryLog
from waypost.testing.memory_run import MemoryRun

MAIL = b"From: ann@example.com\r\nMessage-ID: <1@x>\r\nSubject: 7\r\n\r\nplease\r\n"
REPLY = b"From: ann@example.com\r\nMessage-ID: <2@x>\r\nSubject: 8\r\n\r\nmore\r\n"


class Declined(Exception):
    """An answer that is raised."""


def a_workflow(run: Callable[..., Any]) -> Workflow:
    """A workflow of one function, which calls steps of this module."""
    flow = Workflow("orders", address="orders@example.com", mail_to=["boss@example.com"])
    flow.run(run)
    return flow


def begun(flow: Workflow) -> MemoryRun:
    """A run that has just been started, and has gone on as far as it can by itself."""
    log = MemoryLog()
    log.start(MAIL)
    run = MemoryRun(flow, log)
    run.settle()
    return run


def resumed(run: MemoryRun, flow: Workflow | None = None) -> MemoryRun:
    """The same run in a new child, with the same code or other."""
    run.log.resume()
    again = MemoryRun(flow or run.workflow, run.log, done=run.done)
    again.settle()
    return again


def kinds(run: MemoryRun) -> list[str]:
    """The log as names."""
    return [ev.kind(event) for event in run.log.events]


def result(run: MemoryRun) -> object:
    """What the run came to."""
    last = run.log.events[-1]
    match last:
        case ev.RunCompleted():
            return run.workflow.result.load(last.result.inline)  # type: ignore[arg-type]  # small in these tests
        case ev.RunFailed():
            return f"{last.error.type}: {last.error.message}"
        case _:
            return ev.kind(last)


orders = Workflow("orders", address="orders@example.com", mail_to=["boss@example.com"])


@orders.step
def read(mail: Mail) -> int:
    """The number in the subject."""
    progress("reading")
    return int(mail.subject)


@orders.step
def key_of(what: str) -> str:
    """Its own idempotency key."""
    return f"{what} {idempotency_key()}"


@orders.step(retries=2, raises=(Declined,))
def shaky(x: int) -> int:
    """Raises as the test says."""
    fault = FAULTS.pop(0) if FAULTS else None
    if fault is not None:
        raise fault
    return x


@orders.step
def large(size: int) -> str:
    """A value over the inline limit."""
    return "x" * size


FAULTS: list[BaseException] = []


def test_a_step_is_recorded_before_it_runs_and_its_result_before_the_code_sees_it() -> None:
    """The order of the log is the order of the promises."""

    async def order(mail: Mail) -> int:
        return await read(mail) + 1

    run = begun(a_workflow(order))
    assert kinds(run) == ["RunStarted", "StepStarted", "StepCompleted", "RunCompleted"]
    assert result(run) == 8
    assert run.progress == ["reading"]
    assert run.drive.phase is Phase.LEFT


def test_a_step_in_flight_at_a_crash_is_run_again_with_the_same_attempt_and_key() -> None:
    """At least once, and recognisable: the log gets no second StepStarted."""

    async def order(mail: Mail) -> str:
        return await key_of("pay")

    log = MemoryLog()
    log.start(MAIL)
    first = MemoryRun(a_workflow(order), log)
    assert not first.settle(events=2)
    first.drive.appended((log.events[1],), None, "")  # answered, the body began, then the crash
    assert [type(effect).__name__ for effect in first.drive.effects()][-1] == "Body"

    second = resumed(first)
    assert kinds(second) == ["RunStarted", "StepStarted", "RunResumed", "StepCompleted", "RunCompleted"]
    (done,) = second.done
    assert done[1] == 1
    assert done[2] in str(result(second))


def test_keys_differ_between_calls_and_not_between_tries() -> None:
    """Two payments of one run must not pass for one."""

    async def order(mail: Mail) -> None:
        await asyncio.gather(key_of("a"), key_of("a"), shaky(1))

    FAULTS[:] = [ValueError("once")]
    run = begun(a_workflow(order))
    run.log.fire()
    run.settle()
    by_step = {(name, attempt): key for name, attempt, key in run.done}
    assert len({key for _, _, key in run.done}) == 3
    assert by_step["shaky", 1] == by_step["shaky", 2]


def test_a_retry_is_a_timer_and_a_further_attempt() -> None:
    """The back-off survives a crash because it is in the log; it is recorded with the failure, in one batch."""

    async def order(mail: Mail) -> int:
        return await shaky(5)

    FAULTS[:] = [ValueError("one"), ValueError("two")]
    run = begun(a_workflow(order))
    assert kinds(run)[1:] == ["StepStarted", "StepFailed", "TimerSet", "AttemptScheduled"]
    run = resumed(run)
    assert kinds(run)[-1] == "RunResumed"
    delays = []
    while not run.log.ended:
        delays.append(next(e.delay for e in reversed(run.log.events) if isinstance(e, ev.TimerSet)))
        run.log.fire()
        run.settle()
    assert result(run) == 5
    assert delays == [0.02, 0.04]
    assert [e.attempt for e in run.log.events if isinstance(e, ev.StepStarted)] == [1, 2, 3]


def test_retries_exhausted_are_a_step_error_with_what_was_recorded() -> None:
    """The workflow may handle it; if it doesn't, the run fails and names the step."""

    async def order(mail: Mail) -> str:
        try:
            return str(await shaky(5))
        except StepError as failure:
            return f"{failure.step} {failure.type} {failure.reason} {'raise fault' in failure.traceback}"

    async def careless(mail: Mail) -> int:
        return await shaky(5)

    for function, expected in ((order, "shaky ValueError no True"), (careless, "ValueError: no")):
        FAULTS[:] = [ValueError("no")] * 3
        run = begun(a_workflow(function))
        for _ in range(2):
            run.log.fire()
            run.settle()
        assert result(run) == expected
        last = run.log.events[-1]
        assert not isinstance(last, ev.RunFailed) or last.error.step == "shaky"


def test_a_declared_exception_is_an_answer() -> None:
    """It isn't retried, and arrives as itself, live and in replay."""
    seen: list[BaseException] = []

    async def order(mail: Mail) -> str:
        try:
            await shaky(5)
        except Declined as answer:
            seen.append(answer)
            await sleep(1)
            return f"declined {answer.args}"
        return "paid"

    FAULTS[:] = [Declined("too much", 7)]
    run = resumed(begun(a_workflow(order)))
    run.log.fire()
    run.settle()
    assert result(run) == "declined ('too much', 7)"
    assert [answer.args for answer in seen] == [("too much", 7)] * 2
    assert seen[0] is not seen[1]


def test_system_exit_in_a_step_is_a_failed_step_and_in_a_workflow_a_failed_run() -> None:
    """Neither may end the child, in which other runs live."""

    async def order(mail: Mail) -> None:
        await shaky(1)

    async def leaves(mail: Mail) -> None:
        raise SystemExit(3)

    FAULTS[:] = [SystemExit(2)] * 3
    run = begun(a_workflow(order))
    for _ in range(2):
        run.log.fire()
        run.settle()
    assert result(run) == "SystemExit: 2"
    assert result(begun(a_workflow(leaves))) == "SystemExit: 3"


def test_a_large_value_goes_by_blob_and_comes_back_in_replay() -> None:
    """An event names it by hash; the log stays small."""
    seen: list[int] = []

    async def order(mail: Mail) -> str:
        value = await large(100_000)
        seen.append(len(value))
        await sleep(1)
        return value

    run = begun(a_workflow(order))
    completed = next(e for e in run.log.events if isinstance(e, ev.StepCompleted))
    assert completed.output.blob in run.log.blobs
    run = resumed(run)
    run.log.fire()
    run.settle()
    assert seen == [100_000, 100_000]
    end = run.log.events[-1]
    assert isinstance(end, ev.RunCompleted)
    assert end.result.blob == completed.output.blob


class AllAtOnce(MemoryRun):
    """Its steps end together, before anything is done with what they gave."""

    kept = 0

    def _some_body_ends(self) -> None:
        bodies, self._bodies = self._bodies, []
        for body in bodies:
            self._body(body)

    def _perform(self, effect: fx.Effect) -> None:
        self.kept += isinstance(effect, fx.Keep)
        super()._perform(effect)


def test_a_large_value_that_two_calls_bring_is_stored_once() -> None:
    """A second copy would be named by no event, and so weigh on the child's quota until its run has ended."""

    async def order(mail: Mail) -> int:
        return sum(map(len, await asyncio.gather(large(100_000), large(100_000), large(100_001))))

    log = MemoryLog()
    log.start(MAIL)
    run = AllAtOnce(a_workflow(order), log)
    run.settle()
    assert result(run) == 300_001
    assert run.kept == 2


def test_a_run_that_waits_is_parked_and_says_up_to_where_it_has_seen() -> None:
    """Whether a run is parked must follow from the log alone."""

    async def order(mail: Mail) -> str:
        more = await receive(timeout="3d")
        return f"{mail.subject}{more.subject}"

    run = begun(a_workflow(order))
    assert isinstance(run.log.state, Parked)
    run = resumed(run)
    run.log.answer(REPLY)
    run.settle()
    assert result(run) == "78"


def test_a_deadline_that_passes_is_raised_where_the_code_waits() -> None:
    """For the next mail as for a person."""

    async def order(mail: Mail) -> str:
        try:
            await receive(timeout=60)
        except DeadlinePassed as late:
            return str(late)
        return "answered"

    run = begun(a_workflow(order))
    run.log.fire()
    run.settle()
    assert result(run) == "the deadline has passed: the run's next mail"


def test_a_decision_that_does_not_come_in_time_is_none_and_raised() -> None:
    """Nobody said yes: a workflow that forgets the deadline must fail, and never pay."""

    async def order(mail: Mail) -> str:
        verdict = await approve("Pay 7?", who=["boss@example.com"], deadline="3d")
        return f"paid: {verdict}"

    run = begun(a_workflow(order))
    awaited = run.log.events[-1]
    assert isinstance(awaited, ev.SignalAwaited)
    assert awaited.timeout == 3 * 86_400
    run.log.fire()
    run.settle()
    assert result(run) == "DeadlinePassed: the deadline has passed: Pay 7?"


@pytest.mark.parametrize("approved", [True, False])
def test_an_approval_is_a_mail_and_a_wait_for_its_answer(approved: bool) -> None:  # noqa: FBT001 - a parameter of the table
    """The request is in the log before the wait names it."""

    async def order(mail: Mail) -> str:
        verdict = await approve("Pay 7?", who=["boss@example.com"], deadline="3d")
        return f"{verdict.approved} {verdict.by} {verdict.text} {verdict.via}"

    run = begun(a_workflow(order))
    assert kinds(run)[1:] == ["MailQueued", "SignalAwaited"]
    queued, awaited = run.log.events[1:]
    assert isinstance(queued, ev.MailQueued)
    assert isinstance(awaited, ev.SignalAwaited)
    assert (awaited.request, awaited.title, awaited.who) == (queued.message_id, "Pay 7?", ("boss@example.com",))
    assert (queued.call, awaited.call) == ("r1#1", "r1#2")
    run = resumed(run)
    run.log.decide(approved=approved, text="well")
    run.settle()
    assert result(run) == f"{approved} boss@example.com well mail"


def test_a_mail_whose_refusal_is_recorded_is_raised_at_the_call() -> None:
    """The host has the last word on whom a run may write to."""

    async def order(mail: Mail) -> None:
        await send(to="stranger@example.com", subject="hello", text="there")

    log = MemoryLog()
    log.start(MAIL)
    run = MemoryRun(a_workflow(order), log)
    run.drive.effects()
    log.append([ev.MailFailed(call=CallId("r1#1"), reason="stranger@example.com isn't among the grants")])
    run.settle()
    assert "stranger@example.com isn't among the grants" in str(result(run))


def test_a_timeout_that_is_left_in_time_is_cancelled_in_the_log() -> None:
    """Else every finished timeout would wake somebody later."""

    async def order(mail: Mail) -> int:
        async with asyncio.timeout(60):
            return await read(mail)

    run = begun(a_workflow(order))
    assert kinds(run)[1:] == ["TimerSet", "StepStarted", "StepCompleted", "TimerCancelled", "RunCompleted"]


def test_a_timeout_around_receive_gives_the_wait_up_and_loses_no_mail() -> None:
    """A mail that crosses the giving-up goes to the next receive()."""

    async def order(mail: Mail) -> str:
        try:
            async with asyncio.timeout(60):
                await receive()
        except TimeoutError:
            pass
        return (await receive()).subject

    run = begun(a_workflow(order))
    run.log.fire()  # the timeout fires; before the child hears of it, the mail is taken up by the old wait
    run.log.answer(REPLY)
    run.settle()
    assert result(run) == "8"
    assert "RunCompleted" in kinds(run)


async def _reads_in_time(mail: Mail) -> str:
    try:
        async with asyncio.timeout(1):
            await read(mail)
    except TimeoutError:
        pass
    return (await receive()).subject


def _cut_in_the_step(function: Callable[..., Any]) -> MemoryRun:
    """The child dies in a step's body, and the time is up before the next one is there."""
    log = MemoryLog()
    log.start(MAIL)
    run = MemoryRun(a_workflow(function), log)
    run.settle(events=3)
    assert kinds(run)[1:] == ["TimerSet", "StepStarted"]
    log.fire()
    return resumed(run)


def test_a_step_that_nobody_awaits_any_more_comes_to_its_end_in_the_next_child_too() -> None:
    """Else it would be under way for ever: its run never rests, and a drain waits for it."""
    run = _cut_in_the_step(_reads_in_time)
    assert kinds(run)[-1] == "CodeRested"
    assert sorted(kinds(run)[5:-1]) == ["SignalAwaited", "StepCompleted"]
    assert isinstance(run.log.state, Parked)
    run.log.answer(REPLY)
    run.settle()
    assert result(run) == "8"
    again = MemoryRun(run.workflow, run.log, done=run.done)
    assert again.settle()
    assert not again.pauses
    assert len(run.done) == 1


def test_a_step_that_nobody_awaits_does_not_begin_again_in_a_run_that_is_over() -> None:
    """What it did would be nobody's."""

    async def order(mail: Mail) -> str:
        try:
            async with asyncio.timeout(1):
                await read(mail)
        except TimeoutError:
            pass
        return "late"

    run = _cut_in_the_step(order)
    assert kinds(run)[-1] == "RunCompleted"
    assert run.done == []


def test_an_answered_wait_that_nobody_reads_is_named_in_the_end() -> None:
    """A mail that was consumed and never looked at must not vanish in silence."""

    async def order(mail: Mail) -> str:
        try:
            async with asyncio.timeout(60):
                await receive()
        except TimeoutError:
            await sleep(1)
        return "done"

    run = begun(a_workflow(order))
    run.log.fire()
    run.log.answer(REPLY)
    run.settle()
    run.log.fire()
    run.settle()
    last = run.log.events[-1]
    assert isinstance(last, ev.RunCompleted)
    assert last.unread == ("r1#2",)


def test_code_that_does_something_else_pauses_the_run_with_both_sides() -> None:
    """Never failed, never tried again in a loop: a person decides."""

    async def order(mail: Mail) -> int:
        return await read(mail)

    async def changed(mail: Mail) -> str:
        return await key_of("pay")

    log = MemoryLog()
    log.start(MAIL)
    run = MemoryRun(a_workflow(order), log)
    run.settle(events=3)
    run = resumed(run, a_workflow(changed))
    assert kinds(run)[-1] == "RunPaused"
    (text,) = run.pauses
    assert "at r1#1 the log has step read" in text
    assert "the code now does step key_of" in text
    assert run.drive.phase is Phase.LEFT


def test_other_arguments_are_a_mismatch() -> None:
    """random() and time() in a workflow's body show here."""
    count = iter((1, 2))

    async def order(mail: Mail) -> None:
        await shaky(next(count))
        await sleep(1)

    run = resumed(begun(a_workflow(order)))
    assert "arguments" in run.pauses[0]


def test_a_step_that_is_no_longer_called_is_a_mismatch() -> None:
    """The log tells of a call that the code doesn't make."""

    async def order(mail: Mail) -> None:
        await read(mail)
        await sleep(1)
        await sleep(1)

    async def changed(mail: Mail) -> None:
        await read(mail)

    run = begun(a_workflow(order))
    run = resumed(run, a_workflow(changed))
    assert run.pauses == ["at r1#2 the log has a sleep or timeout, the code now does nothing"]


def test_code_that_raises_where_the_log_has_a_call_is_a_mismatch_that_says_so() -> None:
    """What is to be mended is what it raises."""

    async def order(mail: Mail) -> None:
        await sleep(1)

    async def changed(mail: Mail) -> None:
        raise ValueError("no desk")

    run = resumed(begun(a_workflow(order)), a_workflow(changed))
    (pause,) = run.pauses
    assert pause.endswith("the code now does nothing there, as it raises ValueError: no desk")


def test_a_result_that_its_annotation_no_longer_fits_is_a_mismatch() -> None:
    """The recorded value can't be given to the code as it is now."""
    flow = Workflow("orders", address="orders@example.com")

    def total() -> int:
        return 3

    total_step = flow.step(total)

    async def order(mail: Mail) -> None:
        await total_step()
        await sleep(1)

    flow.run(order)
    run = begun(flow)
    changed = Workflow("orders", address="orders@example.com")
    total.__annotations__["return"] = list[int]
    total_step = changed.step(total)
    changed.run(order)
    run = resumed(run, changed)
    assert "another return annotation" in run.pauses[0]


def test_what_the_code_adds_at_its_end_is_appended_when_the_run_is_live_again() -> None:
    """A longer program is no mismatch: the log so far fits it."""

    async def order(mail: Mail) -> int:
        await sleep(1)
        return 1

    async def longer(mail: Mail) -> int:
        await sleep(1)
        return await read(mail)

    run = resumed(begun(a_workflow(order)), a_workflow(longer))
    run.log.fire()
    run.settle()
    assert result(run) == 7


def test_a_paused_run_records_what_was_under_way_and_begins_nothing() -> None:
    """An operator's pause; what the code asked for meanwhile is proposed when it ends."""

    async def order(mail: Mail) -> int:
        first = await read(mail)
        return first + await shaky(1)

    log = MemoryLog()
    log.start(MAIL)
    run = MemoryRun(a_workflow(order), log)
    run.settle(events=2)
    log.append([ev.RunPaused(code="operator", detail="wait")])
    run.settle()
    run.drive.appended((log.events[1],), None, "")
    run.settle()
    assert kinds(run) == ["RunStarted", "StepStarted", "RunPaused", "StepCompleted"]
    log.append([ev.RunUnpaused(by="op")])
    run.settle()
    assert result(run) == 8


def test_a_workflow_that_waits_for_what_nothing_brings_fails_in_words() -> None:
    """Stuck is impossible to hide."""

    async def order(mail: Mail) -> None:
        await asyncio.get_running_loop().create_future()

    assert "can't be replayed" in str(result(begun(a_workflow(order))))


def test_a_result_that_cannot_be_stored_fails_the_run_with_its_path() -> None:
    """Of the run as of a step."""

    async def order(mail: Mail) -> Any:
        return {"x": object()}

    assert result(begun(a_workflow(order))) == "ValueNotStorable: $['x']: a object has no JSON form"


def test_a_gap_in_the_log_is_the_hosts_fault() -> None:
    """The child can't guess what is missing."""

    async def order(mail: Mail) -> None:
        await sleep(1)

    run = begun(a_workflow(order))
    run.log.fire()
    with pytest.raises(HostBroke, match="came after"):
        run.drive.committed(run.log.events[-1:] * 2)


# --- durable_scenarios.jsonl: the child's side ----------------------------------------------------------------------


def _two_waiters() -> None:
    async def order(mail: Mail) -> str:
        first, second = asyncio.create_task(one("A")), asyncio.create_task(one("B"))
        done, _ = await asyncio.wait({first, second}, return_when=asyncio.FIRST_COMPLETED)
        return "".join(task.result() for task in done)

    async def one(name: str) -> str:
        await receive()
        return name

    run = begun(a_workflow(order))
    run.log.answer(REPLY)
    run.settle()
    assert result(run) == "A"


def _timeout_wins() -> None:
    async def order(mail: Mail) -> str:
        try:
            await receive(timeout=60)
        except DeadlinePassed:
            return "timeout"
        return "mail"

    for first, expected in (("fire", "timeout"), ("answer", "mail")):
        run = begun(a_workflow(order))
        run.log.fire() if first == "fire" else run.log.answer(REPLY)
        run.settle()
        assert result(run) == expected


def _parks_stay() -> None:
    async def order(mail: Mail) -> list[bool]:
        both = await asyncio.gather(approve("a?", who="boss@example.com"), approve("b?", who="boss@example.com"))
        return [verdict.approved for verdict in both]

    run = begun(a_workflow(order))
    run.log.decide(approved=True)
    run.settle()
    run = resumed(run)
    assert kinds(run).count("SignalAwaited") == 2
    run.log.decide(approved=False)
    run.settle()
    assert result(run) == [True, False]


def _timer_kept() -> None:
    async def order(mail: Mail) -> None:
        await sleep("1h")

    run = begun(a_workflow(order))
    began = run.log.now
    run.log.now += 30 * 60 * 1000
    run = resumed(run)
    run.log.fire()
    assert run.log.now == began + 3600 * 1000
    run.settle()
    assert kinds(run) == ["RunStarted", "TimerSet", "RunResumed", "TimerFired", "RunCompleted"]


def _odd_timers() -> None:
    async def order(mail: Mail) -> list[str]:
        await sleep(0)
        refused = []
        for duration in (-1, float("nan"), 1e18):
            try:
                await sleep(duration)
            except Invalid:
                refused.append(str(duration))
        return refused

    run = begun(a_workflow(order))
    run.log.fire()
    run.settle()
    assert result(run) == ["-1", "nan", "1e+18"]


def _adopted() -> None:
    test_a_step_in_flight_at_a_crash_is_run_again_with_the_same_attempt_and_key()


def _not_retried() -> None:
    test_a_declared_exception_is_an_answer()


def _order_changed() -> None:
    async def order(mail: Mail) -> None:
        await read(mail)
        await key_of("b")
        await sleep(1)

    async def swapped(mail: Mail) -> None:
        await key_of("b")
        await read(mail)
        await sleep(1)

    assert "step read" in resumed(begun(a_workflow(order)), a_workflow(swapped)).pauses[0]


def _random_detected() -> None:
    test_other_arguments_are_a_mismatch()


def _one_end() -> None:
    async def order(mail: Mail) -> int:
        return await read(mail)

    log = MemoryLog()
    log.start(MAIL)
    run = MemoryRun(a_workflow(order), log)
    run.settle(events=3)
    log.append([ev.RunFailed(error=ev.Fault(type="Killed", message="by the host"))])
    run.settle()
    assert kinds(run)[-1] == "RunFailed"
    assert run.drive.phase is Phase.LEFT


def _no_retry() -> None:
    async def order(mail: Mail) -> None:
        FAULTS.extend([OSError("no route")] * 3)
        await shaky(1)

    FAULTS.clear()
    run = begun(a_workflow(order))
    FAULTS.clear()
    run.log.cancel()
    run.settle()
    assert kinds(run)[-1] == "RunCancelled"
    assert kinds(run).count("StepStarted") == 1


HERE: dict[str, Callable[[], None]] = {
    "cancel during retry back-off": _no_retry,
    "two waiters one signal": _two_waiters,
    "signal and timeout at the same moment": _timeout_wins,
    "two parks in one step, one answered": _parks_stay,
    "timer after restart": _timer_kept,
    "timer 0 / negative / NaN / huge": _odd_timers,
    "step retried after crash": _adopted,
    "error type that must not be retried": _not_retried,
    "changed code, order only": _order_changed,
    "random/time in the body": _random_detected,
    "two terminal events": _one_end,
}

HOST = "decided by the host: a wait is answered by TakeUp, and the fold refuses a second answer"
CLOCK = "a matter of the host's clock and scheduler"
ELSEWHERE = {
    "signal before wait": HOST,
    "duplicate signal id": HOST,
    "signal lost on hand-over to a new run": HOST,
    "approval twice: yes then no": HOST,
    "approval by mail reply delivered twice": HOST,
    "approval after the park timed out": HOST,
    "timer already due at start": CLOCK,
    "timer cancelled at the deadline": CLOCK,
    "wall clock back over the deadline": CLOCK,
    "missed ticks after process suspension (SIGSTOP)": CLOCK,
    "two schedulers": CLOCK,
    "cron in DST gap / fold": CLOCK,
    "cancel twice / by two origins": HOST,
    "cleanup hangs on cancel": CLOCK,
    "zombie run": "the supervisor's",
    "event bytes changed / event deleted": "the substrate's",
    "history 100,000 events": "a benchmark, not a timed test",
    "run id from hostile address": "run ids are made by the substrate from an ordinal and random bytes",
}


@pytest.mark.parametrize("name", sorted(HERE))
def test_durable_scenarios_have_their_right_outcome(name: str) -> None:
    """Each row of the collection that the child decides."""
    HERE[name]()


def test_every_scenario_has_a_handler_or_a_reason() -> None:
    """A row that is added must be looked at."""
    if not cases.available():
        pytest.skip(cases.MISSING)
    assert {row["name"] for row in cases.rows("durable_scenarios.jsonl")} == HERE.keys() | ELSEWHERE.keys()

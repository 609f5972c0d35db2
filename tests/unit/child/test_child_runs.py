"""A run that starts child runs, and a run that is one, against a log that keeps the real rules."""

import asyncio
import hashlib
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from waypost import ChildFailed, ChildRefused, Mail, Workflow, receive
from waypost.authoring.requests import CallChild
from waypost.child import effects as fx
from waypost.child.errors import HostBroke
from waypost.child.phase import Phase
from waypost.model import events as ev
from waypost.model.child_events import ChildOutcome, Parent
from waypost.model.child_mail import Spawner, child_mail
from waypost.model.ids import CallId, RunId
from waypost.model.limits import DEFAULT
from waypost.model.run import Driven, Parked
from waypost.testing.memory_log import MemoryLog
from waypost.testing.memory_run import MemoryRun

MAIL = b"From: ann@example.com\r\nMessage-ID: <1@x>\r\nSubject: 7\r\n\r\nplease\r\n"
REPLY = b"From: ann@example.com\r\nMessage-ID: <2@x>\r\nSubject: 8\r\n\r\nmore\r\n"
PARENT = RunId("run_0_0011223344556677")


class Line(msgspec.Struct):
    """What a child is given."""

    item: str
    amount: int


class Receipt(msgspec.Struct):
    """What it gives back."""

    text: str


flow = Workflow("orders", address="orders@example.com")


@flow.step
def key(what: str) -> str:
    """A step of the child's."""
    return what


@flow.child
async def pay(line: Line) -> Receipt:
    """A child that works and waits."""
    done = await key(line.item)
    return Receipt(f"{done} for {line.amount}")


@flow.child
def stop(why: str) -> str:
    """A `def` child."""
    raise ValueError(why)


def a_workflow(run: Callable[..., Any], *children: Any) -> Workflow:
    """A workflow of one function, which calls children of this module."""
    made = Workflow("orders", address="orders@example.com")
    made.run(run)
    for child in children:
        made.child(child.function)
    return made


def begun(run: Callable[..., Any]) -> MemoryRun:
    """A run that has been started, and has gone on as far as it can by itself."""
    log = MemoryLog()
    log.start(MAIL)
    made = MemoryRun(a_workflow(run), log)
    made.settle()
    return made


def resumed(run: MemoryRun, function: Callable[..., Any] | None = None) -> MemoryRun:
    """The same run in a new child process."""
    run.abandon()
    run.log.resume()
    again = MemoryRun(run.workflow if function is None else a_workflow(function), run.log)
    again.settle()
    return again


def kinds(run: MemoryRun) -> list[str]:
    """The log as names."""
    return [ev.kind(event) for event in run.log.events]


def ended(run: MemoryRun, call: str, result: bytes) -> None:
    """A child run of this call completes."""
    run.log.child_ended(CallId(call), result=result)
    run.settle()


def last(run: MemoryRun) -> str:
    """How the run ended, or what its log ends with."""
    event = run.log.events[-1]
    match event:
        case ev.RunCompleted():
            return bytes(event.result.inline or b"").decode()
        case ev.RunFailed():
            return f"{event.error.type}: {event.error.message}"
        case _:
            return ev.kind(event)


# --- the parent ----------------------------------------------------------------------------------------------------


async def _pays(mail: Mail) -> str:
    return (await pay(Line("desk", 3))).text


def test_a_call_is_one_child_run_and_gives_what_it_returned() -> None:
    """Recorded before it is awaited; a new process asks for no second one."""
    run = begun(_pays)
    assert kinds(run) == ["RunStarted", "ChildSpawned"]
    assert isinstance(run.log.state, Parked)
    run = resumed(run)
    assert kinds(run) == ["RunStarted", "ChildSpawned", "RunResumed"]
    ended(run, "r1#1", b'{"text":"paid"}')
    assert (last(run), kinds(run)[-2:]) == ('"paid"', ["ChildCompleted", "RunCompleted"])


def test_a_finished_parent_replays_from_its_own_log() -> None:
    """It needs nothing of the child: the result is in its log."""
    run = begun(_pays)
    ended(run, "r1#1", b'{"text":"paid"}')
    again = MemoryRun(run.workflow, run.log)
    again.settle()
    assert not again.pauses
    assert again.drive.phase is Phase.LEFT


def test_a_large_result_comes_by_its_hash() -> None:
    """A blob of the parent's own: its event names it."""
    text = "x" * DEFAULT.inline
    run = begun(_pays)
    ended(run, "r1#1", msgspec.json.encode(Receipt(text)))
    end = run.log.events[-1]
    assert isinstance(end, ev.RunCompleted)
    assert msgspec.json.decode(run.log.blobs[str(end.result.blob)]) == text


@pytest.mark.parametrize(
    ("outcome", "error", "said"),
    [
        ("failed", ev.Fault(type="ValueError", message="no"), "failed ValueError no"),
        ("cancelled", ev.Fault(type="RunCancelled", message="an operator"), "cancelled RunCancelled an operator"),
    ],
)
def test_a_child_without_a_result_is_an_error_that_says_which(
    outcome: ChildOutcome, error: ev.Fault, said: str
) -> None:
    """Live and in replay the same, with the id under which `waypost show` finds it."""

    async def main(mail: Mail) -> str:
        try:
            await pay(Line("desk", 3))
        except ChildFailed as failed:
            await receive()
            return f"{failed.run} {failed.workflow} {failed.outcome} {failed.type} {failed.reason}"
        return "?"

    run = begun(main)
    spawned = run.log.events[1]
    assert isinstance(spawned, ev.ChildSpawned)
    run.log.child_ended(outcome=outcome, error=error)
    run.settle()
    run = resumed(run)
    run.log.answer(REPLY)
    run.settle()
    assert last(run) == f'"{spawned.child} pay {said}"'


def test_a_failed_child_that_nobody_handles_fails_its_parent() -> None:
    """And the parent's end says whose fault it was."""
    run = begun(_pays)
    run.log.child_ended(error=ev.Fault(type="ValueError", message="no"))
    run.settle()
    assert last(run).startswith("ChildFailed: child pay (run_")
    assert last(run).endswith(") failed: ValueError: no")


def test_a_refused_child_is_an_error_with_the_rule_that_it_broke() -> None:
    """Too many, too deep, no grant: an event says so, and the code may go on."""

    async def main(mail: Mail) -> str:
        try:
            await pay(Line("desk", 3))
        except ChildRefused as refused:
            return f"{refused.workflow}: {refused.reason}"
        return "?"

    log = MemoryLog()
    log.start(MAIL)
    run = MemoryRun(a_workflow(main), log)
    (ask,) = (effect for effect in run.drive.effects() if isinstance(effect, fx.Ask))
    assert isinstance(ask.request, CallChild)
    log.refuse_child(ask.call, "pay", "256 of its child runs haven't ended")
    run.drive.answered(ask.call, ask.request, None)
    run.settle()
    assert last(run) == '"pay: 256 of its child runs haven\'t ended"'


def test_a_request_that_leaves_no_event_fails_the_run() -> None:
    """As with a mail: nothing in the log says what became of the call."""
    log = MemoryLog()
    log.start(MAIL)
    run = MemoryRun(a_workflow(_pays), log)
    (ask,) = (effect for effect in run.drive.effects() if isinstance(effect, fx.Ask))
    run.drive.answered(ask.call, ask.request, "it holds the secret shop")
    run.settle()
    assert last(run) == "ChildRefused: child pay was not started: it holds the secret shop"


# --- fan-out -------------------------------------------------------------------------------------------------------


async def _pays_three(mail: Mail) -> str:
    receipts = await asyncio.gather(*(pay(Line(item, 1)) for item in "abc"))
    return " ".join(each.text for each in receipts)


def test_of_several_only_the_last_says_that_the_code_rests() -> None:
    """Each is a commit of its own: after a crash between two of them the rest must still be asked for."""
    log = MemoryLog()
    log.start(MAIL)
    run = MemoryRun(a_workflow(_pays_three), log)
    assert not run.settle(events=3)
    assert isinstance(log.state, Driven)
    run = resumed(run)
    assert kinds(run) == ["RunStarted", "ChildSpawned", "ChildSpawned", "RunResumed", "ChildSpawned"]
    assert isinstance(log.state, Parked)
    assert [event.seen for event in log.events if isinstance(event, ev.ChildSpawned)] == [0, 0, 4]


def test_a_parent_rests_between_the_ends_of_its_children() -> None:
    """Else it would count as driven until the last one has ended: a drain would wait for it, an exit blame it."""
    run = begun(_pays_three)
    ended(run, "r1.2#1", b'{"text":"B"}')
    assert kinds(run)[-2:] == ["ChildCompleted", "CodeRested"]
    assert isinstance(run.log.state, Parked)
    run = resumed(run)
    assert kinds(run)[-1] == "RunResumed"
    ended(run, "r1.1#1", b'{"text":"A"}')
    ended(run, "r1.3#1", b'{"text":"C"}')
    assert last(run) == '"A B C"'
    assert kinds(run).count("CodeRested") == 2


def test_ends_that_come_together_are_answered_once() -> None:
    """A hundred children needn't double their parent's log."""
    run = begun(_pays_three)
    run.log.child_ended(CallId("r1.2#1"), result=b'{"text":"B"}')
    run.log.child_ended(CallId("r1.3#1"), result=b'{"text":"C"}')
    run.settle()
    assert kinds(run)[-3:] == ["ChildCompleted", "ChildCompleted", "CodeRested"]


def test_a_run_that_got_one_of_two_things_it_waits_for_rests_again() -> None:
    """It may wait for the other one for weeks: meanwhile its deployment is to sleep, and no drain to wait for it."""

    async def main(mail: Mail) -> str:
        both = await asyncio.gather(receive(), receive())
        return both[0].subject

    run = begun(main)
    run.log.answer(REPLY)
    run.settle()
    assert kinds(run)[-2:] == ["SignalReceived", "CodeRested"]
    assert isinstance(run.log.state, Parked)


def test_a_run_that_does_one_thing_after_the_other_says_nothing_of_the_kind() -> None:
    """What it asks for next says how far it has come."""

    async def main(mail: Mail) -> str:
        first = await receive()
        return f"{first.subject} {(await receive()).subject}"

    run = begun(main)
    run.log.answer(REPLY)
    run.settle()
    assert kinds(run)[-2:] == ["SignalReceived", "SignalAwaited"]
    assert isinstance(run.log.state, Parked)


def test_children_beside_steps_and_timers() -> None:
    """A timeout is said by its timer's own `seen`; the child's says nothing then."""

    async def main(mail: Mail) -> str:
        async with asyncio.timeout(60):
            return (await pay(Line("desk", 1))).text

    run = begun(main)
    assert kinds(run) == ["RunStarted", "ChildSpawned", "TimerSet"]
    assert isinstance(run.log.state, Parked)
    ended(run, "r1#2", b'{"text":"paid"}')
    assert kinds(run)[3:] == ["ChildCompleted", "TimerCancelled", "RunCompleted"]


# --- no longer awaited ---------------------------------------------------------------------------------------------


async def _pays_in_time(mail: Mail) -> str:
    try:
        async with asyncio.timeout(60):
            return (await pay(Line("desk", 1))).text
    except TimeoutError:
        return f"late, {(await receive()).subject}"


def test_whoever_no_longer_waits_asks_for_the_childs_end() -> None:
    """And goes on at once: the child's end leads nowhere, and disturbs nobody."""
    run = begun(_pays_in_time)
    run.log.fire()
    run.settle()
    assert kinds(run)[3:] == ["TimerFired", "ChildCancelRequested", "SignalAwaited"]
    run = resumed(run)
    assert kinds(run)[-1] == "RunResumed"
    run.log.child_ended(CallId("r1#2"), outcome="cancelled", error=ev.Fault(type="RunCancelled", message="parent"))
    run.settle()
    assert kinds(run)[-1] == "ChildCompleted"
    assert isinstance(run.log.state, Parked)
    run = resumed(run)
    run.log.answer(REPLY)
    run.settle()
    assert last(run) == '"late, 8"'
    again = MemoryRun(run.workflow, run.log)
    assert again.settle()
    assert not again.pauses


def test_a_process_that_died_before_it_could_ask_has_the_next_one_ask() -> None:
    """The log says that the time was up; the replay comes to the same place."""
    run = begun(_pays_in_time)
    run.log.fire()
    run = resumed(run)
    assert kinds(run)[3:] == ["TimerFired", "RunResumed", "ChildCancelRequested", "SignalAwaited"]


def test_an_end_that_crosses_the_wish_is_taken() -> None:
    """The child was quicker than the host's hearing: nothing is left to cancel, and nothing is wrong."""
    run = begun(_pays_in_time)
    run.log.fire()
    run.log.child_ended(CallId("r1#2"), result=b'{"text":"paid"}')
    run.settle()
    assert kinds(run)[3:] == ["TimerFired", "ChildCompleted", "SignalAwaited"]
    assert isinstance(run.log.state, Parked)
    run.log.answer(REPLY)
    run.settle()
    assert last(run) == '"late, 8"'


def test_a_child_that_is_given_up_before_it_is_there_is_ended_as_soon_as_it_is() -> None:
    """The request is under way and can't be called back."""

    async def main(mail: Mail) -> str:
        task = asyncio.create_task(_child())
        mail = await receive()
        task.cancel()
        return f"{mail.subject} {(await receive()).subject}"

    async def _child() -> None:
        await pay(Line("desk", 1))

    log = MemoryLog()
    log.start(MAIL)
    run = MemoryRun(a_workflow(main), log)
    ask = next(effect for effect in run.drive.effects() if isinstance(effect, fx.Ask))
    assert isinstance(ask.request, CallChild)
    log.append([ev.SignalAwaited(call=CallId("r1#1"), park="input", seen=1)])
    log.answer(REPLY)
    run.settle()
    log.spawn(ask.call, "pay", ask.request.input)
    run.drive.answered(ask.call, ask.request, None)
    run.settle()
    assert kinds(run)[-2:] == ["ChildSpawned", "ChildCancelRequested"]


def test_a_cancelled_parent_asks_for_its_childrens_ends_and_waits_for_none() -> None:
    """What still runs is ended by the host, with the parent's own end."""
    run = begun(_pays_three)
    run.log.cancel()
    run.settle()
    assert kinds(run)[-4:] == ["ChildCancelRequested"] * 3 + ["RunCancelled"]


def test_one_that_fails_has_its_siblings_cancelled_by_a_task_group() -> None:
    """The rule is asyncio's own, and the host is told."""

    async def main(mail: Mail) -> str:
        count = 0
        try:
            async with asyncio.TaskGroup() as group:
                for item in "abc":
                    group.create_task(_one(item))
        except* ChildFailed as failed:
            count = len(failed.exceptions)
        return str(count)

    async def _one(item: str) -> None:
        await pay(Line(item, 1))

    run = begun(main)
    run.log.child_ended(CallId("r1.2#1"), error=ev.Fault(type="ValueError", message="no"))
    run.settle()
    assert kinds(run)[-4:] == ["ChildCompleted", "ChildCancelRequested", "ChildCancelRequested", "RunCompleted"]
    assert last(run) == '"1"'


# --- other code ----------------------------------------------------------------------------------------------------


async def _pays_more(mail: Mail) -> str:
    return (await pay(Line("desk", 4))).text


async def _stops(mail: Mail) -> str:
    return await stop("enough")


async def _keys(mail: Mail) -> str:
    return await key("x")


async def _nothing(mail: Mail) -> str:
    return "nothing"


@pytest.mark.parametrize(
    ("other", "words"),
    [
        (_pays_more, "at r1#1 the log has child pay (arguments {0}), the code now does child pay (arguments "),
        (_stops, "at r1#1 the log has child pay (arguments {0}), the code now does child stop (arguments "),
        (_keys, "at r1#1 the log has child pay (arguments {0}), the code now does step key"),
        (_nothing, "at r1#1 the log has child pay (arguments {0}), the code now does nothing"),
    ],
)
def test_code_that_calls_otherwise_is_a_mismatch_in_words(other: Callable[..., Any], words: str) -> None:
    """The run is paused, with both sides of it."""
    run = begun(_pays)
    run = resumed(run, other)
    digest = hashlib.sha256(b'{"line":{"amount":3,"item":"desk"}}').hexdigest()[:12]
    (pause,) = run.pauses
    assert pause.startswith(words.format(digest))


def test_a_step_where_the_log_has_one_and_the_code_a_child_is_one_too() -> None:
    """The same the other way round."""
    run = begun(_keys)
    log = MemoryLog()
    log.start(MAIL)
    log.append([msgspec.structs.replace(run.log.events[1], seq=0, at="", prev="")])
    again = MemoryRun(a_workflow(_pays), log)
    again.settle()
    (pause,) = again.pauses
    assert "the log has step key" in pause
    assert "the code now does child pay" in pause


def test_a_result_that_no_longer_fits_its_annotation_is_a_mismatch() -> None:
    """The recorded value is what it is; the code has changed."""
    run = begun(_pays)
    run.log.child_ended(result=b"7")
    run.settle()
    (pause,) = run.pauses
    assert "a result of child pay" in pause
    assert "another return annotation" in pause


# --- the child -----------------------------------------------------------------------------------------------------


def as_child(workflow: str, raw: bytes, code: Workflow) -> MemoryRun:
    """A run that is the child of another one."""
    log = MemoryLog()
    by = Spawner(PARENT, CallId("r1#1"))
    mail = child_mail(address="orders@example.com", workflow=workflow, by=by, message_id="<c@x>", date_ms=0, data=raw)
    log.start(mail, parent=Parent(run=PARENT, call=CallId("r1#1"), workflow=workflow, depth=1))
    run = MemoryRun(code, log)
    run.settle()
    return run


def test_a_child_runs_its_own_function_with_its_arguments() -> None:
    """Which one is in RunStarted; the workflow's run function has no part in it."""
    run = as_child("pay", b'{"line":{"amount":3,"item":"desk"}}', a_workflow(_nothing, pay))
    assert kinds(run) == ["RunStarted", "StepStarted", "StepCompleted", "RunCompleted"]
    end = run.log.events[-1]
    assert isinstance(end, ev.RunCompleted)
    assert bytes(end.result.inline or b"") == b'{"text":"desk for 3"}'
    again = MemoryRun(run.workflow, run.log)
    again.settle()
    assert not again.pauses


def test_a_child_that_is_gone_from_the_code_pauses_its_run() -> None:
    """An operator deploys code that has it, or cancels the run."""
    run = as_child("pay", b'{"line":{"amount":3,"item":"desk"}}', a_workflow(_nothing))
    assert run.pauses == ["orders has no child pay any more"]
    paused = run.log.events[-1]
    assert isinstance(paused, ev.RunPaused)
    assert paused.code == "code-missing"


def test_a_child_that_takes_other_arguments_now_pauses_its_run() -> None:
    """It can't be begun again as it began."""
    run = as_child("pay", b'{"bill":3}', a_workflow(_nothing, pay))
    (pause,) = run.pauses
    assert "at the start the log has arguments for child pay, the code now does others" in pause
    assert "no parameter 'bill' any more" in pause


def test_a_child_may_have_children() -> None:
    """Nothing in a run knows how deep it lies; the host does."""

    async def outer(item: str) -> str:
        return (await pay(Line(item, 1))).text

    made = a_workflow(_nothing, pay)
    made.child(outer)
    run = as_child("outer", b'{"item":"desk"}', made)
    assert kinds(run) == ["RunStarted", "ChildSpawned"]
    ended(run, "r1#1", b'{"text":"paid"}')
    assert last(run) == '"paid"'


def test_a_child_whose_mail_has_no_arguments_is_its_hosts_fault() -> None:
    """Nobody but the host writes that mail, so it isn't the code that doesn't fit."""
    log = MemoryLog()
    log.start(MAIL, parent=Parent(run=PARENT, call=CallId("r1#1"), workflow="pay", depth=1))
    with pytest.raises(HostBroke, match="the mail of a child run has no arguments"):
        MemoryRun(a_workflow(_nothing, pay), log)


def test_a_parent_that_is_paused_asks_again_when_it_goes_on() -> None:
    """Its request was refused without an event, as that of a paused run is; nothing is lost by it."""
    log = MemoryLog()
    log.start(MAIL)
    run = MemoryRun(a_workflow(_pays), log)
    (ask,) = (effect for effect in run.drive.effects() if isinstance(effect, fx.Ask))
    log.append([ev.RunPaused(code="operator")])
    run.settle()
    run.drive.answered(ask.call, ask.request, "the run is paused (operator)")
    run.settle()
    assert kinds(run) == ["RunStarted", "RunPaused"]
    log.append([ev.RunUnpaused(by="ann")])
    run.settle()
    assert kinds(run)[2:] == ["RunUnpaused", "ChildSpawned"]
    assert isinstance(log.state, Parked)

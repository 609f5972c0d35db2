"""What a drive does when the host says no, and with steps that nobody waits for any more."""

import asyncio
import hashlib

import pytest
from msgspec.structs import replace

from waypost import Mail, Workflow, receive, send, sleep
from waypost.child import effects as fx
from waypost.child.drive import Drive
from waypost.child.errors import HostBroke
from waypost.child.loop import WorkflowLoop
from waypost.child.phase import Phase
from waypost.model import events as ev
from waypost.model.ids import CallId
from waypost.model.limits import DEFAULT
from waypost.testing.memory_log import MemoryLog
from waypost.testing.memory_run import MemoryRun

MAIL = b"From: ann@example.com\r\nMessage-ID: <1@x>\r\nSubject: 7\r\n\r\nplease\r\n"

flow = Workflow("orders", address="orders@example.com")


@flow.step
def large(size: int) -> str:
    """A value over the inline limit."""
    return "x" * size


@flow.step(retries=3)
def fails() -> None:
    """Raises."""
    raise ValueError("no")


def a_drive(run: object, log: MemoryLog) -> Drive:
    """A live drive of this function, its first effects not yet performed."""
    workflow = Workflow("orders", address="orders@example.com")
    workflow.run(run)  # type: ignore[type-var]  # a function
    drive = Drive(
        log.run,
        last_seq=len(log.stored),
        repository=log.repository,
        workflow=workflow,
        limits=replace(DEFAULT, inline=100),
        program=WorkflowLoop.create,
    )
    drive.page(log.events)
    drive.fetched(next(iter(log.blobs)), MAIL)
    drive.live()
    return drive


def begun() -> MemoryLog:
    """A log with a run in it."""
    log = MemoryLog()
    log.start(MAIL)
    return log


def appended(drive: Drive) -> list[ev.AnyEvent]:
    """The events that the drive proposes now."""
    return [event for effect in drive.effects() if isinstance(effect, fx.Append) for event in effect.events]


async def _sends(mail: Mail) -> None:
    await send(to="ann@example.com", subject="s", text="t")


async def _large_result(mail: Mail) -> str:
    return "x" * 1000


async def _sleeps(mail: Mail) -> None:
    await sleep(1)


def test_a_mail_that_leaves_no_event_fails_the_run() -> None:
    """Nothing in the log says what became of the call, so no replay could go on from it."""
    drive = a_drive(_sends, begun())
    (ask,) = (effect for effect in drive.effects() if isinstance(effect, fx.Ask))
    drive.answered(ask.call, ask.request, "the run is not this child's")
    (failed,) = appended(drive)
    assert isinstance(failed, ev.RunFailed)
    assert failed.error.type == "SendRefused"
    drive.answered(ask.call, ask.request, "again")
    assert not drive.effects()


def test_a_large_value_that_is_refused_fails_the_run_in_words() -> None:
    """The event can't name what isn't there."""
    drive = a_drive(_large_result, begun())
    (kept,) = (effect for effect in drive.effects() if isinstance(effect, fx.Keep))
    drive.kept(kept.sha256, "too many values")
    (failed,) = appended(drive)
    assert isinstance(failed, ev.RunFailed)
    assert "too many values" in failed.error.message


@pytest.mark.parametrize("code", ["quota", "timers", "unknown"])
def test_a_refused_proposal_fails_the_run_with_the_hosts_reason(code: str) -> None:
    """Left alone, the run would wait for an event that never comes."""
    drive = a_drive(_sleeps, begun())
    (timer,) = appended(drive)
    drive.appended((timer,), "a run may have 1000 timers", code)
    (failed,) = appended(drive)
    assert isinstance(failed, ev.RunFailed)
    assert "1000 timers" in failed.error.message
    drive.appended((failed,), "the disk is full", code)
    assert drive.phase is Phase.LEFT


def test_a_run_that_has_ended_elsewhere_is_left() -> None:
    """The host may have failed it meanwhile."""
    drive = a_drive(_sleeps, begun())
    (timer,) = appended(drive)
    drive.appended((timer,), "the run has failed", "terminal")
    assert drive.phase is Phase.LEFT
    drive.appended((timer,), None, "")
    assert [type(effect) for effect in drive.effects()] == [fx.Leave]


def test_what_a_pause_refused_is_proposed_again_after_it() -> None:
    """The pause and the proposal crossed each other."""
    log = begun()
    drive = a_drive(_sleeps, log)
    (timer,) = appended(drive)
    drive.appended((timer,), "the run is paused", "paused")
    assert drive.phase is Phase.HELD
    log.append([ev.RunPaused(code="operator"), ev.RunUnpaused(by="op")])
    drive.committed(log.events[1:])
    (again,) = appended(drive)
    assert isinstance(again, ev.TimerSet)
    assert again.call == "r1#1"


def test_a_step_that_was_cut_off_before_a_pause_refused_it_is_nothing_that_the_run_waits_for() -> None:
    """The log has nothing of it: a run that held on to it would never say that it rests."""

    async def order(mail: Mail) -> str:
        first, second = asyncio.create_task(receive()), asyncio.create_task(receive())
        over = asyncio.create_task(sleep(1))
        await first
        late = asyncio.create_task(work())
        await over
        late.cancel()
        return (await second).subject

    async def work() -> None:
        await fails()

    log = begun()
    drive = a_drive(order, log)
    waits = tuple(appended(drive))
    log.append(waits)
    drive.committed(log.events[1:])
    drive.appended(waits, None, "")
    reply = MAIL.replace(b"<1@x>", b"<2@x>")
    log.answer(reply)
    drive.committed(log.events[-1:])
    drive.fetched(hashlib.sha256(reply).hexdigest(), reply)
    (step,) = appended(drive)
    assert isinstance(step, ev.StepStarted)
    log.fire()
    log.append([ev.RunPaused(code="operator")])
    drive.committed(log.events[-2:])
    drive.effects()
    drive.appended((step,), "the run is paused", "paused")
    log.append([ev.RunUnpaused(by="op")])
    drive.committed(log.events[-1:])
    (rested,) = appended(drive)
    assert isinstance(rested, ev.CodeRested)


def test_other_bytes_than_an_event_names_are_the_hosts_fault() -> None:
    """A blob is known by its hash alone."""
    drive = a_drive(_sleeps, begun())
    with pytest.raises(HostBroke, match="other bytes"):
        drive.fetched("0" * 64, b"else")


def test_a_log_that_is_shorter_than_announced_is_the_hosts_fault() -> None:
    """The child must not go live on half a history."""
    log = begun()
    log.append([ev.TimerSet(call=CallId("r1#1"), timer="r1#1", delay=1, seen=1)])
    workflow = Workflow("orders", address="orders@example.com")
    workflow.run(_sleeps)
    drive = Drive(log.run, last_seq=2, repository="r", workflow=workflow, limits=DEFAULT, program=WorkflowLoop.create)
    drive.page(log.events[:1])
    drive.fetched(next(iter(log.blobs)), MAIL)
    with pytest.raises(HostBroke, match="2 was announced"):
        drive.live()


def test_a_step_that_nobody_waits_for_is_not_tried_again() -> None:
    """Its first failure is its last; it doesn't come back after a crash either."""

    async def order(mail: Mail) -> str:
        task = asyncio.create_task(work())
        await sleep(1)
        task.cancel()
        return (await receive()).subject

    async def work() -> None:
        await fails()

    log = begun()
    drive = a_drive(order, log)
    proposed = tuple(appended(drive))
    log.append(proposed)
    drive.committed(log.events[1:])
    drive.appended(proposed, None, "")
    (body,) = (effect for effect in drive.effects() if isinstance(effect, fx.Body))
    log.fire()
    drive.committed(log.events[-1:])
    appended(drive)
    drive.body_ended(body.step, fx.Errored(ev.Fault(type="ValueError", message="no"), answer=False))
    (failed,) = appended(drive)
    assert isinstance(failed, ev.StepFailed)
    assert failed.final

    log.append([failed])
    resumed = a_drive(order, log)
    assert not [effect for effect in resumed.effects() if isinstance(effect, fx.Body)]


def test_back_off_that_a_cut_log_lost_is_recorded_when_the_run_goes_live() -> None:
    """A failed try without its timer would wait for ever."""

    async def order(mail: Mail) -> None:
        await fails()

    log = begun()
    workflow = Workflow("orders", address="orders@example.com")
    workflow.run(order)
    whole = MemoryRun(workflow, log)
    whole.settle(events=5)
    cut = begun()
    cut.append(log.events[1:3])
    drive = a_drive(order, cut)
    assert [ev.kind(event) for event in appended(drive)] == ["TimerSet", "AttemptScheduled"]

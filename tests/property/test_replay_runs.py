"""Random workflows under the whole drive, killed at a random event: the log stays legal and the code stays with it."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from waypost import Mail, Workflow
from waypost.child.drive import Drive, Phase
from waypost.child.loop import WorkflowLoop
from waypost.model import events as ev
from waypost.model.limits import DEFAULT
from waypost.testing.memory_log import MemoryLog
from waypost.testing.memory_run import MemoryRun
from waypost.testing.random_program import RandomProgram

MAIL = b"From: ann@example.com\r\nMessage-ID: <1@x>\r\n\r\nplease\r\n"


def a_workflow(seed: int) -> Workflow:
    """The workflow of a seed."""
    flow = Workflow("orders", address="orders@example.com")

    @flow.run
    async def order(mail: Mail) -> int:
        return await RandomProgram(seed).main()

    return flow


def to_the_end(run: MemoryRun) -> None:
    """Timers fire whenever nothing else is left."""
    while run.settle() and not run.log.ended and not run.pauses:
        run.log.fire()


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32), where=st.floats(0, 1, exclude_max=True))
def test_a_killed_run_goes_on_and_its_history_replays_to_the_same_end(seed: int, where: float) -> None:
    """No mismatch, no illegal event, every call answered once; the finished history is the same program's."""
    whole = MemoryLog()
    whole.start(MAIL)
    first = MemoryRun(a_workflow(seed), whole, chance=random.Random(seed))
    to_the_end(first)
    assert not first.pauses

    log = MemoryLog()
    log.start(MAIL)
    killed = MemoryRun(a_workflow(seed), log, chance=random.Random(seed))
    moment = 1 + int(where * len(whole.stored))
    while killed.settle(events=moment) and not log.ended:
        log.fire()
    killed.abandon()
    if not log.ended:
        log.resume()
        to_the_end(MemoryRun(a_workflow(seed), log, chance=random.Random(seed + 1)))
    assert log.ended, log.events[-1]

    completed = [event.call for event in log.events if isinstance(event, ev.StepCompleted)]
    assert len(completed) == len(set(completed))

    again = Drive(
        log.run,
        last_seq=len(log.stored),
        repository=log.repository,
        workflow=a_workflow(seed),
        limits=DEFAULT,
        program=WorkflowLoop.create,
    )
    again.page(log.events)
    again.effects()
    again.fetched(next(iter(log.blobs)), MAIL)
    assert again.phase is Phase.LEFT
    assert [type(effect).__name__ for effect in again.effects()] == ["Leave"]

"""Random workflows under the whole drive, killed at a random event: the log stays legal and the code stays with it."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from waypost import Mail, Workflow
from waypost.child.drive import Drive
from waypost.child.loop import WorkflowLoop
from waypost.child.phase import Phase
from waypost.model import events as ev
from waypost.model.limits import DEFAULT
from waypost.model.run import Parked
from waypost.testing.memory_log import MemoryLog
from waypost.testing.memory_run import MemoryRun
from waypost.testing.random_program import RandomProgram, kin

MAIL = b"From: ann@example.com\r\nMessage-ID: <1@x>\r\n\r\nplease\r\n"


def a_workflow(seed: int, *, children: bool) -> Workflow:
    """The workflow of a seed."""
    flow = Workflow("orders", address="orders@example.com")

    @flow.run
    async def order(mail: Mail) -> int:
        return await RandomProgram(seed, children=children).main()

    return flow


def to_the_end(run: MemoryRun) -> None:
    """Timers fire whenever nothing else is left; until then the log says that the run rests."""
    while run.settle() and not run.log.ended and not run.pauses:
        assert isinstance(run.log.state, Parked)
        run.log.fire()


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32), where=st.floats(0, 1, exclude_max=True), children=st.booleans())
def test_a_killed_run_goes_on_and_its_history_replays_to_the_same_end(
    seed: int, where: float, *, children: bool
) -> None:
    """No mismatch, no illegal event, every call answered once; the finished history is the same program's."""
    whole = MemoryLog()
    whole.start(MAIL)
    first = MemoryRun(a_workflow(seed, children=children), whole, chance=random.Random(seed), kin=kin)
    to_the_end(first)
    assert not first.pauses

    log = MemoryLog()
    log.start(MAIL)
    killed = MemoryRun(a_workflow(seed, children=children), log, chance=random.Random(seed), kin=kin)
    moment = 1 + int(where * len(whole.stored))
    while killed.settle(events=moment) and not log.ended:
        log.fire()
    killed.abandon()
    if not log.ended:
        log.resume()
        to_the_end(MemoryRun(a_workflow(seed, children=children), log, chance=random.Random(seed + 1), kin=kin))
    assert log.ended, log.events[-1]

    for kind in (ev.StepCompleted, ev.ChildSpawned, ev.ChildCompleted):
        calls = [event.call for event in log.events if isinstance(event, kind)]
        assert len(calls) == len(set(calls))

    again = Drive(
        log.run,
        last_seq=len(log.stored),
        repository=log.repository,
        workflow=a_workflow(seed, children=children),
        limits=DEFAULT,
        program=WorkflowLoop.create,
    )
    again.page(log.events)
    again.effects()
    again.fetched(next(iter(log.blobs)), MAIL)
    assert again.phase is Phase.LEFT
    assert [type(effect).__name__ for effect in again.effects()] == ["Leave"]

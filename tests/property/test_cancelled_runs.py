"""Random workflows, cancelled at a random event and killed at another: they end cancelled, and replay to that."""

import random

from hypothesis import given, settings
from hypothesis import strategies as st

from waypost import Mail, Workflow
from waypost.model import events as ev
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


def until(run: MemoryRun, events: int | None) -> None:
    """Timers fire whenever nothing else is left."""
    while run.settle(events=events) and not run.log.ended and not run.pauses:
        run.log.fire()


@settings(max_examples=20)
@given(seed=st.integers(0, 2**32), cancelled=st.integers(1, 40), killed=st.integers(0, 10), children=st.booleans())
def test_a_cancelled_run_ends_cancelled_wherever_it_was_and_whenever_its_child_dies(
    seed: int, cancelled: int, killed: int, *, children: bool
) -> None:
    """No mismatch, no illegal event; a run that ended before the cancel keeps its end."""
    log = MemoryLog()
    log.start(MAIL)
    run = MemoryRun(a_workflow(seed, children=children), log, chance=random.Random(seed), kin=kin)
    until(run, cancelled)
    assert not run.pauses
    over = log.ended
    if not over:
        log.cancel()
        until(run, len(log.stored) + killed)
    run.abandon()
    if not log.ended:
        log.resume()
        run = MemoryRun(a_workflow(seed, children=children), log, chance=random.Random(seed + 1), kin=kin)
        until(run, None)
    assert not run.pauses
    ends = [type(event) for event in log.events if isinstance(event, ev.TERMINAL)]
    assert len(ends) == 1
    assert (ends == [ev.RunCancelled]) != over

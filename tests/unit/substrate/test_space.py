"""What a full disk still takes: a table of who may have its last bytes."""

import pytest

from substrate.messages import Append, Cancel, Enqueue, Operation, Pause, Signal, SpawnChild, WorkflowProcess
from substrate.storage.space import kept, withholds
from waypost.model import events as ev
from waypost.model.ids import Generation, RunId
from waypost.model.limits import DEFAULT
from waypost.testing.desk import call, message

RUN = RunId("run_1_0123456789abcdef")
BY = WorkflowProcess(Generation(1))
ENDS: tuple[Operation, ...] = (
    Pause(run=RUN, code="operator", detail=""),
    Cancel(run=RUN, reason="enough", origin="supervisor-operator"),
    Append(by=BY, run=RUN, events=(ev.RunCancelled(),)),
    Append(by=BY, run=RUN, events=(ev.ChildCancelRequested(call=call(1)), ev.ChildCancelRequested(call=call(2)))),
)
OTHERS: tuple[Operation, ...] = (
    Append(by=BY, run=RUN, events=(ev.StepStarted(call=call(1), step="extract", arguments="0" * 64),)),
    Signal(run=RUN, name="paid", id="s1", payload=b"1"),
    SpawnChild(by=BY, run=RUN, call=call(1), workflow="pay", input=b"1", seen=0),
)


@pytest.mark.parametrize("operation", ENDS)
def test_what_ends_a_run_or_its_children_may_have_all_that_is_left(operation: Operation) -> None:
    """Else a run that fills the disk couldn't be told to end, nor end when it is told to."""
    assert kept(operation, DEFAULT) == 0
    assert withholds(operation, 1, DEFAULT) is None


@pytest.mark.parametrize("operation", OTHERS)
def test_all_else_leaves_the_reserve_as_it_is(operation: Operation) -> None:
    """Before it is written and after; what runs goes on as long as there is more than that."""
    assert kept(operation, DEFAULT) == DEFAULT.reserve
    assert withholds(operation, DEFAULT.reserve, DEFAULT) is None
    assert "the disk is full" in (withholds(operation, DEFAULT.reserve - 1, DEFAULT) or "")


def test_new_mail_is_the_first_to_wait() -> None:
    """Its sender has it still."""
    assert "the disk is full" in (withholds(Enqueue(message("m1@x")), DEFAULT.reserve, DEFAULT) or "")

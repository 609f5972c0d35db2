"""Bodies of steps that are called off: an ``async def`` one is cancelled, a ``def`` one is told, each ends once."""

import asyncio
import threading
from queue import SimpleQueue
from typing import Any

import pytest

from waypost import Workflow, cancelled
from waypost.authoring.requests import CallStep
from waypost.authoring.steps import Step
from waypost.child import effects as fx
from waypost.child.bodies import Bodies
from waypost.child.calls import Try
from waypost.child.mailbox import BodyEnded, Note
from waypost.model.ids import CallId, RunId
from waypost.model.limits import DEFAULT
from waypost.testing.patience import PATIENCE

RUN = RunId("run_1_00112233445566aa")
CALL = CallId("r1#1")
flow = Workflow("orders", address="orders@example.com")


class Place:
    """The bodies of one child, and how they end."""

    def __init__(self) -> None:
        self.mailbox: SimpleQueue[Note] = SimpleQueue()
        self.bodies = Bodies(self.mailbox, DEFAULT)

    def start(self, step: Step[Any, Any], *arguments: object) -> None:
        """Run one try of a step."""
        request = CallStep(step.spec, arguments, {}, "0" * 64)
        self.bodies.start(RUN, fx.Body(Try(CALL, request, 1), "0" * 64))

    def end(self) -> fx.BodyEnd:
        """How it ended."""
        note = self.mailbox.get(timeout=PATIENCE)
        assert isinstance(note, BodyEnded)
        self.bodies.ended(note.run, note.step.call)
        return note.end


@flow.step
async def waits(begun: object) -> None:
    """Would never end."""
    assert isinstance(begun, threading.Event)
    begun.set()
    await asyncio.Event().wait()


@flow.step
def works(begun: object, go: object) -> str:
    """Looks whether it should stop, when the test lets it."""
    assert isinstance(begun, threading.Event)
    assert isinstance(go, threading.Event)
    begun.set()
    go.wait(PATIENCE)
    return "stopped" if cancelled() else "went on"


def test_an_async_body_is_cancelled() -> None:
    """At the await at which it waits."""
    place, begun = Place(), threading.Event()
    place.start(waits, begun)
    assert begun.wait(PATIENCE)
    place.bodies.call_off(RUN, CALL)
    end = place.end()
    assert isinstance(end, fx.Errored)
    assert end.fault.type == "CancelledError"
    place.bodies.close()


def test_an_async_body_that_has_not_begun_says_so_and_never_begins() -> None:
    """It is called off between its start and its first turn: it must end all the same."""
    place, begun = Place(), threading.Event()
    place.start(waits, begun)
    place.bodies.call_off(RUN, CALL)
    end = place.end()
    assert isinstance(end, fx.Errored)
    assert end.fault.type in {"RunCancelled", "CancelledError"}
    place.bodies.close()


@pytest.mark.parametrize(("told", "said"), [(True, b'"stopped"'), (False, b'"went on"')])
def test_a_body_in_a_thread_is_told(told: bool, said: bytes) -> None:  # noqa: FBT001 - a case
    """It can't be stopped from outside; it can look."""
    place, begun, go = Place(), threading.Event(), threading.Event()
    place.start(works, begun, go)
    assert begun.wait(PATIENCE)
    if told:
        place.bodies.call_off(RUN, CALL)
    go.set()
    assert place.end() == fx.Completed(said)
    place.bodies.call_off(RUN, CALL)  # too late, and harmless
    place.bodies.close()


def test_a_step_in_a_plain_process_is_never_cancelled() -> None:
    """As in a test of it."""
    assert cancelled() is False


@flow.step
def says(what: str) -> str:
    """Ends at once."""
    return what


def no_thread(_: threading.Thread) -> None:
    """What Python says where the system is at a limit of threads."""
    raise RuntimeError("can't start new thread")


def test_a_step_waits_for_a_thread_where_no_other_can_be_had(monkeypatch: pytest.MonkeyPatch) -> None:
    """A neighbour that is at a limit of processes must not end the child of all: the one thread there is does it."""
    place, begun, go = Place(), threading.Event(), threading.Event()
    place.start(works, begun, go)
    assert begun.wait(PATIENCE)
    with monkeypatch.context() as limited:
        limited.setattr(threading.Thread, "start", no_thread)
        place.start(says, "later")
    go.set()
    assert place.end() == fx.Completed(b'"went on"')
    assert place.end() == fx.Completed(b'"later"')
    place.bodies.close()


@pytest.mark.parametrize("step", [says, waits])
def test_a_step_fails_where_there_is_no_thread_at_all_and_is_not_done_later(
    step: Step[Any, Any], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its error says why, once; the next one has a thread again, and what has failed isn't run by it."""
    place = Place()
    with monkeypatch.context() as limited:
        limited.setattr(threading.Thread, "start", no_thread)
        place.start(step, "never")
    end = place.end()
    assert isinstance(end, fx.Errored)
    assert end.fault.message == "can't start new thread"
    place.start(says, "now")
    assert place.end() == fx.Completed(b'"now"')
    assert place.mailbox.empty()
    place.bodies.close()

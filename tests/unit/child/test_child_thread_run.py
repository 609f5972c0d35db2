"""``def`` runs: one thread, one lane, calls that block."""

import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

import pytest

from waypost import NotReplayable, RunCancelled, approve, receive, sleep
from waypost.authoring.calls import Verdict
from waypost.authoring.scope import current
from waypost.child.errors import NoThread
from waypost.child.program import Asked, Finished, Gave, GaveUp, Raised, Turn, Waiting
from waypost.child.thread_run import ThreadRun
from waypost.model.ids import CallId
from waypost.testing.patience import PATIENCE


class Threaded:
    """A run and its turns, which come from its own thread."""

    def __init__(self, body: Callable[[], object]) -> None:
        self.turns: SimpleQueue[Turn] = SimpleQueue()
        self.run = ThreadRun("a run", body, self.turns.put)
        self.run.start(0.0)

    def turn(self) -> Turn:
        """The next turn."""
        return self.turns.get(timeout=PATIENCE)

    def deliver(self, call: str, value: object) -> Turn:
        """Deliver an outcome; gives the turn that it led to."""
        self.run.deliver(CallId(call), Gave(value), 0.0)
        return self.turn()


def test_calls_block_and_give_their_values() -> None:
    """Plain code, top to bottom."""

    def body() -> object:
        _ = sleep("1s")
        return [receive(), receive()]

    threaded = Threaded(body)
    assert [c.call for c in threaded.turn().commands] == ["r1#1"]
    assert [c.call for c in threaded.deliver("r1#1", None).commands] == ["r1#2"]
    assert [c.call for c in threaded.deliver("r1#2", "a").commands] == ["r1#3"]
    assert threaded.deliver("r1#3", "b") == Turn((), Finished(Gave(["a", "b"])))


def test_a_run_without_a_thread_says_so_and_may_be_tried_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """A limit of threads is nobody's fault in here, and ends by itself as a rule."""
    turns: SimpleQueue[Turn] = SimpleQueue()
    run = ThreadRun("a run", lambda: 1, turns.put)

    def no_thread(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as limited:
        limited.setattr(threading.Thread, "start", no_thread)
        with pytest.raises(NoThread, match="can't start new thread"):
            run.start(0.0)
    run.start(0.0)
    assert turns.get(timeout=PATIENCE) == Turn((), Finished(Gave(1)))


def test_an_approval_is_two_calls_here_too() -> None:
    """The same operation as in an async run, driven in place."""

    def body() -> object:
        return approve("Pay?", who="boss@example.com")

    threaded = Threaded(body)
    threaded.turn()
    (asked,) = threaded.deliver("r1#1", "<request@x>").commands
    assert isinstance(asked, Asked)
    verdict = Verdict(approved=True, by="boss@example.com", text="", via="mail")
    assert threaded.deliver("r1#2", verdict).rest == Finished(Gave(verdict))


def test_an_outcome_that_is_raised_is_raised_at_the_call() -> None:
    """As in any blocking function."""

    def body() -> object:
        try:
            _ = receive(timeout=1)
        except TimeoutError as late:
            return str(late)
        return "in time"

    threaded = Threaded(body)
    threaded.turn()
    threaded.run.deliver(CallId("r1#1"), Raised(TimeoutError("late")), 0.0)
    assert threaded.turn().rest == Finished(Gave("late"))


def test_a_late_outcome_leads_to_an_empty_turn() -> None:
    """The drive waits for a turn after each delivery."""
    threaded = Threaded(receive)
    threaded.turn()
    assert threaded.deliver("r1#9", "x") == Turn((), Waiting())
    threaded.deliver("r1#1", "x")


def test_a_dropped_run_ends_its_thread_and_runs_its_clean_up() -> None:
    """Even one whose clean-up waits again."""
    cleaned = threading.Event()

    def body() -> None:
        try:
            _ = receive()
        finally:
            cleaned.set()
            _ = receive()

    threaded = Threaded(body)
    threaded.turn()
    threaded.run.drop()
    assert cleaned.wait(PATIENCE)


def test_system_exit_is_how_the_run_ended() -> None:
    """A thread would swallow it in silence."""

    def body() -> None:
        raise SystemExit(3)

    rest = Threaded(body).turn().rest
    assert isinstance(rest, Finished)
    assert isinstance(rest.outcome, Raised)
    assert isinstance(rest.outcome.error, SystemExit)


def test_a_thread_of_the_workflows_own_has_no_place_in_the_program() -> None:
    """Two threads would call in an order that no log holds."""
    scope: list[Any] = []

    def body() -> None:
        scope.append(current())

    threaded = Threaded(body)
    threaded.turn()
    with pytest.raises(NotReplayable, match="thread"):
        scope[0].perform(None)


def test_a_cancellation_is_raised_at_the_call_and_the_clean_up_may_make_others() -> None:
    """What it was waiting for is given up; what it does then is recorded like everything it does."""

    def body() -> object:
        try:
            return receive()
        finally:
            _ = sleep("1s")

    threaded = Threaded(body)
    threaded.turn()
    threaded.run.cancel(0.0)
    assert [type(command) for command in threaded.turn().commands] == [GaveUp, Asked]
    end = threaded.deliver("r1#2", None).rest
    assert isinstance(end, Finished)
    assert isinstance(end.outcome, Raised)
    assert isinstance(end.outcome.error, RunCancelled)

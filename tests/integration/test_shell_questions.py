"""Questions to a shell, on real threads: answered now, later, never."""

import queue
from dataclasses import dataclass, field
from typing import Any

import pykka
import pytest

from waypost.acting import Asked, Halt, Next, Reply
from waypost.model.times import Now
from waypost.shell import ActorBroken, Ref, Shell, request
from waypost.testing.clock import ManualClock
from waypost.testing.patience import PATIENCE


class Slip(Exception):
    """What a decision may answer with."""


@dataclass(frozen=True)
class Gate:
    """Keeps the actor inside one message: it says that it has come, and goes on when it is told."""

    reached: "queue.SimpleQueue[str]" = field(default_factory=queue.SimpleQueue)
    passed: "queue.SimpleQueue[str]" = field(default_factory=queue.SimpleQueue)


def advance(state: tuple[int, ...], message: Any, _now: Now) -> Next[tuple[int, ...]]:
    """Answers ``add`` at once, keeps who asked to ``wait`` until ``now``, ends at ``halt``, breaks at ``break``."""
    match message:
        case Asked(token=token, body="add"):
            return Next(state, (Reply(token, 2), Reply(token, 3)))
        case Asked(token=token, body="slip"):
            return Next(state, (Reply(token, Slip("as asked")),))
        case Asked(token=token, body="wait"):
            return Next((*state, token))
        case "now":
            return Next((), tuple(Reply(token, "late") for token in state))
        case "halt":
            return Next(state, (Halt(),))
        case Gate():
            message.reached.put("here")
            message.passed.get(timeout=PATIENCE)
            return Next(state)
        case _:
            raise AssertionError(message)


def start() -> Ref:
    return Shell.start("shell", (), advance, clock=ManualClock())


def asking(ref: Ref, body: str) -> "queue.SimpleQueue[Any]":
    """Ask in another actor's thread; what came of it."""
    heard: queue.SimpleQueue[Any] = queue.SimpleQueue()

    class Asker(pykka.ThreadingActor):
        use_daemon_thread = True

        def on_receive(self, message: Any) -> None:
            """Ask, and note how it went."""
            try:
                heard.put(request(ref, message, timeout=PATIENCE))
            except Exception as failure:  # noqa: BLE001 - what it was is the test's to say
                heard.put(failure)
            self.stop()

    Asker.start().tell(body)
    return heard


def until_unread(ref: Ref, count: int) -> None:
    """Until so many messages wait in the inbox."""
    inbox: Any = ref.actor_inbox
    while inbox.qsize() < count:
        pass


def test_the_first_answer_counts() -> None:
    """A decision that answers twice is wrong, and must not leave an answer for the next one who asks."""
    ref = start()
    assert request(ref, "add", timeout=PATIENCE) == 2
    assert request(ref, "add", timeout=PATIENCE) == 2
    ref.stop()


def test_an_exception_as_answer_is_raised_at_the_asker_and_ends_nobody() -> None:
    """An answer like any other for the actor, a failure for who asked."""
    ref = start()
    with pytest.raises(Slip):
        request(ref, "slip", timeout=PATIENCE)
    assert request(ref, "add", timeout=PATIENCE) == 2
    ref.stop()


def test_an_answer_may_come_with_a_later_message() -> None:
    """The substrate answers when the flush has returned, not when it has heard."""
    ref = start()
    heard = asking(ref, "wait")
    while heard.empty():
        ref.tell("now")
    assert heard.get(timeout=PATIENCE) == "late"
    ref.stop()


def test_who_waits_too_long_is_told_so() -> None:
    """A request has a timeout for the whole, whatever the actor does."""
    ref = start()
    with pytest.raises(pykka.Timeout):
        request(ref, "wait", timeout=0.01)
    ref.stop()


@pytest.mark.parametrize("ending", ["halt", "break", "stop"])
def test_a_question_that_nobody_reads_any_more_is_refused(ending: str) -> None:
    """Whoever asks an actor that ends first learns it at once, not after the timeout; and so does a bare ask."""
    ref = start()
    gate = Gate()
    ref.tell(gate)
    gate.reached.get(timeout=PATIENCE)
    if ending == "stop":
        ref.stop(block=False)
    else:
        ref.tell(ending)
    heard = asking(ref, "add")
    until_unread(ref, 2)
    bare = ref.ask("now", block=False)
    gate.passed.put("go on")
    assert isinstance(heard.get(timeout=PATIENCE), pykka.ActorDeadError)
    with pytest.raises(pykka.ActorDeadError):
        bare.get(timeout=PATIENCE)
    with pytest.raises(pykka.ActorDeadError):
        request(ref, "add", timeout=PATIENCE)


def test_a_question_that_breaks_the_actor_is_answered_by_its_end() -> None:
    """The asker sees what happened, once; others who still wait see it, too."""
    ref = start()
    heard = asking(ref, "wait")
    with pytest.raises(ActorBroken, match="unheard of"):
        request(ref, "unheard of", timeout=PATIENCE)
    assert isinstance(heard.get(timeout=PATIENCE), ActorBroken | pykka.ActorDeadError)

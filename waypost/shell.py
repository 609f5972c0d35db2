"""The one actor shell: message, decision, effects; and everything that pykka leaves open.

An actor is a pure ``advance(state, message, now) -> Next(state, effects)`` and a ``perform(effect)`` that carries one
effect out. The shell replaces the state only after ``advance`` has returned, answers questions now or later, and makes
"let it crash" true: whatever escapes a handler, by whichever door the message came (pykka keeps an actor alive whose
``ask`` failed, and stops every actor of the process on SystemExit), ends this actor alone and tells its parent once.
"""

import itertools
import logging
import threading
from collections.abc import Callable
from queue import Empty, SimpleQueue
from typing import Any, cast

import pykka

from waypost.acting import ActorEnded, Asked, Box, Clock, Halt, Next, Question, Ref, Reply, Tell, WakeAt
from waypost.model.errors import WaypostError
from waypost.model.times import Now

__all__ = [
    "ActorBroken",
    "ActorEnded",
    "Asked",
    "Clock",
    "Halt",
    "Next",
    "Question",
    "Ref",
    "Reply",
    "Shell",
    "Tell",
    "WakeAt",
    "request",
    "tell",
]

log = logging.getLogger(__name__)


class ActorBroken(WaypostError):
    """The handler failed; the actor is gone and its parent has been told."""


def _said(failure: BaseException) -> str:
    """An error of ours says what and where in its message; of any other one the kind says more."""
    return failure.message if isinstance(failure, WaypostError) else repr(failure)


def request(ref: Ref, body: Any, *, timeout: float) -> Any:
    """Ask from outside an actor; the answer may come from a later message. ``timeout`` in seconds, for the whole.

    Raises pykka.Timeout, pykka.ActorDeadError, ActorBroken, or the exception that the decision answered with.
    """
    # Not pykka's ask: its future is set when the handler returns, and the answer may come later. Waiting for the one
    # and then for the other would wake this thread twice, the first time in the middle of the actor's work.
    answer: SimpleQueue[Any] = SimpleQueue()
    ref.tell(Question(body, answer))
    try:
        value = answer.get(timeout=timeout)
    except Empty:
        raise pykka.Timeout(f"{timeout} seconds") from None
    if isinstance(value, BaseException):
        raise value
    return value


def tell(ref: Ref | None, message: Any) -> bool:
    """Send a message to an actor that may be gone; whether it was there."""
    if ref is None:
        return False
    try:
        ref.tell(message)
    except pykka.ActorDeadError:
        return False
    return True


class Shell(pykka.ThreadingActor):
    """One actor. Construction must neither fail nor act: it runs in the starter's thread."""

    use_daemon_thread = True  # a stuck fsync may not keep the process alive

    def __init__(
        self,
        name: str,
        state: Any,
        advance: Callable[[Any, Any, Now], Next[Any]],
        *,
        clock: Clock,
        parent: Ref | None = None,
        incarnation: int = 1,
    ) -> None:
        super().__init__()
        self.name, self.incarnation = name, incarnation
        self._state, self._advance, self._clock, self._parent = state, advance, clock, parent
        self._tokens = itertools.count(1)
        self._open: dict[int, Box] = {}
        self._ended = False

    @staticmethod
    def _create_actor_inbox() -> SimpleQueue[Any]:
        # pykka's hook for this; its own, a Queue, takes five times as long for the same two methods.
        return SimpleQueue()

    def on_start(self) -> None:
        """Nothing that can fail belongs here: pykka doesn't call ``on_failure`` for it."""
        threading.current_thread().name = f"{self.name}/{self.incarnation}"

    def carry_out(self, effect: Any) -> None:
        """Carry out one effect; any but ``Halt``."""
        kind = type(effect)  # by type: of a struct, isinstance is slow to say no
        if kind is Reply:
            self._reply(effect.token, effect.value)
        elif kind is Tell:
            tell(effect.ref, effect.message)
        elif kind is WakeAt:
            self._clock.wake(self.actor_ref, effect.message, mono=effect.mono, wall=effect.wall)
        else:
            self.perform(effect)

    def perform(self, effect: Any) -> None:
        """Carry out one effect of this actor; ``Reply``, ``Tell``, ``WakeAt`` and ``Halt`` are the shell's own."""
        raise NotImplementedError(f"{self.name} can't perform {effect!r}")

    def finish(self) -> None:
        """Let go of what the actor owns; called once, however it ends. May not fail."""

    def on_receive(self, message: Any) -> None:
        """Decide, then act. Never overridden: an actor differs by its decision and its effects."""
        asked = type(message) is Question
        try:
            if asked:
                token = next(self._tokens)
                self._open[token] = message.answer
                message = Asked(token, message.body)
            following = self._advance(self._state, message, self._clock.now())
            self._state = following.state
            for effect in following.effects:
                if type(effect) is Halt:
                    self._end(None)
                    break
                self.carry_out(effect)
        except BaseException as failure:  # SystemExit, too: it would stop every actor there is
            said = _said(failure)
            # What the world did, a full disk for one, isn't explained by a place in our code.
            code = None if isinstance(failure, WaypostError) and failure.fault is not None else failure
            log.exception("%s failed on %s: %s", self.name, type(message).__name__, said, exc_info=code)
            self._end(failure)
            if not asked:  # a bare ask should see it, too
                raise ActorBroken(f"{self.name}: {said}") from failure

    def on_stop(self) -> None:
        """The polite way: pykka's stop message reached us in its turn."""
        self._end(None)

    def _reply(self, token: int, value: Any) -> None:
        answer = self._open.pop(token, None)
        if answer is not None:  # answered twice is a bug of the decision, not of the asker
            answer.put(value)

    def _end(self, failure: BaseException | None) -> None:
        if self._ended:
            return
        self._ended = True
        pykka.ActorRegistry.unregister(self.actor_ref)  # no new message gets in,
        self.actor_stopped.set()  # the loop ends after this one, queued asks are refused
        try:
            self.finish()
        except Exception:
            log.exception("%s failed while it let go", self.name)
        for token in list(self._open):
            reason = ActorBroken(f"{self.name}: {_said(failure)}") if failure else pykka.ActorDeadError(self.name)
            self._reply(token, reason)
        self._refuse_unread()
        fault = failure.fault if isinstance(failure, WaypostError) else None
        tell(self._parent, ActorEnded(self.name, self.incarnation, _said(failure) if failure else None, fault))

    def _refuse_unread(self) -> None:
        # What pykka does for its asks when the loop ends, for our questions; the others are left to it, in order.
        inbox = cast("SimpleQueue[Any]", self.actor_inbox)
        for _ in range(inbox.qsize()):
            envelope = inbox.get()
            if isinstance(envelope.message, Question):
                envelope.message.answer.put(pykka.ActorDeadError(self.name))
            else:
                inbox.put(envelope)

"""An actor that only takes notes, for tests that wait for what others tell it."""

import queue
from typing import Any

import pykka


class Notes(pykka.ThreadingActor):
    """Keeps what it is told. ``heard`` is shared with the test that waits for it."""

    use_daemon_thread = True

    def __init__(self, heard: "queue.SimpleQueue[Any]") -> None:
        super().__init__()
        self._heard = heard

    def on_receive(self, message: Any) -> None:
        """Note it."""
        self._heard.put(message)


class Listener:
    """A ``Notes`` actor and what it has heard; ``ref`` is what others are given."""

    def __init__(self) -> None:
        self._heard: queue.SimpleQueue[Any] = queue.SimpleQueue()
        self.ref: pykka.ActorRef[Notes] = Notes.start(self._heard)

    def next(self, kind: type | tuple[type, ...], *, timeout: float = 20.0) -> Any:
        """The next message of this kind; others before it are dropped. Raises queue.Empty after ``timeout`` seconds."""
        while True:
            message = self._heard.get(timeout=timeout)
            if isinstance(message, kind):
                return message

    def drain(self) -> list[Any]:
        """Everything that has come by now."""
        messages = []
        while True:
            try:
                messages.append(self._heard.get_nowait())
            except queue.Empty:
                return messages

    def stop(self) -> None:
        """End the actor."""
        self.ref.stop(timeout=5.0)

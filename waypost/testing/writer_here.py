"""The writer of a repository with its mailbox, in one thread: for tests of what a disk that dies leaves of its work."""

import itertools
from collections import deque
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from substrate import Settings, SigningKey, message_ids
from substrate.effects import Again, Effect, To
from substrate.files.disk import Disk
from substrate.messages import Done, Operation, Question, Submit
from substrate.writer import Writer
from waypost.acting import Reply
from waypost.model.limits import DEFAULT, Limits
from waypost.model.times import Now
from waypost.testing.clock import START
from waypost.testing.desk import ADDRESS

KEY = SigningKey.generate()
SETTINGS = Settings(deployment="expenses", address=ADDRESS, message_id=message_ids(b"k" * 32, ADDRESS))
BEGIN = Now(START, 0.0)


class WriterHere:
    """The repository at ``path``, opened; what the writer tells itself is taken up when it is asked to."""

    def __init__(self, path: Path, disk: Disk | None = None, *, limits: Limits = DEFAULT, now: Now = BEGIN) -> None:
        self.path, self.now = path, now
        self.writer = Writer.open(path, SETTINGS, key=KEY, disk=disk or Disk(), limits=limits, now=now)
        self.mailbox: deque[Again] = deque()
        self._answers: dict[int, Any] = {}  # Any: whatever its operation or question has for an answer
        self._tokens = itertools.count(1)
        self.hear(self.writer.sweep())

    def hear(self, effects: Iterable[Effect]) -> None:
        """Take down what comes of a turn."""
        for effect in effects:
            match effect:
                case Reply():
                    self._answers[effect.token] = effect.value
                case Again():
                    self.mailbox.append(effect)
                case _:
                    pass

    def turn(self) -> str:
        """One message to itself; its name."""
        name = type(self.mailbox.popleft().message).__name__
        match name:
            case "Flush":
                self.hear(self.writer.flush(self.now))
            case "FoldAway":
                self.hear(self.writer.fold_away(self.now))
            case "Settle":  # for ``idle`` it would be the time to try a seal again, without end on a full disk
                self.hear(self.writer.settle())
            case _:
                self.hear(self.writer.idle(self.now))
        return name

    def rest(self) -> None:
        """Until it has nothing more to tell itself."""
        while self.mailbox:
            self.turn()

    def ask(self, what: Operation | Question) -> Any:  # Any: see ``_answers``
        """One operation or question, until it is answered, durably; nothing more is taken up than must be."""
        token = next(self._tokens)
        self.hear(self.writer.submit(Submit(what=what), To(token=token), self.now))
        while token not in self._answers:
            self.turn()
        answer = self._answers.pop(token)
        assert isinstance(answer, Done), answer
        return answer.value

    def done(self, what: Operation | Question) -> Any:  # Any: see ``_answers``
        """The same, and all that comes of it."""
        value = self.ask(what)
        self.rest()
        return value

    def close(self) -> None:
        """A clean stop."""
        self.hear(self.writer.close(self.now))

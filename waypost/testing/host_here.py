"""A real host inside the test's own process: its actors, its socket and its children, without an interpreter's start.

What ``waypost run`` is beside that, signals, a terminal, an exit status, is for ``host_process``. Promise: when its
``with`` ends, the host has ended.
"""

import os
import queue
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType
from typing import Self

from waypost.cli.client import Client
from waypost.host.answers.records import MailTaken
from waypost.host.app import Config, Host
from waypost.host.code.describe import describe_all
from waypost.model.limits import DEFAULT, Limits
from waypost.testing.background import NotSaid
from waypost.testing.patience import PATIENCE


class HostHere:
    """A host of these files on a data directory, from its making to ``close`` (or leaving).

    ``echo`` is told each line before anybody hears of it, by the host's own thread; what it raises, a broken terminal
    raises. Raises HostError where ``waypost run`` would be refused.
    """

    def __init__(
        self,
        *files: Path,
        data: Path,
        limits: Limits = Limits(kill_grace=1.0),  # noqa: B008 - a frozen record
        echo: Callable[[str], None] = lambda _line: None,
    ) -> None:
        self.said: list[str] = []
        """Every line that was waited past, in order."""
        self._news: queue.SimpleQueue[str] = queue.SimpleQueue()
        self._echo = echo
        described = describe_all(files, timeout=DEFAULT.ready_deadline, environment=os.environ)
        self.host = Host.start(
            Config(
                data=data,
                described=described,
                command=("test",),
                environment=dict(os.environ),
                limits=limits,
                say=self._say,
            )
        )
        self.client = Client(self.host.data.socket)

    def wait_for(self, *texts: str) -> str:
        """Wait for a line that holds all of these texts, and give it. Raises NotSaid."""
        until = time.monotonic() + PATIENCE
        try:
            while True:
                self.said.append(self._news.get(timeout=max(0.0, until - time.monotonic())))
                if all(text in self.said[-1] for text in texts):
                    return self.said[-1]
        except queue.Empty:
            raise NotSaid("the host", " … ".join(texts), self.said) from None

    def send(self, address: str, raw: bytes) -> str:
        """Have a mail accepted; its run. Raises as ``Client``."""
        return self.client.post(MailTaken, "mail", address, body=raw, content_type="message/rfc822").run

    def close(self) -> None:
        """End it, in order. A second time is no error."""
        self.host.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _say(self, _at: str, line: str) -> None:
        self._echo(line)
        self._news.put(line)

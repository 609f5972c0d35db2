"""A real host in a process of its own, for tests and demonstrations: started, watched line by line, stopped.

It is the command that users run, on a real data directory. What it says is its timeline, so a test waits for a line and
never for a time; every wait has a deadline all the same, and fails with what was said instead.
"""

import os
import signal
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from waypost.cli.client import Client
from waypost.host.answers.records import MailTaken
from waypost.host.errors import HostError
from waypost.testing.background import COMMAND, Background, NotSaid
from waypost.testing.patience import PATIENCE


def waypost(
    *arguments: str,
    data: Path | None = None,
    stdin: bytes = b"",
    env: Mapping[str, str] | None = None,
    cwd: Path | None = None,
) -> subprocess.CompletedProcess[str]:
    """Run one verb of the command line to its end; stdout and stderr as text."""
    where = () if data is None else ("--data", str(data))
    done = subprocess.run(  # noqa: S603 - our own command
        [*COMMAND, *arguments, *where],
        input=stdin,
        capture_output=True,
        env={**os.environ, **(env or {})},
        cwd=cwd,
        timeout=PATIENCE,
        check=False,
    )
    return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())


class HostProcess:
    """``waypost run FILES`` on a data directory, from ``start`` (or entering) to ``stop`` (or leaving).

    ``echo`` is told each line that the host says, as it comes.
    """

    def __init__(
        self,
        *files: Path,
        data: Path,
        env: Mapping[str, str] | None = None,
        options: tuple[str, ...] = (),
        command: tuple[str, ...] = COMMAND,
        echo: Callable[[str], None] = lambda _line: None,
    ) -> None:
        self.data = data
        self._files, self._env, self._options, self._echo = files, dict(env or {}), options, echo
        self._command = command
        self._process: Background | None = None

    # --- its life ----------------------------------------------------------------------------------------------------

    def start(self, ready: str | None = " is running") -> Self:
        """Start it, and wait until it says ``ready``. Raises NotSaid."""
        words = ("run", *map(str, self._files), *self._options)
        self._process = Background(*words, data=self.data, command=self._command, env=self._env, echo=self._echo)
        if ready is not None:
            self.wait_for(ready)
        return self

    @property
    def pid(self) -> int:
        """Of the host's process."""
        return self._started.pid

    @property
    def said(self) -> list[str]:
        """Every line that was waited past, in order; all of them when it has ended."""
        return [] if self._process is None else self._process.said

    def stop(self) -> int:
        """Ctrl-C, and wait; its exit status. A second time is no error."""
        return self._end(signal.SIGINT)

    def kill(self) -> int:
        """SIGKILL, and wait; its exit status."""
        return self._end(signal.SIGKILL)

    def wait(self) -> int:
        """Wait until it ends by itself; its exit status. Raises NotSaid."""
        return self._started.wait()

    @property
    def complaints(self) -> str:
        """What it has written to stderr so far."""
        return self._started.complaints

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process is not None:
            self._end(signal.SIGINT if kind is None else signal.SIGKILL)

    # --- its words and verbs -----------------------------------------------------------------------------------------

    def wait_for(self, *texts: str) -> str:
        """Wait for a line that holds all of these texts, and give it. Lines once passed are in ``said``.

        Raises NotSaid when it doesn't come, or when the host has ended.
        """
        return self._started.wait_for(*texts)

    def verb(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[str]:
        """Run one verb on this host's data directory."""
        return waypost(*arguments, data=self.data, stdin=stdin, env=self._env)

    def send(self, address: str, raw: bytes) -> str:
        """Have the host accept a mail, as ``waypost send`` does; the run that it was accepted for. Raises NotSaid."""
        client = Client(self.data / "host.sock")
        try:
            taken = client.post(MailTaken, "mail", address, body=raw, content_type="message/rfc822")
        except HostError as refused:
            raise NotSaid("send", "accepted", [refused.message], self.complaints.splitlines()) from refused
        if not taken.run:
            raise NotSaid("send", "accepted for a run", [taken.outcome], self.complaints.splitlines())
        return taken.run

    # --- inside -------------------------------------------------------------------------------------------------------

    @property
    def _started(self) -> Background:
        assert self._process is not None, "it hasn't been started"
        return self._process

    def _end(self, number: signal.Signals) -> int:
        self._started.signal(number)
        return self.wait()

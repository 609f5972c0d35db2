"""A command in a process of its own that is listened to while it runs, for tests and demonstrations.

It is the ``waypost`` command that users run, or another one. A test waits for a line that it says and never for a time;
every wait has a deadline all the same, and fails with what was said instead. Promise: when its ``with`` ends, or a
deadline has passed, the process has ended, by SIGKILL if need be: nobody waits for one that doesn't end by itself.
"""

import os
import queue
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO, Self

from waypost.model.errors import WaypostError
from waypost.testing.patience import PATIENCE

COMMAND = (sys.executable, "-P", "-X", "utf8", "-m", "waypost.cli.main")
"""The ``waypost`` command of this very installation."""


class NotSaid(WaypostError):
    """What was waited for was not said. ``said`` is everything that was, on stdout."""

    def __init__(self, who: str, what: str, said: Iterable[str], complaints: Iterable[str] = ()) -> None:
        self.said = tuple(said)
        heard = "\n".join(f"    {line}" for line in (*self.said, *complaints))
        super().__init__(f"{who} didn't say {what!r}; it said:\n{heard}")


class Background:
    """A command from here on: its lines one after the other, until it ends, or is ended.

    ``together``: stderr is heard among the lines, as at a terminal. ``session``: it leads a session of its own.
    ``echo`` is told each line of stdout as it comes.
    """

    def __init__(
        self,
        *arguments: str,
        data: Path | None = None,
        command: Sequence[str] = COMMAND,
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
        together: bool = False,
        session: bool = False,
        echo: Callable[[str], None] = lambda _line: None,
    ) -> None:
        self.said: list[str] = []
        """Every line that was waited past, in order; when it has been waited for to end, all of them."""
        self._who = " ".join(arguments[:1]) or command[0]
        where = () if data is None else ("--data", str(data))
        self._process = subprocess.Popen(  # noqa: S603 - our own command
            [*command, *arguments, *where],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT if together else subprocess.PIPE,
            encoding="utf-8",
            errors="backslashreplace",
            env={**os.environ, **(env or {})},
            cwd=cwd,
            start_new_session=session,
        )
        self._lines = _Lines(self._process.stdout, echo)
        self._complaints = _Lines(self._process.stderr)

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    @property
    def complaints(self) -> str:
        """What it has written to stderr so far."""
        return "".join(f"{line}\n" for line in self._complaints.heard)

    # --- its words ---------------------------------------------------------------------------------------------------

    def wait_for(self, *texts: str) -> str:
        """Wait for a line that holds all of these texts, and give it. Lines once passed are in ``said``.

        Raises NotSaid after ``PATIENCE`` seconds, or when it has said its last.
        """
        return self._wait(self._lines, texts, self.said)

    def next(self) -> str:
        """Wait for the next line. Raises NotSaid."""
        return self.wait_for("")

    def complains(self, *texts: str) -> str:
        """Wait for a line of stderr that holds all of these texts. Raises NotSaid."""
        return self._wait(self._complaints, texts, [])

    # --- its end -----------------------------------------------------------------------------------------------------

    def signal(self, number: signal.Signals) -> None:
        """Send it a signal, unless it has ended."""
        self._process.send_signal(number)

    def wait(self) -> int:
        """Wait until it ends by itself; its exit status. Raises NotSaid."""
        try:
            status = self._process.wait(PATIENCE)
        except subprocess.TimeoutExpired:
            self.kill()
            raise self._silent("its end") from None
        for lines in (self._lines, self._complaints):
            lines.close()
        self.said += self._lines.rest()
        return status

    def kill(self) -> int:
        """SIGKILL, and wait; its exit status."""
        self._process.kill()
        return self.wait()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.kill()

    # --- inside ------------------------------------------------------------------------------------------------------

    def _wait(self, lines: "_Lines", texts: Sequence[str], passed: list[str]) -> str:
        until = time.monotonic() + PATIENCE
        try:
            while (line := lines.next(until)) is not None:
                passed.append(line)
                if all(text in line for text in texts):
                    return line
            self.wait()
        except queue.Empty:
            self.kill()
        raise self._silent(" … ".join(texts))

    def _silent(self, what: str) -> NotSaid:
        return NotSaid(self._who, what, self._lines.heard, self._complaints.heard)


class _Lines:
    """What comes out of a pipe, read by a thread of its own: so it never fills up. ``heard``: all of it so far."""

    def __init__(self, pipe: IO[str] | None, echo: Callable[[str], None] = lambda _line: None) -> None:
        self.heard: list[str] = []
        self._news: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._thread = threading.Thread(target=self._listen, args=(pipe, echo), name="lines", daemon=True)
        self._thread.start()

    def next(self, until: float) -> str | None:
        """The next line; None after the last one. Raises queue.Empty when none comes until then (time.monotonic)."""
        line = self._news.get(timeout=max(0.0, until - time.monotonic()))
        if line is None:
            self._news.put(None)
        return line

    def rest(self) -> Iterable[str]:
        """The lines that nobody has taken yet, of those that are there."""
        with suppress(queue.Empty):
            while (line := self.next(0.0)) is not None:
                yield line

    def close(self) -> None:
        """Wait for the last line, which comes when no process has the pipe open any more."""
        self._thread.join(PATIENCE)

    def _listen(self, pipe: IO[str] | None, echo: Callable[[str], None]) -> None:
        if pipe is not None:
            with pipe:
                for line in pipe:
                    echo(line.rstrip("\n"))
                    self.heard.append(line.rstrip("\n"))
                    self._news.put(self.heard[-1])
        self._news.put(None)

"""A real host in a process of its own, for tests and demonstrations: started, watched line by line, stopped.

It is the command that users run, on a real data directory. What it says is its timeline, so a test waits for a line and
never for a time; every wait has a deadline all the same, and fails with what was said instead.
"""

import os
import queue
import re
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from types import TracebackType
from typing import Self

from waypost.model.errors import WaypostError

COMMAND = (sys.executable, "-P", "-X", "utf8", "-m", "waypost.cli.main")
"""The ``waypost`` command of this very installation."""
PATIENCE = 30.0
_RUN = re.compile(r"run_[0-9]+_[0-9a-f]{16}")


class HostSilent(WaypostError):
    """What was waited for was not said. ``said`` is everything that was."""

    def __init__(self, what: str, said: Iterable[str], complaints: str) -> None:
        self.said = tuple(said)
        heard = "\n".join(f"    {line}" for line in (*self.said, *complaints.splitlines()))
        super().__init__(f"the host didn't say {what!r}; it said:\n{heard}")


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
        self.said: list[str] = []
        """Every line that was waited past, in order."""
        self._files, self._env, self._options, self._echo = files, dict(env or {}), options, echo
        self._command = command
        self._lines: queue.SimpleQueue[str | None] = queue.SimpleQueue()
        self._complaints: list[str] = []
        self._process: subprocess.Popen[str] | None = None
        self._threads: list[threading.Thread] = []

    # --- its life ----------------------------------------------------------------------------------------------------

    def start(self, ready: str | None = " is running") -> Self:
        """Start it, and wait until it says ``ready``. Raises HostSilent."""
        self._process = subprocess.Popen(  # noqa: S603 - our own command
            [*self._command, "run", *map(str, self._files), "--data", str(self.data), *self._options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            env={**os.environ, **self._env},
        )
        for target in (self._listen, self._hear_complaints):
            thread = threading.Thread(target=target, daemon=True)
            thread.start()
            self._threads.append(thread)
        if ready is not None:
            self.wait_for(ready)
        return self

    @property
    def pid(self) -> int:
        """Of the host's process."""
        assert self._process is not None, "it hasn't been started"
        return self._process.pid

    def stop(self) -> int:
        """Ctrl-C, and wait; its exit status. A second time is no error."""
        return self._end(signal.SIGINT)

    def kill(self) -> int:
        """SIGKILL, and wait; its exit status."""
        return self._end(signal.SIGKILL)

    def wait(self) -> int:
        """Wait until it ends by itself; its exit status. Raises subprocess.TimeoutExpired."""
        assert self._process is not None, "it hasn't been started"
        status = self._process.wait(PATIENCE)
        for thread in self._threads:
            thread.join(PATIENCE)
        for pipe in (self._process.stdout, self._process.stderr):
            assert pipe is not None
            pipe.close()
        return status

    @property
    def complaints(self) -> str:
        """What it has written to stderr so far."""
        return "".join(self._complaints)

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

        Raises HostSilent after ``PATIENCE`` seconds, or when the host has ended.
        """
        deadline = time.monotonic() + PATIENCE
        while True:
            try:
                line = self._lines.get(timeout=max(0.0, deadline - time.monotonic()))
            except queue.Empty:
                line = None
            if line is None:
                self._lines.put(None)
                raise HostSilent(" … ".join(texts), self.said, self.complaints)
            self.said.append(line)
            if all(text in line for text in texts):
                return line

    def verb(self, *arguments: str, stdin: bytes = b"") -> subprocess.CompletedProcess[str]:
        """Run one verb on this host's data directory."""
        return waypost(*arguments, data=self.data, stdin=stdin, env=self._env)

    def send(self, address: str, raw: bytes) -> str:
        """Send a mail; the run that it was accepted for."""
        done = self.verb("send", address, stdin=raw)
        found = _RUN.search(done.stdout)
        if done.returncode or found is None:
            raise HostSilent("accepted", [done.stdout, done.stderr], self.complaints)
        return found[0]

    # --- inside -------------------------------------------------------------------------------------------------------

    def _end(self, number: signal.Signals) -> int:
        assert self._process is not None, "it hasn't been started"
        if self._process.returncode is None:
            self._process.send_signal(number)
        return self.wait()

    def _listen(self) -> None:
        assert self._process is not None
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._echo(line.rstrip("\n"))
            self._lines.put(line.rstrip("\n"))
        self._lines.put(None)

    def _hear_complaints(self) -> None:
        assert self._process is not None
        assert self._process.stderr is not None
        self._complaints.extend(self._process.stderr)

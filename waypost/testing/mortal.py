"""A host as a process of its own that may be killed at any moment: started, heard, ended, and its family found."""

import os
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from queue import Empty, SimpleQueue

from waypost.testing.host import READY
from waypost.testing.nursery import born
from waypost.testing.patience import PATIENCE

LIMITS = (
    '{"backoff_first": 0.02, "backoff_cap": 0.02, "retry_first": 0.02, "retry_cap": 0.02, "seal_objects": 100, '
    '"attempts": 1000, "crash_exits": 1000000, "crash_total": 1000000}'
)
"""Short waits; nobody is to blame for kills, however many; and a journal becomes a pack every ten flushes or so."""


class Stuck(AssertionError):
    """The host didn't get done in time, or did what no host may do."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where one host lives: its data directory, its workflows' files, its environment, what was said on stderr."""

    data: Path
    file: Path
    environment: Mapping[str, str] = field(repr=False)
    complaints: Path
    others: tuple[Path, ...] = ()
    """Files of further workflows."""

    @property
    def outgoing(self) -> Path:
        """Mail that the host has delivered."""
        return self.data / "out" / "new"


class MortalHost:
    """``python -m waypost.testing.host`` at a place, and a thread that reads what it prints."""

    def __init__(self, place: Place, options: Sequence[str] = ()) -> None:
        files = map(str, (place.file, *place.others))
        self.place = place
        self.lines: list[str] = []
        """Whole lines so far, in order; complete once the process has ended and ``close`` was called."""
        self.heard: list[float] = []
        """When each of them came, by ``time.monotonic``."""
        self._news: SimpleQueue[str] = SimpleQueue()
        self._status: int | None = None
        reading, writing = os.pipe()
        with place.complaints.open("ab") as complaints, os.fdopen(writing, "wb"):
            self._process = born(
                [*files, "--data", str(place.data), "--print", "--limits", LIMITS, *options],
                place.environment,
                stdout=writing,
                stderr=complaints.fileno(),
            )
        self._reader = threading.Thread(target=self._read, args=(reading,), name="host-lines", daemon=True)
        self._reader.start()

    @property
    def pid(self) -> int:
        """Of the process."""
        return self._process.pid

    @property
    def ready(self) -> bool:
        """Whether it has said so."""
        return READY in self.lines

    @property
    def alive(self) -> bool:
        """Whether it runs."""
        return self._process.alive

    def hear(self, seconds: float) -> None:
        """Wait until it says something, at most this long."""
        with suppress(Empty):
            self._news.get(timeout=seconds)

    def kill(self) -> None:
        """End it by kill -9."""
        self._process.signal(signal.SIGKILL)

    def end(self, seconds: float = PATIENCE) -> int:
        """Have it end as an operator would, unless it is dead already; its exit status. Raises Stuck."""
        if self._status is None:
            self._process.signal(signal.SIGTERM)
            try:
                self._status = self._process.wait(seconds)
                if self._status is None:
                    self.kill()
                    raise Stuck(f"the host did not stop within {seconds:g} s")
            finally:
                self.close()
        return self._status

    def close(self) -> None:
        """Take in its last lines; to be called when it is dead."""
        self._reader.join(PATIENCE)

    def _read(self, descriptor: int) -> None:
        with os.fdopen(descriptor, "rb") as pipe:
            for raw in pipe:
                if raw.endswith(b"\n"):
                    line = raw[:-1].decode("utf-8", "backslashreplace")
                    self.heard.append(time.monotonic())
                    self.lines.append(line)
                    self._news.put(line)


def family_of(host: int) -> tuple[int, ...]:
    """Every process that the host of this pid has started, whoever its parent is by now."""
    return tuple(pid for pid, _ in _family(host))


def workers_of(host: int) -> tuple[int, ...]:
    """Of these, the host's own children that run workflows: one for each, however many processes a namespace takes."""
    found = {pid for pid, words in _family(host) if not any(word.startswith(b"--describe") for word in words)}
    return tuple(pid for pid in sorted(found) if _parent(pid) not in found)


def _parent(pid: int) -> int:
    try:
        stat = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8", errors="replace")
    except OSError:
        return 0
    return int(stat.rpartition(")")[2].split()[1])


def _family(host: int) -> Iterator[tuple[int, list[bytes]]]:
    mark = [b"waypost.child", b"--parent", str(host).encode()]
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):  # gone meanwhile
                words = (entry / "cmdline").read_bytes().split(b"\0")
                if any(words[at : at + 3] == mark for at in range(len(words))):
                    yield int(entry.name), words

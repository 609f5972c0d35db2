"""What deployments cost that sleep: a host's start with them, its memory and threads, and a mail to one of them.

The host is a process of its own, as users start it, on real repositories with a parked run each. A mail is sent to one
after the other, each asleep, and then to many at once; what is measured is from the moment at which it is sent to that
at which the host tells that its run is started.

    python -m benchmarks.dormancy [--count DEPLOYMENTS] [--wakes ONE BY ONE] [--burst AT ONCE] [--folder DIR] [--keep]
"""

import argparse
import os
import re
import shutil
import subprocess
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Self

from benchmarks.figures import load, quantile, say, show
from waypost.cli.client import Client
from waypost.host.answers.records import MailTaken
from waypost.host.datadir.directory import DataDir
from waypost.host.errors import HostError
from waypost.host.mail.spool import leave
from waypost.testing.background import COMMAND
from waypost.testing.sleeping import mail, name_of, sleeping

START, MEMORY, THREADS = 3.0, 600.0, 300.0
"""Seconds until the API answers, MiB and threads with all of them asleep."""
MIDDLE, LATE = 250.0, 400.0
"""Milliseconds from a mail to its run's start."""
PATIENCE = 600.0
LOOK = 0.05
_STARTED = re.compile(r"(d\d+) run_\d+_\w*\s+started by mail")


class Host:
    """``waypost run`` on a data directory; ``started`` has each deployment whose run has started, and when."""

    def __init__(self, data: Path, *options: str) -> None:
        self.begun = time.monotonic()
        self.process = subprocess.Popen(
            [*COMMAND, "run", "--data", str(data), "--isolation", "none", *options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            text=True,
            bufsize=1,
        )
        self.started: SimpleQueue[tuple[str, float]] = SimpleQueue()
        self.most = 0
        self.client, self.over = Client(DataDir(data).socket), threading.Event()
        self.reader = threading.Thread(target=self._listen, daemon=True)
        self.reader.start()

    def up(self) -> float:
        """Wait until the API answers; seconds since the start."""
        while not self._answers():
            if self.process.poll() is not None:
                raise SystemExit(f"the host has ended by itself, with status {self.process.returncode}")
            time.sleep(LOOK)
        return time.monotonic() - self.begun

    def next(self) -> tuple[str, float]:
        """The next deployment whose run has started, and when; of a host that has ended none does."""
        try:
            return self.started.get(timeout=PATIENCE)
        except Empty:
            raise SystemExit(f"no other run has started within {PATIENCE:g} s") from None

    def status(self, what: str) -> int:
        """A number of /proc/PID/status: ``VmRSS`` in KiB, ``Threads``."""
        text = Path(f"/proc/{self.process.pid}/status").read_text(encoding="ascii")
        return int(next(line.split()[1] for line in text.splitlines() if line.startswith(f"{what}:")))

    def watch(self) -> None:
        """Note how many threads there are at most, until ``over``."""
        while not self.over.wait(LOOK):
            self.most = max(self.most, self.status("Threads"))

    def cpu(self) -> float:
        """Seconds of CPU that it has used, with its children that have ended."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text(encoding="ascii").rpartition(")")[2].split()
        return sum(map(int, fields[11:15])) / os.sysconf("SC_CLK_TCK")

    def _answers(self) -> bool:
        try:
            self.client.text("status")
        except HostError:  # it isn't there yet
            return False
        return True

    def _listen(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as lines:
            for line in lines:
                if found := _STARTED.search(line):
                    self.started.put((found[1], time.monotonic()))

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.process.terminate()
        self.process.wait()
        self.reader.join(PATIENCE)


def one_by_one(host: Host, names: list[str]) -> list[float]:
    """A mail to each, when the one before has been started: milliseconds."""
    took: list[float] = []
    for number, name in enumerate(names):
        begun = time.monotonic()
        host.client.post(
            MailTaken, "mail", f"{name}@example.com", body=mail(number, name), content_type="message/rfc822"
        )
        while True:
            found, at = host.next()
            if found == name:
                break
        took.append((at - begun) * 1e3)
    return took


def at_once(host: Host, data: DataDir, names: list[str]) -> tuple[float, int]:
    """A mail in the spool of each, all at once: seconds until all are started, and how many came out of turn."""
    watching = threading.Thread(target=host.watch, daemon=True)
    watching.start()
    begun = time.monotonic()
    for number, name in enumerate(names):
        leave(data.spool(name), mail(2_000_000 + number, name))
    waits, came, at = set(names), list[str](), begun
    while waits:
        name, at = host.next()
        if name in waits:
            waits.discard(name)
            came.append(name)
    place = {name: number for number, name in enumerate(names)}
    away = max(abs(place[name] - number) for number, name in enumerate(came))
    return at - begun, away


@contextmanager
def folder(where: str | None, *, keep: bool) -> Iterator[Path]:
    """A folder, which goes unless it is to be kept."""
    made = Path(tempfile.mkdtemp(dir=where, prefix="dormancy."))
    try:
        yield made
    finally:
        if not keep:
            shutil.rmtree(made)


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=2000, help="deployments")
    parser.add_argument("--wakes", type=int, default=100, help="mails, one after the other")
    parser.add_argument("--burst", type=int, default=1000, help="mails at once")
    parser.add_argument("--folder", help="where to write; must be on a real disk")
    parser.add_argument("--data", type=Path, help="a data directory that was made and kept before")
    parser.add_argument("--keep", action="store_true", help="leave the data directory, to be used again")
    options = parser.parse_args()
    load()
    with folder(options.folder, keep=options.keep) as made:
        place = options.data or made / "data"
        if options.data is None:
            for _ in sleeping(place, options.count):
                pass
            print(f"made in {place}", flush=True)
        names = [name_of(number) for number in range(options.count)]
        with Host(place) as host:
            show(f"start with {options.count} that sleep", host.up(), START, "s", host.cpu())
            show("memory, all asleep", host.status("VmRSS") / 1024, MEMORY, "MB")
            show("threads, all asleep", host.status("Threads"), THREADS, "")
            before = host.cpu()
            took = one_by_one(host, names[: options.wakes])
            if took:
                show("a mail to its run's start, p50", quantile(took, 0.5), MIDDLE, "ms")
                show("a mail to its run's start, p99", quantile(took, 0.99), LATE, "ms")
                say("CPU of each", (host.cpu() - before) / len(took) * 1e3, "ms")
            burst = names[options.wakes : options.wakes + options.burst]
            if burst:
                before = host.cpu()
                seconds, away = at_once(host, DataDir(place), burst)
                say(f"{len(burst)} at once, until all are started", seconds, "s")
                say("CPU of each", (host.cpu() - before) / len(burst) * 1e3, "ms")
                say("the farthest from its turn", away, "places")
                show("threads at most", host.most, THREADS, "")
                say("memory then", host.status("VmRSS") / 1024, "MB")
    load()


if __name__ == "__main__":
    main()

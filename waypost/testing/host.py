"""A host for crash tests: the real one, on a disk that records, hangs, or kills at the n-th flush.

    python -m waypost.testing.host FILE… --data DIR [--limits JSON] [--print] [--record FILE] [--hang SECONDS]
        [--die-after-sync N]… [--die-before-sync N]… [--die-before-sync-of TEXT] [--die-after-sync-of TEXT]
        [--kill-child-after-sync N]… [--full-while FILE]

It prints ``ready`` once its API listens; with ``--print`` every line of the timeline, as ISO 8601 time, tab, text. A
kill after the n-th sync comes when the data of that flush is durable and nobody has been told: no answer, no mail and
no step's body that waits for it has left. Nothing in the product knows of any of this: the disk is its only seam.
"""

import argparse
import errno
import os
import signal
import sys
import threading
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import msgspec

from waypost.host.app import Config, Host
from waypost.host.code.describe import describe_all
from waypost.host.described import Described
from waypost.host.errors import HostError
from waypost.host.processes.guard import hide
from waypost.model.limits import DEFAULT, Limits
from waypost.testing.disks import TAKES_SPACE, RecordingDisk

READY = "ready"
KILLED = "killed"
"""Begins the line that says which child was killed after which flush."""
FLUSHES = "flushes"
"""The last line of a host that was stopped: this word and how many flushes it made durable."""
_ENDING = {signal.SIGTERM, signal.SIGINT}


@dataclass(frozen=True, slots=True, kw_only=True)
class Moments:
    """When what happens, in numbers of journal syncs since the host began; the first is 1.

    ``die_before_text``, ``die_after_text``: at the first sync of a journal that brings these bytes, such as a commit's
    message.
    ``hang``: seconds that the disk hangs in the sync before which the host dies, so that whoever wouldn't wait for it
    has the time to go on.
    """

    die_before: Collection[int] = ()
    die_before_text: bytes = b""
    die_after: Collection[int] = ()
    die_after_text: bytes = b""
    kill_child_after: Collection[int] = ()
    hang: float = 0.0
    full_while: Path | None = None
    """The disk is full as long as this file is there."""


class KillingDisk(RecordingDisk):
    """Counts the flushes of all journals, and kills at the chosen ones.

    Before a sync: its bytes are written, but nothing says that they are durable. After it: they are, and nobody has
    been told; a child that is to die then is dead before anybody is.
    """

    def __init__(self, record: str | Path, moments: Moments) -> None:
        super().__init__(record)
        self._moments = moments
        self._never = threading.Event()
        self._sizes: dict[str, int] = {}
        self.flushes = 0

    def sync_data(self, descriptor: int, path: str, size: int) -> None:
        """Make a flush durable, with what is to happen before and after."""
        self.flushes += 1
        moments = self._moments
        brought = self._brought(path, size)
        if self.flushes in moments.die_before or (moments.die_before_text and moments.die_before_text in brought):
            self._never.wait(moments.hang)
            die()
        super().sync_data(descriptor, path, size)
        if self.flushes in moments.die_after or (moments.die_after_text and moments.die_after_text in brought):
            die()
        if self.flushes in moments.kill_child_after:
            for pid in kill_children(os.getpid()):
                write(f"{KILLED} {pid} after flush {self.flushes}")

    def point(self, operation: str, path: str) -> None:
        """Pass a point, unless the disk is full."""
        super().point(operation, path)
        full = self._moments.full_while
        if full is not None and operation in TAKES_SPACE and full.exists():
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), path)

    def _brought(self, path: str, size: int) -> bytes:
        """What this sync adds to the journal, where that is looked into; commits aren't compressed in it."""
        before, self._sizes[path] = self._sizes.get(path, 0), size
        wanted = self._moments.die_before_text or self._moments.die_after_text
        return Path(path).read_bytes()[before:size] if wanted else b""


def die() -> None:
    """End this process by kill -9; doesn't return."""
    os.kill(os.getpid(), signal.SIGKILL)
    signal.pause()


def children_of(parent: int) -> tuple[int, ...]:
    """The processes that a process has started and not reaped, by proc(5)."""
    found: list[int] = []
    for file in Path(f"/proc/{parent}/task").glob("*/children"):
        with suppress(OSError):  # the thread has ended
            found.extend(int(pid) for pid in file.read_text(encoding="ascii").split())
    return tuple(found)


def kill_children(parent: int) -> tuple[int, ...]:
    """Do kill -9 of every child of this process; their pids, once they are dead. Their owner is left to reap them."""
    killed: list[int] = []
    for pid in children_of(parent):
        with suppress(ProcessLookupError, ChildProcessError):
            os.kill(pid, signal.SIGKILL)
            killed.append(pid)
            os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT)
    return tuple(killed)


def described(files: tuple[Path, ...], environment: Mapping[str, str]) -> tuple[Described, ...]:
    """What these files declare. Files that stay as they are, are asked once in a process, and those forked of it."""
    stats = tuple((found.st_mtime_ns, found.st_size, found.st_ino) for found in (file.stat() for file in files))
    return _described(files, stats, tuple(sorted(environment.items())))


@cache
def _described(
    files: tuple[Path, ...],
    _stats: tuple[tuple[int, ...], ...],
    environment: tuple[tuple[str, str], ...],
) -> tuple[Described, ...]:
    return describe_all(files, timeout=DEFAULT.ready_deadline, environment=dict(environment))


def main(arguments: Sequence[str]) -> int:
    """Run until SIGTERM, or until the host gives up (exit status 1)."""
    options = _parser().parse_args(arguments)
    # Before any thread begins, so that none of them is interrupted: the main thread alone takes these up.
    signal.pthread_sigmask(signal.SIG_BLOCK, _ENDING)
    hide()
    reasons: list[str] = []

    def give_up(error: HostError) -> None:
        reasons.append(error.message)
        os.kill(os.getpid(), signal.SIGTERM)

    limits = msgspec.convert(msgspec.json.decode(options.limits), Limits)
    moments = Moments(
        die_before=frozenset(options.die_before_sync),
        die_before_text=options.die_before_sync_of.encode(),
        die_after=frozenset(options.die_after_sync),
        die_after_text=options.die_after_sync_of.encode(),
        kill_child_after=frozenset(options.kill_child_after_sync),
        hang=options.hang,
        full_while=options.full_while,
    )
    disk = KillingDisk(options.record, moments)
    config = Config(
        data=options.data,
        described=described(tuple(options.files), os.environ),
        command=("python", "-m", "waypost.testing.host", *arguments),
        environment=dict(os.environ),
        limits=limits,
        say=(lambda at, text: write(f"{at}\t{text}")) if options.print else None,
        give_up=give_up,
    )
    try:
        host = Host.start(config, disk)
    except HostError as refused:
        write(refused.message)
        return 1
    with host:
        write(READY)
        signal.sigwait(_ENDING)
        failed = tuple(reasons)  # what is told from here on is that it was closed
    write(f"{FLUSHES} {disk.flushes}")
    print(*failed, sep="\n", file=sys.stderr, flush=True)  # noqa: T201 - a program's words
    return 1 if failed else 0


def write(line: str) -> None:
    """One write for a line: what a reader sees of a killed host ends between two lines."""
    os.write(1, f"{line}\n".encode("utf-8", "backslashreplace"))


def files_of(words: Sequence[str]) -> tuple[Path, ...]:
    """The workflow files that such a command names."""
    return tuple(_parser().parse_args(words).files)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m waypost.testing.host", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--data", required=True, type=Path, metavar="DIR")
    parser.add_argument("--limits", default="{}", metavar="JSON", help="bounds that differ from the defaults")
    parser.add_argument("--print", action="store_true", help="print the timeline")
    parser.add_argument("--record", default=os.devnull, metavar="FILE", help="note what is durable, for power_cut")
    parser.add_argument("--hang", type=float, default=0.0, metavar="SECONDS")
    parser.add_argument("--full-while", type=Path, metavar="FILE", help="the disk is full while it is there")
    parser.add_argument("--die-before-sync-of", default="", metavar="TEXT")
    parser.add_argument("--die-after-sync-of", default="", metavar="TEXT")
    for name in ("--die-before-sync", "--die-after-sync", "--kill-child-after-sync"):
        parser.add_argument(name, type=int, action="append", default=[], metavar="N")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

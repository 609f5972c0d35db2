"""A host for crash tests: the real one, on a disk that records, copies, or kills at the n-th flush.

    python -m waypost.testing.host FILE… --data DIR [--limits JSON] [--print] [--record FILE] [--full-while FILE]
        [--die-after-sync N]… [--die-before-sync N]… [--die-before-sync-of TEXT] [--die-after-sync-of TEXT]
        [--boundaries FILE [--every N] [--spare-host]] [--cuts FOLDER [--cut-at N]… [--cut-of TEXT]…]

It prints ``ready`` once its API listens; with ``--print`` every line of the timeline, as ISO 8601 time, tab, text.
What the disk does is told in ``killing``. Nothing in the product knows of any of this: the disk is its only seam.
"""

import argparse
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec

from waypost.host.app import Config, Host
from waypost.host.code.describe import describe_all
from waypost.host.described import Described
from waypost.host.errors import HostError
from waypost.host.processes.guard import hide
from waypost.model.limits import DEFAULT, Limits
from waypost.testing.boundaries import Boundaries
from waypost.testing.killing import KillingDisk, Moments, write
from waypost.testing.snapshots import Snapshots

READY = "ready"
_ENDING = {signal.SIGTERM, signal.SIGINT}


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
    disk = KillingDisk(options.record, _moments(options))
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
    print(*failed, sep="\n", file=sys.stderr, flush=True)  # noqa: T201 - a program's words
    return 1 if failed else 0


def files_of(words: Sequence[str]) -> tuple[Path, ...]:
    """The workflow files that such a command names."""
    return tuple(_parser().parse_args(words).files)


def _moments(options: argparse.Namespace) -> Moments:
    texts = [text.encode() for text in options.cut_of]
    return Moments(
        die_before=frozenset(options.die_before_sync),
        die_before_text=options.die_before_sync_of.encode(),
        die_after=frozenset(options.die_after_sync),
        die_after_text=options.die_after_sync_of.encode(),
        boundaries=Boundaries(options.boundaries, options.every) if options.boundaries else None,
        spare_host=options.spare_host,
        snapshots=Snapshots(options.data.parent, options.cuts, options.cut_at, texts) if options.cuts else None,
        full_while=options.full_while,
    )


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m waypost.testing.host", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    parser.add_argument("--data", required=True, type=Path, metavar="DIR")
    parser.add_argument("--limits", default="{}", metavar="JSON", help="bounds that differ from the defaults")
    parser.add_argument("--print", action="store_true", help="print the timeline")
    parser.add_argument(
        "--record", type=Path, default=Path(os.devnull), metavar="FILE", help="note what is durable, for power_cut"
    )
    parser.add_argument("--boundaries", type=Path, metavar="FILE", help="die at new ones; they are noted there")
    parser.add_argument("--every", type=int, default=1, metavar="N", help="at each N-th new one")
    parser.add_argument("--spare-host", action="store_true", help="its children die there, and it doesn't")
    parser.add_argument("--cuts", type=Path, metavar="FOLDER", help="copies as a power cut would leave them")
    parser.add_argument("--cut-at", type=int, action="append", default=[], metavar="N", help="at these flushes only")
    parser.add_argument("--cut-of", action="append", default=[], metavar="TEXT", help="at the first that brings this")
    parser.add_argument("--full-while", type=Path, metavar="FILE", help="the disk is full while it is there")
    parser.add_argument("--die-before-sync-of", default="", metavar="TEXT")
    parser.add_argument("--die-after-sync-of", default="", metavar="TEXT")
    for name in ("--die-before-sync", "--die-after-sync"):
        parser.add_argument(name, type=int, action="append", default=[], metavar="N")
    return parser


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

"""Bytes on disk for each event of 300 bytes, after a clean close: written alone, back to back, and 16 to a commit.

Everything in the repository's folder is weighed, in whole blocks of the file system: packs, their indexes, the derived
index. An event weighs what is stored of it, its hash chain included. No other work on the machine changes this.

    python -m benchmarks.weight [--count EVENTS] [--folder DIR]
"""

import argparse
import tempfile
from pathlib import Path

from benchmarks.figures import say, show
from benchmarks.served import Served, Steps
from substrate.messages import ReadLog
from substrate.signing.keys import SigningKey

BATCH = 16
MIB = 1024 * 1024


def on_disk(folder: Path) -> int:
    """Bytes that the file system has given to all files below."""
    return sum(path.lstat().st_blocks * 512 for path in folder.rglob("*"))


def weigh(path: Path, count: int, batch: int) -> tuple[float, float]:
    """The mean size of an event, and bytes on disk for each."""
    served = Served(path, SigningKey.generate())
    run = served.start("weight")
    steps = Steps(served.by, run)
    for _ in range(count // batch):
        served.ask(steps.append(batch))
    page = served.ask(ReadLog(run=run, after=1, limit=MIB)).value.events
    served.stop()
    events = count // batch * batch
    return sum(map(len, page)) / len(page), on_disk(path) / events


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--folder", help="where to write")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        for what, batch, limit in (("alone, back to back", 1, 1.8), (f"{BATCH} to a commit", BATCH, 0.7)):
            count = max(options.count, batch)
            size, weight = weigh(Path(name) / f"{batch}.git", count, batch)
            show(f"{count} events of {size:.0f} bytes, {what}", weight / 1000, limit, "kB")
            say("  times the event itself", weight / size, "x")


if __name__ == "__main__":
    main()

"""A mail from the door to the end of a three-step run: everything real, signed frames and durable commits included.

One mail at a time, each sent over the host's socket when the one before has ended. Parts are what a watcher sees:
accepted (the answer at the door), started (RunStarted is durable), first step begun, completed. A bare fdatasync on the
same disk is beside them as calibration.

    python -m benchmarks.mail [--count N] [--folder DIR]
"""

import argparse
import os
import queue
import statistics
import tempfile
import time
from pathlib import Path

from waypost.cli.client import Client
from waypost.host.answers.records import MailTaken
from waypost.host.app import Config, Host
from waypost.host.code.describe import describe_all

FLOW = """
from waypost import Mail, Workflow

flow = Workflow("three", address="three@example.com")


@flow.step
def one(mail: Mail) -> str:
    return mail.subject


@flow.step
def two(text: str) -> str:
    return text + "!"


@flow.step
def three(text: str) -> int:
    return len(text)


@flow.run
async def main(mail: Mail) -> int:
    return await three(await two(await one(mail)))
"""
MARKS = {"started": "started by mail", "first step": "step one begins", "completed": "completed"}


def main() -> None:
    """Print each part's p50 and p99, in milliseconds since the mail was sent."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=300)
    parser.add_argument("--folder", help="where to write; must be on a real disk")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        file = folder / "three.py"
        file.write_text(FLOW)
        taken = run(folder, file, options.count)
        taken["fdatasync"] = syncs(folder / "raw", options.count)
    for part, values in taken.items():
        cuts = statistics.quantiles(values, n=100)
        print(f"{part:12} p50 {cuts[49]:6.2f} ms   p99 {cuts[98]:6.2f} ms")


def run(folder: Path, file: Path, count: int) -> dict[str, list[float]]:
    """Host the flow and send it mail."""
    environment = dict(os.environ)
    lines: queue.SimpleQueue[tuple[float, str]] = queue.SimpleQueue()
    config = Config(
        data=folder / "data",
        described=describe_all([file], timeout=30.0, environment=environment),
        command=("benchmark",),
        environment=environment,
        say=lambda _at, text: lines.put((time.perf_counter(), text)),
    )
    taken: dict[str, list[float]] = {part: [] for part in ("accepted", *MARKS)}
    with Host.start(config) as host:
        client = Client(host.data.socket)
        wait_for(lines, "is running")
        for n in range(-20, count):  # the first twenty warm up
            raw = f"From: a@example.com\nTo: three@example.com\nMessage-ID: <{n}@x>\nSubject: hi\n\nhello\n".encode()
            begun = time.perf_counter()
            client.post(MailTaken, "mail", "three@example.com", body=raw, content_type="message/rfc822")
            seen = {"accepted": time.perf_counter() - begun}
            for part, words in MARKS.items():
                seen[part] = wait_for(lines, words) - begun
            if n >= 0:
                for part, value in seen.items():
                    taken[part].append(value * 1e3)
    return taken


def wait_for(lines: queue.SimpleQueue[tuple[float, str]], words: str) -> float:
    """When the next line that holds these words was said."""
    while True:
        at, text = lines.get(timeout=30.0)
        if words in text:
            return at


def syncs(path: Path, count: int) -> list[float]:
    """A kilobyte and one fdatasync, in milliseconds."""
    descriptor = os.open(path, os.O_CREAT | os.O_RDWR, 0o600)
    os.posix_fallocate(descriptor, 0, 1 << 20)
    values = []
    for n in range(count):
        begun = time.perf_counter()
        os.pwrite(descriptor, b"x" * 1000, n * 1000)
        os.fdatasync(descriptor)
        values.append((time.perf_counter() - begun) * 1e3)
    os.close(descriptor)
    return values


if __name__ == "__main__":
    main()

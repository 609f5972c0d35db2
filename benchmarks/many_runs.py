"""A host beside a hundred thousand parked runs: its start, its memory, the list of runs; with and without its index.

The repository is made first (``benchmarks.repositories``), some 50 s for 100,000 runs; ``--keep`` leaves it for another
time. Each figure is printed beside its limit; a busy machine shows in all of them.

    python -m benchmarks.many_runs [--count RUNS] [--folder DIR] [--keep]
"""

import argparse
import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from benchmarks.figures import load, show
from benchmarks.processes import memory
from benchmarks.repositories import ADDRESS, create, parked
from substrate.files.folder import Folder
from substrate.signing.keys import SigningKey
from waypost.cli.client import Client
from waypost.host.answers.records import MailTaken
from waypost.host.datadir.directory import DataDir
from waypost.host.errors import HostError
from waypost.testing.background import COMMAND
from waypost.testing.host_process import HostProcess

PATIENCE = 600.0
FLOW = f"""
from waypost import Mail, Workflow

bench = Workflow("bench", address="{ADDRESS}")


@bench.run
async def main(mail: Mail) -> str:
    return mail.subject
"""


class Many:
    """A data directory with one deployment and its runs."""

    def __init__(self, folder: Path, runs: int) -> None:
        self.folder, self.file, self.data = folder, folder / "bench.py", DataDir(folder / "data")
        self._mails = 0
        if not self.file.exists():
            self.file.write_text(FLOW, encoding="utf-8")
            self.data.repos.mkdir(parents=True)
            with HostProcess(self.file, data=self.data.path):
                pass  # it makes its keys
            shutil.rmtree(self.repository)
            self.data.head("bench").unlink(missing_ok=True)
            store = create(self.repository, SigningKey.load(self.data.signing_key))
            parked(store, runs)
            store.close()

    @property
    def repository(self) -> Path:
        """The deployment's."""
        return self.data.repo("bench")

    @property
    def index(self) -> Path:
        """The derived one."""
        return Path(Folder(str(self.repository)).derived)

    def first_mail(self) -> tuple[HostProcess, float]:
        """Start a host; seconds until it has accepted a mail."""
        begun = time.perf_counter()
        host = HostProcess(self.file, data=self.data.path).start(ready=None)
        while time.perf_counter() - begun < PATIENCE:
            with suppress(HostError, OSError):
                self.send()
                return host, time.perf_counter() - begun
            time.sleep(0.01)  # nobody tells who stands before the door
        raise SystemExit(f"no mail was accepted: {host.complaints}")

    def send(self) -> None:
        """A mail, over the socket. Raises HostError."""
        self._mails += 1
        raw = f"From: a@example.com\nSubject: s\nMessage-ID: <{time.time_ns()}.{self._mails}@example.com>\n\ntext\n"
        client = Client(self.data.socket, PATIENCE)
        client.post(MailTaken, "mail", ADDRESS, body=raw.encode(), content_type="message/rfc822")

    def listed(self) -> float:
        """Seconds that ``waypost runs`` takes, the process included."""
        begun = time.perf_counter()
        command = [*COMMAND, "runs", "--data", str(self.data.path)]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        taken = time.perf_counter() - begun
        assert "run_" in done.stdout, done.stdout[:200]
        return taken

    def digest(self) -> str:
        """Of every file in the data directory, name and content."""
        found = hashlib.sha256()
        for file in sorted(path for path in self.data.path.rglob("*") if path.is_file()):
            found.update(str(file).encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
        return found.hexdigest()


def spent(pid: int) -> float:
    """Seconds of CPU that a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def without_index(many: Many, remove: Callable[[], object]) -> None:
    """A start that has to build it."""
    remove()
    host, taken = many.first_mail()
    show("start without the index, to the first accepted mail", taken, 60, "s", spent(host.pid))
    said = [line for line in host.complaints.splitlines() if "index" in line]
    print(*said[:2], sep="\n")
    _, rss = memory(host.pid)
    show("memory of that host (RSS)", rss, 120, "MB")
    host.stop()


def with_index(many: Many) -> None:
    """A start that finds it; then a host that is killed."""
    host, taken = many.first_mail()
    show("start with the index, to the first accepted mail", taken, 2, "s", spent(host.pid))
    show("`waypost runs`, with a host", min(many.listed() for _ in range(3)), 1, "s")
    for _ in range(100):
        many.send()
    pss, rss = memory(host.pid)
    show("memory of the host (RSS)", rss, 120, "MB")
    show("memory of the host (PSS)", pss, 120, "MB")
    host.kill()
    before = many.digest()
    show("`waypost runs` after kill -9, without a host", min(many.listed() for _ in range(3)), 1, "s")
    aside = many.folder / "index.aside"
    many.index.rename(aside)
    show("the same without the index", min(many.listed() for _ in range(3)), 1, "s")
    aside.rename(many.index)
    print("the directory is as it was" if many.digest() == before else "THE DIRECTORY HAS CHANGED")
    host, taken = many.first_mail()
    show("start after kill -9, to the first accepted mail", taken, 2, "s", spent(host.pid))
    host.stop()


def main() -> None:
    """Print all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=100_000, help="parked runs")
    parser.add_argument("--folder", type=Path, help="where to write; must be on a real disk")
    parser.add_argument("--keep", action="store_true", help="leave what was made in --folder, and use it again")
    options = parser.parse_args()
    if options.keep and options.folder is None:
        sys.exit("--keep needs --folder")
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = options.folder / f"many-{options.count}" if options.keep else Path(name)
        folder.mkdir(parents=True, exist_ok=True)
        many = Many(folder, options.count)
        without_index(many, lambda: shutil.rmtree(many.index.parent, ignore_errors=True))
        with_index(many)
        load()


if __name__ == "__main__":
    main()

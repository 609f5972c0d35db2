"""Opening what is big: a reader beside 100,000 commits, a recovery after a kill, a run of 100,000 events resumed.

Prints each figure beside its limit. What is resumed is resumed by a real host with a real child: from the mail that
wakes the run to its end, the replay of every event included.

    python -m benchmarks.opening [--count N] [--folder DIR]
"""

import argparse
import os
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.figures import load, show
from benchmarks.many_runs import spent
from benchmarks.repositories import ADDRESS, AT, AUTHOR, DEPLOYMENT, commits, create, long_run, parked
from substrate.effects import To
from substrate.files.disk import Disk
from substrate.messages import Append, Stage, Submit, Supervisor
from substrate.reader import Reader
from substrate.settings import Settings, message_ids
from substrate.signing.keys import SigningKey
from substrate.storage.store import Store
from substrate.writer import Writer
from waypost.cli.client import Client
from waypost.host.answers.records import MailTaken
from waypost.host.code.describe import describe_all
from waypost.host.datadir.directory import DataDir
from waypost.model import events as ev
from waypost.model.ids import RunId
from waypost.model.limits import DEFAULT
from waypost.model.times import Now
from waypost.testing.host_process import HostProcess

FLOW = """
from waypost import Mail, Workflow, receive

bench = Workflow("{name}", address="{address}")


@bench.step
def tick() -> None:
    return None


@bench.run
async def main(mail: Mail) -> str:
    for _ in range({steps}):
        await tick()
    answer = await receive()
    return answer.subject
"""
NOW = Now(AT, 0.0)
TIMES = 30


def milliseconds(act: Callable[[], object]) -> float:
    """How long one call takes."""
    begun = time.perf_counter()
    act()
    return (time.perf_counter() - begun) * 1e3


def reading(folder: Path, count: int) -> None:
    """A reader that is opened beside so many commits, and reads the tail of a live run."""
    key = SigningKey.generate()
    store = create(folder / "commits.git", key)
    run = parked(store, 100)[-1]
    commits(store, run, count)
    store.close()

    def act() -> None:
        reader = Reader.open(folder / "commits.git", key.public)
        assert list(reader.log(run, after=2))

    taken = [milliseconds(act) for _ in range(TIMES)]
    show(f"open beside {count} commits, read a tail (p50)", statistics.median(taken), 5, "ms")


def recovering(folder: Path) -> None:
    """A writer that died with a journal that was as good as full."""
    path, key = folder / "killed.git", SigningKey.generate()
    store = create(path, key)
    store.close()
    store = Store.open(path, key=key)
    number = 0
    while not store.wants_seal(0.0):
        store.commit(author=AUTHOR, subject=f"write {number}", puts={"schedules/tick.json": b"%d" % number}, at=AT)
        store.flush()
        number += 1
    copy = folder / "copy.git"
    taken, worked = list[float](), list[float]()
    for _ in range(5):
        shutil.rmtree(copy, ignore_errors=True)
        shutil.copytree(path, copy)
        before = time.process_time()
        taken.append(milliseconds(lambda: Store.open(copy, key=key).abandon()) / 1e3)
        worked.append(time.process_time() - before)
    store.abandon()
    what = f"recovery, a full journal of {number} signed flushes"
    show(what, statistics.median(taken), 0.5, "s", statistics.median(worked))


def sealing(folder: Path, events: int) -> None:
    """The longest turn of the writer while a long run is sealed."""
    path, key = folder / "long.git", SigningKey.generate()
    store = create(path, key)
    run = long_run(store, 1, events)
    store.close()
    settings = Settings(deployment=DEPLOYMENT, address=ADDRESS, message_id=message_ids(b"k" * 32, ADDRESS))
    writer = Writer.open(path, settings, key=key, disk=Disk(), limits=DEFAULT, now=NOW)
    failed = ev.RunFailed(error=ev.Fault(type="X", message="x"))
    append = Append(by=Supervisor(), run=run, events=(failed,))
    list(writer.submit(Submit(what=append, stage=Stage.COMMITTED), To(token=1), NOW))
    effects, turns = list(writer.flush(NOW)), list[float]()
    while effects:
        begun = time.perf_counter()
        effects = list(writer.fold_away(NOW))
        turns.append((time.perf_counter() - begun) * 1e3)
        list(writer.flush(NOW))
    list(writer.close(NOW))
    show(f"sealing {events} events: the longest of {len(turns)} turns", max(turns), 100, "ms")
    show("  and the one before it", sorted(turns)[-2], 50, "ms")


def resuming(folder: Path, events: int) -> None:
    """A host whose child is given a run of so many events when a mail wakes it."""
    file, data = folder / "bench.py", DataDir(folder / "data")
    file.write_text(FLOW.format(name=DEPLOYMENT, address=ADDRESS, steps=(events - 2) // 2), encoding="utf-8")
    (described,) = describe_all([file], timeout=30.0, environment=dict(os.environ))
    data.repos.mkdir(parents=True)
    with HostProcess(file, data=data.path):
        pass  # it makes its keys
    shutil.rmtree(data.repo(DEPLOYMENT))
    data.head(DEPLOYMENT).unlink(missing_ok=True)
    store = create(data.repo(DEPLOYMENT), SigningKey.load(data.signing_key))
    run = long_run(store, 1, events, definition=described.spec.definition, code=described.spec.code)
    store.close()
    with HostProcess(file, data=data.path) as host:
        client, before, begun = Client(data.socket), spent(host.pid), time.perf_counter()
        client.post(MailTaken, "mail", ADDRESS, body=_answer(run), content_type="message/rfc822")
        host.wait_for("completed")
        taken = time.perf_counter() - begun
        show(f"resume of a run of {events} events: work in the host", spent(host.pid) - before, 3, "s")
        print(f"{'  to its end, the replay in the child included':58} {taken:8.2f} s")


def _answer(run: RunId) -> bytes:
    return (
        f"From: claire@example.com\nTo: {ADDRESS}\nSubject: answer to {run}\nMessage-ID: <answer@example.com>\n"
        "In-Reply-To: <1@example.com>\n\ntext\n"
    ).encode()


def main() -> None:
    """Print all."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=100_000, help="commits, and events of a run")
    parser.add_argument("--folder", help="where to write; must be on a real disk")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        reading(folder, options.count)
        recovering(folder)
        sealing(folder, options.count)
        resuming(folder, options.count)
    load()


if __name__ == "__main__":
    main()

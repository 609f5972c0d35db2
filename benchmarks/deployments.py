"""Four deployments in one host against one: each a repository with its own actor, and a client that waits for the disk.

Three loads: one durable append at a time (batch 1), 16 appends under way that share a sync, and 16 events in one
commit. One and four take turns, so that both meet the same machine; the ratio is the median of the turns. Four threads
that only write and sync are beside them: more than their ratio the disk doesn't give.

    python -m benchmarks.deployments [--count APPENDS] [--folder DIR]
"""

import argparse
import statistics
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from pathlib import Path

from benchmarks.figures import Probe, load, say, show
from benchmarks.served import Served, Steps, as_in_a_host
from substrate.signing.keys import SigningKey

FOUR = 4
BATCH = 16
TURNS = 7


class Client:
    """Of one deployment; each method is one unit of its load, and returns when that is durable."""

    def __init__(self, path: Path) -> None:
        self.served = Served(path, SigningKey.generate())
        self._steps = Steps(self.served.by, self.served.start("bench"))

    def one(self) -> None:
        """One append."""
        self.served.ask(self._steps.append())

    def many(self) -> None:
        """Sixteen appends, a commit each."""
        for _ in range(BATCH - 1):
            self.served.tell(self._steps.append())
        self.served.ask(self._steps.append())

    def together(self) -> None:
        """Sixteen events in one append, so in one commit."""
        self.served.ask(self._steps.append(BATCH))


def rate(acts: Sequence[Callable[[], object]], count: int) -> float:
    """Units a second of all together, when each is done so often in a thread of its own."""
    ready = threading.Barrier(len(acts) + 1)

    def client(act: Callable[[], object]) -> None:
        ready.wait()
        for _ in range(count):
            act()

    threads = [threading.Thread(target=client, args=(act,)) for act in acts]
    for thread in threads:
        thread.start()
    ready.wait()
    begun = time.perf_counter()
    for thread in threads:
        thread.join()
    return len(acts) * count / (time.perf_counter() - begun)


def compared(acts: Sequence[Callable[[], object]], count: int) -> tuple[float, float, float]:
    """Units a second of one, of all, and the ratio: medians over the turns."""
    turns = [(rate(acts[:1], count), rate(acts, count)) for _ in range(TURNS)]
    one, four = (statistics.median(each) for each in zip(*turns, strict=True))
    return one, four, statistics.median(all_ / single for single, all_ in turns)


def main() -> None:
    """Print each load."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=300, help="appends of each client in a turn")
    parser.add_argument("--folder", help="where to write; must be on a real disk")
    options = parser.parse_args()
    as_in_a_host()
    with tempfile.TemporaryDirectory(dir=options.folder) as name, ExitStack() as opened:
        folder = Path(name)
        clients = [Client(folder / f"{n}.git") for n in range(FOUR)]
        probes = [opened.enter_context(Probe(folder / f"{n}.raw")) for n in range(FOUR)]
        some = max(options.count // 4, 1)
        say("bare fdatasyncs: four threads to one", compared(probes, options.count)[2], "x")
        for what, acts, count, limit in (
            ("batch 1", [client.one for client in clients], options.count, 1.3),
            (f"{BATCH} appends under way", [client.many for client in clients], some, 0.9),
            (f"{BATCH} events in a commit", [client.together for client in clients], some, 0.9),
        ):
            one, four, ratio = compared(acts, count)
            print(f"{what}: {one:.0f} a second in one deployment, {four:.0f} in four")
            show(f"{what}: four to one", ratio, limit, "x", least=True)
        for client in clients:
            client.served.stop()
    load()


if __name__ == "__main__":
    main()

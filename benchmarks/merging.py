"""What merging packs costs an append: batch 1 through one store, with merges and without, and how many packs are left.

    python -m benchmarks.merging [--count APPENDS] [--folder DIR]

Both stores write in turns of 200, so that both meet the same disk; a merge step is made every ``merge_pause`` seconds,
as the SubstrateActor does. An append is timed from its commit to its return, with the step that it had to wait for.
"""

import argparse
import statistics
import tempfile
import time
from pathlib import Path

from substrate.signing.keys import SigningKey
from substrate.storage.store import Store
from waypost.model.limits import DEFAULT
from waypost.testing.stores import fresh_store, put

BURST = 200


class Contestant:
    """A store, with what was measured of it."""

    def __init__(self, path: Path, *, merges: bool) -> None:
        self.store: Store = fresh_store(path, SigningKey.generate())
        self.path, self.merges = path, merges
        self.times: list[float] = []
        self.steps: list[float] = []
        self.most = 0
        self._next = 0.0

    def burst(self, first: int) -> None:
        """Append, seal when it is due, and make the steps whose time has come."""
        for number in range(first, first + BURST):
            start = time.perf_counter()
            if self.merges and self.store.merging and start >= self._next:
                self.store.merge()
                self._next = time.perf_counter() + DEFAULT.merge_pause
                self.steps.append(time.perf_counter() - start)
            run, leaf = divmod(number, 64)
            put(self.store, {f"runs/{run // 64:02d}/{run:06d}/{leaf:010d}.json": b"%08d" % number * 36})
            self.store.flush()
            self.times.append(time.perf_counter() - start)
            if self.store.wants_seal(time.monotonic()):
                self.store.seal()
                self.most = max(self.most, len(list((self.path / "objects" / "pack").glob("*.pack"))))

    def report(self, name: str) -> str:
        """One line."""
        cuts = statistics.quantiles(self.times, n=1000)
        worst = f", {len(self.steps)} steps of at most {max(self.steps) * 1e3:.1f} ms" if self.steps else ""
        return (
            f"{name}: p50 {cuts[499] * 1e6:.0f} us, p99 {cuts[989] * 1e6:.0f} us, p99.9 {cuts[998] * 1e3:.1f} ms, "
            f"mean {statistics.mean(self.times) * 1e6:.0f} us, at most {self.most} packs{worst}"
        )


def main() -> None:
    """Run it and print two lines."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=20_000, help="appends")
    parser.add_argument("--folder", help="where to write; must be on a real disk")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        on = Contestant(Path(folder) / "on.git", merges=True)
        off = Contestant(Path(folder) / "off.git", merges=False)
        for first in range(0, options.count, BURST):
            on.burst(first)
            off.burst(first)
        print(on.report("merges on "))
        print(off.report("merges off"))
        on.store.close()
        off.store.close()


if __name__ == "__main__":
    main()

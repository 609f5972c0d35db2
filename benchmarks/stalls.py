"""Does a value of many MB hold up other deployments? One host's process: its neighbour's appends, one durable each.

The neighbour appends alone, then while a second deployment stores values of 30 MB, appends the events that name them,
has them sealed and reads them back, without a pause. The longest append is the figure. What the disk itself does to a
small sync meanwhile is beside it: a bare fdatasync in turn with each append.

    python -m benchmarks.stalls [--count VALUES] [--megabytes N] [--folder DIR]
"""

import argparse
import hashlib
import os
import tempfile
import threading
import time
from pathlib import Path

from benchmarks.figures import Probe, load, say, seconds
from benchmarks.served import Served, Steps, as_in_a_host
from substrate.messages import Append, PutBlob, ReadBlob, Seal, Stage
from substrate.signing.keys import SigningKey
from waypost.model import events as ev
from waypost.model.ids import CallId
from waypost.shell import request

ALONE = 300


class Heavy:
    """The deployment with the values."""

    def __init__(self, path: Path, size: int) -> None:
        self.served = Served(path, SigningKey.generate())
        self._run = self.served.start("heavy")
        self._body = os.urandom(size // 2).hex().encode()

    def value(self, number: int) -> None:
        """Store one, name it, have it sealed, read it."""
        served, run = self.served, self._run
        data = b'"%08d%s"' % (number, self._body)  # made so that making it holds nobody up for long
        name = hashlib.sha256(data).hexdigest()
        call = CallId(f"r1#{number}")
        served.ask(PutBlob(by=served.by, run=run, sha256=name, data=data), Stage.COMMITTED)
        events = (
            ev.StepStarted(call=call, step="load", arguments="0" * 64),
            ev.StepCompleted(call=call, output=ev.Value(blob=name)),
        )
        served.ask(Append(by=served.by, run=run, events=events))
        request(served.ref, Seal(), timeout=600.0)
        assert served.ask(ReadBlob(by=served.by, run=run, sha256=name), Stage.COMMITTED).value == data


class Neighbour:
    """The deployment that shall not notice."""

    def __init__(self, path: Path) -> None:
        self.served = Served(path, SigningKey.generate())
        self._steps = Steps(self.served.by, self.served.start("light"))

    def append(self) -> float:
        """Seconds of one durable append."""
        begun = time.perf_counter()
        self.served.ask(self._steps.append())
        return time.perf_counter() - begun


def main() -> None:
    """Print both."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--count", type=int, default=10, help="values that are stored and read")
    parser.add_argument("--megabytes", type=float, default=30.0, help="size of a value")
    parser.add_argument("--folder", help="where to write; must be on a real disk")
    options = parser.parse_args()
    as_in_a_host()
    with tempfile.TemporaryDirectory(dir=options.folder) as name, Probe(Path(name) / "raw") as probe:
        heavy = Heavy(Path(name) / "heavy.git", int(options.megabytes * 1024 * 1024))
        light = Neighbour(Path(name) / "light.git")
        alone = [light.append() for _ in range(ALONE)]

        def values() -> None:
            for number in range(1, options.count + 1):
                heavy.value(number)

        other = threading.Thread(target=values)
        begun = time.perf_counter()
        other.start()
        beside, bare = [], []
        while other.is_alive():
            beside.append(light.append())
            bare.append(probe())
        other.join()
        took = (time.perf_counter() - begun) / options.count
        seconds(alone, "append alone")
        seconds(beside, f"append beside {options.megabytes:g} MB values")
        seconds(bare, "bare fdatasync beside them")
        say("a value, stored, sealed and read back", took * 1e3, "ms")
        say("longest append alone", max(alone) * 1e3, "ms")
        say("longest bare fdatasync beside the values", max(bare) * 1e3, "ms")
        say("longest append beside the values", max(beside) * 1e3, "ms")
        heavy.served.stop()
        light.served.stop()
    load()


if __name__ == "__main__":
    main()

"""What ``waypost top`` and a scrape of the metrics cost with many deployments, and a count of a repository's runs.

CPU time of this process, which does both sides: the root's answer and the observer's, the records, the wire, the words.
The count is what a repository's writer is asked for when something has changed, at most once a second.

    python -m benchmarks.top [--count DEPLOYMENTS] [--parked RUNS] [--folder DIR]
"""

import argparse
import tempfile
from pathlib import Path

import msgspec

from benchmarks.figures import load, say, show
from benchmarks.repositories import ADDRESS, AT, REPOSITORY, create, parked
from benchmarks.why import Root, deployments, milliseconds
from substrate.indexing.index import Index
from substrate.messages import Census, ReadCensus
from substrate.questions import answer
from substrate.signing.keys import SigningKey
from waypost.cli.top import lines
from waypost.host.answers.top import Top
from waypost.host.api.looking import Lookout
from waypost.host.clock import SystemClock
from waypost.host.datadir.directory import lay_out, prepare
from waypost.host.watching.histogram import Histogram, Recent
from waypost.host.watching.observer import Ear
from waypost.host.watching.observer_logic import State, Watched
from waypost.model.limits import DEFAULT

LIMIT = 100.0
"""Milliseconds for all of it, at 1,000 deployments."""
COUNT_LIMIT = 10.0
"""Milliseconds that a repository's writer counts, with 10,000 parked runs."""
CENSUS = Census(
    waiting=((("approval",), 2), (("mail", "timer"), 1)),
    queued=1,
    on_hold=0,
    rejected=0,
    outbox=0,
    deadlines=1,
    next=AT,
)


def look(many: int, folder: Path) -> None:
    """The answer of a host that knows of so many."""
    data = prepare(folder / "data")
    lay_out(data)
    several = deployments(many, data)
    flushes = Histogram().add([0.001] * 100)
    watched = Watched(census=CENSUS, flushes=flushes, recent=Recent(flushes))
    root = Root.start(several)
    observer = Root.start(State(deployments={each.spec.name: watched for each in several}))
    lookout = Lookout(root, Ear(observer), DEFAULT, SystemClock())
    try:
        answered, found = milliseconds(lookout.top)
        scraped, page = milliseconds(lookout.page)
    finally:
        root.stop()
        observer.stop()
    sent, raw = milliseconds(lambda: msgspec.json.encode(found))
    read, back = milliseconds(lambda: msgspec.json.decode(raw, type=Top))
    said, _ = milliseconds(lambda: list(lines(back, 80)))
    say("the host's answer", answered, "ms")
    say("the wire: encoded, and decoded", sent + read, "ms")
    say("in words", said, "ms")
    show(f"top, {many} deployments", answered + sent + read + said, LIMIT, "ms")
    say(f"a scrape: {len(page.splitlines())} lines", scraped, "ms")


def count(runs: int, folder: Path) -> None:
    """A count in a repository with so many parked runs."""
    store = create(folder / "r.git", SigningKey.generate())
    parked(store, runs)
    store.flush()
    Index.open(folder / "runs.sqlite", store, ADDRESS, DEFAULT, REPOSITORY).close()
    index = Index.open(folder / "runs.sqlite", store, ADDRESS, DEFAULT, REPOSITORY)
    taken, census = milliseconds(lambda: answer(index, ReadCensus(AT)))
    assert census.live == runs, census
    index.close()
    store.close()
    show(f"a count, {runs} parked runs", taken, COUNT_LIMIT, "ms")


def main() -> None:
    """Measure."""
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--count", type=int, default=1000, help="deployments")
    options.add_argument("--parked", type=int, help="runs; else ten for each deployment")
    options.add_argument("--folder", help="where to write")
    chosen = options.parse_args()
    load()
    with tempfile.TemporaryDirectory(dir=chosen.folder) as folder:
        look(chosen.count, Path(folder))
        count(chosen.parked or 10 * chosen.count, Path(folder))


if __name__ == "__main__":
    main()

"""Every benchmark, one after the other: storage, processes, and a mail from the door to the end of its run."""

import subprocess
import sys

ALL = (
    ("append: one durable, signed append against SQLite; then on a grown repository", ("append", "--grown")),
    ("rules: the check of a write alone, and of a whole history", ("rules",)),
    ("processes: start, memory, the command line", ("processes",)),
    ("sealed: a start, a list and an append beside finished runs", ("sealed",)),
    ("many runs: a start, memory and the list beside 10,000 parked runs", ("many_runs", "--runs", "10000")),
    (
        "opening: a reader, a recovery, a long seal, a long resume",
        ("opening", "--commits", "20000", "--events", "20000"),
    ),
    ("mail: accepted to completed", ("mail",)),
)


def main() -> None:
    """Run each in a process of its own, so that none inherits another's heap."""
    for title, (module, *arguments) in ALL:
        print(f"\n== {title}", flush=True)
        subprocess.run([sys.executable, "-m", f"benchmarks.{module}", *arguments], check=True)


main()

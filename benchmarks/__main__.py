"""Every benchmark by its name, or all of them one after the other; each prints its figures beside their limits.

    python -m benchmarks [NAME] [--count N] [OPTION ...]

Without a name all are run, at sizes that take some minutes together; ``benchmarks/README.md`` has the commands for the
full sizes. ``--count`` is how much each does, and has every one of them; ``--help`` after a name lists its others.
"""

import importlib
import subprocess
import sys

ALL: dict[str, tuple[str, tuple[str, ...]]] = {
    "append": ("one durable, signed append against SQLite; then on a grown repository", ("--grown",)),
    "growth": ("an append after 20,000 events against one after 100", ("--count", "20000")),
    "mixed": ("mail in, runs, sealed: 20,000 durable operations", ("--count", "20000")),
    "weight": ("bytes on disk for each event", ()),
    "deployments": ("four deployments in one host against one", ()),
    "stalls": ("appends beside another deployment's values of 30 MB", ()),
    "merging": ("what merging packs costs an append", ()),
    "sealed": ("a start, a list and an append beside finished runs", ()),
    "rules": ("the check of a write alone, and of a whole history", ()),
    "many_runs": ("a start, memory and the list beside 10,000 parked runs", ("--count", "10000")),
    "timers": ("a start beside 10,000 pending timers, and 1,000 that are due at once", ("--count", "10000")),
    "opening": ("a reader, a recovery, a long seal, a long resume", ("--count", "20000")),
    "processes": ("start, memory, the command line", ()),
    "supervision": ("a crash to resumed, and the stop of many deployments", ("--count", "30")),
    "mail": ("a mail, accepted to completed", ()),
    "dormancy": ("a start, memory and a mail with many that sleep", ("--count", "200", "--burst", "100")),
    "why": ("`waypost why` with 1,000 deployments", ()),
    "top": ("`waypost top` and a scrape with 1,000 deployments, and a count of 10,000 parked runs", ()),
}


def one(name: str, arguments: list[str]) -> None:
    """Run this one here, as if it had been called by its own name."""
    sys.argv = [name, *arguments]
    importlib.import_module(f"benchmarks.{name}").main()


def everything(arguments: list[str]) -> None:
    """Run each in a process of its own, so that none inherits another's heap."""
    for name, (title, usual) in ALL.items():
        print(f"\n== {name}: {title}", flush=True)
        subprocess.run([sys.executable, "-m", f"benchmarks.{name}", *usual, *arguments], check=True)


def main() -> None:
    """Take the name, and leave all else to whom it names."""
    arguments = sys.argv[1:]
    if arguments and arguments[0] in ALL:
        one(arguments[0], arguments[1:])
    elif arguments and arguments[0] in {"-h", "--help"}:
        print(__doc__, *(f"{name:12} {title}" for name, (title, _) in ALL.items()), sep="\n")
    elif arguments and not arguments[0].startswith("-"):
        sys.exit(f"there is no benchmark {arguments[0]!r}; there are {', '.join(ALL)}")
    else:
        everything(arguments)


if __name__ == "__main__":
    main()

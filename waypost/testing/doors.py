"""The doors that isolation is to shut, which of them each mode promises to shut, and the table of it for the docs.

A real child tries each one (``tests/e2e/flows/tries_doors.py``), and is held to this table: a door that is open where
the table says shut is a hole, and one that is shut where it says open is a promise that could be made and isn't.

    python -m waypost.testing.doors        print the table, as docs/isolation.md has it
"""

from dataclasses import dataclass
from typing import Final

COLUMNS: Final = ("namespace", "uid", "none", "none, host is root")


@dataclass(frozen=True, slots=True)
class Door:
    """One way out. ``key``: its function in the flow; ``shut``: for each column a letter, s for shut or o for open."""

    key: str
    words: str
    shut: str

    def open_in(self, column: str) -> bool:
        """Whether this mode leaves it open."""
        return self.shut[COLUMNS.index(column)] == "o"


DOORS: Final = (
    Door("descriptors", "the host's descriptors, by `/proc/PID/fd`", "ssso"),
    Door("memory", "the host's memory, by `/proc/PID/mem`", "ssso"),
    Door("debugger", "the host under a debugger (ptrace)", "ssso"),
    Door("keys", "the host's private keys", "ssoo"),
    Door("history", "a deployment's repository, to be written", "ssoo"),
    Door("spool", "the spool of incoming mail, to be written", "ssoo"),
    Door("log", "the log of what it printed, to be written", "ssoo"),
    Door("hidden", "the data directory, by undoing what hides it", "ssoo"),
    Door("api", "the host's API, asked by the child itself", "ssss"),
    Door("api_by_an_orphan", "the host's API, asked by a process that left its child and took its mark off", "ssoo"),
    Door("code", "its own deployed code, to be written: what the next child runs", "ssoo"),
    Door("packages", "the interpreter's packages, to be written", "ssoo"),
    Door("signals", "a signal to the host", "ssoo"),
    Door("sight", "which other processes run, and their command lines", "sooo"),
    Door("home", "a private file in the host's home directory", "ssoo"),
    Door("common", "a file that every user may read, in `/tmp`", "sooo"),
    Door("shared_memory", "shared memory that every user may read, in `/dev/shm`", "sooo"),
    Door("abstract", "abstract sockets of the machine (`--no-network` shuts this one, too)", "oooo"),
    Door("servers", "servers on 127.0.0.1 (`--no-network` shuts this one, too)", "oooo"),
    Door("keyring", "keys in the keyring of the host's session", "ssoo"),
    Door("kernel", "settings of the kernel, in `/proc/sys`", "ssso"),
    Door("user_namespace", "every capability, in a user namespace of its own", "ssoo"),
)


def table() -> str:
    """As Markdown."""
    lines = [f"| door | {' | '.join(f'`{column}`' for column in COLUMNS[:3])} | `none`, host is root |"]
    lines.append("|---" * (len(COLUMNS) + 1) + "|")
    for door in DOORS:
        cells = ("**open**" if door.open_in(column) else "shut" for column in COLUMNS)
        lines.append(f"| {door.words} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    print(table(), end="")  # noqa: T201 - what was asked for

"""Why something isn't further, in one sentence: what it waits for, since when, until when, what follows, what helps.

Every state of a deployment and of a run has one: a property test drives both through whatever comes and looks for a
state without. A command is one line that can be pasted; what it can't know is written in capitals, as in the help.
"""

import shlex
from dataclasses import dataclass

_OURS = "waypost "


@dataclass(frozen=True, slots=True, kw_only=True)
class Sentence:
    """Reads: *it waits for* ``waits_for``, since, until; *then* ``then``. Times are ISO 8601 UTC, empty where none is.

    ``until``: when it goes on by itself at the latest; empty for an explicit "no deadline". ``needed``: it doesn't go
    on by itself, and ``command`` is what lets it.
    """

    waits_for: str
    then: str
    since: str = ""
    until: str = ""
    command: str = ""
    alternative: str = ""
    """Another command, where there is a choice."""
    needed: bool = False


def command(*words: str, stdin: str = "") -> str:
    """A command of ours as it is pasted; ``stdin`` is the file that it reads."""
    line = shlex.join(("waypost", *words))
    return f"{line} < {stdin}" if stdin else line


def operands(*words: str) -> tuple[str, ...]:
    """Words that others have chosen, as a command takes them for no option of its own (POSIX utility guideline 10)."""
    return ("--", *words) if any(word.startswith("-") for word in words) else words


def parted(line: str) -> tuple[str, str]:
    """A command, and the file that it reads; empty where it reads none."""
    before, redirected, file = line.rpartition(" < ")
    # A quoted argument may have the same in it, and then ends with its quote.
    return (before, file) if redirected and not file.endswith("'") else (line, "")


def beside(line: str, *options: str) -> str:
    """The same command with further options, such as the data directory that a question named."""
    if not options or not line.startswith(_OURS):
        return line  # nothing, or another program's
    before, file = parted(line)
    words = shlex.split(before)
    end = words.index("--") if "--" in words else len(words)
    return shlex.join((*words[:end], *options, *words[end:])) + (f" < {file}" if file else "")

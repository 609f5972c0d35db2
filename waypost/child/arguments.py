"""The child's command line, read by a table of its own: a host writes it, and `argparse` is 7 ms of every start."""

from collections.abc import Sequence

from waypost.child.errors import ChildError

USAGE = """\
usage: python -m waypost.child --parent PID --root DIR --module NAME [--tree DIR] [--sha256 HEX]
                               [--retry-first SECONDS] [--retry-cap SECONDS]
                               [--box TEXT]
       python -m waypost.child --describe FILE [--tree DIR] [--parent PID] [--box TEXT]
       python -m waypost.child --rehearse FILE [--tree DIR] [--parent PID] [--box TEXT] < RUNS

Started by a Waypost host.

  --describe FILE        print what the file declares, as JSON
  --rehearse FILE        print whether its code goes on with the runs on standard input, as JSON
  --parent PID           the host's process
  --mark TEXT            by which what it starts is found (ipc.strays); nothing is done with it here
  --box TEXT             how it is isolated (ipc.box)
  --root DIR             the folder of the import path that holds the code
  --module NAME          the workflow file's dotted name in there
  --tree DIR             the materialised tree of code that it lies in
  --sha256 HEX           the hash of that tree, or of the file
  --compiled HEX         the hash of what the host has compiled of it
  --retry-first SECONDS  before the first further try of a step
  --retry-cap SECONDS    before any further try, at most"""


class BadUsage(ChildError):
    """A command line that can't be understood; the text is for whoever typed it."""


class Options:
    """What a command line says; None where it says nothing."""

    help: bool = False
    describe: str | None = None
    rehearse: str | None = None
    parent: int | None = None
    box: str | None = None
    mark: str | None = None
    root: str | None = None
    module: str | None = None
    tree: str | None = None
    sha256: str | None = None
    compiled: str | None = None
    retry_first: float | None = None
    retry_cap: float | None = None


_KINDS: dict[str, type[str | int | float]] = {
    "describe": str,
    "rehearse": str,
    "parent": int,
    "box": str,
    "mark": str,
    "root": str,
    "module": str,
    "tree": str,
    "sha256": str,
    "compiled": str,
    "retry_first": float,
    "retry_cap": float,
}


def read(arguments: Sequence[str]) -> Options:
    """Read ``--name value`` and ``--name=value``; of a name that comes twice the last one holds. Raises BadUsage."""
    options, rest = Options(), iter(arguments)
    for argument in rest:
        if argument in {"-h", "--help"}:
            options.help = True
            continue
        name, given, value = argument.partition("=")
        field = name.removeprefix("--").replace("-", "_")
        kind = _KINDS.get(field) if name.startswith("--") else None
        if kind is None:
            raise BadUsage(f"{argument!r} is no argument of this program")
        text = value if given else next(rest, None)
        if text is None or (not given and text.startswith("--")):
            raise BadUsage(f"{name} wants a value")
        try:
            setattr(options, field, kind(text))
        except ValueError:
            raise BadUsage(f"{name} wants a number, not {text!r}") from None
    return options

"""The entry point of the ``waypost`` command: three open streams, and everything loaded as quickly as it goes."""

import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command; ends the process with one of ``waypost.host.exits``."""
    try:
        _three_streams()
        # Loading makes much and throws nothing away: looking for garbage meanwhile is a tenth of what `--help` takes.
        gc.disable()
        from waypost.cli.command import run

        gc.freeze()
        gc.enable()
        status = run(sys.argv[1:] if arguments is None else arguments)
    except KeyboardInterrupt:  # a verb has its own end for it; this came before there was one
        status = 130
    _let_go()
    sys.exit(status)


def _let_go() -> None:
    """Forget what a host couldn't say: else Python tries it once more at exit, and ends with a status of its own."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except (OSError, ValueError):
            with suppress(OSError, ValueError):  # it has no descriptor
                os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def _three_streams() -> None:
    """Open what was closed at the start (``<&-``, ``>&-``): else the next file, a lock or a key, became stdout."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            # The lowest free descriptor, and so the stream's own.
            setattr(sys, name, os.fdopen(os.open(os.devnull, os.O_RDWR), mode, encoding="utf-8"))


if __name__ == "__main__":
    main()

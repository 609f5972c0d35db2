"""The command line as a function: a user's mistake is a message and an exit code, never a traceback."""

import os
import sys
from collections.abc import Sequence

import typer

from waypost.cli import (  # noqa: F401 - each adds its verbs to the app
    commands_deployment,
    commands_hosting,
    commands_keeping,
    commands_looking,
    commands_steering,
)
from waypost.cli.app import app as app  # noqa: PLC0414 - with all of its verbs
from waypost.cli.output import complain, err
from waypost.host.exits import Exit, exit_for
from waypost.model.errors import WaypostError

_INTERRUPTED = 130
# The base of typer's errors of usage; which library it lies in depends on typer's version.
_ClickError = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "ClickException")
_UsageError = next(kind for kind in typer.BadParameter.__mro__ if kind.__name__ == "UsageError")


def run(arguments: Sequence[str]) -> int:
    """Run the command; the exit status."""
    command = typer.main.get_command(app)
    try:
        return int(command.main(list(arguments), "waypost", standalone_mode=False) or 0)
    except (KeyboardInterrupt, typer.Abort):
        return _INTERRUPTED
    except BrokenPipeError:
        # Whoever read our output has gone; Python must not trip over it once more at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.OK
    except Exception as error:
        status = _told(error)
        if status is None:
            raise
        return status


def _told(error: Exception) -> Exit | None:
    """Say what is wrong, if it is the user's, the disk's or the host's; None for a bug of ours."""
    match error:
        case WaypostError():
            complain(error.message, error.hint)
            # Storage and keys speak for themselves; everything else has a code of the API's.
            storage = type(error).__module__.startswith("substrate.")
            return Exit.DATA if storage else exit_for(getattr(error, "code", ""))
        case OSError():
            where = f"{error.filename}: " if error.filename else ""
            complain(f"{where}{error.strerror or error}", "check the disk and who may use it, then try again")
            return Exit.DATA
        case _ if isinstance(error, _ClickError):
            return _misused(error)
        case _:
            return None


def _misused(error: Exception) -> Exit:
    shown = getattr(error, "format_message", None)
    text = str(shown() if callable(shown) else error)
    if text.startswith("Usage:"):  # nothing was asked for at all: this is the help
        err(text)
    else:
        verb = getattr(getattr(error, "ctx", None), "command_path", "waypost")
        help_ = "lists the verbs" if verb == "waypost" else "says what it takes"
        complain(text, f"`{verb} --help` {help_}")
    return Exit.USAGE if isinstance(error, _UsageError) else Exit.REFUSED

"""The verb that explains, and the option that says which version does; they join the others."""

from typing import Annotated, Optional

import typer

from waypost.cli.commands import Data, Json, app

__all__ = ["app"]


def _version(wanted: bool) -> None:  # noqa: FBT001 - typer's form
    if wanted:
        from waypost import __version__
        from waypost.cli.output import out

        out(f"waypost {__version__}")
        raise typer.Exit


@app.callback()
def itself(
    version: Annotated[  # noqa: FBT002 - typer's form; done where it is read, before any verb
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which version this is.")
    ] = False,
) -> None:
    """What may stand before a verb."""


@app.command()
def why(
    what: Annotated[
        Optional[str],  # noqa: UP045 - typer reads these at run time, and its oldest one knows only this
        typer.Argument(metavar="[RUN|DEPLOYMENT|MAIL]", help="Such as run_3, expenses, or expenses/3; else all."),
    ] = None,
    data: Data = None,
    json: Json = False,  # noqa: FBT002 - typer's form
) -> int:
    """Say what it waits for, since when, until when, what follows, and what to do next."""
    from waypost.cli import explaining

    return explaining.why(what, data, as_json=json)

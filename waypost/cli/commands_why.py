"""The verb that explains; it joins the others."""

from typing import Annotated, Optional

import typer

from waypost.cli.commands import Data, Json, app

__all__ = ["app"]


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

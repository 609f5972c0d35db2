"""The verbs that look at a whole host, and follow what happens; they join the others."""

from typing import Annotated, Optional

import typer

from waypost.cli.commands import Data, Json
from waypost.cli.commands_running import app

__all__ = ["app"]


@app.command()
def top(
    once: Annotated[bool, typer.Option("--once", help="Say it once, and end.")] = False,  # noqa: FBT002 - typer's form
    every: Annotated[
        float, typer.Option("--every", metavar="SECONDS", min=0.2, max=3600, help="Between two looks.")
    ] = 2.0,
    data: Data = None,
    json: Json = False,  # noqa: FBT002 - the same
) -> int:
    """Show how each deployment is, and what its runs wait on, until Ctrl-C."""
    from waypost.cli import top as looking

    return looking.top(data, once=once, every=every, as_json=json)


@app.command()
def tail(
    what: Annotated[
        Optional[str],  # noqa: UP045 - typer reads these at run time, and its oldest one knows only this
        typer.Argument(metavar="[RUN|DEPLOYMENT]", help="A run, to its end; a deployment; else everything."),
    ] = None,
    after: Annotated[
        int, typer.Option("--after", metavar="SEQ", min=0, max=10**15, help="Of a run: only what follows this event.")
    ] = 0,
    data: Data = None,
    json: Json = False,  # noqa: FBT002 - the same
) -> int:
    """Follow a run to its end, or all that happens, an event a line."""
    from waypost.cli import tail as following

    return following.tail(what, after, data, as_json=json)


@app.command()
def metrics(data: Data = None) -> int:
    """Print the host's metrics, in Prometheus' text format."""
    from waypost.cli import measuring

    return measuring.metrics(data)

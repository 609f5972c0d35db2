"""The verbs that look at a whole host, and follow what happens; they join the others."""

from typing import Annotated

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
def metrics(data: Data = None) -> int:
    """Print the host's metrics, in Prometheus' text format."""
    from waypost.cli import measuring

    return measuring.metrics(data)

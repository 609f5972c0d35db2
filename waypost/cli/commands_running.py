"""The verbs that steer a deployment that its host runs; they join the others."""

from typing import Annotated

import typer

from waypost.cli.commands import Data, Deployment
from waypost.cli.commands_credentials import credentials
from waypost.cli.commands_why import app

__all__ = ["app"]

app.add_typer(credentials, name="credentials")


@app.command()
def drain(
    deployment: Deployment,
    end: Annotated[bool, typer.Option("--end", help="Out of service: wait until every run has ended.")] = False,  # noqa: FBT002 - typer's form
    data: Data = None,
) -> int:
    """Let what executes come to rest, show what is waited for, then hold the deployment."""
    from waypost.cli import draining

    return draining.drain(deployment, data, end=end)


@app.command()
def recycle(
    deployment: Deployment,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why, for whoever looks later.")] = "",
    data: Data = None,
) -> int:
    """Give a deployment a fresh process, once what executes has come to rest."""
    from waypost.cli import draining

    return draining.recycle(deployment, reason, data)


@app.command()
def reset(deployment: Deployment, data: Data = None) -> int:
    """Let a deployment that was crash-looping have a process again."""
    from waypost.cli import writing

    return writing.reset(deployment, data)

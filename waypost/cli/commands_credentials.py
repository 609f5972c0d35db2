"""The verbs that look after credentials."""

from typing import Annotated, Optional

import typer

from waypost.cli.commands import Data, Json

credentials = typer.Typer(help="The secrets of deployments: where they are, never what they are.", no_args_is_help=True)


@credentials.command("list")
def list_(data: Data = None, json: Json = False) -> int:  # noqa: FBT002 - typer's form
    """List what credentials.toml names, and how reading it went."""
    from waypost.cli import trusting

    return trusting.shown(data, as_json=json)


@credentials.command()
def check(data: Data = None, json: Json = False) -> int:  # noqa: FBT002 - typer's form
    """Try whether each can be read now; nothing is kept of it."""
    from waypost.cli import trusting

    return trusting.check(data, as_json=json)


@credentials.command()
def reload(
    deployment: Annotated[
        Optional[str],  # noqa: UP045 - see commands.py
        typer.Argument(metavar="[DEPLOYMENT]", help="Whose delivery is waited for; else everybody's."),
    ] = None,
    data: Data = None,
    json: Json = False,  # noqa: FBT002 - typer's form
) -> int:
    """Read credentials.toml and what is in use anew, and deliver it to what runs."""
    from waypost.cli import trusting

    return trusting.reload(deployment, data, as_json=json)

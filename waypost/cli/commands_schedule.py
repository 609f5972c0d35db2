"""The verbs of cron schedules; they join the others."""

from typing import Annotated, Optional

import typer

from waypost.cli.commands import Data, Json
from waypost.cli.commands_looking import app

__all__ = ["app"]

schedule = typer.Typer(help="What is due by the clock: @workflow.cron.", no_args_is_help=True)
app.add_typer(schedule, name="schedule")

Which = Annotated[
    Optional[str],  # noqa: UP045 - typer reads these at run time, and its oldest one knows only this
    typer.Argument(metavar="[DEPLOYMENT]", help="A deployment's name."),
]


@schedule.command(name="list")
def list_(deployment: Which = None, data: Data = None, json: Json = False) -> int:  # noqa: FBT002 - typer's form
    """List schedules: when each is due next, and how its last tick went."""
    from waypost.cli import scheduling

    return scheduling.listed(deployment, data, as_json=json)


@schedule.command(name="next")
def next_(
    deployment: Which = None,
    count: Annotated[int, typer.Option("--count", metavar="N", min=1, max=100, help="How many ticks.")] = 5,
    expression: Annotated[
        Optional[str],  # noqa: UP045 - see above
        typer.Option("--expression", metavar="CRON", help="Instead of a deployment: try this, such as '0 9 * * *'."),
    ] = None,
    tz: Annotated[str, typer.Option("--tz", metavar="ZONE", help="Of the expression, such as Europe/Berlin.")] = "UTC",
    gap: Annotated[str, typer.Option("--gap", metavar="run-after|skip", help="Of the expression.")] = "run-after",
    repeat: Annotated[str, typer.Option("--repeat", metavar="first|both", help="Of the expression.")] = "first",
    data: Data = None,
    json: Json = False,  # noqa: FBT002 - typer's form
) -> int:
    """Say when a deployment's schedules are due next, or when an expression would be."""
    from waypost.cli import scheduling

    if expression is not None and deployment is None:
        return scheduling.tried(expression, tz=tz, gap=gap, repeat=repeat, count=count, as_json=json)
    return scheduling.following(deployment, expression, data, count=count, as_json=json)

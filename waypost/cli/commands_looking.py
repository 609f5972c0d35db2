"""The verbs that look: at runs, at a whole host, at what is due."""

# ruff: noqa: FBT002 - a flag is a bool with a default: typer's form

from typing import Annotated

import typer

from waypost.cli.app import Data, Json, Run, app
from waypost.cli.verbs import Whole

schedule = typer.Typer(cls=Whole, help="What is due by the clock: @workflow.cron.", no_args_is_help=True)
app.add_typer(schedule, name="schedule")

Which = Annotated[str | None, typer.Argument(metavar="[DEPLOYMENT]", help="A deployment's name.")]


@app.command()
def runs(
    deployment: Which = None,
    state: Annotated[
        list[str] | None,
        typer.Option("--state", metavar="STATE", help="Only those: live, or parked, failed, …; may be repeated."),
    ] = None,
    limit: Annotated[int, typer.Option("--limit", metavar="N", min=1, max=1000, help="At most so many.")] = 1000,
    data: Data = None,
    json: Json = False,
) -> int:
    """List runs, newest first, with what each waits on."""
    from waypost.cli import reading

    return reading.runs(data, deployment, state or (), limit, as_json=json)


@app.command()
def why(
    what: Annotated[
        str | None,
        typer.Argument(metavar="[RUN|DEPLOYMENT|MAIL]", help="Such as run_3, expenses, or expenses/3; else all."),
    ] = None,
    data: Data = None,
    json: Json = False,
) -> int:
    """Say what a run, a mail or a deployment waits for, since and until when, and what to do next."""
    from waypost.cli import explaining

    return explaining.why(what, data, as_json=json)


@app.command()
def show(run: Run, data: Data = None, json: Json = False) -> int:
    """Show a run's timeline."""
    from waypost.cli import reading

    return reading.show(run, data, as_json=json)


@app.command()
def log(run: Run, data: Data = None, json: Json = False) -> int:  # noqa: ARG001 - its lines are JSON anyway
    """Print a run's events as they are stored, one line of JSON each."""
    from waypost.cli import reading

    return reading.log(run, data)


@app.command()
def tail(
    what: Annotated[
        str | None, typer.Argument(metavar="[RUN|DEPLOYMENT]", help="A run, to its end; a deployment; else everything.")
    ] = None,
    after: Annotated[
        int, typer.Option("--after", metavar="SEQ", min=0, max=10**15, help="Of a run: only what follows this event.")
    ] = 0,
    data: Data = None,
    json: Json = False,
) -> int:
    """Follow a run to its end, or all that happens, an event a line."""
    from waypost.cli import tail as following

    return following.tail(what, after, data, as_json=json)


@app.command()
def top(
    once: Annotated[bool, typer.Option("--once", help="Say it once, and end.")] = False,
    every: Annotated[
        float, typer.Option("--every", metavar="SECONDS", min=0.2, max=3600, help="Between two looks.")
    ] = 2.0,
    data: Data = None,
    json: Json = False,
) -> int:
    """Show how each deployment is, and what its runs wait on, until Ctrl-C."""
    from waypost.cli import top as looking

    return looking.top(data, once=once, every=every, as_json=json)


@schedule.command(name="list")
def list_(deployment: Which = None, data: Data = None, json: Json = False) -> int:
    """List schedules: when each is due next, and how its last tick went."""
    from waypost.cli import scheduling

    return scheduling.listed(deployment, data, as_json=json)


@schedule.command(name="next")
def next_(
    deployment: Which = None,
    count: Annotated[int, typer.Option("--count", metavar="N", min=1, max=100, help="How many ticks.")] = 5,
    expression: Annotated[
        str | None,
        typer.Option("--expression", metavar="CRON", help="Instead of a deployment: try this, such as '0 9 * * *'."),
    ] = None,
    tz: Annotated[str, typer.Option("--tz", metavar="ZONE", help="Of the expression, such as Europe/Berlin.")] = "UTC",
    gap: Annotated[str, typer.Option("--gap", metavar="run-after|skip", help="Of the expression.")] = "run-after",
    repeat: Annotated[str, typer.Option("--repeat", metavar="first|both", help="Of the expression.")] = "first",
    data: Data = None,
    json: Json = False,
) -> int:
    """Say when a deployment's schedules are due next, or when an expression would be."""
    from waypost.cli import scheduling

    if expression is not None and deployment is None:
        return scheduling.tried(expression, tz=tz, gap=gap, repeat=repeat, count=count, as_json=json)
    return scheduling.following(deployment, expression, data, count=count, as_json=json)


@app.command()
def metrics(data: Data = None) -> int:
    """Print the host's metrics, in Prometheus' text format."""
    from waypost.cli import measuring

    return measuring.metrics(data)

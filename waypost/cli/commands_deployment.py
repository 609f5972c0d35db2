"""The verbs that look after a deployment: its process, its grants, its credentials."""

# ruff: noqa: FBT002 - a flag is a bool with a default: typer's form

from typing import Annotated

import typer

from waypost.cli.app import Data, Deployment, Json, app
from waypost.cli.verbs import Whole

grants = typer.Typer(cls=Whole, help="What a deployment's steps may do.", no_args_is_help=True)
app.add_typer(grants, name="grants")
credentials = typer.Typer(
    cls=Whole, help="The secrets of deployments: where they are, never what they are.", no_args_is_help=True
)
app.add_typer(credentials, name="credentials")

Step = Annotated[
    str | None, typer.Argument(metavar="[STEP]", help="A step by its name; else the run, and so all of its steps.")
]
Mail = Annotated[
    list[str] | None,
    typer.Option("--mail", metavar="ADDRESS", help="Whom it may mail, or *@example.com; may be given often."),
]
Secret = Annotated[
    list[str] | None,
    typer.Option("--secret", metavar="HANDLE", help="A credential that it may read; may be given often."),
]
Child = Annotated[
    list[str] | None,
    typer.Option("--workflow", metavar="NAME", help="A child workflow that it may start; may be given often."),
]


@app.command()
def drain(
    deployment: Deployment,
    end: Annotated[bool, typer.Option("--end", help="Out of service: wait until every run has ended.")] = False,
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


@grants.command("show")
def show(deployment: Deployment, step: Step = None, data: Data = None, json: Json = False) -> int:
    """Show what each step is granted, and what it asks for."""
    from waypost.cli import granting

    return granting.show(deployment, step, data, as_json=json)


@grants.command("set")
def set_(  # noqa: PLR0913, PLR0917 - an option each
    deployment: Deployment,
    step: Step = None,
    mail: Mail = None,
    secret: Secret = None,
    workflow: Child = None,
    declared: Annotated[
        bool, typer.Option("--declared", help="Mail to whom, and child runs of what, the workflow declares, again.")
    ] = False,
    asked: Annotated[bool, typer.Option("--asked", help="All secrets that its code asks for.")] = False,
    data: Data = None,
    json: Json = False,
) -> int:
    """Grant a step, or the run, something more."""
    from waypost.cli import granting

    return granting.change(
        deployment,
        step,
        data,
        mail=mail or (),
        secrets=secret or (),
        children=workflow or (),
        give_more=True,
        declared=declared,
        asked=asked,
        as_json=json,
    )


@grants.command("revoke")
def revoke(
    deployment: Deployment,
    step: Step = None,
    mail: Mail = None,
    secret: Secret = None,
    workflow: Child = None,
    data: Data = None,
    json: Json = False,
) -> int:
    """Take something back; it holds at once, for runs that are under way as well."""
    from waypost.cli import granting

    return granting.change(
        deployment,
        step,
        data,
        mail=mail or (),
        secrets=secret or (),
        children=workflow or (),
        give_more=False,
        as_json=json,
    )


@grants.command("export")
def export(
    deployment: Deployment,
    folder: Annotated[str, typer.Argument(metavar="DIR", help="Where a folder for each step is made.")],
    data: Data = None,
) -> int:
    """Write out what is granted, as the reference system's agent-state repositories have it."""
    from waypost.cli import granting

    return granting.export_to(deployment, folder, data)


@credentials.command("list")
def list_(data: Data = None, json: Json = False) -> int:
    """List what credentials.toml names, and how reading it went."""
    from waypost.cli import trusting

    return trusting.shown(data, as_json=json)


@credentials.command()
def check(data: Data = None, json: Json = False) -> int:
    """Try whether each can be read now; nothing is kept of it."""
    from waypost.cli import trusting

    return trusting.check(data, as_json=json)


@credentials.command()
def reload(
    deployment: Annotated[
        str | None, typer.Argument(metavar="[DEPLOYMENT]", help="Whose delivery is waited for; else everybody's.")
    ] = None,
    data: Data = None,
    json: Json = False,
) -> int:
    """Read credentials.toml and what is in use anew, and deliver it to what runs."""
    from waypost.cli import trusting

    return trusting.reload(deployment, data, as_json=json)

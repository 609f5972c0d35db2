"""The verbs that say what a deployment's steps may do; they join the others."""

from typing import Annotated, Optional

import typer

from waypost.cli.commands import Data, Deployment, Json
from waypost.cli.commands_schedule import app

__all__ = ["app"]

grants = typer.Typer(help="What a deployment's steps may do.", no_args_is_help=True)
app.add_typer(grants, name="grants")

# Optional[…] and not … | None: typer reads these at run time, and the oldest one we allow knows only the former.
Step = Annotated[
    Optional[str],  # noqa: UP045 - see above
    typer.Argument(metavar="[STEP]", help="A step by its name; else the run, and so all of its steps."),
]
Mail = Annotated[
    Optional[list[str]],  # noqa: UP045 - see above
    typer.Option("--mail", metavar="ADDRESS", help="Whom it may mail, or *@example.com; may be given often."),
]
Secret = Annotated[
    Optional[list[str]],  # noqa: UP045 - see above
    typer.Option("--secret", metavar="HANDLE", help="A credential that it may read; may be given often."),
]
Child = Annotated[
    Optional[list[str]],  # noqa: UP045 - see above
    typer.Option("--workflow", metavar="DEPLOYMENT", help="Whose runs it may start; may be given often."),
]


@grants.command("show")
def show(deployment: Deployment, step: Step = None, data: Data = None, json: Json = False) -> int:  # noqa: FBT002
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
    declared: Annotated[  # noqa: FBT002 - typer's form
        bool, typer.Option("--declared", help="Mail goes to whom the workflow declares, again.")
    ] = False,
    asked: Annotated[bool, typer.Option("--asked", help="All secrets that its code asks for.")] = False,  # noqa: FBT002
    data: Data = None,
    json: Json = False,  # noqa: FBT002 - the same
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
    json: Json = False,  # noqa: FBT002 - typer's form
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

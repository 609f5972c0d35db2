"""The command line's frame: the application, what may stand before a verb, and the options that many verbs have.

A module ``commands_*`` for each group of `waypost --help` adds the verbs; each verb imports what it needs when called.
"""

from typing import Annotated

import typer

from waypost.cli.verbs import Verbs

app = typer.Typer(
    name="waypost",
    cls=Verbs,
    help="A durable host for long-lived workflows: mail in, every step a signed git commit.",
    rich_markup_mode=None,
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)

Data = Annotated[
    str | None,
    typer.Option("--data", metavar="DIR", help="The data directory; else $WAYPOST_DATA, else the nearest .waypost."),
]
Json = Annotated[bool, typer.Option("--json", help="For programs: a line of JSON for each answer.")]
Run = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, or the beginning of it, such as run_3.")]
Deployment = Annotated[str, typer.Argument(metavar="DEPLOYMENT", help="A deployment's name.")]


def _version(wanted: bool) -> None:  # noqa: FBT001 - typer's form
    if wanted:
        from waypost import __version__
        from waypost.cli.output import out

        out(f"waypost {__version__}")
        raise typer.Exit


@app.callback()
def itself(
    version: Annotated[  # noqa: FBT002 - typer's form; read before any verb
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Say which version this is.")
    ] = False,
) -> None:
    """What may stand before a verb."""

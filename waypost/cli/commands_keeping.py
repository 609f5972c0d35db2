"""The verbs that prove a history, keep it, and move it."""

# ruff: noqa: FBT002 - a flag is a bool with a default: typer's form

from typing import Annotated

import typer

from waypost.cli.app import Data, Deployment, Json, app


@app.command()
def verify(
    repository: Annotated[
        str | None,
        typer.Argument(
            metavar="[DEPLOYMENT|PATH]", help="A deployment, a repository or a clone; else all of the data."
        ),
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", metavar="FILE", help="The public key that must have signed.")
    ] = None,
    receipt: Annotated[
        str | None, typer.Option("--receipt", metavar="FILE", help="A receipt whose flush must be in the history.")
    ] = None,
    data: Data = None,
    json: Json = False,
) -> int:
    """Check signatures, chains and hashes of the whole history."""
    from waypost.cli import reading

    return reading.verify(data, key, repository, receipt, as_json=json)


@app.command()
def fsck(
    what: Annotated[
        str | None,
        typer.Argument(
            metavar="[DEPLOYMENT|PATH]", help="A deployment, a repository or a clone; else all of the data."
        ),
    ] = None,
    tip: Annotated[bool, typer.Option("--tip", help="The newest commit alone.")] = False,
    into: Annotated[
        str | None, typer.Option("--salvage", metavar="DIR", help="Copy what is readable to DIR instead of checking.")
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", metavar="FILE", help="The host's public key, where it isn't in the data.")
    ] = None,
    data: Data = None,
    json: Json = False,
) -> int:
    """Check every commit of a repository by the rules that its host writes by; changes nothing."""
    from waypost.cli import checking

    return checking.fsck(what, data, key, tip=tip, into=into, as_json=json)


@app.command()
def receipt(deployment: Deployment, data: Data = None) -> int:
    """Print a signed statement of how far a deployment's history reaches."""
    from waypost.cli import keeping

    return keeping.receipt(deployment, data)


@app.command()
def backup(
    deployment: Deployment,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where the backup goes; must not exist.")],
    with_keys: Annotated[bool, typer.Option("--with-keys", help="The host's private keys go in, too.")] = False,
    data: Data = None,
) -> int:
    """Write all of a deployment into one file."""
    from waypost.cli import keeping

    return keeping.backup(deployment, file, data, with_keys=with_keys)


@app.command()
def restore(
    file: Annotated[str | None, typer.Argument(metavar="[FILE]", help="A backup.")] = None,
    source: Annotated[
        str | None, typer.Option("--from", metavar="GIT-URL", help="Instead of a backup: a git remote, or a clone.")
    ] = None,
    key: Annotated[
        str | None, typer.Option("--key", metavar="FILE", help="A public key that must have signed it.")
    ] = None,
    data: Data = None,
    allow_network_fs: Annotated[
        bool, typer.Option("--allow-network-fs", help="Take the risk of a network or FUSE file system.")
    ] = False,
) -> int:
    """Bring a deployment in, held until `waypost resume` lets it go on."""
    from waypost.cli import keeping

    return keeping.restore(file, source, key, data, allow_network=allow_network_fs)


@app.command(name="rotate-key")
def rotate_key(data: Data = None) -> int:
    """Replace the key that signs the history; the old one names the new one, and is destroyed."""
    from waypost.cli import keeping

    return keeping.rotate_key(data)


@app.command(name="accept-rollback")
def accept_rollback(deployment: Deployment, data: Data = None) -> int:
    """Go on from what is left of a repository that was rolled back."""
    from waypost.cli import keeping

    return keeping.accept_rollback(deployment, data)


@app.command(name="import")
def import_(
    repository: Annotated[str, typer.Argument(metavar="REPO", help="A repository of the reference system; only read.")],
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="What the deployment is to be called.")],
    address: Annotated[
        str | None, typer.Option("--address", metavar="ADDRESS", help="Its address, if it isn't the repository's own.")
    ] = None,
    grants: Annotated[
        list[str] | None,
        typer.Option("--grants", metavar="STEP=REPO", help="A step's agent-state repository; may be given often."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,
    data: Data = None,
    json: Json = False,
) -> int:
    """Take over a deployment of the reference system, as one of its own."""
    from waypost.cli import importing

    return importing.take_over(
        repository, name=name, address=address, grants=grants or (), data=data, preview=dry_run, as_json=json
    )

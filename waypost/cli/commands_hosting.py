"""The verbs that host a workflow."""

# ruff: noqa: FBT002 - a flag is a bool with a default: typer's form

from typing import Annotated

import typer

from waypost.cli.app import Data, Json, app


@app.command()
def run(  # noqa: PLR0913, PLR0917 - an option each
    files: Annotated[
        list[str] | None,
        typer.Argument(metavar="[FILE|DIR]...", help="Workflows; one host runs them all. None: all that is deployed."),
    ] = None,
    data: Data = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No timeline.")] = False,
    allow_network_fs: Annotated[
        bool, typer.Option("--allow-network-fs", help="Take the risk of a network or FUSE file system.")
    ] = False,
    isolation: Annotated[
        str | None,
        typer.Option("--isolation", metavar="MODE", help="namespace, uid or none; else the strongest there is."),
    ] = None,
    reads: Annotated[
        list[str] | None,
        typer.Option("--reads", metavar="PATH", help="What workflows may read beside the system; may be given often."),
    ] = None,
    writes: Annotated[
        list[str] | None,
        typer.Option("--writes", metavar="PATH", help="What workflows may also write; may be given often."),
    ] = None,
    no_network: Annotated[bool, typer.Option("--no-network", help="Workflows have no network.")] = False,
    memory: Annotated[
        str | None,
        typer.Option("--memory", metavar="SIZE", help="Writable memory of a workflow's process at most, such as 512M."),
    ] = None,
    processes: Annotated[
        int,
        typer.Option(
            "--processes", metavar="N", min=0, help="Processes and threads of a workflow at most; 0: no limit."
        ),
    ] = 0,
    open_files: Annotated[
        int,
        typer.Option(
            "--open-files",
            metavar="N",
            min=0,
            help="Open files of each of its processes at most; 0: the host's own limit.",
        ),
    ] = 0,
    uids: Annotated[
        str | None, typer.Option("--uids", metavar="FIRST-LAST", help="Users that a root host may give to workflows.")
    ] = None,
    limit: Annotated[
        list[str] | None,
        typer.Option("--limit", metavar="NAME=VALUE", help="A bound such as idle=600; a wrong name lists them all."),
    ] = None,
    metrics: Annotated[
        str | None,
        typer.Option("--metrics", metavar="[ADDRESS:]PORT", help="Serve a page of metrics, to this machine alone."),
    ] = None,
) -> int:
    """Deploy workflows and run their host in the foreground, until Ctrl-C."""
    from waypost.host.own import check_own

    check_own()  # first of all: importing somebody else's `actors` would fail in somebody else's words

    from waypost.cli import isolating, running
    from waypost.cli.bounds import bounds

    asked = isolating.asked(
        isolation,
        reads=reads or (),
        writes=writes or (),
        no_network=no_network,
        memory=memory,
        processes=processes,
        files=open_files,
        uids=uids,
    )
    return running.run(
        files or (),
        data,
        quiet=quiet,
        allow_network=allow_network_fs,
        asked=asked,
        limits=bounds(limit or ()),
        metrics=metrics,
    )


@app.command()
def deploy(
    place: Annotated[str, typer.Argument(metavar="FILE|DIR", help="A workflow's file, or the folder that it is in.")],
    grant: Annotated[bool, typer.Option("--grant", help="And grant its steps the secrets that they ask for.")] = False,
    check: Annotated[bool, typer.Option("--check", help="Store nothing: say which live runs it would pause.")] = False,
    data: Data = None,
    json: Json = False,
) -> int:
    """Store a workflow's code in its repository; its next process runs it."""
    from waypost.host.own import check_own

    check_own()

    from waypost.cli import deploying

    if check:
        return deploying.check(place, data, as_json=json)
    return deploying.deploy(place, data, grant=grant, as_json=json)


@app.command()
def send(
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="A deployment's address.")], data: Data = None
) -> int:
    """Send the mail on standard input to ADDRESS."""
    from waypost.cli import writing

    return writing.send(address, data)

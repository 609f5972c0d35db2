"""The verbs and their options. Each imports what it needs when it is called."""

from typing import Annotated, Optional

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
)

queue = typer.Typer(help="Mail that no run has: on hold, or rejected.", no_args_is_help=True)
app.add_typer(queue, name="queue")

# Optional[…] and not … | None: typer reads these at run time, and the oldest one we allow knows only the former.
Data = Annotated[
    Optional[str],  # noqa: UP045 - see above
    typer.Option("--data", metavar="DIR", help="The data directory; else $WAYPOST_DATA, else the nearest .waypost."),
]
Json = Annotated[bool, typer.Option("--json", help="For programs: a line of JSON for each answer.")]
Run = Annotated[str, typer.Argument(metavar="RUN", help="A run's id, or the beginning of it, such as run_3.")]
Deployment = Annotated[str, typer.Argument(metavar="DEPLOYMENT", help="A deployment's name.")]
Mail = Annotated[str, typer.Argument(metavar="MAIL", help="A mail on hold, as the list names it: expenses/3, or 3.")]
Call = Annotated[
    Optional[str],  # noqa: UP045 - see above
    typer.Option("--call", metavar="C", help="Which approval, where several are open."),
]
Comment = Annotated[str, typer.Option("--comment", metavar="TEXT", help="What to say with it.")]


@app.command()
def run(  # noqa: PLR0913, PLR0917 - an option each
    files: Annotated[
        Optional[list[str]],  # noqa: UP045 - see above
        typer.Argument(metavar="[FILE|DIR]...", help="Workflows; one host runs them all. None: all that is deployed."),
    ] = None,
    data: Data = None,
    quiet: Annotated[bool, typer.Option("--quiet", help="No timeline.")] = False,  # noqa: FBT002 - typer's form
    allow_network_fs: Annotated[  # noqa: FBT002 - the same
        bool, typer.Option("--allow-network-fs", help="Take the risk of a network or FUSE file system.")
    ] = False,
    isolation: Annotated[
        Optional[str],  # noqa: UP045 - see above
        typer.Option("--isolation", metavar="MODE", help="namespace, uid or none; else the strongest there is."),
    ] = None,
    reads: Annotated[
        Optional[list[str]],  # noqa: UP045 - see above
        typer.Option("--reads", metavar="PATH", help="What workflows may read beside the system; may be given often."),
    ] = None,
    writes: Annotated[
        Optional[list[str]],  # noqa: UP045 - see above
        typer.Option("--writes", metavar="PATH", help="What workflows may also write; may be given often."),
    ] = None,
    no_network: Annotated[bool, typer.Option("--no-network", help="Workflows have no network.")] = False,  # noqa: FBT002
    memory: Annotated[
        Optional[str],  # noqa: UP045 - see above
        typer.Option("--memory", metavar="SIZE", help="Writable memory of a workflow's process at most, such as 512M."),
    ] = None,
    processes: Annotated[
        int, typer.Option("--processes", metavar="N", min=0, help="Processes and threads of a workflow at most.")
    ] = 0,
    open_files: Annotated[
        int, typer.Option("--open-files", metavar="N", min=0, help="Open files of each of its processes at most.")
    ] = 0,
    uids: Annotated[
        Optional[str],  # noqa: UP045 - see above
        typer.Option("--uids", metavar="FIRST-LAST", help="Users that a root host may give to workflows."),
    ] = None,
    limit: Annotated[
        Optional[list[str]],  # noqa: UP045 - see above
        typer.Option("--limit", metavar="NAME=VALUE", help="A bound of supervision, such as backoff_cap=10."),
    ] = None,
    metrics: Annotated[
        Optional[str],  # noqa: UP045 - see above
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
    grant: Annotated[bool, typer.Option("--grant", help="And grant its steps the secrets that they ask for.")] = False,  # noqa: FBT002 - typer's form
    data: Data = None,
    json: Json = False,  # noqa: FBT002 - typer's form
) -> int:
    """Store a workflow's code in its repository; its next process runs it."""
    from waypost.host.own import check_own

    check_own()

    from waypost.cli import deploying

    return deploying.deploy(place, data, grant=grant, as_json=json)


@app.command()
def send(
    address: Annotated[str, typer.Argument(metavar="ADDRESS", help="A deployment's address.")], data: Data = None
) -> int:
    """Send the mail on standard input to ADDRESS."""
    from waypost.cli import writing

    return writing.send(address, data)


@app.command()
def approve(run: Run, call: Call = None, comment: Comment = "", data: Data = None) -> int:
    """Answer an open approval with yes."""
    from waypost.cli import writing

    return writing.answer(run, data, call, comment, approved=True)


@app.command()
def cancel(
    run: Run,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is recorded.")],
    data: Data = None,
) -> int:
    """Ask for a run's end; its code may clean up first."""
    from waypost.cli import steering

    return steering.cancel(run, reason, data)


@app.command(name="signal")
def signal_(
    run: Run,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the run waits for, or will: signal(NAME).")],
    identity: Annotated[
        Optional[str],  # noqa: UP045 - see above
        typer.Option("--id", metavar="ID", help="The signal's identity: sent twice, it is received once."),
    ] = None,
    data: Data = None,
) -> int:
    """Send a run the JSON on standard input, under a name."""
    from waypost.cli import steering

    return steering.signal(run, name, identity, data)


@app.command()
def reject(run: Run, call: Call = None, comment: Comment = "", data: Data = None) -> int:
    """Answer an open approval with no."""
    from waypost.cli import writing

    return writing.answer(run, data, call, comment, approved=False)


@app.command()
def resume(
    what: Annotated[str, typer.Argument(metavar="RUN|DEPLOYMENT", help="A paused run, or a deployment that is held.")],
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask before a deployment goes on.")] = False,  # noqa: FBT002 - typer's form
    data: Data = None,
) -> int:
    """Let a paused run go on, or a held deployment, after listing what would go out."""
    from waypost.cli import writing

    return writing.resume(what, data) if what.startswith("run_") else writing.resume_held(what, data, yes=yes)


@app.command()
def backup(
    deployment: Deployment,
    file: Annotated[str, typer.Argument(metavar="FILE", help="Where the backup goes; must not exist.")],
    with_keys: Annotated[bool, typer.Option("--with-keys", help="The host's private keys go in, too.")] = False,  # noqa: FBT002 - typer's form
    data: Data = None,
) -> int:
    """Write all of a deployment into one file."""
    from waypost.cli import keeping

    return keeping.backup(deployment, file, data, with_keys=with_keys)


@app.command()
def restore(
    file: Annotated[
        Optional[str],  # noqa: UP045 - see above
        typer.Argument(metavar="[FILE]", help="A backup."),
    ] = None,
    source: Annotated[
        Optional[str],  # noqa: UP045 - see above
        typer.Option("--from", metavar="GIT-URL", help="Instead of a backup: a git remote, or a clone."),
    ] = None,
    key: Annotated[
        Optional[str],  # noqa: UP045 - see above
        typer.Option("--key", metavar="FILE", help="A public key that must have signed it."),
    ] = None,
    data: Data = None,
    allow_network_fs: Annotated[  # noqa: FBT002 - the same
        bool, typer.Option("--allow-network-fs", help="Take the risk of a network or FUSE file system.")
    ] = False,
) -> int:
    """Bring a deployment in, held until `waypost resume` lets it go on."""
    from waypost.cli import keeping

    return keeping.restore(file, source, key, data, allow_network=allow_network_fs)


@app.command(name="rotate-key")
def rotate_key(data: Data = None) -> int:
    """Exchange the key that signs the history; the old one names the new one, and is destroyed."""
    from waypost.cli import keeping

    return keeping.rotate_key(data)


@app.command(name="accept-rollback")
def accept_rollback(deployment: Deployment, data: Data = None) -> int:
    """Go on from what is left of a repository that was set back."""
    from waypost.cli import keeping

    return keeping.accept_rollback(deployment, data)


@queue.command(name="hold")
def queue_hold(data: Data = None, json: Json = False) -> int:  # noqa: FBT002 - typer's form
    """List the mail that is on hold, and why."""
    from waypost.cli import queue as verbs

    return verbs.hold(data, as_json=json)


@queue.command(name="release")
def queue_release(mail: Mail, data: Data = None) -> int:
    """Let a mail in from hold, as one of its own."""
    from waypost.cli import queue as verbs

    return verbs.release(mail, data)


@queue.command(name="reject")
def queue_reject(mail: Mail, data: Data = None) -> int:
    """Reject a mail on hold; it stays readable."""
    from waypost.cli import queue as verbs

    return verbs.reject(mail, data)


@queue.command(name="rejected")
def queue_rejected(data: Data = None, json: Json = False) -> int:  # noqa: FBT002 - typer's form
    """List the mail that was rejected after it had been accepted."""
    from waypost.cli import queue as verbs

    return verbs.rejected(data, as_json=json)


@app.command()
def approvals(
    follow: Annotated[bool, typer.Option("--follow", help="Then tell of each as it opens and closes.")] = False,  # noqa: FBT002 - typer's form
    data: Data = None,
    json: Json = False,  # noqa: FBT002 - the same
) -> int:
    """List what runs ask of people."""
    from waypost.cli import asking

    return asking.approvals(data, follow=follow, as_json=json)


@app.command()
def runs(data: Data = None, json: Json = False) -> int:  # noqa: FBT002 - typer's form
    """List runs, newest first, with what each waits on."""
    from waypost.cli import reading

    return reading.runs(data, as_json=json)


@app.command()
def show(run: Run, data: Data = None, json: Json = False) -> int:  # noqa: FBT002 - typer's form
    """Show a run's timeline."""
    from waypost.cli import reading

    return reading.show(run, data, as_json=json)


@app.command()
def log(run: Run, data: Data = None, json: Json = False) -> int:  # noqa: ARG001, FBT002 - its lines are JSON anyway
    """Print a run's events as they are stored, one line of JSON each."""
    from waypost.cli import reading

    return reading.log(run, data)


@app.command()
def verify(
    repository: Annotated[
        Optional[str],  # noqa: UP045 - see above
        typer.Argument(metavar="[REPOSITORY]", help="One repository, or a clone of one; else all of the data."),
    ] = None,
    key: Annotated[
        Optional[str],  # noqa: UP045 - see above
        typer.Option("--key", metavar="FILE", help="The public key that must have signed."),
    ] = None,
    receipt: Annotated[
        Optional[str],  # noqa: UP045 - see above
        typer.Option("--receipt", metavar="FILE", help="A receipt whose flush must be in the history."),
    ] = None,
    data: Data = None,
    json: Json = False,  # noqa: FBT002 - typer's form
) -> int:
    """Check signatures, chains and hashes of the whole history."""
    from waypost.cli import reading

    return reading.verify(data, key, repository, receipt, as_json=json)


@app.command()
def receipt(deployment: Deployment, data: Data = None) -> int:
    """Print the host's signed word on how far a deployment's history reaches."""
    from waypost.cli import keeping

    return keeping.receipt(deployment, data)


@app.command()
def fsck(
    what: Annotated[
        Optional[str],  # noqa: UP045 - see above
        typer.Argument(
            metavar="[DEPLOYMENT|PATH]", help="A deployment, a repository or a clone; else all of the data."
        ),
    ] = None,
    tip: Annotated[bool, typer.Option("--tip", help="The newest commit alone.")] = False,  # noqa: FBT002
    into: Annotated[
        Optional[str],  # noqa: UP045 - see above
        typer.Option("--salvage", metavar="DIR", help="Copy what is readable to DIR instead of checking."),
    ] = None,
    key: Annotated[
        Optional[str],  # noqa: UP045 - see above
        typer.Option("--key", metavar="FILE", help="The host's public key, where it isn't in the data."),
    ] = None,
    data: Data = None,
    json: Json = False,  # noqa: FBT002 - typer's form
) -> int:
    """Check every commit of a repository by the rules that its host writes by; changes nothing."""
    from waypost.cli import checking

    return checking.fsck(what, data, key, tip=tip, into=into, as_json=json)


@app.command(name="import")
def import_(
    repository: Annotated[str, typer.Argument(metavar="REPO", help="A repository of the reference system; only read.")],
    name: Annotated[str, typer.Option("--name", metavar="NAME", help="What the deployment is to be called.")],
    address: Annotated[
        Optional[str],  # noqa: UP045 - see above
        typer.Option("--address", metavar="ADDRESS", help="Its address, if it isn't the repository's own."),
    ] = None,
    grants: Annotated[
        Optional[list[str]],  # noqa: UP045 - see above
        typer.Option("--grants", metavar="STEP=REPO", help="A step's agent-state repository; may be given often."),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Only say what would be done.")] = False,  # noqa: FBT002
    data: Data = None,
    json: Json = False,  # noqa: FBT002 - typer's form
) -> int:
    """Take over a deployment of the reference system, as one of its own."""
    from waypost.cli import importing

    return importing.take_over(
        repository, name=name, address=address, grants=grants or (), data=data, preview=dry_run, as_json=json
    )

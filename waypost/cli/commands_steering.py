"""The verbs that answer and steer runs, and the mail that no run has."""

# ruff: noqa: FBT002 - a flag is a bool with a default: typer's form

from typing import Annotated

import typer

from waypost.cli.app import Data, Json, Run, app
from waypost.cli.verbs import Whole

queue = typer.Typer(cls=Whole, help="Mail that no run has: on hold, or rejected.", no_args_is_help=True)
app.add_typer(queue, name="queue")

Mail = Annotated[str, typer.Argument(metavar="MAIL", help="A mail on hold, as the list names it: expenses/3, or 3.")]
Call = Annotated[str | None, typer.Option("--call", metavar="C", help="Which approval, where several are open.")]
Comment = Annotated[str, typer.Option("--comment", metavar="TEXT", help="What to say with it.")]


@app.command()
def approvals(
    follow: Annotated[bool, typer.Option("--follow", help="Then tell of each as it opens and closes.")] = False,
    data: Data = None,
    json: Json = False,
) -> int:
    """List what runs ask of people."""
    from waypost.cli import asking

    return asking.approvals(data, follow=follow, as_json=json)


@app.command()
def approve(run: Run, call: Call = None, comment: Comment = "", data: Data = None) -> int:
    """Answer an open approval with yes."""
    from waypost.cli import writing

    return writing.answer(run, data, call, comment, approved=True)


@app.command()
def reject(run: Run, call: Call = None, comment: Comment = "", data: Data = None) -> int:
    """Answer an open approval with no."""
    from waypost.cli import writing

    return writing.answer(run, data, call, comment, approved=False)


@app.command(name="signal")
def signal_(
    run: Run,
    name: Annotated[str, typer.Argument(metavar="NAME", help="What the run waits for, or will: signal(NAME).")],
    identity: Annotated[
        str | None, typer.Option("--id", metavar="ID", help="The signal's identity: sent twice, it is received once.")
    ] = None,
    data: Data = None,
) -> int:
    """Send a run the JSON on standard input, under a name."""
    from waypost.cli import steering

    return steering.signal(run, name, identity, data)


@app.command()
def cancel(
    run: Run,
    reason: Annotated[str, typer.Option("--reason", metavar="TEXT", help="Why; it is recorded.")],
    data: Data = None,
) -> int:
    """Ask for a run's end; its code may clean up first."""
    from waypost.cli import steering

    return steering.cancel(run, reason, data)


@app.command()
def resume(
    what: Annotated[str, typer.Argument(metavar="RUN|DEPLOYMENT", help="A paused run, or a deployment that is held.")],
    yes: Annotated[bool, typer.Option("--yes", help="Don't ask before a deployment goes on.")] = False,
    data: Data = None,
) -> int:
    """Let a paused run go on, or a held deployment, after listing what would go out."""
    from waypost.cli import writing

    return writing.resume(what, data) if what.startswith("run_") else writing.resume_held(what, data, yes=yes)


@queue.command(name="hold")
def queue_hold(data: Data = None, json: Json = False) -> int:
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
def queue_rejected(data: Data = None, json: Json = False) -> int:
    """List the mail that was rejected after it had been accepted."""
    from waypost.cli import queue as verbs

    return verbs.rejected(data, as_json=json)

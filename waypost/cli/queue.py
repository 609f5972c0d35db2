"""``waypost queue``: mail that no run has, and runs that are poison.

The lists work without a host, letting in and rejecting need one.
"""

from collections.abc import Iterator

from waypost.cli import words
from waypost.cli.client import Client
from waypost.cli.output import err, out
from waypost.cli.place import existing, plain
from waypost.cli.reading import either, give
from waypost.host.answers.records import KeptMail, KeptMails, KeptRun, Rejected, Released
from waypost.host.datadir.directory import DataDir
from waypost.host.exits import Exit

HEADINGS = ("mail", "since", "why", "from", "message id", "subject")
RUNS = ("run", "since", "why", "what happened", "to let it go on")


def hold(data: str | None, *, as_json: bool) -> Exit:
    """``waypost queue hold``."""
    answer = either(existing(data), lambda client: client.get(KeptMails, "queue", "hold"), _offline_hold)
    give(answer, _held(answer), as_json=as_json)
    if answer.more:
        err(f"only the oldest {len(answer.mails)} are listed")
    return _ended(answer)


def rejected(data: str | None, *, as_json: bool) -> Exit:
    """``waypost queue rejected``."""
    answer = either(existing(data), lambda client: client.get(KeptMails, "queue", "rejected"), _offline_rejected)
    give(answer, _listed(answer, "nothing was rejected"), as_json=as_json)
    if answer.more or answer.counted > len(answer.mails):
        err(f"{answer.counted} were rejected in all; those of the last days are listed, at most {len(answer.mails)}")
    return _ended(answer)


def release(mail: str, data: str | None) -> Exit:
    """``waypost queue release MAIL``."""
    released = Client(existing(data).socket).post(Released, "queue", "hold", plain("the mail", mail), "release")
    out(f"{released.mail} is let in, for {released.run}")
    return Exit.OK


def reject(mail: str, data: str | None) -> Exit:
    """``waypost queue reject MAIL``."""
    done = Client(existing(data).socket).post(Rejected, "queue", "hold", plain("the mail", mail), "reject")
    out(f"{done.mail} is rejected; it stays readable in `waypost queue rejected`")
    return Exit.OK


def _ended(answer: KeptMails) -> Exit:
    err(*words.unread(answer.unread))
    return Exit.LEFT if answer.unread else Exit.OK


def _held(answer: KeptMails) -> Iterator[str]:
    if answer.mails or not answer.runs:
        yield from _listed(answer, "nothing is on hold")
    if answer.runs:
        yield from words.columns([RUNS, *map(_run_row, answer.runs)])


def _run_row(each: KeptRun) -> tuple[str, ...]:
    return (each.run, words.moment(each.since), each.why, each.detail, f"waypost resume {each.run}")


def _listed(answer: KeptMails, nothing: str) -> Iterator[str]:
    if answer.mails:
        yield from words.columns([HEADINGS, *map(_row, answer.mails)])
    else:
        yield nothing


def _row(each: KeptMail) -> tuple[str, ...]:
    why = each.why if each.clash is None else f"{each.why} with {each.clash}"
    return (each.mail, words.moment(each.since), why, each.sender, each.message_id, each.subject)


def _offline_hold(data: DataDir) -> KeptMails:
    from waypost.host.reading import offline, queued

    return queued.on_hold(offline.Offline(data))


def _offline_rejected(data: DataDir) -> KeptMails:
    from waypost.host.reading import offline, queued

    return queued.rejected(offline.Offline(data))

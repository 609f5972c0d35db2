"""The verbs that write: done by the host, durable when they return. Only ``send`` also works without one."""

import sys

import msgspec

from waypost.cli import words
from waypost.cli.client import Client, Said
from waypost.cli.output import err, out
from waypost.cli.place import existing, plain, run_named
from waypost.host.answers.records import Answered, DeploymentReset, DeploymentResumed, MailTaken, Resumed
from waypost.host.datadir.directory import DataDir
from waypost.host.errors import MalformedMail, NoHost, NoSuchAddress, NotHosted, NotNow
from waypost.host.exits import Exit
from waypost.host.keeping_errors import NotConfirmed, NotHeld
from waypost.model.limits import DEFAULT


def send(address: str, data: str | None) -> Exit:
    """``waypost send ADDRESS < mail.eml``."""
    where, address = existing(data), plain("the address", address)
    if sys.stdin.isatty():
        err("reading the mail from this terminal; end it with Ctrl-D")
    raw = sys.stdin.buffer.read(DEFAULT.mail + 1)
    _check(raw)
    try:
        taken = Client(where.socket).post(MailTaken, "mail", address, body=raw, content_type="message/rfc822")
    except NoHost:
        return _spool(where, address, raw)
    except Said as said:
        if said.code != NotHosted.code:
            raise
        return _spool(where, address, raw)  # the host that runs takes in what is for its own
    if taken.outcome == "on-hold":
        out(f"accepted as mail {taken.arrival} and put on hold: another mail has its Message-ID")
        err("`waypost queue hold` lists it, `waypost queue release` lets it in")
        return Exit.OK
    if taken.place == "hold":
        out(f"accepted as mail {taken.arrival}, already there, on hold")
        err("`waypost queue hold` says why, `waypost queue release` lets it in")
        return Exit.OK
    already = "" if taken.outcome == "enqueued" else f", already there ({taken.place})"
    out(f"accepted as mail {taken.arrival} for {taken.run}{already}")
    if taken.place == "consumed":
        err("nothing new begins: to send it as a new mail, give it a Message-ID of its own")
    return Exit.OK


def answer(run: str, data: str | None, call: str | None, comment: str, *, approved: bool) -> Exit:
    """``waypost approve RUN`` and ``waypost reject RUN``."""
    call = None if call is None else plain("--call", call)
    body = msgspec.json.encode({"approved": approved, "call": call, "comment": plain("--comment", comment)})
    given = Client(existing(data).socket).post(Answered, "runs", run_named(run), "answer", body=body)
    out(f"{'approved' if given.approved else 'rejected'} {given.run} at {given.call}, as {given.by}")
    return Exit.OK


def resume(run: str, data: str | None) -> Exit:
    """``waypost resume RUN``."""
    resumed = Client(existing(data).socket).post(Resumed, "runs", run_named(run), "resume")
    out(f"{resumed.run} goes on")
    return Exit.OK


def resume_held(name: str, data: str | None, *, yes: bool) -> Exit:
    """``waypost resume DEPLOYMENT``: list what would go out, ask, and let it."""
    from waypost.host.reading.held import would_go

    where, name = existing(data), plain("the deployment", name)
    try:
        out(*words.would_go(name, would_go(where, name)))
        agreed = yes or _agreed(name)
    except NotHeld:
        agreed = True  # nothing is held back: a drain that isn't over, or a deployment that a recycle has stopped
    if not agreed:
        raise NotConfirmed(name)
    resumed = Client(where.socket).post(DeploymentResumed, "deployments", name, "resume")
    if resumed.latched:
        out(f"{resumed.deployment} isn't held back any more, but it is crash-looping")
        out(f"next: `waypost reset {resumed.deployment}` gives it a process again")
    else:
        out(f"{resumed.deployment} goes on")
    return Exit.OK


def reset(name: str, data: str | None) -> Exit:
    """``waypost reset DEPLOYMENT``."""
    given = Client(existing(data).socket).post(DeploymentReset, "deployments", plain("the deployment", name), "reset")
    out(*words.reset(given))
    return Exit.OK


def _agreed(name: str) -> bool:
    if not sys.stdin.isatty():
        return False
    err(f"let {name} go on? [y/N] ")
    return sys.stdin.readline().strip().lower() in {"y", "yes"}


def _check(raw: bytes) -> None:
    """Refuse here what any host would refuse: it is the same rule, and the same words."""
    from waypost.model.mail import malformed

    why = malformed(raw, limit=DEFAULT.mail)
    if why is not None:
        raise MalformedMail(why)


def _spool(data: DataDir, address: str, raw: bytes) -> Exit:
    """Leave the mail where the next host takes it in; it is durable there when this returns."""
    from waypost.host.mail.spool import leave
    from waypost.host.reading import offline
    from waypost.model.mail import BadAddress
    from waypost.model.mail import address as normal

    known, unread = offline.addresses(data)
    try:
        name = known.get(normal(address))
    except BadAddress:
        name = None
    if name is None and unread:
        # Its address may be this one: to say that there is none would make the sender give up.
        raise NotNow(f"the repository of {', '.join(unread)} can't be read (`waypost verify` says why)")
    if name is None:
        raise NoSuchAddress(address, tuple(sorted(known)))
    try:
        path = leave(data.spool(name), raw)
    except OSError as failure:
        raise NotNow(f"{data.spool(name)}: {failure.strerror or failure}") from failure
    out(f"no host runs {name}: the mail lies safe in {path} and is taken in when one does")
    return Exit.OK

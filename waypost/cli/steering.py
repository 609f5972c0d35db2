"""The verbs that reach into a run: ``cancel`` and ``signal``. Done by the host, durable when they return."""

import sys
import uuid

import msgspec

from waypost.cli.client import Client
from waypost.cli.output import err, out
from waypost.cli.place import existing, plain, run_named
from waypost.host.answers.records import CancelAsked, Signalled
from waypost.host.errors import BadPayload, Usage
from waypost.host.exits import Exit
from waypost.model.errors import Invalid
from waypost.model.limits import DEFAULT
from waypost.model.signals import payload, signal_name
from waypost.model.times import plainly


def cancel(run: str, reason: str, data: str | None) -> Exit:
    """``waypost cancel RUN --reason TEXT``."""
    body = msgspec.json.encode({"reason": plain("--reason", reason)})
    asked = Client(existing(data).socket).post(CancelAsked, "runs", run_named(run), "cancel", body=body)
    if asked.fresh:
        out(f"{asked.run} is being cancelled, as {asked.by}; `waypost why {asked.run}` says how far it is")
    else:
        by = f" by {asked.by}" if asked.by else ""
        out(f"{asked.run} was cancelled before{by}, {plainly(asked.at)}: nothing has changed")
    return Exit.OK


def signal(run: str, name: str, identity: str | None, data: str | None) -> Exit:
    """``waypost signal RUN NAME < payload.json``."""
    where = existing(data)
    try:
        name = signal_name(plain("the signal's name", name))
        identity = uuid.uuid4().hex if identity is None else signal_name(plain("--id", identity), "--id")
    except Invalid as bad:
        raise Usage(bad.message) from None
    if sys.stdin.isatty():
        err("reading the payload from this terminal; end it with Ctrl-D")
    try:
        raw = payload(sys.stdin.buffer.read(DEFAULT.signal + 1), DEFAULT.signal)
    except Invalid as bad:
        raise BadPayload(bad.message) from None
    given = Client(where.socket).post(Signalled, "runs", run_named(run), "signals", name, body=raw, id=identity)
    match given.outcome:
        case "received":
            out(f"{given.run} has signal {given.name} at {given.call}")
        case "kept":
            out(f"{given.run} keeps signal {given.name} until it waits for one")
        case _:
            out(f"{given.run} had this signal already: nothing has changed")
    return Exit.OK

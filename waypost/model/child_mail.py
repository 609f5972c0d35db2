"""The mail that starts a child run: how it is named, how it is written, and how its input is read.

A child run begins as a tick's run does, by a mail from the deployment itself (RFC 5322); its body is the child's input,
one line of JSON, as it is. The queue's id of it is `` child:<parent run>:<call>``: that begins with a blank, which no
header can carry, so no mail from outside has one. This format is for ever.

Promise: who a run's parent is never follows from what a mail says; its id only names where to look.
"""

from typing import NamedTuple

import msgspec

from waypost.model.errors import Invalid
from waypost.model.ids import CallId, RunId, is_call_id, is_run_id
from waypost.model.mail import compose

_ID = " child:"
_TYPE = b"application/json"
_END = b"\r\n\r\n"


class Spawner(NamedTuple):
    """The call that a child run is of."""

    run: RunId
    call: CallId


def child_id(run: RunId, call: CallId) -> str:
    """The id under which the mail of this call's child is filed."""
    return f"{_ID}{run}:{call}"


def spawner(identity: str) -> Spawner | None:
    """The call that an id names; None for the id of any other mail."""
    if not identity.startswith(_ID):
        return None
    run, _, call = identity.removeprefix(_ID).partition(":")
    return Spawner(RunId(run), CallId(call)) if is_run_id(run) and is_call_id(call) else None


def input_line(raw: bytes) -> bytes:
    """The input, if it is one line of JSON. Raises Invalid."""
    try:
        msgspec.json.decode(raw)
        raw.decode()
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as bad:
        raise Invalid(f"a child run's input is JSON: {bad}") from None
    if b"\n" in raw or b"\r" in raw or raw != raw.strip():
        raise Invalid("a child run's input is JSON in one line, without blanks around it")
    return raw


def child_mail(*, address: str, workflow: str, by: Spawner, message_id: str, date_ms: int, data: bytes) -> bytes:
    """The mail, lines ending in CRLF; ``data`` is the input, in one line, and ``address`` the deployment's.

    Raises BadAddress, UnsafeHeader.
    """
    shown = "".join(each if each.isprintable() else " " for each in workflow).strip() or "child"
    head, _, _ = compose(
        sender=address,
        to=address,
        subject=f"Child {shown} of {by.run}",
        text="",
        message_id=message_id,
        date_ms=date_ms,
        automatic=True,
    ).partition(b"Content-Type:")
    # Binary, as a line of it may be longer than 998 bytes (RFC 2045 section 6.2); it is never handed to anybody.
    return head + b"Content-Type: " + _TYPE + b"\r\nContent-Transfer-Encoding: binary" + _END + data


def input_of(raw: bytes) -> bytes:
    """The input, of the bytes that ``child_mail`` made. Raises Invalid."""
    head, found, data = raw.partition(_END)
    if not found or b"\r\nContent-Type: " + _TYPE + b"\r\n" not in head:
        raise Invalid("this is no mail that starts a child run")
    return input_line(data)

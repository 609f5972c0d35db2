"""The durable calls of a run that are no steps: wait for mail, for a person, for a time; send a mail.

Each gives a coroutine in an ``async def`` run, and blocks and gives the value in a ``def`` run; a type checker is told
of the first. Outside of a run they raise NotReplayable.
"""

from collections.abc import Callable, Coroutine, Sequence
from datetime import timedelta
from typing import TYPE_CHECKING, Any, Literal, NoReturn, TypeVar, overload

import msgspec

from waypost.authoring.errors import BadSignal, NotReplayable
from waypost.authoring.requests import AwaitDecision, AwaitMail, AwaitSignal, Enclosure, Quit, Send, Sleep
from waypost.authoring.scope import Ask, InStep, Nowhere, Stray, current
from waypost.model.address import address
from waypost.model.errors import Invalid
from waypost.model.event_parts import SNAPSHOT
from waypost.model.signals import signal_name
from waypost.model.times import seconds
from waypost.model.values import Codec, ValueNotStorable

if TYPE_CHECKING:
    from waypost.model.mail_record import Attachment, Mail

T = TypeVar("T")
Duration = float | str | timedelta
"""Seconds, a timedelta, or text such as ``"3d"`` or ``"1h30m"``."""

LINE = 1000
TEXT = 262_144
PEOPLE = 100
MAIL = 1_500_000
"""Bytes of text and attachments of one mail: it travels to the host in one frame."""
HOW_TO_ANSWER = "Please answer this mail with yes or no in the first line; what follows that word is kept as a comment."


class Verdict(msgspec.Struct, frozen=True):
    """A person's decision. ``by``: the address (not authenticated) or user name; ``text``: their comment."""

    approved: bool
    by: str
    text: str
    via: Literal["mail", "cli"]


def receive(timeout: Duration | None = None) -> "Coroutine[Any, Any, Mail]":
    """Wait for the run's next mail. Raises DeadlinePassed when none came in time, Invalid for what is no duration."""
    limit = None if timeout is None else seconds(timeout)

    async def operation(ask: Ask) -> "Mail":
        mail: Mail = await ask(AwaitMail(limit))
        return mail

    return _perform("receive()", operation)


def sleep(duration: Duration) -> Coroutine[Any, Any, None]:
    """Wait for a time to pass, also while nothing of Waypost runs. Raises Invalid for what is no duration."""
    delay = seconds(duration)

    async def operation(ask: Ask) -> None:
        await ask(Sleep(delay))

    return _perform("sleep()", operation)


@overload
def signal(name: str, *, timeout: Duration | None = None) -> Coroutine[Any, Any, Any]: ...
@overload
def signal(name: str, of: type[T], *, timeout: Duration | None = None) -> Coroutine[Any, Any, T]: ...
def signal(name: str, of: Any = Any, *, timeout: Duration | None = None) -> Coroutine[Any, Any, Any]:
    """Wait for a signal that somebody sends to this run under ``name``; one that came before is taken at once.

    ``of``: the type of its payload. Raises DeadlinePassed when none came in time, BadSignal when the payload isn't of
    that type (it is consumed all the same), Invalid for what is no name or duration, ValueNotStorable for a type that
    can't be read from JSON.
    """
    limit = None if timeout is None else seconds(timeout)
    wanted, codec = signal_name(name), Codec(of, where=f"signal({name!r})")

    async def operation(ask: Ask) -> Any:
        raw: bytes = await ask(AwaitSignal(wanted, limit))
        try:
            return codec.load(raw)
        except ValueNotStorable as bad:
            raise BadSignal(wanted, bad.why) from None

    return _perform("signal()", operation)


def cancel(reason: str) -> Coroutine[Any, Any, NoReturn]:
    """Ask for the end of this run. It doesn't come back: the cancellation is raised here, as anybody's would be.

    Raises Invalid for a reason that is no text of 1 to 1000 characters.
    """
    _check_text("reason", reason, LINE, one_line=True)
    if not reason.strip():
        raise Invalid("cancel() needs a reason: it is recorded")

    async def operation(ask: Ask) -> NoReturn:
        await ask(Quit(reason))
        raise AssertionError("a run that asked for its end goes on")

    return _perform("cancel()", operation)


def approve(
    title: str,
    *,
    who: str | Sequence[str],
    deadline: Duration | None = None,
    text: str = "",
    snapshot: object = None,
) -> Coroutine[Any, Any, Verdict]:
    """Ask a person by mail and wait for their decision.

    ``title``: the question, the mail's subject; ``who``: an address or several, any one of which may answer, each the
    sender of the run's first mail, or granted (``Workflow(mail_to=[…])``, ``waypost grants``); ``text`` goes into the
    mail under the title;
    ``snapshot``, JSON-shaped and of at most 128 KiB, goes to whatever shows approvals.
    Raises DeadlinePassed when nobody answered in time, SendRefused when the host won't mail ``who``, Invalid for bad
    arguments.
    """
    people = _addresses("who", who)
    limit = None if deadline is None else seconds(deadline)
    _check_text("title", title, LINE, one_line=True)
    if not title.strip():
        raise Invalid("approve() needs a title: the question that is asked")
    body = "\n\n".join(part for part in (title, text, HOW_TO_ANSWER) if part)
    _check_text("text", body, TEXT)
    shown = None if snapshot is None else Codec(Any).store(snapshot, limit=SNAPSHOT).raw

    async def operation(ask: Ask) -> Verdict:
        request = await ask(Send(people, title, body))
        verdict: Verdict = await ask(AwaitDecision(title, people, request, limit, shown))
        return verdict

    return _perform("approve()", operation)


def send(
    *,
    to: str | Sequence[str],
    subject: str,
    text: str,
    reply_to: "Mail | None" = None,
    attachments: "Sequence[Attachment]" = (),
) -> Coroutine[Any, Any, str]:
    """Send a mail; gives its Message-ID once it is in the outbox. It is delivered at least once, under one Message-ID.

    ``to``: an address or several, each the sender of the run's first mail, or granted: named in
    ``Workflow(mail_to=[…])``, as long as no operator says otherwise (``waypost grants``);
    ``reply_to``: a mail that the run was given, to answer in its thread. Raises SendRefused when the host doesn't take
    it, Invalid for bad arguments.
    """
    people = _addresses("to", to)
    _check_text("subject", subject, LINE, one_line=True)
    _check_text("text", text, TEXT)
    enclosed = tuple(_enclosure(part) for part in attachments)
    size = len(text.encode()) + sum(len(part.content) for part in enclosed)
    if size > MAIL:
        raise Invalid(f"send(): text and attachments have {size} bytes; a mail may have {MAIL}")
    request = Send(people, subject, text, None if reply_to is None else reply_to.sha256, enclosed)

    async def operation(ask: Ask) -> str:
        message_id: str = await ask(request)
        return message_id

    return _perform("send()", operation)


def _perform(what: str, operation: Callable[[Ask], Coroutine[Any, Any, T]]) -> Coroutine[Any, Any, T]:
    match current():
        case InStep():
            raise NotReplayable(f"{what} inside a step", "call it from the run function")
        case Nowhere() | Stray():
            raise NotReplayable(f"{what} outside of a run", "call it from the run function")
        case engine:
            made: Any = engine.perform(operation)
            return made  # type: ignore[no-any-return]  # a def run gives the value itself


def _addresses(what: str, given: str | Sequence[str]) -> tuple[str, ...]:
    found = tuple(address(one) for one in ((given,) if isinstance(given, str) else given))
    if not found:
        raise Invalid(f"{what}= names nobody; give an address")
    if len(found) > PEOPLE:
        raise Invalid(f"{what}= names {len(found)} people; a mail goes to {PEOPLE} at most")
    return found


def _enclosure(part: "Attachment") -> Enclosure:
    _check_text("an attachment's name", part.name, LINE, one_line=True)
    _check_text("an attachment's content_type", part.content_type, LINE, one_line=True)
    if not isinstance(part.content, bytes):
        raise Invalid(f"attachment {part.name!r}: content is bytes, not {type(part.content).__name__}")
    return Enclosure(part.name, part.content_type, part.content)


def _check_text(what: str, text: str, most: int, *, one_line: bool = False) -> None:
    if not isinstance(text, str):
        raise Invalid(f"{what}= is text, not {text!r}")
    if len(text) > most:
        raise Invalid(f"{what}= has {len(text)} characters; at most {most} are taken")
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Invalid(f"{what}= contains a lone surrogate, which UTF-8 can't carry") from None
    if one_line and len(text.splitlines()) > 1:
        raise Invalid(f"{what}= must be one line: {text[:80]!r}")

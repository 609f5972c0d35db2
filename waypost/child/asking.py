"""What a run asks its host for, as the messages that say so."""

from collections.abc import Iterator
from typing import assert_never

from msgspec import UNSET

from ipc.messages import Attached, BlobPut, CancelRequest, OutboundMessage, SpawnRequest
from waypost.authoring.requests import CallChild, Quit, Send
from waypost.child.effects import Ask
from waypost.child.vault import Vault
from waypost.model.ids import CallId, RunId


def asked(id_: int, run: RunId, ask: Ask, vault: Vault) -> OutboundMessage | SpawnRequest | CancelRequest:
    """The request, with its number."""
    match ask.request:
        case Send() as mail:
            return _outbound(id_, run, ask.call, mail)
        case CallChild(spec, raw):
            return SpawnRequest(id=id_, run=run, call=ask.call, workflow=spec.name, input=raw, seen=ask.seen)
        case Quit(reason):
            return CancelRequest(id=id_, run=run, call=ask.call, reason=vault.hidden(reason))
        case _:
            assert_never(ask.request)


def puts(id_: int, run: RunId, sha256: str, raw: bytes, chunk: int) -> Iterator[BlobPut]:
    """A large value, in parts of ``chunk`` bytes."""
    for offset in range(0, len(raw), chunk):
        data = raw[offset : offset + chunk]
        yield BlobPut(id=id_, run=run, sha256=sha256, offset=offset, data=data, last=offset + chunk >= len(raw))


def _outbound(id_: int, run: RunId, call: CallId, mail: Send) -> OutboundMessage:
    return OutboundMessage(
        id=id_,
        run=run,
        call=call,
        to=mail.to,
        subject=mail.subject,
        text=mail.text,
        reply_to_mail=UNSET if mail.reply_to is None else mail.reply_to,
        attachments=tuple(
            Attached(name=part.name, content_type=part.content_type, content=part.content) for part in mail.attachments
        ),
    )

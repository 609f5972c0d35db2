"""Mail that leaves: an outbox entry and the events about it are of one commit (storage §1, §5)."""

import hashlib
from collections.abc import Iterator
from dataclasses import dataclass

from msgspec import UNSET

from substrate.layout import Place
from substrate.rules.commit import Before, Sorted
from substrate.rules.runs import has
from substrate.rules.table import Broken, broken
from substrate.state import State
from waypost.model import events as ev
from waypost.model.errors import Invalid
from waypost.model.ids import RunId
from waypost.model.queue import Outgoing, decode_outgoing


@dataclass(frozen=True, slots=True)
class Told:
    """An event about an outgoing mail: in which run."""

    run: RunId
    event: ev.MailQueued | ev.MailSent | ev.MailFailed


def outgoing(before: Before, made: Sorted, after: State, told: list[Told]) -> Iterator[Broken]:
    """Entries come with MailQueued and go with their fate; a notice, which belongs to no run, with neither."""
    queued = {each.event.ordinal: each for each in told if isinstance(each.event, ev.MailQueued)}
    fates = {
        each.event.ordinal: each
        for each in told
        if isinstance(each.event, ev.MailSent | ev.MailFailed) and each.event.ordinal is not UNSET
    }
    for path, (place, raw) in made.outbox.items():
        try:
            entry = decode_outgoing(raw)
        except Invalid as bad:
            yield broken("record", path, bad.message)
            continue
        yield from sound(path, place, entry)
        if has(before, path):
            yield broken("write-once", path, "an outbox entry was changed")
        elif not before.state.outbox <= entry.ordinal < after.outbox:
            yield broken("ordinals", path, f"outbox {entry.ordinal}, and {before.state.outbox} is next")
        each = queued.pop(entry.ordinal, None)
        if not entry.about and (each is None or not _is(each, entry)):
            yield broken("outbox", path, f"no MailQueued of {entry.run} names outgoing mail {entry.ordinal}")
    for path in made.gone_outbox:
        yield from _gone(before, path, fates)
    for left in (*queued.values(), *fates.values()):
        kind, ordinal = ev.kind(left.event), left.event.ordinal
        yield broken("outbox", "", f"{kind} of {left.run} without the entry of outgoing mail {ordinal}")


def sound(path: str, place: Place, entry: Outgoing) -> Iterator[Broken]:
    """What an entry says of itself is what its name says; a notice carries its own bytes."""
    if (entry.ordinal, entry.key) != (place.number, place.key):
        yield broken("name", path, f"the entry says ordinal {entry.ordinal}, key {entry.key}")
    if bool(entry.about) == bool(entry.run):
        yield broken("outbox", path, "an entry is of a run or about a mail")
    if entry.about and hashlib.sha256(entry.message.encode()).hexdigest() != entry.sha256:
        yield broken("hash", path, f"the notice isn't {entry.sha256}")


def _is(told: Told, entry: Outgoing) -> bool:
    event = told.event
    return isinstance(event, ev.MailQueued) and (told.run, event.call, event.message_id, event.to, event.sha256) == (
        entry.run,
        entry.call,
        entry.message_id,
        entry.to,
        entry.sha256,
    )


def _gone(before: Before, path: str, fates: dict[int, Told]) -> Iterator[Broken]:
    try:
        entry = decode_outgoing(before.read(path) or b"")
    except Invalid as bad:
        yield broken("record", path, bad.message)
        return
    if entry.about:
        return
    each = fates.pop(entry.ordinal, None)
    if each is None or (each.run, each.event.call) != (entry.run, entry.call):
        yield broken("outbox", path, f"the entry went without MailSent or MailFailed of {entry.run}")

"""Whether a mail was accepted before: by its id, wherever the first one stands, for the horizon (storage §5).

An id that a live run was given stays known at any age, after its bucket is dropped, too.
"""

from dataclasses import dataclass

from substrate import layout, runlog
from substrate.errors import Damaged
from substrate.messages import Accepted
from substrate.operations.buckets import consumed_at
from substrate.operations.change import Context, View
from substrate.operations.hold import own_id
from waypost.model import mail
from waypost.model import run as fold
from waypost.model.errors import Invalid
from waypost.model.ids import RunId, message_key
from waypost.model.queue import Entry, decode, id_text


@dataclass(frozen=True, slots=True)
class Present:
    """The mail that has the id: where it stands, and its hash without trace headers."""

    accepted: Accepted
    bare: str


def present(view: View, identity: bytes, context: Context) -> Present | None:
    """The mail that was accepted under this id; None where there is none within the horizon. Raises Damaged."""
    key = message_key(identity)
    arrival = view.arrival_of(key)
    if arrival is not None:
        held = view.on_hold.get(arrival)
        if held is not None:
            return _present(held, "hold")
        item = view.queue[arrival]
        return _present(item.queued.entry, "processing" if item.claimed else "inbox")
    raw = consumed_at(view, key, context)
    if raw is not None:
        return _present(_consumed(raw, key, context), "consumed")
    run = view.threads.unsealed(key)
    return None if run is None else _given(view, run, identity)


def _consumed(raw: bytes, key: str, context: Context) -> Entry:
    try:
        return decode(raw)
    except Invalid as bad:
        raise Damaged(f"{layout.queue_dir(context.address, 'consumed')}/…/{key}.json", bad.message) from None


def _present(entry: Entry, place: str) -> Present:
    return Present(Accepted("already-present", entry.run, entry.arrival, place), entry.bare)


def _given(view: View, run: RunId, identity: bytes) -> Present | None:
    """The mail of a live run whose entry is gone; what the run itself sent is none. Raises Damaged."""
    ledger = fold.ledger(view.known(run).run)
    text, _ = id_text(identity)
    if ledger is None or text not in ledger.received:
        return None
    for arrival in ledger.mails.values():
        gist = mail.scan(runlog.stored(view, layout.mail_path(arrival)))
        if identity in {gist.id, own_id(gist)}:
            return Present(Accepted("already-present", run, arrival, "consumed"), gist.bare_sha256)
    # To take it for a new one would start a second run with it.
    raise Damaged(layout.run_dir(run), f"the run was given a mail {text[:200]!r}, and none of its mails has that id")

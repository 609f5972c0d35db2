"""Mail that no run has: what is on hold, and what was rejected within the horizon, as lists show it.

Over any tree, the writer's or a reader's. Rejected mail lies among the consumed; it is looked for in portions, so that
whoever asks the repository's owner holds up no append for long.
"""

from collections.abc import Iterable

from substrate import layout
from substrate.errors import Damaged
from substrate.messages import Kept, ReadHold, ReadRejected, RejectedPage
from substrate.operations.buckets import watermark
from substrate.runlog import Tree
from substrate.state import State
from waypost.model import mail
from waypost.model.errors import Invalid
from waypost.model.queue import Entry, decode


def on_hold(tree: Tree, entries: Iterable[Entry], question: ReadHold) -> tuple[Kept, ...]:
    """The oldest of these entries, with what their mails say."""
    oldest = sorted(entries, key=lambda entry: entry.arrival)[: question.limit]
    return tuple(_kept(tree, entry) for entry in oldest)


def rejected(tree: Tree, address: str, state: State, question: ReadRejected) -> RejectedPage:
    """What was rejected, from the newest bucket to the oldest. Raises Damaged for an entry that can't be read."""
    found: list[Kept] = []
    looked = 0
    bucket, at = question.cursor or (state.bucket, 0)
    first = watermark(tree, address).first
    while bucket >= first:
        directory = layout.bucket_dir(address, bucket)
        for name in tree.entries(directory):
            if int(name, 16) < at:
                continue
            if looked >= question.limit:
                return RejectedPage(tuple(found), state.rejected, (bucket, int(name, 16)))
            for file in tree.entries(f"{directory}/{name}"):
                entry = _entry(tree, f"{directory}/{name}/{file}")
                looked += 1
                if entry.rejected:
                    found.append(_kept(tree, entry))
        bucket, at = bucket - 1, 0
    return RejectedPage(tuple(found), state.rejected)


def _entry(tree: Tree, path: str) -> Entry:
    try:
        return decode(tree.read(path) or b"")
    except Invalid as bad:
        raise Damaged(path, bad.message) from None


def _kept(tree: Tree, entry: Entry) -> Kept:
    gist = mail.scan(tree.read(layout.mail_path(entry.arrival)) or b"")
    return Kept(entry, gist.message_id, gist.subject)

"""Git storage, the claim-check queue, the event log: one bare repository per deployment, one writer.

Reading order, from the contract down:

    messages      what the SubstrateActor is told, what it answers, what it publishes
    actor         SubstrateActor: one mailbox around a ``Writer``
    writer        visible, then durable: commits, flushes, answers
    operations/   every write as a pure decision; principals (who may), routing (which run), indexing/ (what is known)
    runlog        a run's log out of a tree; questions: pages, blobs, lists
    reader        the same without a host; checking/: is it whole, and whose (signing/)
    storage/      commits and flushes: store, and below it journal, seal, recovery, disk; packs/: git's formats
    layout        where everything lies

Imports run downwards in this list. ``layout``, ``messages`` and ``operations`` touch no thread, clock or file.
"""

from typing import TYPE_CHECKING

from substrate.checking.verify import Report, verify
from substrate.errors import SubstrateError
from substrate.reader import Reader
from substrate.settings import Settings, message_ids
from substrate.signing.keys import PublicKey, SigningKey

if TYPE_CHECKING:
    from substrate.actor import SubstrateActor

__all__ = [
    "PublicKey",
    "Reader",
    "Report",
    "Settings",
    "SigningKey",
    "SubstrateActor",
    "SubstrateError",
    "message_ids",
    "verify",
]


def __getattr__(name: str) -> object:
    """The actor, when somebody writes: who only reads needn't wait until all of the writing half is loaded."""
    if name != "SubstrateActor":
        raise AttributeError(name)
    from substrate.actor import SubstrateActor

    return SubstrateActor

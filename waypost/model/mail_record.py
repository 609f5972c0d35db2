"""A mail as a workflow sees it, and its attachments: the records alone.

Apart from `waypost.model.mail_parse`, which makes them: a workflow's file names them in its annotations, and loads
quickly. Nothing in them ever changes.
"""

import msgspec

from waypost.model.errors import Invalid
from waypost.model.schedule import Tick


class NoAttachment(Invalid):
    """A mail has no attachment of that name."""

    def __init__(self, name: str, there: tuple[str, ...]) -> None:
        have = ", ".join(map(repr, there)) or "none"
        super().__init__(f"the mail has no attachment {name!r}; it has: {have}")
        self.name = name
        self.there = there


class Attachment(msgspec.Struct, frozen=True):
    """A file that came with a mail.

    ``name`` is safe to use as a file name in a folder of your own (no path, no control characters, at most 200
    bytes) and never empty; two attachments may have the same. ``content_type`` is what the sender claims, lower case.
    """

    name: str
    content_type: str
    content: bytes


class Mail(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """An incoming mail.

    Addresses have their domain in lower case; ``sender`` is the first From address, empty where there is none, and
    is what the mail *says*: nothing here is authenticated. ``text`` is the plain text with LF line ends, made from the
    HTML where there is nothing else; ``html`` the HTML as it came. ``headers`` has every field in order, decoded,
    repeated ones repeatedly. ``automatic`` says that a program sent it or that no answer is wanted.

    ``tick``: not somebody's mail, but the clock's: which of the workflow's schedules, and when it was due. That is the
    host's own word; no mail that comes from outside can have it.
    """

    message_id: str
    sender: str
    sender_name: str
    to: tuple[str, ...]
    cc: tuple[str, ...]
    subject: str
    date: str | None
    text: str
    html: str
    attachments: tuple[Attachment, ...]
    in_reply_to: str | None
    references: tuple[str, ...]
    headers: tuple[tuple[str, str], ...]
    automatic: bool
    sha256: str
    tick: Tick | None = None

    def attachment(self, name: str) -> Attachment:
        """The first attachment of this name, in any case. Raises NoAttachment."""
        for each in self.attachments:
            if each.name.lower() == name.lower():
                return each
        raise NoAttachment(name, tuple(each.name for each in self.attachments))

    def header(self, name: str) -> str | None:
        """The first header field of this name, in any case; None when there is none."""
        return next((value for label, value in self.headers if label.lower() == name.lower()), None)

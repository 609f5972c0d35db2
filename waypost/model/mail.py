"""Mail: one reading of it for host and child, one writing of it.

The door to this package's mail files, in reading order:

    mail_fields    where the header fields are: the one scanner
    mail_text      bytes to text: charsets, encoded words, transfer encodings
    mail_html      HTML to text
    mail_address   addresses in a field; `waypost.model.address` checks those that Waypost itself uses
    mail_mime      the parts of a mail
    mail_scan      what the host knows of a mail at the door; what it refuses
    mail_record    what a workflow gets
    mail_parse     how that is made of a raw mail
    mail_answer    yes or no in a reply
    mail_door      both together: a mail's gist, and the answer that it may be
    mail_compose   outgoing mail

All of it is pure and, but for the errors named where something is written or checked, total.
"""

from waypost.model.address import BadAddress, address
from waypost.model.mail_address import sender_matches
from waypost.model.mail_answer import answer
from waypost.model.mail_compose import UnsafeHeader, compose
from waypost.model.mail_door import scan
from waypost.model.mail_mime import safe_name
from waypost.model.mail_parse import parse
from waypost.model.mail_record import Attachment, Mail, NoAttachment
from waypost.model.mail_scan import Answer, Gist, malformed, subject, thread_candidates

__all__ = [
    "Answer",
    "Attachment",
    "BadAddress",
    "Gist",
    "Mail",
    "NoAttachment",
    "UnsafeHeader",
    "address",
    "answer",
    "compose",
    "malformed",
    "parse",
    "safe_name",
    "scan",
    "sender_matches",
    "subject",
    "thread_candidates",
]

"""What the host learns of a mail at the door: its gist, and the answer that it may be to an approval.

Total, like what it is made of. The body is opened only where it may matter: a mail that names another one and comes
from exactly one person. Everything else is looked at from outside.
"""

import msgspec

from waypost.model import mail_scan
from waypost.model.mail_answer import answer
from waypost.model.mail_scan import Gist


def scan(raw: bytes) -> Gist:
    """Look at a mail at the door: any bytes have a gist, whether or not the door lets them in.

    ``Gist.answer`` is what the mail would decide if it were the answer to an approval; whether it is one is decided
    against the approval's ``who`` when a run waits for it (decision 10).
    """
    gist = mail_scan.scan(raw)
    if gist.sole_sender is None or not (gist.in_reply_to or gist.references):
        return gist
    return msgspec.structs.replace(gist, answer=answer(raw))

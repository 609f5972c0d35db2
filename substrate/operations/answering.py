"""How an outgoing mail names the mail that it answers, so that it lands in its reader's thread (RFC 5322 §3.6.4)."""

from waypost.model.mail import Gist

THREAD_DEPTH = 20
"""Ids that an answer's References carry at most: the first of the thread and the newest."""
_ID_LIMIT = 900


def answering(gist: Gist) -> tuple[str | None, list[str]]:
    """In-Reply-To and References of an answer to this mail."""
    thread = [each for each in map(_header_id, (*gist.references, gist.id)) if each is not None]
    if len(thread) > THREAD_DEPTH:
        thread = [thread[0], *thread[-THREAD_DEPTH + 1 :]]
    return _header_id(gist.id), thread


def _header_id(message_id: bytes) -> str | None:
    """A message id as our own header may repeat it; None for one that was made up for lack of one, or is unfit."""
    text = message_id.decode("ascii", "replace")
    fit = text.startswith("<") and text.endswith(">") and text.isprintable() and text.isascii() and " " not in text
    return text if fit and len(text) <= _ID_LIMIT else None

"""A person's answer in a mail: yes or no, and what they added.

Pure and strict: what isn't clearly an answer is none, because the host acts on it (decision 10). Whether this person
may answer, and what they answer, is decided elsewhere.
"""

import re

from waypost.model.mail_fields import Block, Field, collected
from waypost.model.mail_parse import parse
from waypost.model.mail_record import Mail
from waypost.model.mail_scan import Answer, from_machine

YES = frozenset({"yes", "ok", "approve", "approved"})
NO = frozenset({"no", "reject", "rejected"})
TEXT_LIMIT = 256 * 1024
"""Characters of a mail's text in which an answer is looked for."""
COMMENT_LIMIT = 4000
"""Characters of a comment that are kept."""

_WORD_LIMIT = 40
_INVISIBLE = " \t\u00a0\u200b\u200e\u200f\ufeff"
_ATTRIBUTION_LINES = 3
# A signature, or the line that mail programs put above a forwarded or answered mail.
_BEHIND_TEXT = re.compile(r"--|_{10,}|-{3,}[^-].*-{3,}")


def answer(mail: Mail | bytes) -> Answer | None:
    """The answer in a mail, or None. Total.

    The first word of the first line that isn't quoted: yes, ok, approve, approved, or no, reject, rejected, in any
    case and with punctuation around it. A line that only announces the quote below it (``On Monday, … wrote:``)
    belongs to the quote. A mail that a program sent by itself (an absence note, a bounce) is never an answer.
    """
    seen = mail if isinstance(mail, Mail) else parse(mail)
    if from_machine(_head(seen)):
        return None
    lines = [" ".join(line.strip(_INVISIBLE).split()) for line in seen.text[:TEXT_LIMIT].split("\n")]
    place: int | None = 0
    while place is not None and place < len(lines):
        first, _, rest = lines[place].partition(" ")
        word = _bare(first)
        if not first or first.startswith(">"):
            place += 1
        elif word in YES | NO:
            return Answer(word in YES, _comment([rest, *lines[place + 1 :]]))
        else:
            place = _quote_below(lines, place)
    return None


def _bare(word: str) -> str:
    """The word without what stands around it: ``"*Yes!*"`` is ``yes``."""
    short = word[:_WORD_LIMIT]
    while short and not short[0].isalnum():
        short = short[1:]
    while short and not short[-1].isalnum():
        short = short[:-1]
    return short.casefold()


def _quote_below(lines: list[str], place: int) -> int | None:
    """Where the quote begins that this line announces, if it does: one of at most three, the last ending in a colon."""
    at = place
    while at < len(lines) and lines[at] and not lines[at].startswith(">"):
        at += 1
        if at - place > _ATTRIBUTION_LINES:
            return None
    announced = lines[at - 1] if at > place else ""
    while at < len(lines) and not lines[at]:
        at += 1
    return at if at < len(lines) and lines[at].startswith(">") and announced.endswith(":") else None


def _comment(lines: list[str]) -> str:
    """What else the person wrote: without quotes, what announces them, and anything from a signature on."""
    kept: list[str] = []
    for place, line in enumerate(lines):
        if _BEHIND_TEXT.fullmatch(line):
            break
        # The rest of the line of the answer stays, whatever it ends in.
        announces = place > 0 and line.endswith(":") and _quote_below(lines, place) is not None
        if not line.startswith(">") and not announces:
            kept.append(line)
    return re.sub(r"\n{3,}", "\n\n", "\n".join(kept)).strip()[:COMMENT_LIMIT]


def _head(mail: Mail) -> Block:
    """The mail's fields as the scanner had them, as far as the question whether a machine wrote it goes."""
    return collected(Field(label, label.lower(), value.encode(), 0, 0) for label, value in mail.headers)

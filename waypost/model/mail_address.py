"""Addresses: reading those in a header field, checking those that somebody wants to use.

`mailboxes` takes whatever stands in a field and is total and linear; `address` is strict, for names that Waypost
itself will use. Both give addresses in one form: the local part as written, the domain in lower case.
"""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from waypost.model.errors import Invalid
from waypost.model.mail_text import decode, words

ADDRESS_LIMIT = 254
"""Characters of an address (RFC 5321 §4.5.3.1.3, without the angles)."""
LOCAL_LIMIT = 64
MAILBOX_LIMIT = 2000
"""Addresses that are read from one field; those after them are left out."""

_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?+|<[^<>]*+>?|[,;]+|[:(]|[^"<,;:(]+', re.DOTALL)
_PARENTHESES = re.compile(r"\\.|[()]", re.DOTALL)
_ATOM = r'[^\x00-\x20\x7f()<>\[\]:;@\\,."]+'
_LOCAL = re.compile(rf"{_ATOM}(\.{_ATOM})*\Z")
# A letter, a digit, or anything beyond ASCII; a hyphen only inside.
_LABEL = re.compile(r"(?!-)(?:[A-Za-z0-9-]|[^\x00-\x7f]){1,63}(?<!-)\Z")


class BadAddress(Invalid):
    """Text that was to be used as a mail address isn't one."""

    def __init__(self, value: str, reason: str) -> None:
        super().__init__(
            f"{value[:ADDRESS_LIMIT]!r} can't be used as a mail address: {reason}",
            hint="write it as name@example.com, without a display name or angle brackets",
        )
        self.value = value
        self.reason = reason


@dataclass(frozen=True, slots=True)
class Mailbox:
    """One address of a header field, and the name beside it (empty when there is none)."""

    address: str
    name: str = ""


def address(value: str) -> str:
    """Check an address and give it its one form, the domain in lower case. Raises BadAddress.

    A dot-atom before the ``@`` (RFC 5322 §3.4.1; letters beyond ASCII as RFC 6531 has them), a host name after it;
    neither quoted local parts nor address literals.
    """
    local, at, domain = value.rpartition("@")
    if not at:
        raise BadAddress(value, "there is no '@' in it")
    if len(value) > ADDRESS_LIMIT or len(local) > LOCAL_LIMIT:
        raise BadAddress(value, f"it is longer than {ADDRESS_LIMIT} characters, or {LOCAL_LIMIT} before the '@'")
    # Blanks, separators and controls beyond ASCII aren't printable; the classes above let them through.
    if not _LOCAL.match(local) or not local.isprintable():
        raise BadAddress(value, f"{local!r} before the '@' is not a plain name")
    labels = domain.split(".")
    if not all(_LABEL.match(label) for label in labels) or not domain.isprintable():
        raise BadAddress(value, f"{domain!r} after the '@' is not a host name")
    return normal(value)


def normal(text: str) -> str:
    """The form in which addresses are compared: local part as it is, domain in lower case. Total; checks nothing.

    Lower case and no more: `str.casefold` would make one of two host names that differ (``ß`` and ``ss``).
    """
    local, at, domain = text.rpartition("@")
    return f"{local}{at}{domain.lower()}"


def sender_matches(sender: str | None, who: Iterable[str]) -> bool:
    """Whether a mail's sender is one of ``who``: local part exact, domain in any case.

    Give it ``Gist.sole_sender``, which is None for a mail with no or several From addresses: that matches nobody.
    Nothing here authenticates the sender (decision 10); whoever records the answer says so.
    """
    return sender is not None and sender != "" and normal(sender) in {normal(each) for each in who}


def mailboxes(value: bytes) -> tuple[Mailbox, ...]:
    """The addresses of a From, To or Cc value, in order, those that can't be read left out.

    Names are decoded only after the addresses are told apart, so that nothing inside an encoded word or a quoted
    name can make an address. Comments are skipped, routes and group names dropped; an address without angles is
    found among other words; two addresses where one belongs are reported as two.
    """
    text = decode(value)
    found: list[Mailbox] = []
    plain: list[str] = []
    angles: list[str] = []
    comments: list[str] = []
    at = 0
    while len(found) < MAILBOX_LIMIT and (token := _TOKEN.match(text, at)):
        piece = token[0]
        at = token.end()
        match piece[0]:
            case "(":
                at = _behind_comment(text, token.start())
                comments.append(text[token.end() : at].removesuffix(")"))
            case "<":
                angles.append(piece)
            case "," | ";":
                found += _finished(plain, angles, comments)
                plain, angles, comments = [], [], []
            case ":":
                plain, comments = [], []
            case _:
                plain.append(piece)
    return tuple(found + _finished(plain, angles, comments))


def _finished(plain: Sequence[str], angles: Sequence[str], comments: Sequence[str]) -> list[Mailbox]:
    if not any("@" in piece for piece in angles or plain):
        return []  # at once: a field of half a million commas has as many of these
    if angles:
        names = plain
        addresses = [_inside(angle) for angle in angles]
    else:
        tokens = [word for piece in plain for word in ([piece] if piece.startswith('"') else piece.split())]
        bare = {word for word in tokens if "@" in word and not word.startswith('"')}
        names = [word for word in tokens if word not in bare]
        addresses = [_usable(word) for word in tokens if word in bare]
    usable = [each for each in addresses if each]
    if not usable:
        return []
    name = _name(names) or _name(comments)
    return [Mailbox(each, name) for each in usable]


def _inside(angle: str) -> str:
    """The address between angles: comments and blanks out, a source route (RFC 5322 §4.4) dropped."""
    inside = angle[1:].removesuffix(">")
    out: list[str] = []
    at = 0
    while (opened := inside.find("(", at)) >= 0:
        out.append(inside[at:opened])
        at = _behind_comment(inside, opened)
    out.append(inside[at:])
    bare = "".join("".join(out).split())
    return _usable(bare.rpartition(":")[2] if bare.startswith("@") else bare)


def _usable(text: str) -> str:
    """The address in its one form, or nothing when it has no two sides or is absurdly long."""
    local, _, domain = text.rpartition("@")
    return normal(text) if local and domain and len(text) <= ADDRESS_LIMIT and text.isprintable() else ""


def _name(pieces: Sequence[str]) -> str:
    unquoted = (re.sub(r"\\(.)", r"\1", each.strip('"')) if each.startswith('"') else each.strip() for each in pieces)
    return words(" ".join(filter(None, unquoted)).encode())


def _behind_comment(text: str, at: int) -> int:
    """The place behind a comment that opens at ``at``; comments nest, an unclosed one goes to the end."""
    depth = 0
    for mark in _PARENTHESES.finditer(text, at):
        depth += {"(": 1, ")": -1}.get(mark[0], 0)
        if depth == 0:
            return mark.end()
    return len(text)

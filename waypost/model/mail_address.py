"""The addresses in a header field. `mailboxes` takes whatever stands there; it is total and linear.

They come in their one form (`waypost.model.address.normal`): the local part as written, the domain in lower case.
"""

import re
from collections.abc import Iterable, Sequence

import msgspec

from waypost.model.address import ADDRESS_LIMIT, normal
from waypost.model.mail_text import decode, words

MAILBOX_LIMIT = 2000
"""Addresses that are read from one field; those after them are left out."""

_TOKEN = re.compile(r'"(?:[^"\\]++|\\.)*+"?+|<[^<>]*+>?|[,;]+|[:(]|[^"<,;:(]+', re.DOTALL)
_PARENTHESES = re.compile(r"\\.|[()]", re.DOTALL)


class Mailbox(msgspec.Struct, frozen=True):
    """One address of a header field, and the name beside it (empty when there is none)."""

    address: str
    name: str = ""


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

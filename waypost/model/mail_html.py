"""HTML of a mail to plain text, for mails that bring nothing else.

Total and linear on any input (each character is looked at a bounded number of times, an unclosed comment, script or
tag included). The result is for reading and for finding the words of an answer; it is text, never markup to show.
"""

import html
import re

QUOTE_DEPTH = 8
MARKUP_LIMIT = 512 * 1024
"""Characters of markup that are turned into text; nobody wrote more by hand, and a mail may bring 32 MB of it."""

_TAG = re.compile(r"<(/?)([A-Za-z][A-Za-z0-9]{0,20})")
_SILENT = {name: re.compile(f"</{name}", re.IGNORECASE) for name in ("script", "style", "title", "template")}
_BLOCKS = """address article aside blockquote br dd div dl dt footer form h1 h2 h3 h4 h5 h6 header hr li main ol p pre
    section table td th tr ul"""
_BREAKING = frozenset(_BLOCKS.split())
# Longer numbers name no character, and int() refuses to read numbers that are long enough.
_ABSURD = re.compile(r"&#(?:[0-9]{9,}|[xX][0-9A-Fa-f]{9,});?")


def to_text(whole: str) -> str:
    """The text of HTML, a line per block; lines inside ``blockquote`` begin with ``>`` as quotes in plain mail do.

    What lies behind ``MARKUP_LIMIT`` is left out; a mail's whole HTML stays in its ``html``.
    """
    markup = whole[:MARKUP_LIMIT]
    lines: list[tuple[int, list[str]]] = [(0, [])]
    depth = 0
    at = 0
    while at < len(markup):
        opened = markup.find("<", at)
        if opened < 0:
            opened = len(markup)
        lines[-1][1].append(markup[at:opened])
        if opened == len(markup):
            break
        if markup.startswith("<!--", opened):
            at = _behind(markup, "-->", opened + 4)
            continue
        tag = _TAG.match(markup, opened)
        if tag is None and not markup.startswith(("<!", "<?", "</"), opened):
            lines[-1][1].append("<")
            at = opened + 1
            continue
        at = _behind(markup, ">", opened)
        name = tag[2].lower() if tag else ""
        closing = tag is not None and tag[1] == "/"
        if name == "blockquote":
            depth = max(0, depth - 1) if closing else min(QUOTE_DEPTH, depth + 1)
        if name in _BREAKING:
            lines.append((depth, []))
        if name in _SILENT and not closing:
            end = _SILENT[name].search(markup, at)
            at = end.start() if end else len(markup)
    return _laid_out(lines)


def _behind(markup: str, mark: str, at: int) -> int:
    """The place behind the next mark; the end of the text where there is none."""
    found = markup.find(mark, at)
    return len(markup) if found < 0 else found + len(mark)


def _laid_out(lines: list[tuple[int, list[str]]]) -> str:
    """Characters for entities, single blanks, no empty lines but between blocks that had text."""
    out: list[str] = []
    for depth, pieces in lines:
        text = " ".join(html.unescape(_ABSURD.sub("\ufffd", "".join(pieces))).split())
        if text:
            out.append(">" * depth + " " + text if depth else text)
    return "\n".join(out)

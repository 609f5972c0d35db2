"""Texts whose lines were made one, or indented: what is looked for in them, and where it stands.

Between two words there may be anything that a way to show several lines puts there: blanks; line ends, as they are or
as a repr and JSON write them, also one inside the other; the quotes between which a pretty printer puts each line; the
rule that a group of errors has before it, or the mark of a quotation. Made flat, each of these gaps is one blank, in
the text as in what is looked for. Pure.
"""

import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate

SPREAD = 16
"""How many times as long as itself a piece at an end of a text may be by its gaps: the rest is waited for."""
LEAD = 48
"""So many bytes of what is looked for are looked for at once: its first word may be a brace, which each JSON text has.
A whole text is never made flat: with 64 MiB that takes a minute, and 5 GiB."""
# All that `str.splitlines` takes for a line end is one, also as JSON or a repr, of text or of bytes, writes it. A run
# of backslashes is looked at once, from its first: begun at each, 64 KiB of them take minutes.
_GAP = re.compile(
    rb"""(?:
        [\s|>'"\x1c-\x1e] | \xc2\x85 | \xe2\x80[\xa8\xa9]
        | (?<!\\)\\++(?:
            [nrtvf'"] | x(?:0[bBcC]|1[cdeCDE]|85) | u(?:00(?:0[bBcC]|1[cdeCDE]|85)|202[89])
            | xc2\\++x85 | xe2\\++x80\\++xa[89]
        )
    )++""",
    re.VERBOSE,
)
_HALF = re.compile(
    rb"""(?: \xc2 | \xe2\x80? | (?<!\\)\\++(?:
        x(?: [018] | c(?:2(?:\\++(?:x8?)?)?)? | e(?:2(?:\\++(?:x(?:8(?:0(?:\\++(?:xa?)?)?)?)?)?)?)? )?
        | u(?:0(?:0[018]?)?|2(?:0(?:2)?)?)?
    )? )\Z""",
    re.VERBOSE,
)


def flat(data: bytes) -> bytes:
    """The words of it, one blank between two; without what may be of a line end behind it."""
    return _GAP.sub(b" ", data[: len(data) - half(data)]).strip()


def half(data: bytes) -> int:
    """How many bytes at its end may yet become a line end, or belong to a word."""
    found = _HALF.search(data)
    return len(found[0]) if found else 0


def spans(data: bytes, form: bytes) -> Iterator[tuple[int, int]]:
    """From where to where the form stands in the data, whatever parts its words there."""
    words, lead = form.split(b" "), form[:LEAD].split(b" ")
    if lead[0] not in data:
        return
    begins, at = re.compile(_GAP.pattern.join(map(re.escape, lead)), re.VERBOSE), 0
    while (found := begins.search(data, at)) is not None:
        start = found.start()
        end = _behind(data, start, words)
        if end:
            yield start, end
        at = end or start + 1


def _behind(data: bytes, at: int, words: Sequence[bytes]) -> int:
    """Where the words end that begin there; 0 if others do."""
    for place, word in enumerate(words):
        if place:
            gap = _GAP.match(data, at)
            if gap is None:
                return 0
            at = gap.end()
        if not data.startswith(word, at):
            return 0
        at += len(word)
    return at


def overlap(data: bytes, form: bytes) -> int:
    """The longest end of the data that is a beginning of the form, but not all of it."""
    start = max(0, len(data) - len(form) + 1)
    while (at := data.find(form[:1], start)) >= 0:
        if form.startswith(data[at:]):
            return len(data) - at
        start = at + 1
    return 0


class Folded:
    """An end of a text made flat, which knows where in the text each of its bytes was."""

    def __init__(self, data: bytes) -> None:
        self._size = len(data)
        gaps = [match.span() for match in _GAP.finditer(data)]
        self._flat = _GAP.sub(b" ", data)
        # Behind each gap, in the flat text: how many bytes fewer there are before it than in the whole one.
        self._fewer = (0, *accumulate(end - start - 1 for start, end in gaps))
        self._behind = [end - fewer for (_, end), fewer in zip(gaps, self._fewer[1:], strict=True)]

    def piece(self, form: bytes, way: int) -> int:
        """How many bytes at the text's end are a beginning of the form; by ``way`` -1: at its beginning, an end."""
        most = overlap(self._flat[::way], form[::way])
        if not most:
            return 0
        size = self._size - self._at(len(self._flat) - most) if way > 0 else self._at(most - 1) + 1
        return size if size <= SPREAD * len(form) else 0

    def _at(self, place: int) -> int:
        """Where in the text a byte of the flat one is; of a gap, its first."""
        return place + self._fewer[bisect_right(self._behind, place)]

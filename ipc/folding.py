"""Texts whose lines were made one, or indented: what is looked for in them, and where it stands.

Between two words there may be anything that a way to show several lines puts there: blanks; line ends, as they are or
as a repr and JSON write them, also one inside the other; the quotes between which a pretty printer puts each line; the
rule that a group of errors has before it, or the mark of a quotation. Made flat, each of these gaps is one blank, in
the text as in what is looked for. Pure.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable
from itertools import accumulate

SPREAD = 16
"""How many times as long as itself a piece at an end of a text may be by its gaps: the rest is waited for."""
# All that `str.splitlines` takes for a line end is one, also as a repr or JSON writes it. At the end of the data it may
# be half there. A run of backslashes is looked at once, from its first: begun at each, 64 KiB of them take minutes.
_GAP = re.compile(
    rb"""(?:
        [\s|>'"\x1c-\x1e] | \xc2\x85 | \xe2\x80[\xa8\xa9] | (?:\xc2 | \xe2\x80?)\Z
        | (?<!\\)\\++(?:
            [nrtvf'"] | x(?:0[bBcC]|1[cdeCDE]|85) | u(?:00(?:0[bBcC]|1[cdeCDE]|85)|202[89])
            | (?:x[018]? | u(?:0(?:0[018]?)?|2(?:0(?:2)?)?)?)?\Z
        )
    )+""",
    re.VERBOSE,
)


def flat(data: bytes) -> bytes:
    """The words of it, one blank between two."""
    return _GAP.sub(b" ", data).strip()


def overlap(data: bytes, form: bytes) -> int:
    """The longest end of the data that is a beginning of the form, but not all of it."""
    start = max(0, len(data) - len(form) + 1)
    while (at := data.find(form[:1], start)) >= 0:
        if form.startswith(data[at:]):
            return len(data) - at
        start = at + 1
    return 0


class Folded:
    """A text made flat, which knows where in the text each of its bytes was."""

    def __init__(self, data: bytes) -> None:
        self._size = len(data)
        gaps = [match.span() for match in _GAP.finditer(data)]
        self._flat = _GAP.sub(b" ", data)
        # Behind each gap, in the flat text: how many bytes fewer there are before it than in the whole one.
        self._fewer = (0, *accumulate(end - start - 1 for start, end in gaps))
        self._behind = [end - fewer for (_, end), fewer in zip(gaps, self._fewer[1:], strict=True)]

    def found(self, forms: Iterable[bytes]) -> list[tuple[int, int, bytes]]:
        """From where to where each of the forms stands in the text, in order; of two that meet, the first."""
        present = [re.escape(form) for form in forms if form in self._flat]
        if not present:
            return []
        matches = re.finditer(b"|".join(present), self._flat)
        return [(self._at(match.start()), self._at(match.end() - 1) + 1, match[0]) for match in matches]

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

"""Delivered values out of what leaves: results, mails, error texts, progress, what a child prints.

Best effort against accidents, never against malice: a value is found as it is and as it is written inside a JSON text,
a repr or a URL, or with its lines made one or indented (``ipc.folding``), whole; not in base64, reversed or in pieces.
Of a text that was cut short, the piece of a value at which it was cut is one, too. A value of fewer than ``LEAST``
bytes isn't looked for: that would be found everywhere.

Pure, but for `Stream`, which keeps the end of what came.
"""

import re
from collections.abc import Iterable, Mapping

import msgspec

from ipc.folding import SPREAD, Folded, flat, half, overlap, spans

LEFT_OUT = "[…]"
"""Stands where a text was cut short."""
LEAST = 8
"""Bytes of the shortest value that is looked for."""
PIECE = 12
"""Bytes of the shortest piece of one that is looked for at the ends of a text: what many begin with is no secret."""
KEPT = 64
"""Values that stay hidden after they were replaced: what they opened may still be open."""


class Mask:
    """The values of some handles, to be found and hidden. It never changes: ``learned`` gives another one."""

    __slots__ = ("_flat", "_forms", "_known", "_names")

    def __init__(self, known: Iterable[tuple[str, bytes]] = ()) -> None:
        self._known = tuple(dict.fromkeys((name, value) for name, value in known if len(value) >= LEAST))
        self._names = {form: name for name, value in self._known for form in _forms(value)}
        # The longest first: one value may be the beginning of another one.
        self._forms = tuple(sorted(self._names, key=len, reverse=True))
        self._flat = {
            form: name
            for name, value in sorted(self._known, key=lambda each: len(each[1]), reverse=True)
            if b" " in (form := flat(value)) and len(form) >= LEAST
        }

    def __repr__(self) -> str:
        return f"Mask({len(self._known)} values)"

    def learned(self, materials: Mapping[str, bytes]) -> "Mask":
        """A mask that hides these, and the last of those before."""
        current = frozenset(materials.values())
        before = [pair for pair in self._known if pair[1] not in current]
        return Mask((*before[-KEPT:], *materials.items()))

    def found(self, data: bytes) -> str:
        """The handle of a value that occurs in the data; empty where none does."""
        # One search for each is six times as fast as a pattern of all: a result may have 64 MiB.
        name = next((self._names[form] for form in self._forms if form in data), "")
        return name or next((name for form, name in self._flat.items() if any(spans(data, form))), "")

    def hidden(self, data: bytes) -> bytes:
        """The data, with the handle's name in the place of each value."""
        pattern = self._pattern(data)
        if pattern is not None:
            data = pattern.sub(lambda match: f"[secret {self._names[match[0]]}]".encode(), data)
        parts, shown = [], 0
        for start, end, name in self._folds(data):
            parts += [data[shown:start], f"[secret {name}]".encode()]
            shown = end
        return b"".join((*parts, data[shown:]))

    def hidden_text(self, text: str) -> str:
        """The same of a text, which may have been cut at either end, with ``LEFT_OUT`` there or without."""
        if not self._forms:
            return text
        hidden = self.hidden(text.encode("utf-8", "surrogatepass")).decode("utf-8", "surrogatepass")
        before = LEFT_OUT if hidden.startswith(LEFT_OUT) else ""
        behind = LEFT_OUT if hidden[len(before) :].endswith(LEFT_OUT) else ""
        raw = hidden[len(before) : len(hidden) - len(behind)].encode("utf-8", "surrogatepass")
        last, name = self._longest(raw, 1)
        if last >= PIECE:
            raw, behind = raw[: len(raw) - last], f"[secret {name}]{behind}"
        first, name = self._longest(raw, -1)
        if first >= PIECE:
            raw, before = raw[first:], f"{before}[secret {name}]"
        return before + raw.decode("utf-8", "surrogatepass") + behind

    def settled(self, data: bytes) -> int:
        """How many bytes from the beginning can be judged by now: what follows may still become a value."""
        cut = len(data) - self._longest(data, 1)[0]
        pattern = self._pattern(data)
        spans = [] if pattern is None else [match.span() for match in pattern.finditer(data)]
        spans += [(start, end) for start, end, _ in self._folds(data)]
        while crossing := [start for start, end in spans if start < cut < end]:
            cut = min(crossing)
        return cut

    def _folds(self, data: bytes) -> list[tuple[int, int, str]]:
        """From where to where values of several words stand in it whose lines are one or indented, and whose."""
        found = [(span, name) for form, name in self._flat.items() for span in spans(data, form)]
        kept, end = list[tuple[int, int, str]](), 0
        for (start, behind), name in sorted(found, key=lambda each: each[0][0]):
            if start >= end:  # of two that meet, the first, and of two that begin there, the longer value
                kept.append((start, behind, name))
                end = behind
        return kept

    def _longest(self, data: bytes, way: int) -> tuple[int, str]:
        """The longest piece of a value at the end of the data, and whose it is; by ``way`` -1 at its beginning."""
        found = [(overlap(data[::way], form[::way]), self._names[form]) for form in self._forms]
        if self._flat:
            near = SPREAD * max(map(len, self._flat))
            end = data[-near:] if way > 0 else data[:near]
            for undecided in dict.fromkeys((0, half(end) if way > 0 else 0)):
                folded = Folded(end[: len(end) - undecided])
                pieces = ((folded.piece(form, way), name) for form, name in self._flat.items())
                found += [(size + undecided, name) for size, name in pieces if size]
        return max(found, default=(0, ""))

    def _pattern(self, data: bytes) -> re.Pattern[bytes] | None:
        """Of the values that are there; None where none is."""
        present = [re.escape(form) for form in self._forms if form in data]
        return re.compile(b"|".join(present)) if present else None


NOTHING = Mask()


class Stream:
    """A stream of bytes that comes in pieces: a value that is cut in two is hidden all the same."""

    def __init__(self) -> None:
        self._held = b""

    def feed(self, data: bytes, mask: Mask) -> bytes:
        """What may be shown by now; an empty piece is the end, and lets all of it go."""
        whole = self._held + data
        if not data:
            self._held = b""
            return mask.hidden(whole)
        cut = mask.settled(whole)
        self._held = whole[cut:]
        return mask.hidden(whole[:cut])


def _forms(value: bytes) -> tuple[bytes, ...]:
    """As it is, as JSON writes it (with other letters as they are, or not), as a repr or a URL does; also twice."""
    import json  # a child that was trusted with nothing has no use for either, and 4 ms
    import urllib.parse

    try:
        text = value.decode()
    except UnicodeDecodeError:
        return (value,)
    written = (
        " ".join(text.split()).encode(),
        msgspec.json.encode(text)[1:-1],
        json.dumps(text)[1:-1].encode(),
        repr(text)[1:-1].encode(),
        ascii(text)[1:-1].encode(),
        repr(value)[2:-1].encode(),
        urllib.parse.quote(text).encode(),
        urllib.parse.quote_plus(text).encode(),
        urllib.parse.quote(text, safe="").encode(),
    )
    # A result that is the text of a JSON document, or has a repr in it, is written as JSON once more.
    twice = (json.dumps(form.decode())[1:-1].encode() for form in written)
    return tuple(dict.fromkeys((value, *(form for form in (*written, *twice) if len(form) >= LEAST))))

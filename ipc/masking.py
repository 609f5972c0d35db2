"""Delivered values out of texts that leave: error texts, progress, what a child prints.

Best effort against accidents, never against malice: a value is found as it is and as it is written inside a JSON text,
a repr or a URL, or with its lines made one or indented, whole; not in base64, reversed or in pieces. Of a text that was
cut short, the piece of a value at which it was cut is one, too. A value of fewer than ``LEAST`` bytes isn't looked for:
that would be found everywhere.

Pure, but for `Stream`, which keeps the end of what came.
"""

import re
from collections.abc import Iterable, Mapping

import msgspec

LEFT_OUT = "[…]"
"""Stands where a text was cut short."""
LEAST = 8
"""Bytes of the shortest value that is looked for."""
PIECE = 12
"""Bytes of the shortest piece of one that is looked for at the ends of a text: what many begin with is no secret."""
KEPT = 64
"""Values that stay hidden after they were replaced: what they opened may still be open."""
_FOLD = rb"[\s|]+"
"""Between two words of a value, however it is shown: a group of errors has a rule before each line."""


class Mask:
    """The values of some handles, to be found and hidden. It never changes: ``learned`` gives another one."""

    __slots__ = ("_forms", "_known", "_names")

    def __init__(self, known: Iterable[tuple[str, bytes]] = ()) -> None:
        self._known = tuple(dict.fromkeys((name, value) for name, value in known if len(value) >= LEAST))
        self._names = {form: name for name, value in self._known for form in _forms(value)}
        # The longest first: one value may be the beginning of another one.
        self._forms = tuple(sorted(self._names, key=len, reverse=True))

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
        return next((self._names[form] for form in self._forms if form in data), "")

    def hidden(self, data: bytes) -> bytes:
        """The data, with the handle's name in the place of each value."""
        pattern = self._pattern(data)
        if pattern is None:
            return data
        return pattern.sub(lambda match: f"[secret {self._names[match[0]]}]".encode(), data)

    def hidden_text(self, text: str) -> str:
        """The same of a text, which may have been cut at either end, with ``LEFT_OUT`` there or without."""
        if not self._forms:
            return text
        whole = self._unfolded(self.hidden(text.encode("utf-8", "surrogatepass")))
        hidden = whole.decode("utf-8", "surrogatepass")
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
        cut = len(data) - max((_overlap(data, form) for form in self._forms), default=0)
        pattern = self._pattern(data)
        if pattern is None:
            return cut
        return next((m.start() for m in pattern.finditer(data) if m.start() < cut < m.end()), cut)

    def _unfolded(self, data: bytes) -> bytes:
        """Values of several words hidden, however their lines are indented: so are those of a group of errors."""
        for name, value in self._known:
            words = value.split()
            if len(words) > 1 and words[0] in data:
                data = re.sub(_FOLD.join(map(re.escape, words)), f"[secret {name}]".encode(), data)
        return data

    def _longest(self, data: bytes, way: int) -> tuple[int, str]:
        """The longest piece of a value at the end of the data, and whose it is; by ``way`` -1 at its beginning."""
        found = ((_overlap(data[::way], form[::way]), self._names[form]) for form in self._forms)
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
    """As it is, as JSON writes it (with other letters as they are, or not), as a repr does, and as a URL does."""
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
    return tuple(dict.fromkeys((value, *(form for form in written if len(form) >= LEAST))))


def _overlap(data: bytes, form: bytes) -> int:
    """The longest end of the data that is a beginning of the form, but not all of it."""
    start = max(0, len(data) - len(form) + 1)
    while (at := data.find(form[:1], start)) >= 0:
        if form.startswith(data[at:]):
            return len(data) - at
        start = at + 1
    return 0

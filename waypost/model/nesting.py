"""How deep a text of brackets is nested: asked before a parser that recurses is let near it. Pure.

Parsers recurse, and how much stack is left differs with who asks. What one reader takes and the next one can't read
would be damage; so whatever comes from outside has a bound that each reader can keep.
"""

import re
from collections.abc import Iterable
from typing import Final

EVENT: Final = 256
"""Levels of an event's JSON at most: those of its value (``waypost.model.values.DEPTH``), and what is around."""

_TOKEN: Final = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[\]{}]', re.DOTALL)
_CHANGE: Final = {b"[": 1, b"{": 1, b"]": -1, b"}": -1}


def too_deep(raw: bytes, most: int = EVENT) -> bool:
    """Whether JSON opens more than ``most`` brackets one within the other; of what is no JSON perhaps, too.

    Costs two counts where there are few brackets, and never more than a pass.
    """
    if raw.count(b"[") + raw.count(b"{") <= most:
        return False
    return deepest(match[0] for match in _TOKEN.finditer(raw)) > most


def deepest(tokens: Iterable[bytes]) -> int:
    """The most brackets that are open at once; what is no bracket counts for nothing."""
    most = depth = 0
    for token in tokens:
        depth += _CHANGE.get(token, 0)
        most = max(most, depth)
    return most

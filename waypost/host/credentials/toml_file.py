"""TOML from a file that somebody else may have made: read only where that costs little.

Keys of many parts and brackets within brackets cost the standard library's parser time and stack out of all proportion:
a key of a hundred thousand parts took half a minute. Files of ours have keys of two.

Promise: what is refused is refused after one pass without recursion, by the line; what is let through is read in about
a second, whatever is in it.
"""

import re
import tomllib
from typing import Any, Final

from waypost.model.errors import Invalid

PARTS: Final = 16
"""Of one key at most: ``a.b.c`` has three."""
DEEPEST: Final = 16
"""Brackets one within the other."""

_QUOTED: Final = re.compile(
    r'"""(?:(?!""")(?:[^\\]|\\.))*+(?:""")?|"(?:[^"\\\n]|\\.)*+"?'
    r"|'''(?:(?!''').)*+(?:''')?|'[^'\n]*+'?|\#[^\n]*+",
    re.DOTALL,
)
"""A text in quotes, or a comment; one that isn't closed reaches to the end."""
_BLANKS: Final = re.compile(r"[ \t]++")
_BETWEEN: Final = re.compile(r"[\s=,{}\[\]]++")
_BRACKET: Final = re.compile(r"[\[\]{}\n]")
_CHANGE: Final = {"[": 1, "{": 1, "]": -1, "}": -1}


class NotToml(Invalid):
    """It isn't TOML, or isn't read; ``line`` is 0 where that can't be told."""

    def __init__(self, line: int, why: str) -> None:
        super().__init__(why)
        self.line = line


def read(text: str) -> dict[str, Any]:
    """What it says. Raises NotToml; the message repeats nothing of the text."""
    # Without what is quoted, dots are a key's or a number's, and brackets are brackets.
    bare = _BLANKS.sub("", _QUOTED.sub(lambda quoted: "q" + "\n" * quoted[0].count("\n"), text))
    for number, line in enumerate(bare.split("\n"), 1):
        if line.count(".") >= PARTS and any(key.count(".") >= PARTS for key in _BETWEEN.split(line)):
            raise NotToml(number, f"a key has more than {PARTS} parts")
    depth, number = 0, 1
    for bracket in _BRACKET.finditer(bare):
        depth, number = depth + _CHANGE.get(bracket[0], 0), number + (bracket[0] == "\n")
        if depth > DEEPEST:
            raise NotToml(number, f"brackets are nested more than {DEEPEST} deep")
    try:
        return tomllib.loads(text)
    except (ValueError, RecursionError) as bad:  # a number of ten thousand digits is a ValueError of its own
        found = re.search(r"\(at line (\d+), column \d+\)", str(bad))
        why = re.sub(r"\s*\(at .*\)", "", str(bad)) if isinstance(bad, tomllib.TOMLDecodeError) else "a number too long"
        raise NotToml(int(found[1]) if found else 0, f"this isn't TOML: {why}") from None

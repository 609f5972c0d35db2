"""What a named signal may be called, and what it may carry: one rule for the command, the API and the authoring API."""

import msgspec

from waypost.model.errors import Invalid
from waypost.model.nesting import too_deep
from waypost.model.values import DEPTH

NAME = 200
"""Characters of a signal's name, or of its identity."""


def signal_name(text: str, what: str = "a signal's name") -> str:
    """The text, if it is one line of 1 to 200 printable characters. Raises Invalid."""
    if not text.strip():
        raise Invalid(f"{what} is some text, not {text!r}")
    if len(text) > NAME:
        raise Invalid(f"{what} has {len(text)} characters; at most {NAME} are taken")
    if not text.isprintable():
        raise Invalid(f"{what} is one line of printable characters, not {text[:80]!r}")
    return text


def payload(raw: bytes, most: int) -> bytes:
    """The bytes of a JSON value without blanks between its tokens: one line, every number as it was written.

    Raises Invalid for what is no JSON, with the place, for what has more than ``most`` bytes as it came, and for what
    is nested deeper than any reader can follow.
    """
    if len(raw) > most:  # of which the rest may never have been read
        raise Invalid(f"the payload has more than {most:,} bytes")
    if not raw.strip():
        raise Invalid("the payload is empty", hint="write null where there is nothing to say")
    try:
        raw.decode()
        if too_deep(raw, DEPTH):
            raise Invalid(f"the payload is nested, with more than {DEPTH} levels")
        msgspec.json.decode(raw)
        return msgspec.json.format(raw, indent=-1)
    except UnicodeDecodeError as bad:
        raise Invalid(f"the payload is no UTF-8 (byte {bad.start})") from None
    except msgspec.MsgspecError as bad:
        raise Invalid(f"the payload is no JSON: {bad}", hint='write a value such as {"paid": true}, or null') from None

"""The reference system's JSON: events, queue entries, the watermark, grants.

Read by its own rules and no stricter, because its records are what they are: unknown keys are ignored, an event's
fields are whatever its kind made of them. JSON is read by the standard library and not by msgspec: JavaScript writes
half surrogate pairs, which msgspec refuses, and one such character in a mail would make a whole run unreadable.
"""

import base64
import binascii
import json
import math
from dataclasses import dataclass, field
from typing import NoReturn, TypeAlias

from substrate.reference.errors import Unreadable
from waypost.model.errors import Invalid
from waypost.model.times import unstamp

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"

LATEST = 4_102_444_800_000
"""Unix ms of the year 2100: a time beyond it is none."""
_COUNT = 1 << 31
GRANTS = 1024 * 1024
"""Bytes of a grants.json."""


@dataclass(frozen=True, slots=True)
class Told:
    """One event as it was recorded there: its number, its kind, all of its fields, its bytes."""

    seq: int
    type: str
    fields: dict[str, Json] = field(repr=False)
    raw: bytes = field(repr=False)

    def text(self, name: str) -> str:
        """A field that is text, as text that can be written; empty where it is none."""
        return clean(self.fields.get(name))

    def number(self, name: str) -> int:
        """A field that is a whole number from 0; 0 where it is none, or more than a try's number could be."""
        value = self.fields.get(name)
        return value if isinstance(value, int) and not isinstance(value, bool) and 0 <= value < _COUNT else 0

    def inner(self, name: str, key: str) -> Json:
        """``fields[name][key]``; None where there is none."""
        value = self.fields.get(name)
        return value.get(key) if isinstance(value, dict) else None

    def time(self, name: str = "at") -> int | None:
        """A field that is a time, ISO 8601 or Unix milliseconds, as milliseconds; None where it is none."""
        return moment(self.fields.get(name))


@dataclass(frozen=True, slots=True)
class Envelope:
    """A queue entry. ``raw`` is the message where the entry holds it; times are Unix milliseconds.

    ``consumed`` is None in inbox and processing; ``rejected``: the code of the rejection.
    """

    id: str
    received: int
    address: str
    raw: bytes | None = field(default=None, repr=False)
    consumed: int | None = None
    run: str = ""
    rejected: str = ""


def read_event(path: str, raw: bytes) -> Told:
    """One event. Raises Unreadable where its own system would have refused it."""
    value = _object(path, raw)
    seq, kind = value.get("seq"), value.get("type")
    if not isinstance(seq, int) or isinstance(seq, bool) or seq < 0:
        raise Unreadable(path, "the event has no seq")
    if not isinstance(kind, str):
        raise Unreadable(path, "the event has no type")
    return Told(seq, clean(kind), value, raw)


def read_envelope(path: str, raw: bytes, *, consumed: bool) -> Envelope:
    """A queue entry. Raises Unreadable."""
    value = _object(path, raw)
    name, address = value.get("messageId"), value.get("address")
    received, taken = moment(value.get("receivedAt")), moment(value.get("consumedAt"))
    if not isinstance(name, str) or not name or not isinstance(address, str) or not _writable(name, address):
        raise Unreadable(path, "the entry has no messageId or no address that can be read")
    if received is None or (consumed and taken is None):
        raise Unreadable(path, "the entry doesn't say when")
    message = value.get("rawMessage")
    if message is not None and not isinstance(message, str):
        raise Unreadable(path, "rawMessage is no text")
    try:
        body = None if message is None or consumed else base64.b64decode(message, validate=True)
    except (binascii.Error, ValueError):
        raise Unreadable(path, "rawMessage is no base64") from None
    rejection = value.get("rejection")
    code = clean(rejection.get("code")) if isinstance(rejection, dict) else ""
    rejected = (code or "rejected") if rejection is not None else ""
    return Envelope(name, received, address, body, taken if consumed else None, clean(value.get("runId")), rejected)


def read_watermark(path: str, raw: bytes) -> int:
    """``watermark.json``: ids of mail that came before it may have been forgotten. Raises Unreadable."""
    found = moment(_object(path, raw).get("watermark"))
    if found is None:
        raise Unreadable(path, "it holds no watermark")
    return found


def read_grants(path: str, raw: bytes) -> bytes:
    """A grants.json: the same on one line, keys as they were. Raises Unreadable."""
    value = _object(path, raw)
    listed = value.get("grants")
    if not isinstance(listed, list) or not all(isinstance(each, dict) for each in listed):
        raise Unreadable(path, "it holds no list of grants")
    return json.dumps({"grants": listed}, separators=(",", ":")).encode()


def moment(value: Json) -> int | None:
    """Unix milliseconds of a number or an ISO 8601 text; None for what is none, or is not between 1970 and 2100."""
    match value:
        case bool():
            return None
        case int() | float() if math.isfinite(value):
            found = int(value)
        case str():
            try:
                found = unstamp(value)
            except (Invalid, OverflowError):
                return None
        case _:
            return None
    return found if 0 <= found <= LATEST else None


def clean(value: Json) -> str:
    """Text as UTF-8 can hold it: half a surrogate pair becomes ``?``; empty for what is no text."""
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) else ""


def _writable(*texts: str) -> bool:
    return all(clean(text) == text for text in texts)


def _object(path: str, raw: bytes) -> dict[str, Json]:
    try:
        value: Json = json.loads(raw.decode(), parse_constant=_no_json)
    except (ValueError, RecursionError) as bad:
        raise Unreadable(path, f"not JSON: {str(bad)[:200]}") from None
    if not isinstance(value, dict):
        raise Unreadable(path, "not a JSON object")
    return value


def _no_json(name: str) -> NoReturn:
    raise ValueError(f"{name} is no JSON")

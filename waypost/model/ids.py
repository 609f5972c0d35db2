"""Names: runs, calls, generations, addresses, and the keys derived from them.

Text in, text out: this file opens nothing and draws no random numbers (they are passed in).
"""

import hashlib
import re
from typing import NewType

from waypost.model.errors import Invalid

RunId = NewType("RunId", str)
"""``run_<ordinal>_<random>``: the ordinal gives the path; the random part is unguessable and unique over restores."""

CallId = NewType("CallId", str)
"""``<lane>#<n>``: one durable operation, named by its place in the program; the lane is ``r1``, ``r1.2``, …"""

Generation = NewType("Generation", int)
"""The number of a deployment's child incarnation, from 1."""

Deployment = NewType("Deployment", str)

_DEPLOYMENT = re.compile(r"[a-z0-9-]{1,63}\Z")
_RUN = re.compile(r"run_(0|[1-9][0-9]{0,17})_([0-9a-f]{16})\Z")
_CALL = re.compile(r"r[1-9][0-9]*(\.[1-9][0-9]*){0,63}#[1-9][0-9]{0,8}\Z")
_SHA256 = re.compile(r"[0-9a-f]{64}\Z")

CALL_ID_LIMIT = 512
"""Characters; a lane nested deeper is refused."""


def deployment(text: str) -> Deployment:
    """Check a deployment's name: 1 to 63 of ``a-z``, ``0-9`` and ``-``. Raises Invalid."""
    if not _DEPLOYMENT.match(text):
        raise Invalid(
            f"{text!r} can't name a deployment: 1 to 63 characters of a-z, 0-9 and '-' are allowed",
            hint="rename it in Workflow(name)",
        )
    return Deployment(text)


def run_id(ordinal: int, random: bytes) -> RunId:
    """Make a run's id from its ordinal and 8 random bytes."""
    if ordinal < 0 or len(random) != 8:  # noqa: PLR2004 - the width is the format
        raise Invalid(f"a run id needs an ordinal from 0 and 8 random bytes, got {ordinal} and {len(random)}")
    return RunId(f"run_{ordinal}_{random.hex()}")


def parse_run_id(text: str) -> RunId:
    """Check text that claims to be a run id. Raises Invalid."""
    if not _RUN.match(text):
        raise Invalid(f"{text!r} is not a run id", hint="`waypost runs` lists them")
    return RunId(text)


def is_run_id(text: str) -> bool:
    """Whether the text is a run id."""
    return _RUN.match(text) is not None


def run_ordinal(run: RunId) -> int:
    """The ordinal inside a run id; it decides the run's path, live and sealed."""
    match = _RUN.match(run)
    if match is None:
        raise Invalid(f"{run!r} is not a run id")
    return int(match[1])


def is_call_id(text: str) -> bool:
    """Whether the text names a call."""
    return len(text) <= CALL_ID_LIMIT and _CALL.match(text) is not None


def call_id(text: str) -> CallId:
    """Check text that claims to be a call's identity. Raises Invalid."""
    if not is_call_id(text):
        raise Invalid(f"{text[:80]!r} is not a call identity such as r1#2")
    return CallId(text)


def is_sha256(text: str) -> bool:
    """Whether the text is 64 lowercase hex digits."""
    return _SHA256.match(text) is not None


def idempotency_key(repository: str, origin: str, call: CallId) -> str:
    """The key of one call, 64 hex digits, the same on every try of it (storage §2).

    ``origin`` is the key of the mail (or parent call) that started the run; generation, attempt and the run's random
    id take no part, so that a repeat is recognisable whatever happened in between.
    """
    return hashlib.sha256(b"\0".join((repository.encode(), origin.encode(), call.encode()))).hexdigest()


def message_key(message_id: bytes) -> str:
    """The key under which a mail is filed: SHA-256 (hex) of its message id's bytes."""
    return hashlib.sha256(message_id).hexdigest()

"""What the steps of a deployment may do, as an operator has granted it: the records, and the questions about them.

``grants/<step>.json`` in the deployment's own repository, one line of canonical JSON (keys sorted, no blanks, each list
sorted and without repeats, what is empty left out), so that the SHA-256 of its bytes is the ``contentHash``:

    {"children":["billing"],"mail":["*@example.com","boss@example.com"],"secrets":["github"]}

``mail``     addresses that may be mailed and asked; ``*@domain`` is everybody of exactly that domain. Left out: whom
             the workflow names in ``mail_to``; an empty list is nobody.
``secrets``  handles of credentials that may be read
``children`` child workflows that the run may start, by name. Left out: those that the deployed code declares; an empty
             list is none

The step ``@run`` (no function has such a name) is the run itself: what is granted to it, each of its steps may do, too.
A step without a file has been granted nothing of its own. This format is for ever.

Promise: what isn't granted here is refused, whatever a child says; nothing here guesses.
"""

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import TypeAlias

import msgspec
from msgspec import UNSET, UnsetType

from waypost.model.address import address, normal
from waypost.model.errors import Invalid

RUN = "@run"
"""The reserved step that stands for the run function, and for all steps."""
FILE = 16_384
"""Bytes of one step's grants."""
SNAPSHOT = 1_048_576
"""Bytes of all of them together: they travel in one frame."""
STEPS = 200
"""Steps with grants of their own: a directory is bounded."""
NAME = 200
"""Characters of a child workflow's name."""
_HANDLE = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,63}\Z")
_EVERYBODY = "*"


class StepGrants(msgspec.Struct, frozen=True, forbid_unknown_fields=True, omit_defaults=True, kw_only=True):
    """What one step may do; each list sorted, each entry once. ``mail``, ``children`` unset: as the code declares."""

    children: tuple[str, ...] | UnsetType = UNSET
    mail: tuple[str, ...] | UnsetType = UNSET
    secrets: tuple[str, ...] = ()


NOTHING = StepGrants()


class Granted(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename="camel"):
    """A step of a snapshot. ``content_hash``: SHA-256 (hex) of the canonical JSON of ``grants``."""

    step_id: str
    grants: StepGrants
    content_hash: str


class GrantsSnapshot(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """All that is granted at one moment, by step; sorted by ``step_id``, steps without a file left out."""

    steps: tuple[Granted, ...] = ()

    def of(self, step: str) -> StepGrants:
        """What was granted to this step by name, without what it has from ``@run``."""
        return next((each.grants for each in self.steps if each.step_id == step), NOTHING)


NONE_GRANTED = GrantsSnapshot()
Asked: TypeAlias = tuple[str, str]
"""A step, and the handle of a secret that it asks for."""

_grants = msgspec.json.Decoder(StepGrants)
_snapshot = msgspec.json.Decoder(GrantsSnapshot)
_encoder = msgspec.json.Encoder(order="sorted")


# --- the records ---------------------------------------------------------------------------------------------------


def granted(
    *,
    mail: Iterable[str] | UnsetType = UNSET,
    secrets: Iterable[str] = (),
    children: Iterable[str] | UnsetType = UNSET,
) -> StepGrants:
    """A step's grants in their one form. Raises Invalid for what is no address, pattern, handle or workflow's name."""
    return StepGrants(
        children=UNSET if isinstance(children, UnsetType) else _set(map(workflow, children)),
        mail=UNSET if isinstance(mail, UnsetType) else _set(map(recipient, mail)),
        secrets=_set(map(handle, secrets)),
    )


def recipient(text: str) -> str:
    """An address, or ``*@domain``, in its one form. Raises Invalid."""
    found = address(text)
    local, _, domain = found.rpartition("@")
    if _EVERYBODY in local and (local != _EVERYBODY or "." not in domain):
        raise Invalid(f"{text!r}: the only pattern is everybody of one domain, *@example.com")
    return found


def handle(text: str) -> str:
    """The name of a credential. Raises Invalid."""
    if not _HANDLE.match(text):
        raise Invalid(f"{text[:80]!r} is no handle of a secret: up to 64 letters, digits, '_', '-' and '.'")
    return text


def workflow(text: str) -> str:
    """The name of a child workflow. Raises Invalid."""
    if not 0 < len(text) <= NAME or not text.isprintable() or " " in text:
        raise Invalid(f"{text[:80]!r} is no name of a child workflow: at most {NAME} characters, without blanks")
    return text


def encode(grants: StepGrants) -> bytes:
    """The canonical JSON: the bytes of ``grants/<step>.json``."""
    return _encoder.encode(grants)


def decode(raw: bytes) -> StepGrants:
    """Read ``grants/<step>.json``. Raises Invalid for anything that ``encode`` wouldn't have written."""
    if len(raw) > FILE:
        raise Invalid(f"grants of {len(raw)} bytes; a step's may have {FILE}")
    try:
        found = _grants.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as bad:
        raise Invalid(f"no grants: {bad}") from None
    if encode(granted(mail=found.mail, secrets=found.secrets, children=found.children)) != raw:
        raise Invalid("grants that aren't written in their one form: keys and lists sorted, nothing twice, no blanks")
    return found


# --- the snapshot --------------------------------------------------------------------------------------------------


def content_hash(grants: StepGrants) -> str:
    """SHA-256 (hex) of the canonical JSON."""
    return hashlib.sha256(encode(grants)).hexdigest()


def snapshot(steps: Mapping[str, StepGrants]) -> GrantsSnapshot:
    """The snapshot of what these steps are granted."""
    return GrantsSnapshot(
        steps=tuple(
            Granted(step_id=step, grants=grants, content_hash=content_hash(grants))
            for step, grants in sorted(steps.items())
        )
    )


def encode_snapshot(taken: GrantsSnapshot) -> bytes:
    """Its canonical JSON; the SHA-256 of these bytes is what ``run.start`` names."""
    return _encoder.encode(taken)


def read_snapshot(raw: bytes, sha256: str) -> GrantsSnapshot:
    """A snapshot that came from outside, every hash computed again. Raises Invalid where one doesn't match."""
    if len(raw) > SNAPSHOT:
        raise Invalid(f"a snapshot of grants of {len(raw)} bytes; it may have {SNAPSHOT}")
    if hashlib.sha256(raw).hexdigest() != sha256:
        raise Invalid(f"these grants aren't those of {sha256}")
    try:
        found = _snapshot.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as bad:
        raise Invalid(f"no snapshot of grants: {bad}") from None
    for each in found.steps:
        if content_hash(each.grants) != each.content_hash:
            raise Invalid(f"the grants of step {each.step_id[:80]!r} aren't those of {each.content_hash[:80]!r}")
    names = [each.step_id for each in found.steps]
    if names != sorted(set(names)):
        raise Invalid("a snapshot of grants names its steps once each, in order")
    return found


# --- the questions -------------------------------------------------------------------------------------------------


def may_read(taken: GrantsSnapshot, step: str, secret: str) -> bool:
    """Whether a step may read the secret of this handle."""
    return secret in taken.of(step).secrets or secret in taken.of(RUN).secrets


def may_start(taken: GrantsSnapshot, child: str) -> bool:
    """Whether a run may start the child workflow of this name, as far as an operator has said anything of that."""
    children = taken.of(RUN).children
    return isinstance(children, UnsetType) or child in children


def may_mail(allowed: Iterable[str], person: str) -> bool:
    """Whether an address is among those that are granted, one by one or as everybody of its domain."""
    wanted = normal(person)
    local, _, domain = wanted.rpartition("@")
    return bool(local and domain) and any(
        normal(each) == wanted or normal(each) == f"{_EVERYBODY}@{domain}" for each in allowed
    )


def readable(taken: GrantsSnapshot, steps: Iterable[str]) -> dict[str, tuple[str, ...]]:
    """By step, the handles that it may read, sorted; steps that may read none left out."""
    common = taken.of(RUN).secrets
    found = {step: _set((*taken.of(step).secrets, *common)) for step in steps}
    return {step: handles for step, handles in found.items() if handles}


def missing(taken: GrantsSnapshot, asked: Iterable[Asked]) -> tuple[Asked, ...]:
    """What is asked for and not granted, in order."""
    return tuple(each for each in asked if not may_read(taken, *each))


def lacking(several: Sequence[Asked]) -> str:
    """What isn't granted, in words: ``secret github to step fetch``."""
    named = ", ".join(f"secret {name} to {'the run' if step == RUN else f'step {step}'}" for step, name in several[:5])
    more = f" and {len(several) - 5} more" if len(several) > 5 else ""  # noqa: PLR2004 - a line of a message
    return f"not granted: {named}{more}" if several else ""


# --- changes -------------------------------------------------------------------------------------------------------


def given(before: StepGrants, more: StepGrants, mail_to: Iterable[str], children: Iterable[str] = ()) -> StepGrants:
    """``before``, and ``more`` on top.

    ``mail_to``, ``children``: what the code declares, where nothing was said of mail, or of child workflows, yet.
    """
    return StepGrants(
        children=before.children if more.children is UNSET else _set((*_children(before, children), *more.children)),
        mail=before.mail if more.mail is UNSET else _set((*_mail(before, mail_to), *more.mail)),
        secrets=_set((*before.secrets, *more.secrets)),
    )


def taken_back(
    before: StepGrants, less: StepGrants, mail_to: Iterable[str], children: Iterable[str] = ()
) -> StepGrants:
    """``before`` without ``less``; what isn't there can't go. ``mail_to`` and ``children`` as with ``given``."""
    return StepGrants(
        children=before.children if less.children is UNSET else _without(_children(before, children), less.children),
        mail=before.mail if less.mail is UNSET else _without(_mail(before, mail_to), less.mail),
        secrets=_without(before.secrets, less.secrets),
    )


def _children(grants: StepGrants, declared: Iterable[str]) -> Iterable[str]:
    return declared if isinstance(grants.children, UnsetType) else grants.children


def _mail(grants: StepGrants, declared: Iterable[str]) -> Iterable[str]:
    # A workflow can't grant itself a pattern: what looks like one in mail_to is an address there, and stays out.
    return (
        (each for each in map(normal, declared) if _EVERYBODY not in each)
        if isinstance(grants.mail, UnsetType)
        else grants.mail
    )


def _without(before: Iterable[str], less: Iterable[str]) -> tuple[str, ...]:
    return _set(set(before).difference(less))


def _set(entries: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted(set(entries)))

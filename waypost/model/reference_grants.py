"""Grants in the form of the reference system's agent-state repositories: ``{"grants":[{"resource","action",…}]}``.

Its hub grants tools, which this host has none of. What this host knows is written there so, and read so again:

    {"resource":"mail:boss@example.com","action":"send","effect":"allow"}
    {"resource":"secret:github","action":"read","effect":"allow"}
    {"resource":"workflow:billing","action":"spawn","effect":"allow"}
    {"resource":"mail:*","action":"send","effect":"deny"}         nobody, whomever the code declares; so for workflows

Promise: a record that means anything else, or more than these, grants nothing here, nor does what another record of the
list denies; each is named as left out.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, TypeAlias

import msgspec
from msgspec import UNSET

from waypost.model.errors import Invalid
from waypost.model.grants import StepGrants, granted, handle, recipient
from waypost.model.ids import deployment

Record: TypeAlias = dict[str, Any]
"""One grant: JSON of another system, whose fields are looked at one by one."""

_KINDS: dict[tuple[str, str], Callable[[str], str]] = {
    ("mail", "send"): recipient,
    ("secret", "read"): handle,
    ("workflow", "spawn"): deployment,
}
_CHECKS = {kind: check for (kind, _), check in _KINDS.items()}
_NOBODY: dict[str, Record] = {
    kind: {"resource": f"{kind}:*", "action": action, "effect": "deny"}
    for kind, action in (("mail", "send"), ("workflow", "spawn"))
}
_FIELDS = frozenset({"resource", "action", "effect"})
_list = msgspec.json.Decoder(dict[str, list[Record]])
_SHOWN = 120


def read(raw: bytes) -> tuple[StepGrants, tuple[str, ...]]:
    """What it grants here, and the records that grant nothing here, as text. Raises Invalid for another form."""
    try:
        found = _list.decode(raw)
        json.loads(raw, object_pairs_hook=_once)  # of two readers of a key that is there twice each may see another one
    except (msgspec.MsgspecError, ValueError, RecursionError) as bad:
        raise Invalid(f"no list of grants: {bad}") from None
    if found.keys() != {"grants"}:
        raise Invalid("no list of grants, or not only that")
    taken: dict[str, list[str]] = {kind: [] for kind, _ in _KINDS}
    left: list[str] = []
    denied = frozenset(_denials(found["grants"]))
    for record in found["grants"]:
        kind, value = _read(record)
        if record in _NOBODY.values():
            continue
        if value is None or _denies(denied, kind, value):
            left.append(msgspec.json.encode(record).decode()[:_SHOWN])
        else:
            taken[kind].append(value)
    # Where something of a kind is denied, what the code declares isn't granted by itself.
    narrowed = {text.partition(":")[0] for text in denied}
    mail, children = (
        taken[kind] or (() if not narrowed.isdisjoint(("", kind)) else UNSET) for kind in ("mail", "workflow")
    )
    return granted(mail=mail, secrets=taken["secret"], children=children), tuple(left)


def write(grants: StepGrants) -> bytes:
    """The same grants there, with two spaces for each level as the reference writes them."""
    records = [
        {"resource": f"{kind}:{value}", "action": action, "effect": "allow"}
        for kind, action, values in _listed(grants)
        for value in values
    ]
    records += [_NOBODY[kind] for kind, _, values in _listed(grants) if kind in _NOBODY and values == ()]
    return msgspec.json.format(msgspec.json.encode({"grants": records}), indent=2) + b"\n"


def is_form(raw: bytes) -> bool:
    """Whether these bytes are in that form: such a file was kept as it is, once, and grants nothing."""
    try:
        read(raw)
    except Invalid:
        return False
    return True


def _read(record: Record) -> tuple[str, str | None]:
    resource, action = record.get("resource"), record.get("action")
    kind, _, value = resource.partition(":") if isinstance(resource, str) else ("", "", "")
    check = _KINDS.get((kind, action)) if isinstance(action, str) else None
    if check is None or record.get("effect", "allow") != "allow" or not _FIELDS.issuperset(record):
        return kind, None
    try:
        return kind, check(value)
    except Invalid:
        return kind, None


def _denials(records: Iterable[Record]) -> Iterator[str]:
    """What is denied: a resource; or its kind, or all (""), where it isn't exactly one resource that is named."""
    for record in records:
        if record.get("effect", "allow") != "allow":
            resource = record.get("resource")
            kind, colon, value = (resource if isinstance(resource, str) else "").strip().lower().partition(":")
            kind = kind.strip()
            many = "" if not colon or "*" in kind else kind
            yield f"{kind}:{value}" if many and _is_one(kind, value) else many


def _is_one(kind: str, value: str) -> bool:
    """Whether it can mean nothing but the resource of this spelling, as far as its kind is known here."""
    check = _CHECKS.get(kind)
    if check is None:
        return True
    try:
        return check(value) == value and value.isascii() and "*" not in value and "xn--" not in value
    except Invalid:
        return False


def _denies(denied: frozenset[str], kind: str, value: str) -> bool:
    """Whether it is denied, or some of what it stands for is: there is no grant of all but one."""
    value = value.lower()
    if value.startswith("*@") and any(text.startswith(f"{kind}:") and text.endswith(value[1:]) for text in denied):
        return True
    return not denied.isdisjoint(("", kind, f"{kind}:{value}"))


def _once(pairs: list[tuple[str, Any]]) -> None:
    twice = [name for name, count in Counter(name for name, _ in pairs).items() if count > 1]
    if twice:
        raise ValueError(f"{twice[0][:80]!r} is there twice")


def _listed(grants: StepGrants) -> Iterator[tuple[str, str, Sequence[str]]]:
    if grants.mail is not UNSET:
        yield "mail", "send", grants.mail
    yield "secret", "read", grants.secrets
    if grants.children is not UNSET:
        yield "workflow", "spawn", grants.children

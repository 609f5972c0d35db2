"""Grants in the form of the reference system's agent-state repositories: ``{"grants":[{"resource","action",…}]}``.

Its hub grants tools, which this host has none of. What this host knows is written there so, and read so again:

    {"resource":"mail:boss@example.com","action":"send","effect":"allow"}
    {"resource":"secret:github","action":"read","effect":"allow"}
    {"resource":"workflow:billing","action":"spawn","effect":"allow"}
    {"resource":"mail:*","action":"send","effect":"deny"}         nobody, whomever the code declares; so for workflows

Promise: a record that means anything else, or more than these, grants nothing here, nor does what another record of the
list denies; each is named as left out.
"""

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
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as bad:
        raise Invalid(f"no list of grants: {bad}") from None
    if "grants" not in found:
        raise Invalid("no list of grants")
    taken: dict[str, list[str]] = {kind: [] for kind, _ in _KINDS}
    left: list[str] = []
    denied = frozenset(_denials(found["grants"]))
    for record in found["grants"]:
        kind, value = _read(record)
        if record in _NOBODY.values():
            continue
        if value is None or not denied.isdisjoint(("", kind, _one_form(record["resource"]))):
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
    """What is denied: a resource; or its kind, or all (""), where it isn't one resource that is named."""
    for record in records:
        if record.get("effect", "allow") != "allow":
            resource = record.get("resource")
            text = _one_form(resource) if isinstance(resource, str) else ""
            kind, colon, _ = text.partition(":")
            many = "" if not colon or "*" in kind else kind
            yield many if not many or "*" in text else text


def _one_form(resource: str) -> str:
    return resource.strip().lower()


def _listed(grants: StepGrants) -> Iterator[tuple[str, str, Sequence[str]]]:
    if grants.mail is not UNSET:
        yield "mail", "send", grants.mail
    yield "secret", "read", grants.secrets
    if grants.children is not UNSET:
        yield "workflow", "spawn", grants.children

"""Who may do what with a repository as a whole: actions, and the claims of a token (storage §4).

``ACTIONS`` is the matrix; which event a writer may write is said in ``principals``, and of whole commits in ``rules``.
A ``User`` has what its token claims, for as long as it claims it, and only where an authorization says allow, too.
Pure: time is a value. No door of a host takes a token yet; whoever reads or writes through its socket is its owner.
"""

import fnmatch
from typing import Annotated, Literal, TypeAlias

import msgspec

from substrate.principals import Name
from waypost.model.errors import Invalid

Action: TypeAlias = Literal["init", "write", "receive-pack", "create-pack", "resolve"]
"""Make a repository; commit; take in a pack that was pushed; give out a pack; read a reference or a commit."""
Verb: TypeAlias = Literal["create", "write", "read"]
Who: TypeAlias = Name | Literal["reader"]

VERBS: dict[Action, Verb] = {
    "init": "create",
    "write": "write",
    "receive-pack": "write",
    "create-pack": "read",
    "resolve": "read",
}
"""What an authorization calls each action."""

_READ: frozenset[Action] = frozenset({"create-pack", "resolve"})
_COMMIT: frozenset[Action] = frozenset({"write"})
ACTIONS: dict[Who, frozenset[Action]] = {
    "hub": frozenset(VERBS),
    "supervisor": frozenset(VERBS),
    "workflow-process": _COMMIT | _READ,
    "reader": _READ,
}
"""By principal. Nobody's push is taken in by a host: ``receive-pack`` is what the two may do who could grant it."""

AUTHORS = frozenset(who for who, actions in ACTIONS.items() if "write" in actions)
"""Who may be a commit's author. A reader or a user writes through the host, which is the author then."""

EVERY_REF = "*"
"""Asked of all references at once: no pattern is held against it."""


class Claims(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename="camel"):
    """What a token says of itself: which actions, on references that match a pattern, until when (Unix ms)."""

    actions: tuple[Action, ...]
    ref_pattern: Annotated[str, msgspec.Meta(min_length=1, max_length=1024)]
    expires_at: int


class Authorization(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename="camel"):
    """What was decided about it: for which resource (``workflow-run:`` and a repository's id), verb and effect."""

    resource: str
    grant_verb: str
    effect: str


class User(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True, rename="camel"):
    """A person or a program with a token."""

    token_claims: Claims
    authz: Authorization


_users = msgspec.json.Decoder(User)


def read_user(raw: bytes) -> User:
    """Read a user's claims and authorization from JSON, strictly: a shape that isn't theirs grants nothing.

    Raises Invalid.
    """
    try:
        return _users.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as bad:
        raise Invalid(f"not a user's token: {bad}") from None


def refuses(who: Who | User, action: Action, *, repository: str, ref: str, now: int) -> str:
    """Why this action is refused on this repository and reference, at ``now`` (Unix ms); empty when it isn't."""
    if not isinstance(who, User):
        return "" if action in ACTIONS[who] else f"{who} may not {action}"
    claims, authz = who.token_claims, who.authz
    at_hand = ref == EVERY_REF or fnmatch.fnmatchcase(ref, claims.ref_pattern)
    resource = f"workflow-run:{repository}"
    held = (
        (action in claims.actions, f"the token doesn't claim {action}"),
        (at_hand, f"the token is for {claims.ref_pattern[:80]}, not for {ref[:80]}"),
        (now < claims.expires_at, "the token has expired"),
        (authz.resource == resource, f"the authorization is for {authz.resource[:80]}"),
        (authz.grant_verb == VERBS[action], f"the authorization is to {authz.grant_verb[:80]}, not to {VERBS[action]}"),
        (authz.effect == "allow", f"the authorization says {authz.effect[:80]}"),
    )
    return next((why for holds, why in held if not holds), "")

"""Who may do what with a repository: the matrix of storage §4, and a token that must be right in everything."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from substrate.access import ACTIONS, AUTHORS, EVERY_REF, VERBS, Action, Authorization, Claims, User, read_user, refuses
from substrate.principals import TABLE
from waypost.model.errors import Invalid

NOW = 1_800_000_000_000
REF = "refs/heads/log"
ID = "0123456789abcdef"
PICK = st.sampled_from


def user(action: Action = "resolve", **changed: object) -> User:
    """One who may do this, with something changed."""
    claims = Claims(actions=(action,), ref_pattern="refs/heads/*", expires_at=NOW + 1)
    authz = Authorization(resource=f"workflow-run:{ID}", grant_verb=VERBS[action], effect="allow")
    mine = {name: value for name, value in changed.items() if name in Claims.__struct_fields__}
    theirs = {name: value for name, value in changed.items() if name in Authorization.__struct_fields__}
    return User(token_claims=msgspec.structs.replace(claims, **mine), authz=msgspec.structs.replace(authz, **theirs))


@pytest.mark.parametrize("action", VERBS)
def test_a_token_that_is_right_in_everything_is_let_through(action: Action) -> None:
    """Each action with its own verb."""
    assert refuses(user(action), action, repository=ID, ref=REF, now=NOW) == ""


@pytest.mark.parametrize(
    "changed",
    [
        {"actions": ()},
        {"actions": ("write",)},
        {"ref_pattern": "refs/heads/main"},
        {"ref_pattern": "REFS/HEADS/*"},
        {"expires_at": NOW},
        {"expires_at": 0},
        {"resource": "workflow-run:another"},
        {"resource": ID},
        {"grant_verb": "write"},
        {"grant_verb": ""},
        {"effect": "deny"},
        {"effect": "ALLOW"},
    ],
    ids=str,
)
def test_a_token_that_is_wrong_in_anything_is_refused(changed: dict[str, object]) -> None:
    """Each by itself is enough; the expiry is the first moment at which it no longer counts."""
    assert refuses(user("resolve", **changed), "resolve", repository=ID, ref=REF, now=NOW)


def test_all_references_at_once_are_held_against_no_pattern() -> None:
    """The one exception, and it excuses nothing else."""
    assert refuses(user(ref_pattern="refs/heads/main"), "resolve", repository=ID, ref=EVERY_REF, now=NOW) == ""
    assert refuses(user(effect="deny"), "resolve", repository=ID, ref=EVERY_REF, now=NOW)


@given(who=PICK([*ACTIONS]), action=PICK([*VERBS]))
def test_principals_have_their_row_of_the_matrix(who: str, action: Action) -> None:
    """Readers read; a child commits through the host, makes no repository and takes no pack in."""
    allowed = refuses(who, action, repository=ID, ref=REF, now=NOW) == ""  # type: ignore[arg-type] # a row's name
    assert allowed == (
        who in {"hub", "supervisor"} or VERBS[action] == "read" or (who, action) == ("workflow-process", "write")
    )


def test_only_who_may_commit_writes_events() -> None:
    """The two tables agree: every event has an author that may commit, and nobody else."""
    assert frozenset[str]().union(*(rule.who for rule in TABLE.values())) == AUTHORS


def test_claims_are_read_strictly() -> None:
    """A shape that isn't theirs is no token, whatever else it says."""
    good = msgspec.json.encode(user())
    assert read_user(good) == user()
    for bad in (
        b"",
        b"{}",
        b"null",
        good[:-1],
        good.replace(b'"allow"', b"true"),
        good.replace(b"expiresAt", b"expires"),
    ):
        with pytest.raises(Invalid):
            read_user(bad)
    with pytest.raises(Invalid):
        read_user(good.replace(b'"resolve"', b'"everything"'))
    with pytest.raises(Invalid):
        read_user(good[:-1] + b',"admin":true}')


@given(st.binary(max_size=60))
def test_no_bytes_are_taken_for_a_token(raw: bytes) -> None:
    """Nothing short of one is."""
    with pytest.raises(Invalid):
        read_user(raw)

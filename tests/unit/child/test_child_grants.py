"""What a child makes of what it is told that its steps may do: less at once, more only with what is delivered."""

import pytest

from ipc.deliveries import CredentialsUpdated
from waypost.authoring.errors import SecretRefused
from waypost.child.vault import Vault
from waypost.model.grants import NONE_GRANTED, granted, snapshot

VALUES = CredentialsUpdated(serial=1, bindings={"fetch": ("github",)}, materials={"github": b"s3cret"})


def test_a_grant_that_was_taken_back_is_taken_back_before_anything_else_is_delivered() -> None:
    """The keeper may not answer for a while: a step must not read meanwhile what an operator has revoked."""
    vault = Vault("expenses")
    vault.told(snapshot({"fetch": granted(secrets=["github"])}))
    vault.take(VALUES)
    assert vault.secret("fetch", "github") == "s3cret"
    vault.told(NONE_GRANTED)
    with pytest.raises(SecretRefused, match="may not read") as refused:
        vault.secret("fetch", "github")
    assert "waypost grants set expenses fetch --secret github" in refused.value.hint
    vault.told(snapshot({"@run": granted(secrets=["github"])}))
    assert vault.secret("fetch", "github") == "s3cret"


def test_what_is_granted_and_not_delivered_is_not_there() -> None:
    """The host delivers what it has; a grant alone is no value."""
    vault = Vault("expenses")
    vault.told(snapshot({"fetch": granted(secrets=["github"])}))
    with pytest.raises(SecretRefused):
        vault.secret("fetch", "github")

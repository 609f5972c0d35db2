"""Deliveries of credentials and sources as the wire has them: strict, bounded, and without a value in any text."""

from typing import Any

import msgspec
import pytest

from ipc import cbor, parse
from ipc.deliveries import VALUE, CredentialsUpdated, Source, SourcesUpdated, handles_of

CREDENTIALS = CredentialsUpdated(serial=3, bindings={"pay": ("github", "db")}, materials={"github": b"ghp_0123456789"})
SOURCES = SourcesUpdated(serial=4, sources=(Source(id="main", provider="p", model="m", credential="github"),))


@pytest.mark.parametrize("message", [CREDENTIALS, SOURCES], ids=["credentials", "sources"])
def test_what_is_sent_is_what_is_read(message: Any) -> None:
    """By the strict codec of the wire."""
    assert parse.to_child(cbor.decode(cbor.encode(message))) == message


@pytest.mark.parametrize(
    "change",
    [
        {"serial": -1},
        {"materials": {"github": 7}},
        {"materials": {"github": b"x" * (VALUE + 1)}},
        {"bindings": {"pay": "github"}},
        {"bindings": {"": ["github"]}},
        {"hash": "0"},
    ],
    ids=["a negative number", "a number", "too large", "no list", "no name", "a field that isn't there"],
)
def test_what_no_host_says_is_refused_without_being_repeated(change: dict[str, Any]) -> None:
    """The child ends on it, with what the decoder says in its log."""
    said = {"t": "credentials-updated", "serial": 1, "bindings": {}, "materials": {"github": b"ghp_0123456789"}}
    with pytest.raises(msgspec.ValidationError) as refused:
        parse.to_child({**said, **change})
    assert "ghp_" not in str(refused.value)


def test_two_sources_of_one_id_are_no_list_of_sources() -> None:
    """Whoever names one must know which."""
    one = msgspec.to_builtins(SOURCES.sources[0])
    with pytest.raises(msgspec.ValidationError, match="two sources of one id"):
        parse.to_child({"t": "sources-updated", "serial": 1, "sources": [one, one]})


def test_no_text_of_a_delivery_shows_a_value() -> None:
    """Neither Python's repr nor that of a pretty traceback."""
    assert repr(CREDENTIALS) == "CredentialsUpdated(serial=3, handles=['github'])"
    assert "ghp_" not in f"{CREDENTIALS} {list(CREDENTIALS.__rich_repr__())} {[CREDENTIALS]}"


def test_the_handles_of_all_steps_are_named_once() -> None:
    """What the keeper has to read."""
    assert handles_of({"pay": ("github", "db"), "look": ("db",)}) == ("db", "github")

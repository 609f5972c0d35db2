"""The child's environment: built from nothing, read back whole, and no secret in it."""

import pytest

from ipc.environment import ANCHORS, AS_THE_HOST, FIXED, MARK, RESERVED, Anchors, child_environment, read_anchors
from ipc.errors import BadAnchor, ReservedVariable
from ipc.keys import mint

KEYS = mint()
PLACE = Anchors(
    channel_id=KEYS.channel_id,
    host_key=KEYS.public_key,
    deployment="expenses",
    definition="ab" * 32,
    address="expenses@example.com",
)
HOST = {
    "PATH": "/usr/bin",
    "HOME": "/home/ada",
    "LANG": "de_DE.UTF-8",
    "PYTHONHASHSEED": "77",
    "PYTHONPATH": "/elsewhere",
    "LD_PRELOAD": "evil.so",
    "AWS_SECRET_ACCESS_KEY": "hush",
    "REGION": "eu",
    "IPC_CHANNEL_ID": "of the host's own parent",
}


def test_nothing_is_inherited_by_accident() -> None:
    """The whole environment, so that a name more is a decision."""
    assert child_environment(HOST, PLACE) == {
        "PATH": "/usr/bin",
        "HOME": "/home/ada",
        "LANG": "de_DE.UTF-8",
        "PYTHONHASHSEED": "0",
        "PYTHONUNBUFFERED": "1",
        "PYTHONFAULTHANDLER": "1",
        "IPC_CHANNEL_ID": KEYS.channel_id.hex(),
        "HOST_PUBKEY": KEYS.public_key.hex(),
        "DEPLOYMENT_ID": "expenses",
        "DEFINITION_HASH": "ab" * 32,
        "MAILBOX_ADDRESS": "expenses@example.com",
    }


def test_what_the_deployment_lists_comes_along_if_the_host_has_it() -> None:
    """By name; the value is the host's."""
    extra = child_environment(HOST, PLACE, listed=["REGION", "NOT_SET"])
    assert extra["REGION"] == "eu"
    assert "NOT_SET" not in extra


@pytest.mark.parametrize("name", sorted(RESERVED))
def test_a_reserved_name_can_not_be_listed(name: str) -> None:
    """A deployment can't point its child at another channel or give it another hash seed."""
    with pytest.raises(ReservedVariable) as caught:
        child_environment(HOST, PLACE, listed=["REGION", name])
    assert caught.value.names == (name,)


def test_reserved_is_everything_that_is_set_here() -> None:
    """The list in the refusal and the list that is written are one."""
    assert {*AS_THE_HOST, *FIXED, *ANCHORS, MARK} == RESERVED


def test_the_child_reads_what_the_host_wrote() -> None:
    """One function writes it, its neighbour reads it."""
    assert read_anchors(child_environment(HOST, PLACE)) == PLACE


def test_no_secret_is_in_the_environment() -> None:
    """/proc/<pid>/environ is readable for every process of the same user."""
    text = "\n".join(child_environment(HOST, PLACE).values())
    for secret in (bytes(KEYS.events.reveal()), KEYS.signing.seed):
        assert secret.hex() not in text


@pytest.mark.parametrize("name", ANCHORS)
@pytest.mark.parametrize("value", [None, "", "a\0b"])
def test_a_missing_or_broken_anchor_is_named(name: str, value: str | None) -> None:
    """Somebody who starts the child by hand is told what is wrong."""
    environ = child_environment(HOST, PLACE)
    if value is None:
        del environ[name]
    else:
        environ[name] = value
    with pytest.raises(BadAnchor) as caught:
        read_anchors(environ)
    assert caught.value.name == name


@pytest.mark.parametrize("name", ["IPC_CHANNEL_ID", "HOST_PUBKEY", "DEFINITION_HASH"])
@pytest.mark.parametrize("damage", ["capitals", "short", "long", "no hex", "a blank"])
def test_hex_has_one_spelling(name: str, damage: str) -> None:
    """A hash in capitals would compare unequal later, far from its cause."""
    environ = child_environment(HOST, PLACE)
    value = environ[name]
    environ[name] = {
        "capitals": "AB" + value[2:],
        "short": value[:-2],
        "long": value + "00",
        "no hex": "zz" + value[2:],
        "a blank": " " + value[1:],
    }[damage]
    with pytest.raises(BadAnchor) as caught:
        read_anchors(environ)
    assert caught.value.name == name


def test_a_host_key_that_must_not_be_trusted_is_refused() -> None:
    """All zeros is a key for which anybody can sign."""
    environ = child_environment(HOST, PLACE)
    environ["HOST_PUBKEY"] = "00" * 32
    with pytest.raises(BadAnchor, match="small order"):
        read_anchors(environ)


def test_an_anchor_that_the_child_would_refuse_is_refused_by_the_host() -> None:
    """Before a process is started, not after."""
    with pytest.raises(BadAnchor):
        child_environment(HOST, Anchors(channel_id=b"", host_key=b"", deployment="", definition="", address=""))

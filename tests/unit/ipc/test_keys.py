"""Keys: fresh for each spawn, handed over by a descriptor, never shown."""

import logging
import os
import pickle

import pytest

from ipc.errors import BadSecrets, SecretWiped
from ipc.keys import mint, read_secrets
from ipc.secret import Secret


def piped(data: bytes) -> int:
    """The reading end of a pipe that holds this and nothing more to come."""
    reading, writing = os.pipe()
    os.write(writing, data)
    os.close(writing)
    return reading


def test_two_spawns_share_nothing() -> None:
    """What one child knew is of no use on the next one's channel."""
    one, two = mint(), mint()
    assert one.channel_id != two.channel_id
    assert one.public_key != two.public_key
    assert one.events != two.events
    assert (len(one.channel_id), len(one.public_key), len(one.events.reveal())) == (16, 32, 32)


def test_the_child_reads_what_the_host_wrote_and_the_descriptor_is_closed() -> None:
    """Read once: user code that looks for it later finds nothing."""
    keys = mint()
    fd = piped(keys.for_child())
    assert read_secrets(fd) == keys.events
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


@pytest.mark.parametrize("damage", [lambda b: b"", lambda b: b[:-1], lambda b: b + b"\0", lambda b: b"x" + b[1:]])
def test_anything_but_one_block_is_refused_and_the_descriptor_is_closed(damage) -> None:
    """Started by hand, or by another version: say so at once instead of failing at the first MAC."""
    fd = piped(damage(mint().for_child()))
    with pytest.raises(BadSecrets):
        read_secrets(fd)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(fd)


def test_a_missing_descriptor_is_a_typed_error() -> None:
    """`python -m waypost.child` typed into a shell has no descriptor 5."""
    fd = piped(b"")
    os.close(fd)
    with pytest.raises(BadSecrets, match=str(fd)):
        read_secrets(fd)


def test_nothing_prints_a_key(caplog: pytest.LogCaptureFixture) -> None:
    """Neither by repr nor by str nor in a log line, in any of the usual spellings."""
    keys = mint()
    raw = bytes(keys.events.reveal())
    with caplog.at_level(logging.INFO):
        logging.getLogger("test").info("%s %r %s", keys, keys.events, [keys])
    shown = f"{keys!r} {keys.events} {caplog.text}"
    private = keys.signing.seed
    for secret in (raw, private):
        assert secret.hex() not in shown
        assert repr(secret)[2:-1] not in shown
    assert "Secret(…)" in shown


def test_a_secret_is_never_pickled() -> None:
    """It would end up in a message queue, a cache or a traceback's locals."""
    with pytest.raises(TypeError):
        pickle.dumps(Secret(b"x"))
    with pytest.raises(TypeError):
        hash(Secret(b"x"))


def test_a_wiped_secret_is_gone_and_refuses_to_be_used() -> None:
    """The bytes are overwritten where they lay, and no key of zeros takes their place."""
    keys = mint()
    held = keys.events.reveal()
    keys.wipe()
    assert not any(held)
    with pytest.raises(SecretWiped):
        keys.events.reveal()
    with pytest.raises(SecretWiped):
        keys.for_child()


def test_secrets_are_compared_by_content() -> None:
    """And a secret equals nothing that isn't one."""
    assert Secret(b"a") == Secret(b"a")
    assert Secret(b"a") != Secret(b"b")
    assert Secret(b"a") != b"a"

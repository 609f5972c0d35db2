"""A process that writes and is killed with -9 at a random moment, again and again."""

import random
import sys
from pathlib import Path

import pytest

from substrate.signing.keys import SigningKey
from substrate.storage.store import Store
from waypost.testing.background import Background
from waypost.testing.stores import fresh_store, fsck

WRITER = """
import os, sys
from substrate.signing.keys import SigningKey
from substrate.storage.store import Store
from waypost.model.limits import Limits
from waypost.testing.stores import put

store = Store.open(sys.argv[1], key=SigningKey.load(sys.argv[2]), limits=Limits(seal_objects=50))
number = int(store.read("count") or b"0")
while True:
    number += 1
    put(store, {"count": b"%d" % number, f"d/{number % 97}": b"x" * number})
    store.flush()
    os.write(1, b"%d\\n" % number)
    if store.wants_seal(0.0):
        store.seal()
    store.merge()
"""


def killed_writer(repository: Path, key: Path, after: int) -> int:
    """Let a writer acknowledge some flushes, kill it, and return the last number that it acknowledged."""
    with Background(command=(sys.executable, "-c", WRITER, str(repository), str(key))) as writer:
        for _ in range(after):
            writer.next()
        writer.kill()
    return int(writer.said[-1])


def rounds_of_kills(folder: Path, rounds: int, seed: int) -> None:
    """Kill, recover, compare, go on."""
    random_ = random.Random(seed)
    key = SigningKey.load_or_create(folder / "key")
    fresh_store(folder / "r.git", key).close()
    for _ in range(rounds):
        acknowledged = killed_writer(folder / "r.git", folder / "key", random_.randrange(1, 150))
        store = Store.open(folder / "r.git", key=key)
        count = int(store.read("count") or b"0")
        assert acknowledged <= count <= acknowledged + 1
        assert store.flush_number == count + 1
        for number in range(max(1, count - 90), count + 1):
            assert store.read(f"d/{number % 97}") == b"x" * number
        store.close()
    assert fsck(folder / "r.git") == ""
    assert any(keep.stat().st_size for keep in (folder / "r.git" / "objects" / "pack").glob("*.keep")), "nothing merged"
    assert list((folder / "r.git" / "waypost").iterdir()) == [folder / "r.git" / "waypost" / "journal"]


def test_kill_9_loses_nothing_that_was_acknowledged(tmp_path: Path) -> None:
    """The promise of storage, on a real process and the real disk."""
    rounds_of_kills(tmp_path, rounds=3, seed=7)


@pytest.mark.torture
def test_forty_kills_lose_nothing(tmp_path: Path) -> None:
    """The same, for longer."""
    rounds_of_kills(tmp_path, rounds=40, seed=random.randrange(1 << 30))

"""A short run of the torture program, and that its checker would see what it is there to see."""

import random
from pathlib import Path

import pytest

from waypost.testing.torture import Torture
from waypost.testing.torture_check import broken
from waypost.testing.torture_parts import Sent

pytestmark = [pytest.mark.e2e, pytest.mark.torture]


def test_nothing_is_broken_by_some_seconds_of_everything_at_once(tmp_path: Path) -> None:
    """Kills, a full disk, stock git, readers and senders together; a failure says its seed."""
    seed = random.SystemRandom().randrange(1 << 30)
    world = Torture(tmp_path / "world", seed, deployments=2)
    tally = world.run(20.0)
    assert broken(world) == [], f"seed {seed}: {tally}"
    assert tally.sent, f"seed {seed}: nothing came in: {tally}"

    # The checker isn't blind: each of these is seen, and nothing else.
    first = tally.sent[0]
    world.tally.sent.append(Sent("lost", 1 << 40, first.run, first.deployment))
    assert [words for words in broken(world) if "lost" in words] == broken(world) != []
    world.tally.sent.pop()
    ledger = world.books / "ledger"
    lines = ledger.read_text(encoding="utf-8").splitlines(keepends=True)
    ledger.write_text("".join([*lines[1:], lines[-1], "0" * 64 + " nobody\n"]), encoding="utf-8")
    key, last = lines[0].split()[0], lines[-1].split()[0]
    assert key != last
    said = broken(world)
    assert any("2 times in the ledger" in words for words in said)
    assert any("0 times in the ledger" in words for words in said)
    assert f"{'0' * 64} is in the ledger and in no log" in said
    ledger.write_text("".join(lines), encoding="utf-8")
    pack = max(
        (world.repository(first.deployment) / "objects" / "pack").glob("*.pack"), key=lambda file: file.stat().st_size
    )
    raw = bytearray(pack.read_bytes())
    raw[len(raw) // 2] ^= 1
    pack.chmod(0o644)
    pack.write_bytes(bytes(raw))
    assert broken(world) != []

"""What a host doesn't need any more, it doesn't keep."""

import platform
import subprocess
import sys

import pytest

_CHURN = """
import sys
from pathlib import Path
from waypost.host.heap import give_back

def anonymous():
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) for line in status.splitlines() if line.startswith("RssAnon"))

if sys.argv[1] == "yes":
    give_back()
before = anonymous()
piece = b"x" * (20 << 20)
del piece  # from here on glibc keeps as much, by itself
piece, kept = b"x" * (12 << 20), b"y" * 100_000
del piece  # a hole before something that is still in use
print(anonymous() - before)
"""


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="it is a setting of glibc's")
def test_large_pieces_go_back_to_the_system() -> None:
    """Merged packs and values of some MB would stay with a host for ever, as memory that nobody uses."""
    kept = {
        how: int(subprocess.run([sys.executable, "-c", _CHURN, how], check=True, capture_output=True).stdout)
        for how in ("no", "yes")
    }
    assert kept["yes"] < 4 * 1024 < kept["no"]

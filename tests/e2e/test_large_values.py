"""Values of many megabytes on the real way: more of them at once than the host keeps for a child."""

from pathlib import Path

import pytest

from waypost.testing.host_process import HostProcess

pytestmark = [pytest.mark.e2e, pytest.mark.torture]

WORKFLOW = '''
import asyncio
from waypost import Mail, Workflow

big = Workflow("big", address="big@example.com")

@big.step
def make(n: int) -> str:
    return str(n) * 30_000_000

@big.run
async def go(mail: Mail) -> int:
    """A hundred and twenty megabytes, all asked for at once."""
    return sum(len(each) for each in await asyncio.gather(*(make(n) for n in range(4))))
'''


def test_several_values_of_thirty_megabytes_at_once_are_all_kept(tmp_path: Path) -> None:
    """Each is allowed (64 MiB); they wait for each other, and none fails its run."""
    (tmp_path / "big.py").write_text(WORKFLOW)
    with HostProcess(tmp_path / "big.py", data=tmp_path / "data") as host:
        host.send("big@example.com", b"From: ann@example.com\r\nSubject: x\r\n\r\nhello\r\n")
        host.wait_for("completed: 120000000")

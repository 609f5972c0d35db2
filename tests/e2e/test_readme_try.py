"""What the README has a newcomer type is what they get."""

import re
import shlex
import subprocess
from pathlib import Path

import pytest

from waypost.testing.background import COMMAND
from waypost.testing.host_process import HostProcess

pytestmark = pytest.mark.e2e

README = (Path(__file__).resolve().parents[2] / "README.md").read_text(encoding="utf-8")
(TRY,) = re.findall(r"<!-- try -->\n+```\n(.*?)```", README, re.DOTALL)
COMMANDS = [re.split(r" {2,}", line)[0] for line in TRY.splitlines()]


def test_the_commands_below_the_workflow_take_a_claim_to_its_end(tmp_path: Path) -> None:
    """The first thing that is done with Waypost, by a shell, in the order of the page."""
    (code,) = re.findall(r"```python\n(.*?)```", README, re.DOTALL)
    (tmp_path / "expenses.py").write_text(code)
    data = tmp_path / ".waypost"
    with HostProcess(tmp_path / "expenses.py", data=data) as host:

        def typed(command: str) -> str:
            line = re.sub(r"\bwaypost ", f"{shlex.join(COMMAND)} ", command, count=1)
            done = subprocess.run(line, shell=True, cwd=tmp_path, capture_output=True, text=True, check=False)
            assert done.returncode == 0, (command, done.stdout, done.stderr)
            return done.stdout

        send, runs, why, approve, show, verify = COMMANDS
        assert "accepted as mail 1" in typed(send)
        host.wait_for("waits for boss@example.com")
        assert "Pay 420.00 for a desk?" in typed(runs)
        assert "waypost approve run_1" in typed(why)
        typed(approve)
        host.wait_for("completed")
        assert 'completed: "done"' in typed(show)
        assert "expenses: sound" in typed(verify)

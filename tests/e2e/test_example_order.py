"""The example of child runs does what its docstring says, with the commands in it."""

from pathlib import Path

import pytest

from waypost.testing.host_process import HostProcess

pytestmark = pytest.mark.e2e

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "order.py"


def test_an_order_is_a_run_for_each_of_its_lines(tmp_path: Path) -> None:
    """The dear one waits for the buyer, the others don't; what can't be had costs them nothing."""
    with HostProcess(EXAMPLE, data=tmp_path / "data") as host:
        host.verb("send", "orders@example.com", stdin=(EXAMPLE.parent / "mail" / "order.eml").read_bytes())
        host.wait_for("waits for buyer@example.com")
        host.wait_for("completed: 120")
        waits = host.verb("approvals").stdout
        assert "Buy 3 desk for 1260?" in waits
        run = next(word for word in waits.split() if word.startswith("run_"))
        assert host.verb("approve", run).returncode == 0
        host.wait_for('completed: "bought for 1570"')
        shown = host.verb("show", "run_1").stdout
    assert shown.count("is started") == 4
    assert "nobody sells a unicorn" in shown


def test_it_is_short() -> None:
    """What is read to see how it is done fits a screen or two."""
    assert len([line for line in EXAMPLE.read_text(encoding="utf-8").splitlines() if line.strip()]) <= 60

"""The example of child runs does what its docstring says, with the commands in it."""

from pathlib import Path

import pytest

from waypost.testing.host_here import HostHere
from waypost.testing.patience import eventually
from waypost.testing.verbs import verb

pytestmark = pytest.mark.e2e

EXAMPLE = Path(__file__).resolve().parents[2] / "examples" / "order.py"


def test_an_order_is_a_run_for_each_of_its_lines(tmp_path: Path) -> None:
    """The dear one waits for the buyer, the others don't; what can't be had costs them nothing."""
    data = tmp_path / "data"
    with HostHere(EXAMPLE, data=data) as host:
        order = (EXAMPLE.parent / "mail" / "order.eml").read_bytes()
        assert verb("send", "orders@example.com", data=data, stdin=order).status == 0
        host.wait_for("completed: 120")
        eventually(lambda: "Buy 3 desk for 1260?" in verb("approvals", data=data).out, "the dear one is asked for")
        run = next(word for word in verb("approvals", data=data).out.split() if word.startswith("run_"))
        assert verb("approve", run, data=data).status == 0
        host.wait_for('completed: "bought for 1570"')
        shown = verb("show", "run_1", data=data).out
    assert shown.count("is started") == 4
    assert "nobody sells a unicorn" in shown


def test_it_is_short() -> None:
    """What is read to see how it is done fits a screen or two."""
    assert len([line for line in EXAMPLE.read_text(encoding="utf-8").splitlines() if line.strip()]) <= 60

"""Answers in words: what isn't shown is said."""

import io
import sys

import pytest

from waypost.cli import words
from waypost.cli.fitting import width
from waypost.cli.output import complain, err, out
from waypost.host.answers.records import DeploymentVerified, Finding, RunRow, Runs, Verified

ROW = RunRow(
    run="run_1_0000000000000000", deployment="a", state="running", started="", changed="", seq=1, subject="", waiting=""
)


def test_a_list_that_leaves_out_runs_says_so() -> None:
    """Else the run that somebody looks for seems to be lost."""
    assert list(words.left_out(Runs(runs=(ROW,), more=False))) == []
    (line,) = words.left_out(Runs(runs=(ROW,), more=True))
    assert "newest 1 " in line


def test_a_line_is_written_with_its_end(monkeypatch: pytest.MonkeyPatch) -> None:
    """The timeline is another thread's: it came between a line and its end, and two lines became one."""
    written: list[str] = []
    page = io.StringIO()
    monkeypatch.setattr(page, "write", written.append)
    monkeypatch.setattr(sys, "stdout", page)
    monkeypatch.setattr(sys, "stderr", page)
    out("a", "b")
    err("c")
    out()
    assert [each for each in written if each] == ["a\nb\n", "c\n"]


def test_what_others_have_named_can_t_steer_a_terminal(capsys: pytest.CaptureFixture[str]) -> None:
    """A clone, a backup, a remote's last words: their names and paths are printed, and may hold anything."""
    hostile = "a\x1b]0;pwned\x07b\x9b31m\udcff\r\nc"
    complain(hostile, hostile)
    fault = Finding(commit="", path=hostile, fault="x")
    told = DeploymentVerified(
        deployment=hostile,
        sound=False,
        signer="s",
        pinned=True,
        repository=hostile,
        flushes=1,
        commits=1,
        runs=0,
        events=0,
        reach="r",
        faults=(fault,),
    )
    printed = capsys.readouterr().err + "\n".join(words.verified(Verified(isolation="none", deployments=(told,))))
    assert "c" in printed
    assert not {"\x1b", "\x07", "\x9b", "\r", "\udcff"} & set(printed)


def test_of_a_clone_nothing_is_said_about_isolation() -> None:
    """Nobody runs it, and nobody asked."""
    assert list(words.verified(Verified(isolation=None, deployments=()))) == ["there is nothing to verify yet"]


def test_no_open_approval_is_said() -> None:
    """An empty answer could be one that was lost."""
    assert list(words.approvals(())) == ["nothing is asked of anybody"]


HOSTILE = (
    "a\nb",
    "a\r\nb",
    "tab\there",
    "\x1b[2Jgone",
    "\u202eover",
    "\u2028line",
    "\x85next",
    "\ud800",
    "\u0645\u0631",
    "漢字",
)


@pytest.mark.parametrize("cell", [*HOSTILE, "z" + "\N{COMBINING ACUTE ACCENT}" * 500], ids=ascii)
def test_whatever_a_cell_has_its_row_is_one_line_and_its_columns_stand(cell: str) -> None:
    """A model's name, a handle, a reason: somebody else chooses them, and a list is read line by line."""
    head, row, other = words.columns([("model", "for"), (cell, "orders"), ("plain", "all")])
    assert row.isprintable()
    assert not {"\n", "\r", "\x1b"} & set(row)
    assert width(row.removesuffix("orders")) == width(other.removesuffix("all")) == width(head.removesuffix("for"))
    assert len(row) < 40


@pytest.mark.parametrize(("number", "said"), [(0, "0 mails"), (1, "1 mail"), (2000, "2,000 mails")])
def test_one_is_one(number: int, said: str) -> None:
    """`1 live runs` reads as a slip of whoever made it."""
    assert words.count(number, "mail") == said

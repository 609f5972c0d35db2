"""Answers in words: what isn't shown is said."""

from waypost.cli import words
from waypost.host.answers import RunRow, Runs

ROW = RunRow(
    run="run_1_0000000000000000", deployment="a", state="running", started="", changed="", seq=1, subject="", waiting=""
)


def test_a_list_that_leaves_out_runs_says_so() -> None:
    """Else the run that somebody looks for seems to be lost."""
    assert list(words.left_out(Runs(runs=(ROW,), more=False))) == []
    (line,) = words.left_out(Runs(runs=(ROW,), more=True))
    assert "newest 1 " in line

"""`waypost --help` is a map: thirty verbs in one row help nobody to find the one that is needed."""

import re
import sys

import pytest

from waypost import __version__
from waypost.cli.command import app, run
from waypost.cli.main import main
from waypost.cli.verbs import GROUPS

VERBS = {command.name or command.callback.__name__ for command in app.registered_commands if command.callback}
VERBS |= {group.name for group in app.registered_groups if group.name}


def test_every_verb_is_in_one_group() -> None:
    """A verb that is added has to be put where somebody looks for it."""
    grouped = [name for names in GROUPS.values() for name in names]
    assert sorted(grouped) == sorted(VERBS)


def test_the_help_lists_each_verb_below_its_heading_with_a_whole_sentence(capsys: pytest.CaptureFixture[str]) -> None:
    """It was one long list, most sentences cut in the middle."""
    assert run(["--help"]) == 0
    said = capsys.readouterr().out
    assert "..." not in said.replace("[ARGS]...", "")
    sections = dict(re.findall(r"^(\S[^\n]*):\n((?: .*\n)+)", said, re.MULTILINE))
    listed = {heading: tuple(re.findall(r"^  ([a-z-]+) ", text, re.MULTILINE)) for heading, text in sections.items()}
    assert {heading: listed[heading] for heading in GROUPS} == GROUPS
    assert "Others" not in said


@pytest.mark.parametrize("verb", sorted(VERBS))
def test_each_verb_has_a_help(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The map leads somewhere."""
    assert run([verb, "--help"]) == 0
    assert f"Usage: waypost {verb} " in capsys.readouterr().out


def test_the_command_says_which_version_it_is(capsys: pytest.CaptureFixture[str]) -> None:
    """Who reports a fault is asked for it first."""
    assert run(["--version"]) == 0
    assert capsys.readouterr().out == f"waypost {__version__}\n"


def test_ctrl_c_while_the_command_is_still_loading_shows_no_traceback(monkeypatch: pytest.MonkeyPatch) -> None:
    """Loading takes a quarter of a second, or several on a busy machine: whoever has mistyped is quicker than that."""

    class Loading:
        def __getattr__(self, name: str) -> object:
            raise KeyboardInterrupt

    monkeypatch.setitem(sys.modules, "waypost.cli.command", Loading())
    with pytest.raises(SystemExit) as ended:
        main(["runs"])
    assert ended.value.code == 130

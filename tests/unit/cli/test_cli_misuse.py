"""What a slip of the hand is answered with: the verb's own help, and words that name what was typed."""

from pathlib import Path

import pytest

from waypost.cli.command import run
from waypost.host.datadir.directory import NAME, lay_out, prepare


@pytest.mark.parametrize("asked", [["-h"], ["show", "-h"], ["queue", "hold", "-h"]])
def test_the_short_form_asks_for_help_too(asked: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    """It is what most other commands take, and was refused."""
    assert run(asked) == 0
    assert capsys.readouterr().out.startswith("Usage: waypost")


@pytest.mark.parametrize(
    ("asked", "said", "leads_to"),
    [
        (["show"], "Missing argument 'RUN'", "waypost show --help"),
        (["grants", "set"], "Missing argument 'DEPLOYMENT'", "waypost grants set --help"),
        (["runs", "--jsn"], "No such option: --jsn", "waypost runs --help"),
        (["nosuch"], "No such command 'nosuch'", "waypost --help"),
        (["queue", "nosuch"], "No such command 'nosuch'", "waypost queue --help"),
    ],
)
def test_who_has_mistyped_is_led_to_the_help_of_that_verb(
    asked: list[str], said: str, leads_to: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """`waypost VERB --help` had to be put together by whoever was in a hurry already."""
    assert run(asked) == 64
    told = capsys.readouterr().err
    assert said in told
    assert f"`{leads_to}`" in told


@pytest.mark.parametrize("verb", ["schedule", "queue", "grants", "credentials"])
def test_a_verb_of_several_says_a_whole_sentence_of_each(verb: str, capsys: pytest.CaptureFixture[str]) -> None:
    """They were cut in the middle of it."""
    assert run([verb, "--help"]) == 0
    assert "..." not in capsys.readouterr().out.replace("[ARGS]...", "")


def test_a_backup_into_a_folder_that_is_not_there_names_the_folder(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """It named a file with a made-up name that nobody had asked for."""
    data = prepare(tmp_path / NAME)
    lay_out(data)
    assert run(["backup", "expenses", str(tmp_path / "nosuch" / "box"), "--data", str(data.path)]) == 64
    assert f"{tmp_path / 'nosuch'}: there is no such folder" in capsys.readouterr().err


def test_verify_takes_a_deployment_by_its_name_and_says_which_there_are(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """As `waypost fsck` does: whoever has just looked at `waypost runs` knows names, not paths."""
    data = prepare(tmp_path / NAME)
    lay_out(data)
    assert run(["verify", "nosuch", "--data", str(data.path)]) == 64
    assert "no deployment here is called 'nosuch'" in capsys.readouterr().err
    assert run(["verify", "./nosuch", "--data", str(data.path)]) == 78
    assert "no git repository lies there" in capsys.readouterr().err

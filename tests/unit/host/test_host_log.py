"""What a host's log looks like at a terminal."""

import logging

import pytest

from waypost.cli.running import LOG_LINE, warnings


@pytest.mark.parametrize(
    ("logger", "line"),
    [
        ("waypost.host.code.deployed", "waypost: zoo isn't run: 100 % of it is gone"),
        ("substrate.rules.gate", "waypost: zoo isn't run: 100 % of it is gone"),
        ("pykka.actor", "waypost: pykka.actor: zoo isn't run: 100 % of it is gone"),
        ("waypostlike", "waypost: waypostlike: zoo isn't run: 100 % of it is gone"),
    ],
)
def test_our_own_words_come_without_the_name_of_a_module(
    logger: str, line: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """That says nothing to an operator; whose words a library's are, does."""
    handler = warnings()
    handler.setFormatter(logging.Formatter(LOG_LINE))
    handler.handle(
        logging.LogRecord(logger, logging.WARNING, "f.py", 1, "%s isn't run: 100 %% of it is gone", ("zoo",), None)
    )
    assert capsys.readouterr().err == f"{line}\n"

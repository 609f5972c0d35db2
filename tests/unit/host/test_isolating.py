"""What may be said on the command line of isolation, and how what is in force is told."""

from pathlib import Path
from typing import Any

import pytest

from waypost.cli import words
from waypost.cli.isolating import asked
from waypost.host.errors import Usage
from waypost.host.processes.isolation import Asked
from waypost.host.processes.users import RANGE


def test_nothing_said_is_the_strongest_mode_without_limits() -> None:
    """The default is least authority."""
    assert asked(None) == Asked()
    assert Asked().mode is None


def test_everything_said_is_asked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Relative paths are meant from here, whatever the host's folder is later."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "prices").mkdir()
    found = asked(
        "uid",
        reads=["prices"],
        writes=["/tmp"],
        no_network=True,
        memory="512m",
        processes=64,
        files=256,
        uids="5000-5999",
    )
    assert found == Asked(
        mode="uid",
        reads=(f"{Path.cwd()}/prices",),
        writes=("/tmp",),
        network=False,
        memory=512 << 20,
        processes=64,
        files=256,
        uids=range(5000, 6000),
    )
    assert asked(None, memory="1024").memory == 1024
    assert asked(None).uids == RANGE


@pytest.mark.parametrize(
    ("said", "hint"),
    [
        ({"mode": "chroot"}, "namespace, uid, none"),
        ({"mode": ""}, "namespace, uid, none"),
        ({"reads": ["/no/where"]}, "that is there"),
        ({"writes": ["/no/where"]}, "that is there"),
        ({"memory": "lots"}, "512M"),
        ({"memory": "0"}, "512M"),
        ({"memory": "-1"}, "512M"),
        ({"memory": "1.5G"}, "512M"),
        ({"uids": "70000"}, "FIRST-LAST"),
        ({"uids": "0-5000"}, "FIRST-LAST"),
        ({"uids": "9-1"}, "FIRST-LAST"),
        ({"uids": "70000-70001"}, "FIRST-LAST"),
        ({"uids": "70000-9999999999"}, "FIRST-LAST"),
    ],
)
def test_what_makes_no_sense_is_refused_with_an_example(said: dict[str, Any], hint: str) -> None:
    """Before anything is begun."""
    with pytest.raises(Usage) as caught:
        asked(**{"mode": None, **said})
    assert hint in caught.value.hint


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("", "no host has it up, so no isolation is in force"),
        ("none", "isolation none: workflow code runs as this user and is kept from mistakes, not from malice"),
        (
            "namespace (no network)",
            "isolation namespace (no network): workflow code sees its own files and processes, and nothing of yours",
        ),
        (
            "none: namespace can't be had, no\x1b[2J",
            f"isolation none: {words.ISOLATION['none']} (namespace can't be had, no\N{REPLACEMENT CHARACTER}[2J)",
        ),
        ("airlock", "isolation airlock"),
    ],
)
def test_what_is_in_force_is_told_in_words(said: str, shown: str) -> None:
    """The mode, what it means, its limits, and why it is no stronger one; what a kernel said is made harmless."""
    assert words.isolation(said) == shown

"""``credentials.toml``: what it may say, and how each mistake in it is told."""

import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from waypost.host.credentials.errors import BadCredentials
from waypost.host.credentials.file import (
    NAME,
    NOTHING,
    SIZE,
    Configured,
    Credential,
    FromCommand,
    FromEnvironment,
    FromFile,
    parse,
    read,
)

WHOLE = b"""
[credentials.github]
file = "secrets/github"
refresh = 300

[credentials."db.main"]
env = "DB_PASSWORD"
deployments = ["orders", "billing"]

[credentials.models]
command = ["pass", "show", "models"]

[[sources]]
id = "main"
provider = "example"
model = "large-1"
base_url = "https://models.example.com/v1"
credential = "models"

[[sources]]
id = "own"
provider = "here"
model = "small"
deployments = ["orders"]
"""


def test_each_way_is_read_with_who_may_have_it_and_when_it_is_read_again() -> None:
    """All that the page shows, in one file."""
    found = parse(WHOLE, NAME)
    assert found.credentials == {
        "github": Credential("github", FromFile("secrets/github"), None, 300.0),
        "db.main": Credential("db.main", FromEnvironment("DB_PASSWORD"), frozenset({"orders", "billing"})),
        "models": Credential("models", FromCommand(("pass", "show", "models"))),
    }
    assert [source.id for source in found.sources_of("orders")] == ["main", "own"]
    assert [source.id for source in found.sources_of("billing")] == ["main"]
    assert found.variables == {"DB_PASSWORD"}
    assert found.credentials["db.main"].is_for("orders")
    assert not found.credentials["db.main"].is_for("stock")


MISTAKES = [
    ("no TOML", b"[credentials.github\n", 1, "isn't TOML"),
    ("a table twice", b"[credentials.a]\nenv='A'\n[credentials.a]\nenv='B'\n", 3, "isn't TOML"),
    ("no UTF-8", b"[credentials.a]\nenv = '\xff'\n", 2, "no UTF-8"),
    ("another table", b"\n[secrets]\nx = 1\n", 2, "'secrets' is nothing that this file has"),
    ("no tables", b"credentials = 3\n", 1, "are tables"),
    ("no list", b"[sources]\nid = 'x'\n", 1, "are tables"),
    ("an entry that is no table", b"[credentials]\ngithub = 'x'\n", 0, "Expected `object`"),
    ("a handle", b'[credentials."a b"]\nenv = "A"\n', 1, "no handle"),
    ("no way", b"[credentials.a]\nrefresh = 5\n", 1, "and has none"),
    ("two ways", b"[credentials.a]\nenv = 'A'\nfile = 'x'\n", 1, "and has 2"),
    ("an unknown key", b"[credentials.a]\nenv = 'A'\nrefesh = 3\n", 3, "unknown field `refesh`"),
    ("a variable", b"[credentials.a]\nenv = 'A-B'\n", 2, "matching regex"),
    ("no words", b"[credentials.a]\ncommand = []\n", 2, "length >= 1"),
    ("a command line", b"[credentials.a]\ncommand = 'pass show x'\n", 2, "Expected `array`"),
    ("a NUL", b'[credentials.a]\nfile = "a\\u0000b"\n', 2, "matching regex"),
    ("a home", b"[credentials.a]\nfile = '~/x'\n", 1, "write the path out"),
    ("too often", b"[credentials.a]\nenv = 'A'\nrefresh = 0.1\n", 3, ">= 1.0"),
    ("never", b"[credentials.a]\nenv = 'A'\nrefresh = nan\n", 3, "refresh"),
    ("for ever", b"[credentials.a]\nenv = 'A'\nrefresh = inf\n", 3, "refresh"),
    ("a deployment", b"[credentials.a]\nenv = 'A'\ndeployments = ['A B']\n", 1, "A B"),
    ("no deployments", b"[credentials.a]\nenv = 'A'\ndeployments = []\n", 3, "length >= 1"),
    ("half a source", b"[[sources]]\nid = 'x'\n", 1, "missing required field"),
    ("two of one id", b"[[sources]]\nid='x'\nprovider='p'\nmodel='m'\n" * 2, 5, "two sources have the id"),
    (
        "a handle that isn't there",
        b"[[sources]]\nid='x'\nprovider='p'\nmodel='m'\ncredential='no'\n",
        1,
        "isn't listed",
    ),
    ("no URL", b"[[sources]]\nid='x'\nprovider='p'\nmodel='m'\nbase_url='ftp://x'\n", 1, "begins with https://"),
    ("a key of many parts", b"\n[credentials]\na" + b".a" * 100_000 + b" = 1\n", 3, "more than 16 parts"),
    ("a table of many parts", b"[credentials" + b' . "a"' * 40_000 + b"]\n", 1, "more than 16 parts"),
    ("a key of many parts within", b"x = [\n'.', {a" + b".a" * 100 + b" = 1}]\n", 2, "more than 16 parts"),
    ("lists in lists", b'x = """\n[[[[\n""" # [[[\ny = ' + b"[" * 100_000, 4, "nested more than 16 deep"),
    ("tables in tables", b"x = " + b"{a = " * 40_000, 1, "nested more than 16 deep"),
    ("a number of many digits", b"x = " + b"9" * 100_000, 0, "a number too long"),
    ("a text without an end", b"\n" + b'"a\\' * 80_000, 0, "isn't TOML"),
    ("a line of blanks", b"[credentials.a]\n" + b" " * 200_000 + b"\nenv = 'A-B'\n", 3, "matching regex"),
    ("a long name", b"[credentials.a]\n" + b"b" * 20_000 + b" = 1\n", 2, "unknown field"),
    ("a long handle", b"[credentials." + b"b" * 20_000 + b"]\nenv = 'A'\n", 1, "no handle"),
    ("a broken URL", b"[[sources]]\nid='x'\nprovider='p'\nmodel='m'\nbase_url='https://[x'\n", 1, "base_url"),
]


@pytest.mark.parametrize(("raw", "line", "why"), [row[1:] for row in MISTAKES], ids=[row[0] for row in MISTAKES])
def test_a_mistake_is_told_with_its_line_and_what_to_do(raw: bytes, line: int, why: str) -> None:
    """The file is written by hand, and what is in it decides whether workflows run."""
    with pytest.raises(BadCredentials) as bad:
        parse(raw, "credentials.toml")
    assert why in bad.value.message
    assert bad.value.line == line, bad.value.message
    assert len(bad.value.message) < 500
    assert bad.value.hint


def test_dots_and_brackets_in_a_text_are_no_parts_of_a_key() -> None:
    """A path, a URL or an argument may have as many as it likes."""
    odd = "[" * 40 + ".a" * 40
    texts = f"""['{odd}', "{odd}", \"\"\"\n{odd}\"\"\"]"""
    found = parse(f"[credentials.a] # {odd}\ncommand = {texts}\n".encode(), NAME)
    assert found.credentials["a"].way == FromCommand((odd, odd, odd))


@pytest.mark.parametrize("key", ["value", "token", "password"])
def test_who_writes_a_secret_here_is_told_where_it_belongs_and_not_what_it_is(key: str) -> None:
    """The message goes to a terminal, a log, a bug report."""
    with pytest.raises(BadCredentials) as bad:
        parse(f"[credentials.github]\n{key} = 'ghp_hunter2hunter2'\n".encode(), NAME)
    assert "never holds one" in bad.value.hint
    assert "hunter2" not in f"{bad.value.message}{bad.value.hint}"


def test_a_password_in_a_url_is_refused_without_being_repeated() -> None:
    """Sources are shown; what is in them is no secret."""
    raw = b"[[sources]]\nid='x'\nprovider='p'\nmodel='m'\nbase_url='https://me:hunter2@models.example.com'\n"
    with pytest.raises(BadCredentials) as bad:
        parse(raw, NAME)
    assert "hunter2" not in f"{bad.value.message}{bad.value.hint}"


@given(st.binary(max_size=200))
def test_whatever_the_bytes_they_are_read_or_refused(raw: bytes) -> None:
    """Never a traceback for a user's mistake."""
    with contextlib.suppress(BadCredentials):
        assert isinstance(parse(raw, NAME), Configured)


@given(st.recursive(st.integers() | st.text(max_size=5) | st.booleans(), lambda each: st.lists(each, max_size=3)))
def test_a_key_of_any_type_is_taken_or_refused(value: object) -> None:
    """TOML has types of its own; ours are strict."""
    raw = f"[credentials.a]\nfile = {json.dumps(value)}\n".encode()
    with contextlib.suppress(BadCredentials):
        assert parse(raw, NAME).credentials["a"].handle == "a"


# --- the file itself -----------------------------------------------------------------------------------------------


def test_no_file_is_nothing(tmp_path: Path) -> None:
    """Most hosts have no secrets."""
    assert read(tmp_path / NAME) == NOTHING


def test_a_plain_file_of_ones_own_is_read(tmp_path: Path) -> None:
    """As an editor writes it."""
    (tmp_path / NAME).write_bytes(WHOLE)
    assert len(read(tmp_path / NAME).credentials) == 3


def _open_to_others(file: Path) -> None:
    file.write_bytes(WHOLE)
    file.chmod(0o666)


def _link(file: Path) -> None:
    file.with_name("elsewhere").write_bytes(WHOLE)
    file.symlink_to(file.with_name("elsewhere"))


def _large(file: Path) -> None:
    file.write_bytes(b"#" * (SIZE + 1))


@pytest.mark.parametrize(
    ("make", "why"),
    [
        (_open_to_others, "name commands that this host runs"),
        (_link, "it is a link"),
        (os.mkfifo, "no plain file"),
        (os.mkdir, "no plain file"),
        (_large, "over the limit"),
    ],
    ids=["open to others", "a link", "a FIFO", "a directory", "too large"],
)
def test_a_file_that_others_could_have_made_is_refused(tmp_path: Path, make: Callable[[Path], None], why: str) -> None:
    """It names commands, so who may write it may run what they like as the host."""
    make(tmp_path / NAME)
    with pytest.raises(BadCredentials, match=why):
        read(tmp_path / NAME)

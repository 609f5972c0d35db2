"""The child's command line: a host writes it, a person may type it."""

import pytest

from ipc import spawn
from waypost.child.arguments import USAGE, BadUsage, Options, read


def said(options: Options) -> dict[str, object]:
    """What a command line said, without what it left open."""
    return {name: value for name, value in vars(options).items() if value is not None}


def test_a_host_s_command_is_read() -> None:
    """Both spellings, since a module's name may begin with a dash."""
    command = spawn.command("/py", ("--root", "/w", "--module=-x", "--sha256", "0a", "--retry-first", "0.5"), parent=7)
    assert said(read(command[command.index("waypost.child") + 1 :])) == {
        "parent": 7,
        "root": "/w",
        "module": "-x",
        "sha256": "0a",
        "retry_first": 0.5,
    }


def test_a_value_may_hold_an_equals_sign_and_may_be_empty() -> None:
    """Paths are anything."""
    assert said(read(["--root=/a=b", "--module="])) == {"root": "/a=b", "module": ""}
    assert said(read(["--root", "/a=b"])) == {"root": "/a=b"}


def test_of_a_name_that_comes_twice_the_last_one_holds() -> None:
    """As everywhere."""
    assert said(read(["--parent", "1", "--parent=2"])) == {"parent": 2}


@pytest.mark.parametrize("argument", ["--help", "-h"])
def test_help_is_a_wish_of_its_own(argument: str) -> None:
    """Whatever else is asked for."""
    assert read(["--describe", "x.py", argument]).help is True


@pytest.mark.parametrize(
    ("arguments", "why"),
    [
        (["run"], "'run' is no argument"),
        (["--rot", "/w"], "'--rot' is no argument"),
        (["-root", "/w"], "'-root' is no argument"),
        (["root=/w"], "'root=/w' is no argument"),
        (["--help=yes"], "'--help=yes' is no argument"),
        (["--"], "'--' is no argument"),
        (["--root"], "--root wants a value"),
        (["--root", "--module", "x"], "--root wants a value"),
        (["--parent", "me"], "--parent wants a number, not 'me'"),
        (["--retry-cap="], "--retry-cap wants a number, not ''"),
    ],
)
def test_anything_else_is_refused_by_what_it_is(arguments: list[str], why: str) -> None:
    """Before anything is done."""
    with pytest.raises(BadUsage) as refused:
        read(arguments)
    assert why in str(refused.value)


def test_every_argument_is_in_the_help() -> None:
    """One that isn't can't be found by whoever looks."""
    for name in Options.__annotations__:
        assert f"--{name.replace('_', '-')}" in USAGE or name == "help"

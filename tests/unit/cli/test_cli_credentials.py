"""``waypost credentials`` without a host, and the words for what a host answers."""

import json
from pathlib import Path

import pytest

from waypost.cli.trusting import _reloaded
from waypost.host.answers.credentials import CredentialShown, CredentialsReloaded, Delivered
from waypost.host.datadir.directory import DataDir, lay_out
from waypost.host.exits import Exit
from waypost.testing.verbs import verb

LISTED = """
[credentials.github]
env = "PLANTED"
deployments = ["orders"]
[credentials.db]
file = "db"
[[sources]]
id = "main"
provider = "example"
model = "large-1"
credential = "github"
"""


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory that no host runs on."""
    tmp_path.joinpath("data").mkdir(mode=0o700)
    lay_out(DataDir(tmp_path / "data"))
    return tmp_path / "data"


def test_where_nothing_is_listed_that_is_said(data: Path) -> None:
    """Most hosts have no secrets; nobody must take that for a mistake."""
    for words in ("list", "check"):
        done = verb("credentials", words, data=data)
        assert (done.status, "no credentials" in done.out) == (Exit.OK, True)


def test_a_source_is_one_row_whatever_its_model_is_called(data: Path) -> None:
    """A line end or an escape in a name would forge a row, or steer the terminal of who looks."""
    (data / "credentials.toml").write_text(LISTED.replace("large-1", r"large\n2 \u001b[2J\u202e"))
    shown = verb("credentials", "list", data=data)
    assert shown.out.splitlines()[-1].split() == ["main", "example", "large", "2", "�[2J�", "github"]


def test_what_is_listed_is_shown_and_tried_without_a_host(data: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Before the first start: by this shell's environment, as a host that is started here would have it."""
    (data / "credentials.toml").write_text(LISTED)
    monkeypatch.setenv("PLANTED", "hunter2hunter2")
    shown = verb("credentials", "list", data=data)
    assert shown.status == Exit.OK
    assert [line.split() for line in shown.out.splitlines()] == [
        ["handle", "from", "state", "for"],
        ["github", "env", "unread", "orders"],
        ["db", "file", "unread"],
        [],
        ["source", "provider", "model", "credential"],
        ["main", "example", "large-1", "github"],
    ]
    tried = verb("credentials", "check", "--json", data=data)
    assert tried.status == Exit.REFUSED
    found = {each["handle"]: (each["state"], each["why"]) for each in json.loads(tried.out)["credentials"]}
    assert found == {"github": ("ok", ""), "db": ("failing", f"{data}/db: No such file or directory")}
    (data / "db").write_text("hunter3hunter3\n")
    (data / "db").chmod(0o644)
    tried = verb("credentials", "check", data=data)
    assert (tried.status, "db is open to others: chmod 600 it" in tried.out) == (Exit.OK, True)
    assert "tried: credentials.toml as it is now" in tried.err
    assert "hunter" not in shown.out + tried.out


def test_a_file_that_lies_there_for_a_first_host_can_be_looked_at(tmp_path: Path) -> None:
    """A secret that can't be read is better found before the first start than by it; no other verb takes the folder."""
    tmp_path.joinpath("data").mkdir(mode=0o700)
    tmp_path.joinpath("data", "credentials.toml").write_text('[credentials.db]\nfile = "db"\n')
    for words, status in (("list", Exit.OK), ("check", Exit.REFUSED)):
        done = verb("credentials", words, data=tmp_path / "data")
        assert (done.status, "db" in done.out) == (status, True)
    done = verb("runs", data=tmp_path / "data")
    assert "this is not a data directory" in done.err


def test_a_file_that_cant_be_used_and_a_host_that_isnt_there_have_their_exits(data: Path) -> None:
    """78 and 69: a script can tell them from a secret that can't be read, which is 1."""
    (data / "credentials.toml").write_text("[credentials.github]\nenv = 1\n")
    done = verb("credentials", "list", data=data)
    assert (done.status, "line 2" in done.err) == (Exit.DATA, True)
    assert verb("credentials", "reload", data=data).status == Exit.NO_HOST


def test_a_reload_says_of_each_deployment_whether_it_has_them() -> None:
    """And of each credential how it is."""
    answer = CredentialsReloaded(
        credentials=(CredentialShown(handle="github", kind="file", state="stale", why="gone"),),
        delivered=(
            Delivered(deployment="a", state="delivered"),
            Delivered(deployment="b", state="kept"),
            Delivered(deployment="c", state="refused", why="it is held: after drain"),
        ),
    )
    assert list(_reloaded(answer)) == [
        "handle  from  state  why",
        "github  file  stale  gone",
        "a: delivered",
        "b: kept for its next process",
        "c: not delivered: it is held: after drain",
    ]

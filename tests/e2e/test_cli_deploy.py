"""Deployed code is what runs: stored, named by its hash, and nothing that somebody does to the file changes it."""

import json
import os
import re
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from substrate.reader import Reader
from substrate.signing.keys import PublicKey
from waypost.host.datadir.directory import prepare
from waypost.host.datadir.lock import HostLock
from waypost.host.exits import Exit
from waypost.model import events as ev
from waypost.model.code import tree_hash
from waypost.model.ids import RunId
from waypost.testing.background import COMMAND
from waypost.testing.host_process import HostProcess
from waypost.testing.killing import kill_children
from waypost.testing.patience import PATIENCE
from waypost.testing.verbs import verb

FLOW = """
from waypost import Mail, Workflow, receive

import wording

echo = Workflow("echo", address="echo@example.com")


@echo.step
def word(mail: Mail) -> str:
    return wording.WORD


@echo.run
async def say(mail: Mail) -> str:
    first = await word(mail)
    await receive()
    return first + await word(mail)
"""
MAIL = b"From: ann@example.com\r\nMessage-ID: <m1@x>\r\nSubject: one\r\n\r\nhello\r\n"
MORE = b"From: ann@example.com\r\nMessage-ID: <m2@x>\r\nIn-Reply-To: <m1@x>\r\nSubject: two\r\n\r\nmore\r\n"


@pytest.fixture(name="place")
def _place(tmp_path: Path) -> Path:
    """A folder with a workflow of two files."""
    (tmp_path / "echo.py").write_text(FLOW)
    (tmp_path / "wording.py").write_text("WORD = 'old '\n")
    return tmp_path


def reader(data: Path) -> Reader:
    """The deployment's repository, at this moment."""
    return Reader.open(data / "repos/echo.git", PublicKey.load(data / "keys/host.ed25519.pub"))


def events(data: Path, run: str) -> list[ev.AnyEvent]:
    """A run's log."""
    return [ev.decode(raw) for raw in reader(data).log(RunId(run))]


def test_what_is_deployed_runs_without_its_files(place: Path) -> None:
    """The repository has all of it: the code, what it declares, and what a run began on."""
    data = place / "data"
    said = verb("deploy", str(place / "echo.py"), data=data)
    assert said.status == Exit.OK, said.err
    assert "echo: deployed as" in said.out
    assert "    wording.py" in said.out
    same_code_is_deployed_once(place, data)
    tree = tree_hash({name: (place / name).read_bytes() for name in ("echo.py", "wording.py")})
    for name in ("echo.py", "wording.py"):
        (place / name).unlink()
    with HostProcess(data=data) as host:
        run = host.send("echo@example.com", MAIL)
        host.wait_for("waits")
    begun = events(data, run)[0]
    assert isinstance(begun, ev.RunStarted)
    assert begun.code == tree
    assert begun.distributions
    record = reader(data).deployed()
    assert record is not None
    assert (record.tree, record.definition, record.declaration.name) == (tree, begun.definition, "echo")
    assert verb("fsck", data=data).status == verb("verify", data=data).status == Exit.OK


def same_code_is_deployed_once(place: Path, data: Path) -> None:
    """No commit says that nothing has changed."""
    flush = reader(data).facts().flush
    again = json.loads(verb("deploy", str(place / "echo.py"), "--json", data=data).out)
    assert (again["deployment"], again["new"], again["files"]) == ("echo", False, ["echo.py", "wording.py"])
    assert reader(data).facts().flush == flush


@pytest.mark.torture
def test_a_file_that_is_edited_under_its_host_harms_nothing(place: Path) -> None:
    """A child that comes later runs what was deployed."""
    data = place / "data"
    with HostProcess(place / "echo.py", data=data) as host:
        run = host.send("echo@example.com", MAIL)
        host.wait_for("waits")
        (place / "wording.py").write_text("WORD = 'new '\n")
        (place / "echo.py").write_text("raise RuntimeError\n")
        kill_children(host.pid)
        host.wait_for("is running (generation 2)")
        host.send("echo@example.com", MORE)
        host.wait_for('completed: "old old "')
    begun, now = events(data, run)[0], reader(data).deployed()
    assert isinstance(begun, ev.RunStarted)
    assert now is not None
    assert begun.code == now.tree


@pytest.mark.torture
def test_the_next_command_with_the_file_runs_what_is_there_then(place: Path) -> None:
    """What ran before stays readable, in any clone."""
    data = place / "data"
    with HostProcess(place / "echo.py", data=data):
        (place / "wording.py").write_text("WORD = 'new '\n")
        old = reader(data).deployed()
    with HostProcess(place / "echo.py", data=data) as host:
        run = host.send("echo@example.com", MAIL)
        host.wait_for("waits")
        new = reader(data).deployed()
        assert "new " in verb("log", run, data=data).out
    assert old is not None
    assert new is not None
    words = [reader(data).code(record.tree)["wording.py"] for record in (old, new)]
    assert words == [b"WORD = 'old '\n", b"WORD = 'new '\n"]


@pytest.mark.torture
def test_a_folder_is_deployed_whole(place: Path) -> None:
    """With what nobody imports; its data directory lies in it and is no part of it."""
    (place / "notes.txt").write_text("notes")
    said = verb("deploy", str(place))
    assert said.status == Exit.OK, said.err
    assert "3 files" in said.out
    assert "notes.txt" in said.out
    assert "deployed already" in verb("deploy", str(place)).out
    assert (place / ".waypost").is_dir()


@pytest.mark.torture
def test_data_files_come_along_when_they_are_listed(place: Path) -> None:
    """And one that isn't can't be read: the message says how to list it."""
    (place / "wording.py").write_text(
        "from pathlib import Path\nWORD = (Path(__file__).parent / 'w.txt').read_text()\n"
    )
    (place / "w.txt").write_text("word")
    said = verb("deploy", str(place / "echo.py"), data=place / "data")
    assert said.status == Exit.MALFORMED
    assert "Workflow(…, files=[…])" in said.err
    assert not (place / "data").exists()
    names = "listed = ['w' + '.txt']\n"  # not to be found in the text
    flow = FLOW.replace("import wording\n", "").replace('example.com")', 'example.com", files=listed)\nimport wording')
    (place / "echo.py").write_text(names + flow)
    said = verb("deploy", str(place / "echo.py"), data=place / "data")
    assert said.status == Exit.MALFORMED  # it is read before anybody can know that it is listed
    (place / "echo.py").write_text(flow.replace("listed", "['w.txt']"))
    said = verb("deploy", str(place / "echo.py"), data=place / "data")
    assert said.status == Exit.OK, said.err
    assert "    w.txt" in said.out


@pytest.mark.torture
def test_a_module_that_only_the_import_shows_is_found_by_it(place: Path) -> None:
    """Its name is made up while the program runs: the child that misses it is asked again with it."""
    (place / "wording.py").write_text("from importlib import import_module\nWORD = import_module('plug' + 'in').WORD\n")
    (place / "plugin.py").write_text("WORD = 'x'\n")
    said = verb("deploy", str(place / "echo.py"), data=place / "data")
    assert said.status == Exit.OK, said.err
    assert "    plugin.py" in said.out


@pytest.mark.parametrize(
    ("name", "owner"),
    [
        ("colorsys", "Python's own colorsys"),
        pytest.param("msgspec", "msgspec/__init__.py", marks=pytest.mark.torture),
    ],
)
def test_a_file_whose_name_another_module_has_is_refused_by_name(place: Path, name: str, owner: str) -> None:
    """It would never be imported, and nobody would say so."""
    (place / "wording.py").write_text(f"import {name}\nWORD = 'x'\n")
    (place / f"{name}.py").write_text("")
    said = verb("deploy", str(place / "echo.py"), data=place / "data")
    assert said.status == Exit.MALFORMED
    assert f"{name}.py has the name of another module" in said.err
    assert owner in said.err


@pytest.mark.torture
def test_a_tree_that_somebody_has_changed_is_made_anew_by_the_next_start(place: Path) -> None:
    """It is a copy: the repository has it; trees that nothing uses go."""
    data = place / "data"
    with HostProcess(place / "echo.py", data=data):
        (tree,) = (data / "code").glob("*/tree")
    tree.chmod(0o700)
    (tree / "wording.py").chmod(0o600)
    (tree / "wording.py").write_text("WORD = 'forged '\n")
    (data / "code" / ("ab" * 32)).mkdir()
    (data / "code" / ".new-dead").mkdir()
    with HostProcess(data=data) as host:
        host.send("echo@example.com", MAIL)
        host.wait_for("waits")
        assert list((data / "code").iterdir()) == [tree.parent]
        assert (tree / "wording.py").read_text() == "WORD = 'old '\n"
    shutil.rmtree(data / "code")
    with HostProcess(data=data):
        assert (tree / "wording.py").read_text() == "WORD = 'old '\n"


def test_nothing_is_run_where_nothing_is_deployed(tmp_path: Path) -> None:
    """The message names the command that deploys."""
    said = verb("run", data=tmp_path)
    assert said.status == Exit.DATA
    assert "waypost run FILE" in said.err


@pytest.mark.torture
@pytest.mark.parametrize("moment", [("--die-before-sync-of", "deploy echo as"), ("--die-after-sync", "2")])
def test_a_host_that_is_killed_while_it_deploys_is_started_again(place: Path, moment: tuple[str, str]) -> None:
    """Nothing has begun to run; the same command deploys, and what is there is sound."""
    data = place / "data"
    command = [sys.executable, "-m", "waypost.testing.host", str(place / "echo.py"), "--data", str(data), *moment]
    assert subprocess.run(command, capture_output=True, check=False, timeout=PATIENCE).returncode == -signal.SIGKILL
    with HostProcess(place / "echo.py", data=data) as host:
        host.send("echo@example.com", MAIL)
        host.wait_for("waits")
    record = reader(data).deployed()
    assert record is not None
    assert sorted(reader(data).code(record.tree)) == ["echo.py", "wording.py"]
    assert verb("fsck", data=data).status == Exit.OK


@pytest.mark.torture
def test_a_recycle_uses_exactly_the_deployed_tree(place: Path) -> None:
    """A fresh process, no other code."""
    data = place / "data"
    with HostProcess(place / "echo.py", data=data) as host:
        host.send("echo@example.com", MAIL)
        host.wait_for("waits")
        (place / "wording.py").write_text("WORD = 'new '\n")
        said = verb("recycle", "echo", "--reason", "to see", data=data)
        assert said.status == Exit.OK, said.err
        host.wait_for("is running (generation 2)")
        host.send("echo@example.com", MORE)
        host.wait_for('completed: "old old "')


@pytest.mark.torture
def test_a_tree_that_is_changed_under_its_host_is_made_anew_for_the_next_child(place: Path) -> None:
    """Whoever writes beside the code it runs changes no other run, and holds nothing up."""
    data = place / "data"
    with HostProcess(place / "echo.py", data=data) as host:
        host.send("echo@example.com", MAIL)
        host.wait_for("waits")
        (tree,) = (data / "code").glob("*/tree")
        tree.chmod(0o700)
        (tree / "sitecustomize.py").write_text("raise SystemExit")
        (tree / "wording.py").unlink()
        kill_children(host.pid)
        host.wait_for("is running (generation 2)")
        assert sorted(each.name for each in tree.iterdir()) == ["echo.py", "wording.py"]
        host.send("echo@example.com", MORE)
        host.wait_for('completed: "old old "')


@pytest.mark.torture
def test_a_host_takes_other_code_for_a_deployment_and_its_runs_go_on(place: Path) -> None:
    """By the verb, while it runs: a run whose log the new code fits does its next step by it, a new one all of them."""
    data = place / "data"
    with HostProcess(place / "echo.py", data=data) as host:
        host.send("echo@example.com", MAIL)
        host.wait_for("waits")
        said = verb("deploy", str(place / "echo.py"), data=data)
        assert "its host runs it already" in said.out
        (place / "wording.py").write_text("WORD = 'new '\n")
        said = verb("deploy", "echo.py", data=data, cwd=place)
        assert said.status == Exit.OK, said.err
        assert "its host runs it from now on" in said.out
        host.wait_for("is running (generation 2)")
        host.send("echo@example.com", MORE)
        host.wait_for('completed: "old new "')
        run = host.send("echo@example.com", MAIL.replace(b"m1@x", b"m3@x"))
        host.wait_for("waits")
        begun, record = events(data, run)[0], reader(data).deployed()
    assert isinstance(begun, ev.RunStarted)
    assert record is not None
    assert begun.code == record.tree


def test_a_deploy_beside_a_host_that_does_not_listen_yet_may_be_tried_again(place: Path) -> None:
    """It was told to deploy, which is what it did, or to stop the host: that has only just begun."""
    data = prepare(place / "data", allow_network=True)
    with HostLock.take(data.lock, command=("waypost", "run"), since="2026-11-29T08:00:00Z"):
        refused = verb("deploy", str(place / "echo.py"), "--data", str(data.path))
    assert refused.status == Exit.WITHHELD
    assert "what is at work in" in refused.err
    assert "started as `waypost run`" in refused.err
    assert "try again later" in refused.err
    assert verb("deploy", str(place / "echo.py"), "--data", str(data.path)).status == Exit.OK


@pytest.mark.torture
def test_what_a_host_cannot_take_changes_nothing(place: Path) -> None:
    """Broken code, another address, a deployment that isn't its own: said before anything is stopped."""
    data = place / "data"
    with HostProcess(place / "echo.py", data=data) as host:
        for old, new, status in (
            ("await word(mail)", "await word(", Exit.MALFORMED),
            ("echo@example.com", "other@example.com", Exit.MALFORMED),
            ('"echo", address="echo@', '"other", address="other@', Exit.REFUSED),
        ):
            (place / "echo.py").write_text(FLOW.replace(old, new))
            said = verb("deploy", str(place / "echo.py"), data=data)
            assert said.status == status, said.err
        host.send("echo@example.com", MAIL)
        host.wait_for("waits")
        assert not any("generation 2" in line for line in host.said)


@pytest.mark.torture
def test_a_backup_carries_the_code(place: Path) -> None:
    """Restored elsewhere, it runs without the file."""
    data, other = place / "data", place / "other"
    assert verb("deploy", str(place / "echo.py"), data=data).status == Exit.OK
    assert verb("backup", "echo", str(place / "b.waypost"), data=data).status == Exit.OK
    restored = verb("restore", str(place / "b.waypost"), data=other)
    assert restored.status == Exit.OK, restored.err
    host = HostProcess(data=other).start(ready="is held")
    try:
        assert verb("resume", "echo", "--yes", data=other).status == Exit.OK
        host.wait_for("is running")
    finally:
        host.stop()


@pytest.fixture(name="untold")
def _untold(place: Path) -> Path:
    """The workflow in a folder whose name is no text."""
    folder = place / os.fsdecode(b"l\xe9on")
    folder.mkdir()
    for name in ("echo.py", "wording.py"):
        shutil.copy(place / name, folder / name)
    return folder


NO_TEXT = "isn't text: its bytes are no UTF-8\n  write it in UTF-8\n"


def test_a_path_that_is_no_text_is_refused_in_words(untold: Path) -> None:
    """What is written down, in records, notes and users of a data directory, is UTF-8; a traceback tells nobody."""
    said = verb("deploy", "echo.py", cwd=untold)
    assert (said.status, said.out, NO_TEXT in said.err) == (Exit.USAGE, "", True)
    assert not (untold / ".waypost").exists()


@pytest.mark.torture
@pytest.mark.parametrize("more", [(), ("--data", "data")])
def test_a_host_at_a_path_that_is_no_text_refuses_it_in_words(untold: Path, more: tuple[str, ...]) -> None:
    """The same for a host."""
    done = subprocess.run(
        [*COMMAND, "run", "echo.py", *more], cwd=untold, capture_output=True, text=True, check=False, timeout=PATIENCE
    )
    assert (done.returncode, done.stdout, NO_TEXT in done.stderr) == (Exit.USAGE, "", True)
    assert not (untold / ".waypost").exists()


NO_THREADS = """
import sys, threading
def start(thread):
    raise RuntimeError("can't start new thread")
threading.Thread.start = start
from waypost.cli.main import main
main()
"""


@pytest.mark.torture
def test_a_host_that_gets_no_thread_says_so(place: Path) -> None:
    """As under a limit of processes, which root isn't held to: in words, with what helps, and the code is deployed."""
    command = [sys.executable, "-P", "-c", NO_THREADS, "run", "echo.py"]
    done = subprocess.run(command, cwd=place, capture_output=True, text=True, check=False, timeout=PATIENCE)
    assert done.returncode == Exit.WITHHELD, done.stderr
    assert "waypost: the host can't start: can't start new thread\n  allow its user more processes" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.torture
def test_the_examples_of_the_page_can_be_run(place: Path) -> None:
    """Each command as docs/deploy.md has it, but for those that run a host, which all other tests do."""
    page = (Path(__file__).parents[2] / "docs" / "deploy.md").read_text(encoding="utf-8")
    block = "".join(re.findall(r"```\n(waypost.*?)```", page, re.DOTALL))
    commands = [re.split(r"\s{2,}", line)[0].split()[1:] for line in block.splitlines()]
    assert [command[0] for command in commands] == ["deploy", "deploy", "run", "run", "deploy"]
    (place / "echo.py").rename(place / "expenses.py")
    (place / "flows").mkdir()
    for name in ("expenses.py", "wording.py"):
        shutil.copy(place / name, place / "flows" / name)
    for command in commands:
        if command[0] == "deploy":
            said = verb(*command, data=place / "data", cwd=place)
            assert (said.status, said.out[:5]) == (Exit.OK, "echo:"), said.err

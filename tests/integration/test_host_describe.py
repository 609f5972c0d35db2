"""What a workflow file declares is asked of a child; what it does wrong is said with the line, and harms nobody."""

import os
import resource
import select
import signal
import sys
import tempfile
import time
from pathlib import Path

import pytest

from ipc.environment import MARK
from ipc.strays import Mark, bears
from waypost.host.code.describe import describe, describe_all
from waypost.host.code.staging import begins, end_looks, staged
from waypost.host.datadir.directory import DataDir
from waypost.host.errors import BadWorkflow, NotOurs, Taken
from waypost.host.exits import Exit
from waypost.host.own import PACKAGES, check_own
from waypost.model import zones
from waypost.model.code import tree_hash
from waypost.testing.background import Background
from waypost.testing.patience import PATIENCE
from waypost.testing.verbs import verb

WORKFLOW = '''
from waypost import Mail, Workflow

{name} = Workflow("{name}", address="{name}@example.com", mail_to=["boss@example.com"], env=["TOKEN"])

@{name}.step
def size(mail: Mail) -> int:
    """Count."""
    return len(mail.text)

@{name}.run
async def go(mail: Mail) -> str:
    """Nothing to do."""
    return mail.subject
'''
GOOD = WORKFLOW.format(name="plain")
STARTS = """
import subprocess
from pathlib import Path
Path({pid!r}).write_text(str(subprocess.Popen(["sleep", "300"], env={{}}).pid))
"""


def check_ended(pid: Path) -> None:
    """Whether the process with the number in this file has ended, or soon does."""
    try:
        died = os.pidfd_open(int(pid.read_text()))
    except ProcessLookupError:
        return
    with os.fdopen(died) as ended:
        over = select.select([ended], [], [], PATIENCE)[0]
    if not over:
        os.kill(int(pid.read_text()), signal.SIGKILL)
    assert over, "it lives on"


def test_a_name_that_a_command_would_take_for_an_option_is_refused_for_what_is_new(tmp_path: Path) -> None:
    """Nobody could paste what `waypost why` prints of it; what is there is not let down."""
    file, data = tmp_path / "plain.py", tmp_path / "data"
    file.write_text(GOOD.replace('Workflow("plain"', 'Workflow("-h"'))
    with pytest.raises(BadWorkflow, match="option") as refused:
        describe(file, timeout=30, environment=os.environ, data=data)
    assert "rename it" in refused.value.hint
    DataDir(data).repo("-h").mkdir(parents=True)
    assert describe(file, timeout=30, environment=os.environ, data=data).spec.name == "-h"


def test_a_described_file_is_a_deployment_as_data(tmp_path: Path) -> None:
    """The host knows it without ever importing it."""
    file = tmp_path / "plain.py"
    file.write_text(f"print('noise on stdout')\n{GOOD}")
    found = describe(file, timeout=30, environment=os.environ)
    spec = found.spec
    assert (spec.name, spec.address, spec.steps, spec.runs) == ("plain", "plain@example.com", ("size",), "thread")
    assert (spec.mail_to, spec.env) == (("boss@example.com",), ("TOKEN",))
    assert spec.code == tree_hash({"plain.py": file.read_bytes()})
    arguments = ("--root", "/t/tree", "--module=plain", "--tree", "/t/tree", "--sha256", spec.code)
    assert found.arguments(Path("/t")) == arguments


BROKEN = {
    "missing.py": (None, "there is no such file"),
    "absent.py": ("import nosuchthing\n", "absent.py line 1: ModuleNotFoundError"),
    "syntax.py": ("x = 1\ndef f(:\n", "syntax.py line 2"),
    "raises.py": ("x = 1\n\nraise RuntimeError('not today')\n", "raises.py line 3: RuntimeError: not today"),
    "exits.py": ("import sys\nsys.exit(3)\n", "exits.py line 2: SystemExit"),
    "dies.py": ("import os\nos.write(2, b'bye')\nos._exit(3)\n", "exit status 3)\n    bye"),
    "crashes.py": ("import os\nos.kill(os.getpid(), 11)\n", 'crashes.py", line 2 in <module>'),
    "killed.py": ("import os\nos.kill(os.getpid(), 9)\n", "ended the interpreter (SIGKILL)"),
    "empty.py": ("", "has no Workflow"),
    "two.py": (GOOD + WORKFLOW.format(name="other"), "plain, other"),
    "norun.py": ("from waypost import Workflow\nx = Workflow('x', address='x@example.com')\n", "no run function"),
    "badname.py": ("from waypost import Workflow\nx = Workflow('X Y', address='x@example.com')\n", "'X Y'"),
    "badaddress.py": ("from waypost import Workflow\nx = Workflow('x', address='nobody')\n", "'nobody'"),
    "notes.txt": ("", "notes.txt can't be imported"),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_file_that_cannot_be_deployed_says_why(tmp_path: Path, name: str) -> None:
    """The reason and the line, as its author needs them."""
    text, says = BROKEN[name]
    if text is not None:
        (tmp_path / name).write_text(text)
    with pytest.raises(BadWorkflow) as refused:
        describe(tmp_path / name, timeout=30, environment=os.environ)
    assert says in refused.value.message
    assert name in refused.value.message
    assert f"{name}: {name}" not in refused.value.message
    assert refused.value.hint


@pytest.mark.parametrize("package", ["actors", "substrate", "ipc", "waypost"])
@pytest.mark.parametrize("form", ["folder", "file"])
def test_a_neighbour_that_would_hide_ours_is_refused_by_name(tmp_path: Path, package: str, form: str) -> None:
    """Say it instead of suffering it."""
    (tmp_path / "plain.py").write_text(GOOD)
    if form == "folder":
        (tmp_path / package).mkdir()
        (tmp_path / package / "__init__.py").write_text("")
    else:
        (tmp_path / f"{package}.py").write_text("")
    with pytest.raises(BadWorkflow, match=f"would hide the host's own {package}; please rename it"):
        describe(tmp_path / "plain.py", timeout=30, environment=os.environ)


@pytest.mark.parametrize("folder", [False, True], ids=["FILE", "DIR"])
def test_a_helper_that_lies_there_compiled_alone_is_said_to_be_so(tmp_path: Path, folder: bool) -> None:  # noqa: FBT001 - a case
    """It works where its author runs it, and no package has it: "install what has helper" led nowhere."""
    (tmp_path / "plain.py").write_text(f"import helper\n{GOOD}")
    (tmp_path / "helper.pyc").write_bytes(b"")
    with pytest.raises(BadWorkflow) as caught:
        describe(tmp_path if folder else tmp_path / "plain.py", timeout=30, environment={})
    assert caught.value.hint == (
        "helper.pyc is compiled code without its source, which can't be deployed: put helper.py in its place"
    )


def test_an_import_that_never_ends_is_ended_with_what_it_started(tmp_path: Path) -> None:
    """Its own child holds the pipes; nobody waits for that one either."""
    file = tmp_path / "slow.py"
    file.write_text("import subprocess, time\nsubprocess.Popen(['sleep', '300'])\ntime.sleep(300)\n")
    began = time.monotonic()
    with pytest.raises(BadWorkflow, match=r"more than 1 s"):
        describe(file, timeout=1, environment=os.environ)
    assert time.monotonic() - began < 200  # it did not wait for the sleepers


def test_what_an_import_has_started_ends_with_it(tmp_path: Path) -> None:
    """Also what bears no mark any more, by its group; and nobody waits for it, though it has the pipes."""
    file, pid = tmp_path / "plain.py", tmp_path / "pid"
    file.write_text(STARTS.format(pid=str(pid)) + GOOD)
    assert describe(file, timeout=PATIENCE, environment=os.environ).spec.name == "plain"
    check_ended(pid)


def test_nobody_waits_for_what_an_import_has_started_in_a_session_of_its_own(tmp_path: Path) -> None:
    """It has the pipes, and no signal to the group reaches it: the import was said to have taken too long."""
    file, pid = tmp_path / "plain.py", tmp_path / "pid"
    file.write_text(
        "import subprocess\nfrom pathlib import Path\n"
        f"Path({str(pid)!r}).write_text(str(subprocess.Popen(['sleep', '300'], start_new_session=True).pid))\n{GOOD}"
    )
    assert describe(file, timeout=PATIENCE, environment=os.environ).spec.name == "plain"
    check_ended(pid)


def test_an_import_that_prints_for_ever_fills_no_memory_of_the_hosts(tmp_path: Path) -> None:
    """Only the end of what it says is kept; the time it has is the same as anybody's."""
    file = tmp_path / "chatty.py"
    file.write_text("while True:\n    print('x' * 100_000)\n")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    with pytest.raises(BadWorkflow, match=r"more than 2 s"):
        describe(file, timeout=2, environment=os.environ)
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < 64 * 1024  # KiB; it prints gigabytes


def test_an_interrupted_description_leaves_no_process(tmp_path: Path) -> None:
    """Ctrl-C reaches the host alone: the child is in a session of its own."""
    file = tmp_path / "slow.py"
    pid = tmp_path / "pid"
    file.write_text(
        "import os, signal, time\nfrom pathlib import Path\n"
        f"Path({str(pid)!r}).write_text(str(os.getpid()))\n"
        "os.kill(os.getppid(), signal.SIGINT)\ntime.sleep(300)\n"
    )
    before = signal.signal(
        signal.SIGINT, signal.default_int_handler
    )  # ignored where a shell runs all of this behind it
    try:
        with pytest.raises(KeyboardInterrupt):
            describe(file, timeout=60, environment=os.environ)
    finally:
        signal.signal(signal.SIGINT, before)
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid.read_text()), 0)


def test_a_description_dies_with_its_host(tmp_path: Path) -> None:
    """A killed host leaves no import behind that goes on for ever, nor what that has started."""
    file, pid, started = tmp_path / "slow.py", tmp_path / "pid", tmp_path / "started"
    file.write_text(
        STARTS.format(pid=str(started)) + "import os, signal, time\nfrom pathlib import Path\n"
        f"Path({str(pid)!r}).write_text(str(os.getpid()))\n"
        "os.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(300)\n"
    )
    code = (
        "import os; from pathlib import Path; from waypost.host.code.describe import describe; "
        f"describe(Path({str(file)!r}), timeout=60, environment=os.environ)"
    )
    with Background(command=(sys.executable, "-c", code)) as host:
        assert host.wait() == -signal.SIGKILL
    check_ended(pid)
    check_ended(started)


def test_what_left_its_group_in_a_look_whose_command_was_killed_ends_with_the_next_start_and_no_other_does(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It bears a mark by which it is found once nobody looks any more; a look that is under way goes on."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    file, pid = tmp_path / "slow.py", tmp_path / "pid"
    file.write_text(
        "import os, signal, subprocess, time\nfrom pathlib import Path\n"
        f"Path({str(pid)!r}).write_text(str(subprocess.Popen(['sleep', '300'], start_new_session=True).pid))\n"
        "os.kill(os.getppid(), signal.SIGKILL)\ntime.sleep(300)\n"
    )
    code = (
        "import os; from pathlib import Path; from waypost.host.code.describe import describe; "
        f"describe(Path({str(file)!r}), timeout=60, environment=os.environ)"
    )
    with Background(command=(sys.executable, "-c", code), env={"TMPDIR": str(tmp_path)}) as host:
        assert host.wait() == -signal.SIGKILL
    with staged({}) as used, Background(command=("sleep", "300"), env={MARK: f"{begins(used)}x"}) as other:
        end_looks()
        check_ended(pid)
        assert bears(other.pid, Mark(begins(used)))
    assert not list(tmp_path.glob("waypost-look-*"))


def test_a_files_name_may_begin_with_a_dash(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """It is an argument, never an option."""
    (tmp_path / "-x.py").write_text(GOOD)
    monkeypatch.chdir(tmp_path)
    described = describe(Path("-x.py"), timeout=30, environment=os.environ)
    assert "--module=-x" in described.arguments(tmp_path)


def test_user_code_sees_none_of_the_hosts_environment(tmp_path: Path) -> None:
    """Secrets in the environment of whoever starts the host are not the file's business."""
    file = tmp_path / "peek.py"
    file.write_text("import os\nraise RuntimeError(sorted(os.environ))\n")
    with pytest.raises(BadWorkflow) as refused:
        describe(file, timeout=30, environment={**os.environ, "SECRET_TOKEN": "x"})
    assert "SECRET_TOKEN" not in refused.value.message


def test_two_files_may_not_claim_one_name_or_address(tmp_path: Path) -> None:
    """Each is named beside the other."""
    first, second = tmp_path / "first.py", tmp_path / "second.py"
    first.write_text(GOOD)
    second.write_text(GOOD)
    with pytest.raises(Taken, match=r"second.py: the name 'plain' is taken by .*first.py"):
        describe_all([first, second], timeout=30, environment=os.environ)
    second.write_text(WORKFLOW.format(name="other").replace("other@", "plain@"))
    with pytest.raises(Taken, match=r"second.py: the address 'plain@example.com' is taken by .*first.py"):
        describe_all([first, second], timeout=30, environment=os.environ)


def test_packages_of_another_distribution_are_refused() -> None:
    """Their names are plain: a distribution that brings an ``ipc`` of its own overwrites ours without a word."""
    ours = {package: ["waypost", "waypost"] for package in PACKAGES}
    check_own(ours)
    check_own()
    for owners in (["waypost", "somebody"], ["somebody"], []):
        with pytest.raises(NotOurs, match="'ipc'") as refused:
            check_own({**ours, "ipc": owners})
        assert "environment of its own" in refused.value.hint


def test_code_that_is_deployed_comes_up_also_where_its_zone_has_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host is mostly started with the file: a zone that is no more is its schedule's trouble, and not its runs'."""
    file, data = tmp_path / "plain.py", tmp_path / "data"
    file.write_text(GOOD.replace("@plain.run", '@plain.cron("0 9 * * *", tz="Asia/Tokyo")\n@plain.run'))
    assert verb("deploy", str(file), data=data).status == Exit.OK
    zones.zone.cache_clear()
    monkeypatch.setattr(zones, "names", lambda: frozenset({"UTC"}))
    assert describe(file, timeout=30, environment=os.environ, data=data).spec.name == "plain"
    for elsewhere in (None, tmp_path / "other"):
        with pytest.raises(BadWorkflow, match="there is no time zone 'Asia/Tokyo'"):
            describe(file, timeout=30, environment=os.environ, data=elsewhere)
    file.write_text(f"{file.read_text()}\n")
    with pytest.raises(BadWorkflow, match="there is no time zone 'Asia/Tokyo'"):
        describe(file, timeout=30, environment=os.environ, data=data)

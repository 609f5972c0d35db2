"""Reading a credential: each way, each thing that goes wrong with it, and that none of it says what was read.

Commands are real ones; what they leave behind is looked for in the system.
"""

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from ipc.deliveries import VALUE
from ipc.environment import MARK
from waypost.host.credentials.file import FromCommand, FromEnvironment, FromFile, Way
from waypost.host.credentials.providers import Failed, Had, Surroundings, read
from waypost.testing.child_stage import alive
from waypost.testing.patience import eventually

SECRET = "hunter2hunter2"


def around(folder: Path, *, patience: float = 10.0, **environment: str) -> Surroundings:
    """A host's surroundings."""
    known = {"PATH": os.environ["PATH"], "HOME": str(folder), **environment}
    return Surroundings(environment=known, folder=folder, mark="m" * 32 + ".cred", patience=patience)


def python(code: str) -> FromCommand:
    """A command that is a line of Python."""
    return FromCommand((sys.executable, "-I", "-S", "-c", code))


def value(way: Way, where: Surroundings) -> str:
    """What was read."""
    reading = read(way, where)
    assert isinstance(reading, Had), reading
    return reading.value.reveal().decode()


def why(way: Way, where: Surroundings) -> str:
    """Why it couldn't be read; never with what was read in it."""
    reading = read(way, where)
    assert isinstance(reading, Failed)
    assert "hunter" not in reading.why
    return reading.why


@pytest.mark.parametrize(
    ("raw", "shown"),
    [(b"s3cret\n", "s3cret"), (b"s3cret\r\n", "s3cret"), (b"s3cret", "s3cret"), (b"two\nlines\n\n", "two\nlines\n")],
)
def test_all_of_a_file_is_the_secret_but_one_line_end(tmp_path: Path, raw: bytes, shown: str) -> None:
    """An editor adds one; a second one is somebody's."""
    (tmp_path / "github").write_bytes(raw)
    assert value(FromFile("github"), around(tmp_path)) == shown
    assert value(FromFile(str(tmp_path / "github")), around(Path("/"))) == shown


def test_a_file_may_be_behind_a_link_and_is_warned_of_when_others_can_read_it(tmp_path: Path) -> None:
    """Secrets that a system mounts are links to where they are now."""
    (tmp_path / "real").write_text(SECRET)
    (tmp_path / "real").chmod(0o640)
    (tmp_path / "link").symlink_to("real")
    reading = read(FromFile("link"), around(tmp_path))
    assert isinstance(reading, Had)
    assert "chmod 600" in reading.warning
    (tmp_path / "real").chmod(0o600)
    assert read(FromFile("link"), around(tmp_path)) == Had(reading.value)


def test_a_variable_of_the_hosts_own_is_a_secret_and_says_so_where_it_is_missing(tmp_path: Path) -> None:
    """Told with its name; it may be set by whoever starts the host next."""
    assert value(FromEnvironment("TOKEN"), around(tmp_path, TOKEN=SECRET)) == SECRET
    assert "no TOKEN" in why(FromEnvironment("TOKEN"), around(tmp_path))
    assert "is empty" in why(FromEnvironment("TOKEN"), around(tmp_path, TOKEN=""))


def _nothing(_file: Path) -> None:
    pass


def _garbage(file: Path) -> None:
    file.write_bytes(b"hunter\xff")


def _nul(file: Path) -> None:
    file.write_bytes(b"hunter\0")


def _large(file: Path) -> None:
    file.write_bytes(b"x" * (VALUE + 1))


def _line_end(file: Path) -> None:
    file.write_bytes(b"\n")


@pytest.mark.parametrize(
    ("make", "shown"),
    [
        (_nothing, "No such file"),
        (os.mkdir, "no plain file"),
        (os.mkfifo, "no plain file"),
        (_garbage, "no text in UTF-8"),
        (_nul, "NUL"),
        (_large, "more than 65,536 bytes"),
        (_line_end, "is empty"),
    ],
    ids=["missing", "a directory", "a FIFO", "garbage", "a NUL", "too large", "empty"],
)
def test_what_is_wrong_with_a_file_is_said(tmp_path: Path, make: Callable[[Path], None], shown: str) -> None:
    """And nobody waits for a FIFO."""
    make(tmp_path / "s")
    assert shown in why(FromFile("s"), around(tmp_path))


def test_the_largest_secret_there_is_can_be_read(tmp_path: Path) -> None:
    """With a line end of Windows behind it."""
    (tmp_path / "s").write_bytes(b"x" * VALUE + b"\r\n")
    assert len(value(FromFile("s"), around(tmp_path))) == VALUE
    assert len(value(python(f"print('x' * {VALUE}, end='\\r\\n')"), around(tmp_path))) == VALUE


# --- commands ------------------------------------------------------------------------------------------------------


def test_what_a_command_prints_is_the_secret(tmp_path: Path) -> None:
    """Of its input there is none, of the environment what it needs to be found, and its folder is the data's."""
    assert value(FromCommand(("echo", SECRET)), around(tmp_path)) == SECRET
    shown = "import os,sys; print(sorted(os.environ), sys.stdin.read(), os.getcwd(), os.getsid(0) == os.getpid())"
    said = value(python(shown), around(tmp_path, TOKEN=SECRET))
    assert said.endswith(f"  {tmp_path} True")
    assert set(eval(said.split("]")[0] + "]")) - {"LC_CTYPE"} == {"HOME", MARK, "PATH"}


@pytest.mark.parametrize(
    ("way", "shown"),
    [
        (FromCommand(("no-such-program-here",)), "can't be started (No such file or directory)"),
        (FromCommand(("/",)), "can't be started"),
        (python("import sys; print('hunter'); print('hunter', file=sys.stderr); sys.exit(3)"), "ended with status 3"),
        (python("import os; os.kill(os.getpid(), 9)"), "ended by signal 9"),
        (python("pass"), "is empty"),
        (python("import os; os.write(1, b'hunter\\xff\\xfe')"), "no text in UTF-8"),
        (python("print('hunter' * 200_000)"), "prints more than 65,536 bytes"),
    ],
    ids=["not there", "a directory", "fails", "killed", "prints nothing", "prints garbage", "prints a megabyte"],
)
def test_what_is_wrong_with_a_command_is_said(tmp_path: Path, way: FromCommand, shown: str) -> None:
    """Without a word of what it printed: that may be the half of a secret."""
    assert shown in why(way, around(tmp_path))


def test_a_command_that_hangs_is_killed_with_all_that_it_has_started(tmp_path: Path) -> None:
    """A prompt that nobody sees, a lock that nobody frees: it has its time, and leaves no process behind."""
    way = FromCommand(("sh", "-c", "sleep 1000 & echo $$ $! > pids; wait"))
    assert "hasn't ended within 0.8 s" in why(way, around(tmp_path, patience=0.8))
    pids = tuple(map(int, (tmp_path / "pids").read_text().split()))
    eventually(lambda: not any(map(alive, pids)), "both are gone")


@pytest.mark.parametrize(("then", "given"), [("sleep 1000", False), ("exit 3", False), ("echo s3cret", True)])
def test_what_has_left_a_commands_session_stays_only_where_a_secret_was_given(
    tmp_path: Path, then: str, *, given: bool
) -> None:
    """An agent that keeps a passphrase is of use; one more at each try of a command that hangs fills the machine."""
    way = FromCommand(
        ("sh", "-c", f"setsid sh -c 'echo $$ > pid; exec sleep 1000' & until [ -s pid ]; do :; done; {then}")
    )
    assert isinstance(read(way, around(tmp_path, patience=0.8)), Had) is given
    pid = int((tmp_path / "pid").read_text())
    if not given:
        eventually(lambda: not alive(pid), "it is gone")
        return
    assert alive(pid)
    os.kill(pid, signal.SIGKILL)


def test_a_command_whose_child_keeps_its_output_open_is_over_when_it_has_ended(tmp_path: Path) -> None:
    """An agent that is started on the way must not cost the whole patience."""
    code = "import os, time\nif os.fork() == 0: time.sleep(1000)\nprint('s3cret', flush=True)\n"
    assert value(python(code), around(tmp_path, patience=60.0)) == "s3cret"


def test_one_that_closes_its_output_and_hangs_has_not_ended(tmp_path: Path) -> None:
    """It may still say by its status that what it printed is nothing."""
    code = "import os, time\nos.write(1, b'hunter'); os.close(1); time.sleep(1000)\n"
    assert "hasn't ended" in why(python(code), around(tmp_path, patience=0.3))

"""A user's mistakes and a machine's: each is a message that says what, where and what to do, and loses nothing."""

import subprocess
import sys
from pathlib import Path

import pytest

from substrate.signing.keys import SigningKey
from waypost.host.datadir.directory import lay_out, prepare
from waypost.host.errors import HostError
from waypost.testing.host_here import HostHere
from waypost.testing.host_process import HostProcess, waypost
from waypost.testing.verbs import Done, verb

pytestmark = pytest.mark.e2e

GOOD = '''
from waypost import Mail, Workflow

plain = Workflow("plain", address="plain@example.com")

@plain.run
async def go(mail: Mail) -> str:
    """Nothing to do."""
    return mail.subject
'''
MAIL = b"From: ann@example.com\r\nSubject: x\r\n\r\nhello\r\n"


def check_refusal(done: Done, status: int, *says: str) -> None:
    """A refusal is this status, a message, and what to do next; never a traceback."""
    assert done.status == status, done
    assert "Traceback" not in done.err
    for words in says:
        assert words in done.err
    message, hint = done.err.splitlines()[0], done.err.splitlines()[-1]
    assert message.startswith("waypost: ")
    assert hint.startswith("  ")


def run(*files: Path, data: Path | None = None) -> Done:
    """``waypost run`` that ends by itself."""
    done = waypost("run", *map(str, files), data=data)
    return Done(done.returncode, done.stdout, done.stderr)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    made = tmp_path / "plain.py"
    made.write_text(GOOD)
    return made


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory as a host leaves it that has had nothing to do."""
    made = prepare(tmp_path / "data", mountinfo="")
    lay_out(made)
    return made.path


def test_a_workflow_file_that_cannot_be_deployed(tmp_path: Path) -> None:
    """The reason and the line; no data directory is made for it.

    A hundred files take long enough to make one wonder; the first that can't be run is named all the same.
    """
    absent = tmp_path / "absent.py"
    absent.write_text("import nosuchthing\n")
    done = run(absent, *(absent.with_name(f"gone{number}.py") for number in range(9)))
    first, *rest = done.err.splitlines()
    assert first == "waypost: looking at 10 workflows first, one after the other"
    check_refusal(Done(done.status, done.out, "\n".join(rest)), 65, "absent.py line 1", "nosuchthing")
    assert not (tmp_path / ".waypost").exists()


@pytest.mark.torture
def test_a_workflow_beside_a_package_that_hides_ours(file: Path) -> None:
    """The host's own modules are not to be had by a folder of the same name."""
    (file.parent / "ipc").mkdir()
    (file.parent / "ipc" / "__init__.py").write_text("raise RuntimeError('never imported')")
    check_refusal(run(file), 65, "would hide the host's own ipc", "rename")
    assert not (file.parent / ".waypost").exists()


def test_a_data_directory_of_a_newer_format(file: Path, data: Path) -> None:
    """The host and every verb leave it alone."""
    (data / "format.json").write_text('{"format": 2}\n')
    before = {p: p.stat().st_mtime_ns for p in data.rglob("*")}
    with pytest.raises(HostError, match="format 2") as refused:
        HostHere(file, data=data)
    assert str(data) in refused.value.message
    assert "install" in refused.value.hint
    for words in (("runs",), ("show", "run_1"), ("why", "run_1"), ("log", "run_1"), ("verify",), ("approve", "run_1")):
        check_refusal(verb(*words, data=data), 78, "format 2")
    check_refusal(verb("send", "plain@example.com", data=data, stdin=MAIL), 78, "format 2")
    assert {p: p.stat().st_mtime_ns for p in data.rglob("*")} == before


def test_a_repository_that_another_key_has_signed(file: Path, data: Path) -> None:
    """Its only deployment can't be opened: the host ends with the reason instead of looking like one."""
    assert verb("deploy", str(file), data=data).status == 0
    for key in (data / "keys").glob("host.*"):
        key.unlink()
    SigningKey.load_or_create(data / "keys" / "host.ed25519")
    check_refusal(run(file, data=data), 78, "plain", "damaged")
    check_refusal(verb("runs", data=data), 78, "plain.git")
    # Not 67: the address is there, and a sender who is told otherwise gives up.
    check_refusal(verb("send", "plain@example.com", data=data, stdin=MAIL), 75, "plain", "verify")


def test_what_is_not_there(data: Path, tmp_path: Path) -> None:
    """The next command is in the message."""
    check_refusal(verb("runs", data=tmp_path / "none"), 78, "none", "waypost run FILE")
    for name in ("run_7", "nonsense", "../x", "run_1_0000000000000000"):
        check_refusal(verb("show", name, data=data), 64, name, "waypost runs")
    for writing in ("approve", "reject", "resume"):
        check_refusal(verb(writing, "run_7", data=data), 69, "no host runs here", "`waypost run`")
    check_refusal(verb("nonsense"), 64, "nonsense")
    check_refusal(verb("show"), 64, "RUN")
    check_refusal(verb("verify", "--key", str(tmp_path / "none.pub"), data=data), 64, "none.pub")
    check_refusal(verb("verify", str(tmp_path / "nothing")), 78, "nothing")


# --- disks: a mount namespace of its own, where the kernel allows one ------------------------------------------------


def in_namespace(script: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a shell script that may mount; skips where the kernel doesn't let us."""
    probe = subprocess.run(["unshare", "-rm", "mount", "-t", "tmpfs", "t", "/mnt"], capture_output=True, check=False)
    if probe.returncode:
        pytest.skip("unprivileged mount namespaces are not allowed here")
    shell = ["unshare", "-rm", "sh", "-eu", "-c", script, "sh", *arguments]
    return subprocess.run(shell, capture_output=True, text=True, timeout=100, check=False)


READ_ONLY = """
import sys
from pathlib import Path
from waypost.host.errors import HostError
from waypost.testing.host_here import HostHere
from waypost.testing.host_process import waypost
from waypost.testing.verbs import verb

data, file = Path(sys.argv[1]), sys.argv[2]
host = waypost("run", file, data=data)
print("run", host.returncode, host.stderr)
for words in (("send", "plain@example.com"), ("runs",), ("show", "run_1"), ("verify",)):
    print(words[0], verb(*words, data=data, stdin=b"Subject: x\\n\\nhello\\n"))
"""


@pytest.mark.torture
def test_a_read_only_disk(file: Path, data: Path, tmp_path: Path) -> None:
    """Reading goes on as ever; what would write is refused, and changes nothing."""
    with HostProcess(file, data=data) as host:
        host.send("plain@example.com", MAIL)
        host.wait_for("completed")
    (tmp_path / "script.py").write_text(READ_ONLY)
    script = f'mount --bind "$1" "$1"; mount -o remount,bind,ro "$1"; {sys.executable} -P "$3" "$1" "$2"'
    done = in_namespace(script, str(data), str(file), str(tmp_path / "script.py"))
    assert done.returncode == 0, (done.stdout, done.stderr)
    assert f"run 78 waypost: {data}: the file system is read-only\n  name a writable directory" in done.stdout
    assert "send Done(status=75" in done.stdout, done.stdout
    assert "Traceback" not in done.stdout
    assert "plain: sound" in done.stdout
    assert 'completed: "x"' in done.stdout


FULL = """
import sys
from pathlib import Path
from waypost.host.errors import HostError
from waypost.testing.host_here import HostHere
from waypost.testing.host_process import HostProcess, waypost
from waypost.testing.verbs import verb

disk, file = Path(sys.argv[1]), Path(sys.argv[2])
data, filler = disk / "data", disk / "filler"


def fill():
    with filler.open("wb", buffering=0) as whole:
        try:
            while True:
                whole.write(bytes(4096))
        except OSError:
            pass


def send(n):
    head = f"From: ann@example.com\\r\\nSubject: {n}\\r\\nMessage-ID: <{n}@x>\\r\\n\\r\\n"
    return verb("send", "plain@example.com", data=data, stdin=head.encode() + b"x" * 1_000_000)


accepted = 0
with HostProcess(file, data=data) as host:
    fill()
    while (done := send(accepted)).status == 0:
        accepted += 1
    print("full", done.status, done.err)
    filler.unlink()
    # It ends by itself when there is space; a host that couldn't write any more is made anew meanwhile.
    while (done := send(accepted)).status == 75:
        print("again", done.err)
    print("space", done.status)
    accepted += 1
fill()
started = waypost("run", str(file), data=data)
print("start", started.returncode, started.stderr)
spooled = send(999)
print("spool", spooled.status, spooled.err)
filler.unlink()
with HostProcess(file, data=data):
    print("runs", len(verb("runs", data=data).out.splitlines()) - 1, "accepted", accepted)
    print("verify", verb("verify", data=data).out)
"""


@pytest.mark.torture
def test_a_full_disk(file: Path, tmp_path: Path) -> None:
    """What was accepted is there; what wasn't is withheld; and it goes on by itself when there is space."""
    (tmp_path / "full.py").write_text(FULL)
    (tmp_path / "disk").mkdir()
    script = f'mount -t tmpfs -o size=32m t "$1"; {sys.executable} -P "$3" "$1" "$2"'
    done = in_namespace(script, str(tmp_path / "disk"), str(file), str(tmp_path / "full.py"))
    assert done.returncode == 0, (done.stdout, done.stderr)
    said = dict(line.split(" ", 1) for line in done.stdout.splitlines() if line[:1].isalpha() and " " in line)
    assert said["full"].startswith("75 waypost: "), done.stdout
    assert said["space"].startswith("0"), done.stdout
    assert said["start"].startswith("78 waypost: "), done.stdout
    assert "disk is full" in said["start"]
    assert said["spool"].startswith("75 waypost: "), done.stdout
    count, _, accepted = said["runs"].split()
    assert count == accepted, done.stdout
    assert "plain: sound" in done.stdout

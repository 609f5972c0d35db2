"""What a shell can hand to the command beside words and files: bytes that are no text, closed streams, foreign code."""

import subprocess
from pathlib import Path

import pytest

from waypost.host.datadir.directory import lay_out, prepare
from waypost.testing.background import COMMAND
from waypost.testing.host_process import waypost
from waypost.testing.verbs import verb

MAIL = b"From: ann@example.com\r\nSubject: x\r\n\r\nhello\r\n"


@pytest.fixture
def data(tmp_path: Path) -> Path:
    """A data directory as a host leaves it that has had nothing to do."""
    made = prepare(tmp_path / "data", mountinfo="")
    lay_out(made)
    return made.path


@pytest.mark.parametrize(
    ("words", "what"),
    [
        (("send", "\udcff@example.com"), "the address"),
        (("approve", "run_1", "--comment", "gr\udcfcn"), "--comment"),
        (("reject", "run_1", "--call", "r1#\udc80"), "--call"),
    ],
)
def test_an_argument_that_is_no_text_is_a_message(data: Path, words: tuple[str, ...], what: str) -> None:
    """A terminal in Latin-1 sends such bytes; Python hands them on as lone surrogates, which no JSON can hold."""
    done = verb(*words, data=data, stdin=MAIL)
    assert done.status == 64
    assert done.err.startswith(f"waypost: {what} ")
    assert "UTF-8" in done.err.splitlines()[-1]


def test_a_key_that_is_none_names_the_option(data: Path, tmp_path: Path) -> None:
    """The trusted key is the reader's, not the host's: no backup of it can be restored."""
    (tmp_path / "no.pub").write_text("not a key\n")
    done = verb("verify", "--key", str(tmp_path / "no.pub"), data=data)
    assert done.status == 64
    assert "--key" in done.err.splitlines()[-1]


@pytest.mark.e2e
@pytest.mark.parametrize(
    ("shell", "status", "says"),
    [
        ('exec "$@" send plain@example.com <&-', 65, "the mail is empty"),
        ('exec "$@" runs >&-', 0, ""),
        ('exec "$@" show nonsense 2>&-', 64, ""),
        ('exec "$@" runs <&- >&- 2>&-', 0, ""),
    ],
)
def test_closed_streams_are_no_traceback(data: Path, shell: str, status: int, says: str) -> None:
    """A supervisor of services may start the command without them."""
    line = ["sh", "-c", shell, "sh", *COMMAND]
    done = subprocess.run(line, env={"WAYPOST_DATA": str(data)}, capture_output=True, text=True, check=False)
    assert (done.returncode, says in done.stderr, "Traceback" in done.stderr) == (status, True, False)


@pytest.mark.e2e
def test_a_foreign_package_under_one_of_our_names_is_named_before_it_is_imported(tmp_path: Path) -> None:
    """Else the host would fail inside of somebody else's code, in somebody else's words."""
    (tmp_path / "plain.py").write_text("")
    foreign = tmp_path / "foreign"
    (foreign / "actors").mkdir(parents=True)
    (foreign / "actors" / "__init__.py").write_text("raise RuntimeError('imported')\n")
    information = foreign / "stage-1.0.dist-info"
    information.mkdir()
    (information / "METADATA").write_text("Metadata-Version: 2.1\nName: stage\nVersion: 1.0\n")
    (information / "top_level.txt").write_text("actors\n")
    done = waypost("run", str(tmp_path / "plain.py"), env={"PYTHONPATH": str(foreign)})
    assert done.returncode == 1
    assert "'actors'" in done.stderr
    assert "environment of its own" in done.stderr.splitlines()[-1]
    assert "Traceback" not in done.stderr

"""Compiled code that a child of another user can read: there, by the present source, and no more open than that."""

import importlib.util
import os
import py_compile
import subprocess
import sys
from pathlib import Path

import pytest

from waypost.host.processes.compiled import compile_for_all, of_a_child


def cached(source: Path) -> Path:
    """Where Python keeps a source's code."""
    return Path(importlib.util.cache_from_source(str(source), optimization=""))


@pytest.fixture
def source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A source that everybody may read, and a Python that writes what it compiles."""
    monkeypatch.setattr(sys, "dont_write_bytecode", False)
    file = tmp_path / "one.py"
    file.write_text("x = 1\n")
    file.chmod(0o644)
    return file


def read_by_python(source: Path) -> bool:
    """Whether an import takes the compiled code and leaves the source alone."""
    code = f"import sys; sys.path.insert(0, {str(source.parent)!r}); import {source.stem}"
    done = subprocess.run([sys.executable, "-v", "-B", "-c", code], capture_output=True, text=True, check=True)
    return f"matches {source}" in done.stderr


@pytest.mark.parametrize("umask", [0o022, 0o077])
def test_what_isn_t_compiled_is_afterwards_and_open_to_all(source: Path, umask: int) -> None:
    """Whatever umask the host was started with."""
    before = os.umask(umask)
    try:
        compile_for_all([source])
    finally:
        os.umask(before)
    assert cached(source).stat().st_mode & 0o444 == 0o444
    assert read_by_python(source)


def test_what_a_child_has_compiled_for_itself_is_opened(source: Path) -> None:
    """The usual case: its umask is 077, and it was there first."""
    py_compile.compile(str(source))
    cached(source).chmod(0o600)
    before = cached(source).read_bytes(), cached(source).stat().st_mtime_ns
    compile_for_all([source])
    assert cached(source).stat().st_mode & 0o777 == 0o644
    assert (cached(source).read_bytes(), cached(source).stat().st_mtime_ns) == before


@pytest.mark.parametrize("change", ["content", "damage", "empty"])
def test_what_is_of_another_source_is_made_anew(source: Path, change: str) -> None:
    """Python would compile it at each start of a child, to no avail."""
    py_compile.compile(str(source))
    match change:
        case "content":
            source.write_text("x = 22\n")
        case "damage":
            cached(source).write_bytes(cached(source).read_bytes()[:12])
        case _:
            cached(source).write_bytes(b"")
    compile_for_all([source])
    assert read_by_python(source)


def test_a_private_source_stays_private(source: Path) -> None:
    """Its code says as much as it does."""
    source.chmod(0o600)
    compile_for_all([source])
    assert cached(source).stat().st_mode & 0o077 == 0


def test_what_can_t_be_compiled_or_written_is_passed_over(tmp_path: Path, source: Path) -> None:
    """A start never fails by this: it is only slower."""
    broken = tmp_path / "broken.py"
    broken.write_text("def (\n")
    (tmp_path / "two").mkdir()
    blocked = tmp_path / "two" / "two.py"
    blocked.write_text("x = 2\n")
    (tmp_path / "two" / "__pycache__").write_text("no folder")
    compile_for_all([broken, tmp_path / "missing.py", blocked, source])
    assert not cached(broken).exists()
    assert cached(source).exists()


def test_nothing_is_written_where_python_was_told_not_to(source: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """PYTHONDONTWRITEBYTECODE and -B are an operator's wish; a child, which doesn't hear of it, may have been there."""
    monkeypatch.setattr(sys, "dont_write_bytecode", True)
    compile_for_all([source])
    assert not cached(source).exists()
    py_compile.compile(str(source))
    cached(source).chmod(0o600)
    compile_for_all([source])
    assert cached(source).stat().st_mode & 0o444 == 0o444


def test_all_that_a_child_loads_of_ours_is_among_it() -> None:
    """Or one file would cost every start its compilation."""
    code = "import sys, waypost.child.serving, waypost.child.__main__, waypost.child.load, waypost.child.loop\n"
    code += "import ipc.boxing, waypost.child.describe\n"
    code += "print(*(m.__file__ for n, m in sys.modules.items() if n.partition('.')[0] in {'ipc', 'waypost'}))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert {*map(Path, done.stdout.split())} <= {*of_a_child()}

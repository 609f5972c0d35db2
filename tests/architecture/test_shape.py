"""The shape of the tree: import contracts, names we own, files of one idea."""

import ast
import importlib.metadata
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
OURS = ("actors", "ipc", "substrate", "waypost")
LONGEST = 400


def test_imports_run_one_way() -> None:
    """The contracts in setup.cfg hold; the architecture is checked, not remembered."""
    lint = Path(sys.executable).with_name("lint-imports")
    done = subprocess.run([lint], cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("name", OURS)
def test_the_plain_top_level_names_are_ours_alone(name: str) -> None:
    """`actors`, `ipc` and `substrate` are plain names: another distribution that ships one would overwrite ours."""
    assert set(importlib.metadata.packages_distributions()[name]) == {"waypost"}


def test_every_package_is_typed() -> None:
    """A user's type checker sees our annotations."""
    assert [name for name in OURS if not (ROOT / name / "py.typed").exists()] == []


def test_no_file_holds_a_second_idea() -> None:
    """Past 400 lines there is one, as a rule."""
    long = {
        str(path.relative_to(ROOT)): lines
        for name in OURS
        for path in (ROOT / name).rglob("*.py")
        if (lines := len(path.read_text(encoding="utf-8").splitlines())) > LONGEST
    }
    assert long == {}


def test_every_module_says_what_it_is_for() -> None:
    """The first docstring is the job, then the promise."""
    silent = [
        str(path.relative_to(ROOT))
        for name in OURS
        for path in (ROOT / name).rglob("*.py")
        if not path.read_text(encoding="utf-8").lstrip("#! \n").startswith('"""')
    ]
    assert silent == []


def test_no_test_waits_for_ever_for_a_process_of_its_own() -> None:
    """`with subprocess.Popen(…)` waits at its end, after a failure, too, for one that nobody ends any more.

    `Background` of `waypost.testing` is ended by its `with`.
    """
    waiting = [
        f"{path.relative_to(ROOT)}:{item.context_expr.lineno}"
        for path in (ROOT / "tests").rglob("*.py")
        if "Popen" in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.With)
        for item in node.items
        if isinstance(item.context_expr, ast.Call) and ast.unparse(item.context_expr.func).endswith("Popen")
    ]
    assert waiting == []

"""What a child runs is the tree that it was started on: hashed first, run as it was hashed, whatever lies beside it."""

import hashlib
import io
import marshal
import os
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Mapping
from pathlib import Path

import pytest

from waypost.host.code.materialise import COMPILED, clear, compiled, is_whole, materialise, sweep, write
from waypost.host.code.precompile import LARGEST, precompile
from waypost.host.code.staging import staged
from waypost.host.described import TREE
from waypost.model.code import FILE, FILES, tree_hash
from waypost.tree_on_disk import read

FLOW = b"""
import helper
from waypost import Workflow

orders = Workflow("orders", address="orders@example.com")

@orders.run
async def order(mail):
    return 1
"""
CODE = {"flow.py": FLOW, "helper.py": b"print('helped')\n", "data/x.txt": b"x"}
PROGRAM = """
import sys
import tempfile
from waypost.child.errors import Changed
from waypost.child.load import Place, load
root, tree, sha256, compiled = sys.argv[1:]
try:
    print(load(Place(root, "flow"), tree=tree, sha256=sha256, compiled=compiled or None).sha256)
except Changed as changed:
    print("refused", changed.found)
"""


def child(tree: Path, sha256: str, made: str = "") -> list[str]:
    """What a child that loads this tree says."""
    command = [sys.executable, "-P", "-c", PROGRAM, str(tree), str(tree), sha256, made]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={})
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:-1]


@pytest.fixture(name="folder")
def _folder(tmp_path: Path) -> Path:
    """The folder of a materialised tree."""
    return materialise(tmp_path / "code", CODE)


def open_up(folder: Path) -> Path:
    """The tree in it, to be written to."""
    tree = folder / TREE
    tree.chmod(0o755)
    for file in tree.glob("*.py"):
        file.chmod(0o644)
    return tree


def test_the_deployed_tree_is_run(folder: Path) -> None:
    """And no cache of Python's comes of it, though it isn't read-only for everybody."""
    open_up(folder)
    assert child(folder / TREE, folder.name) == ["helped", folder.name]
    assert is_whole(folder)


def test_an_archive_in_the_tree_can_be_imported_from(tmp_path: Path) -> None:
    """As anywhere else: Python's own import of such was never asked."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        archive.writestr("helper.py", "print('packed')")
    flow = b"import os, sys\nsys.path.append(os.path.dirname(__file__) + '/lib.zip')\n" + FLOW
    folder = materialise(tmp_path / "code", {"flow.py": flow, "lib.zip": packed.getvalue()})
    assert child(folder / TREE, folder.name) == ["packed", folder.name]


def test_a_name_in_a_namespace_package_that_is_installed_is_refused_too(tmp_path: Path) -> None:
    """Both folders are one package then, and the installed part comes first."""
    (tmp_path / "site/shared/deep").mkdir(parents=True)
    (tmp_path / "site/shared/deep/taken.py").touch()
    mine = {"shared/free.py": b"", "shared/deep/free.py": b""}
    for clash in ("shared/deep/taken.py", "shared/deep/taken/__init__.py"):
        folder = materialise(tmp_path / "code", CODE | mine | {clash: b""})
        command = [sys.executable, "-P", "-c", PROGRAM, *2 * [str(folder / TREE)], folder.name, ""]
        done = subprocess.run(
            command, capture_output=True, text=True, check=False, env={"PYTHONPATH": str(tmp_path / "site")}
        )
        name = clash.removesuffix("/__init__.py")
        assert f"{name} has the name of another module, {tmp_path / 'site/shared/deep/taken.py'}" in done.stderr
    own = {"shared/__init__.py": b"", "shared/deep/taken.py": b""}
    folder = materialise(tmp_path / "code", CODE | own)
    command = [sys.executable, "-P", "-c", PROGRAM, *2 * [str(folder / TREE)], folder.name, ""]
    assert subprocess.run(command, check=True, env={"PYTHONPATH": str(tmp_path / "site")}, stdout=-3).returncode == 0


@pytest.mark.parametrize("there", ["taken.pyc", "taken/__init__.pyc"])
def test_so_is_one_that_is_there_compiled_alone_or_in_an_archive(tmp_path: Path, there: str) -> None:
    """Python takes those for modules as well."""
    site, archive = tmp_path / "site", tmp_path / "site.zip"
    (site / "shared" / there).parent.mkdir(parents=True)
    (site / "shared" / there).touch()
    with zipfile.ZipFile(archive, "w") as packed:
        packed.writestr("shared/", "")
        packed.writestr("shared/packed.py", "")
    for clash, by in (("taken", site / "shared" / there), ("packed", archive / "shared/packed.py")):
        folder = materialise(tmp_path / "code", CODE | {f"shared/{clash}.py": b"", "shared/packed.free.py": b""})
        command = [sys.executable, "-P", "-c", PROGRAM, *2 * [str(folder / TREE)], folder.name, ""]
        path = {"PYTHONPATH": f"{site}:{archive}"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=path)
        assert f"shared/{clash}.py has the name of another module, {by}," in done.stderr


STARTS = """
import sys, types
from importlib.util import spec_from_file_location
class Finder:
    def find_spec(name, path=None, target=None):
        return spec_from_file_location(name, "/src/sub.py") if name == "shared.sub" else None
sys.meta_path.insert(0, Finder)
for name in ("old", "made"):
    sys.modules[name] = types.ModuleType(name)
sys.modules["old"].__path__ = [__file__.replace("sitecustomize.py", "old")]
"""


def test_so_is_one_that_python_has_from_its_start(tmp_path: Path) -> None:
    """By a .pth file, as older namespace packages and editable installs have one: what was deployed never ran."""
    for part in ("old", "shared"):
        (tmp_path / part).mkdir()
        (tmp_path / part / "there.py").touch()
    (tmp_path / "sitecustomize.py").write_text(STARTS)
    free = {"old/free.py": b"", "shared/free.py": b"", "my.json.py": b"", "__main__.py": b""}
    said = dict[str, str]()
    for clash in ("old/__init__.py", "old.py", "old/there.py", "made.py", "shared/sub.py", "free.py"):
        folder = materialise(tmp_path / "code", CODE | free | {clash: b""})
        command = [sys.executable, "-P", "-c", PROGRAM, *2 * [str(folder / TREE)], folder.name, ""]
        path = {"PYTHONPATH": str(tmp_path)}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=path)
        said[clash] = done.stderr.partition("another module, ")[2].partition(", which")[0]
    assert said == {
        "old/__init__.py": f"{tmp_path}/old",
        "old.py": f"{tmp_path}/old",
        "old/there.py": f"{tmp_path}/old/there.py",
        "made.py": "one that is loaded as Python starts",
        "shared/sub.py": "/src/sub.py",
        "free.py": "",
    }


CHANGES: Mapping[str, tuple[str, bytes | None]] = {
    "the workflow": ("flow.py", FLOW + b"\n"),
    "what it imports": ("helper.py", b"print('forged')\n"),
    "a new module": ("sitecustomize.py", b"print('forged')\n"),
    "a module is gone": ("helper.py", None),
    "data": ("more.txt", b""),
    "a cache": ("__pycache__/helper.cpython-311.pyc", b"x"),
}


@pytest.mark.parametrize("change", CHANGES)
def test_any_other_tree_is_refused_before_a_line_of_it_runs(folder: Path, change: str) -> None:
    """By the child itself; what it found is told, and no code is loaded."""
    name, data = CHANGES[change]
    place = open_up(folder) / name
    place.parent.mkdir(exist_ok=True)
    if data is None:
        place.unlink()
    else:
        place.write_bytes(data)
    (said,) = child(folder / TREE, folder.name)
    assert said.startswith("refused ")
    assert folder.name not in said


def test_what_is_no_tree_is_refused(folder: Path, tmp_path: Path) -> None:
    """A folder that isn't there, a link in it, a pipe, too many files, one that is too large."""
    assert child(tmp_path / "nothing", folder.name) == ["refused " + "0" * 64]
    tree = open_up(folder)
    (tree / "link.py").symlink_to("flow.py")
    assert read(str(tree)) is None
    (tree / "link.py").unlink()
    assert read(str(tree)) == CODE
    with (tree / "large").open("wb") as file:
        file.truncate(FILE + 9)
    assert len((read(str(tree)) or {})["large"]) == FILE + 1
    (tree / "large").unlink()
    for number in range(FILES):
        (tree / f"{number}").touch()
    assert read(str(tree)) is None


def test_what_the_host_has_compiled_is_run_if_it_is_that(folder: Path) -> None:
    """By its hash alone; anything else in its place is compiled anew from the tree."""
    made = compiled(folder, CODE)
    assert child(folder / TREE, folder.name, made) == ["helped", folder.name]
    other = {str(folder / TREE / "helper.py"): marshal.dumps(compile("print('compiled')", "x", "exec"))}
    folder.chmod(0o755)
    (folder / COMPILED).write_bytes(marshal.dumps(other))
    assert child(folder / TREE, folder.name, made) == ["helped", folder.name]
    named = hashlib.sha256((folder / COMPILED).read_bytes()).hexdigest()
    assert child(folder / TREE, folder.name, named) == ["compiled", folder.name]  # so it was taken, when it was meant
    (folder / COMPILED).unlink()
    assert child(folder / TREE, folder.name, made) == ["helped", folder.name]


def test_only_what_compiles_is_compiled_and_not_for_too_long() -> None:
    """Whoever imports the others is told why; a host doesn't wait for megabytes."""
    made = marshal.loads(precompile({"a.py": b"x = 1", "b.py": b"def f(:", "c.txt": b"x"}, "/t"))
    assert list(made) == ["/t/a.py"]
    assert precompile({"b.py": b"\0"}, "/t") == precompile({}, "/t") == b""
    assert precompile({"a.py": b"#" * (LARGEST + 1)}, "/t") == b""


def test_a_tree_that_is_whole_is_left_alone_and_any_other_is_made_anew(folder: Path) -> None:
    """Whatever a death or a hand has left under its name."""
    flow = folder / TREE / "flow.py"
    before = flow.stat().st_ino
    assert materialise(folder.parent, CODE) == folder
    assert flow.stat().st_ino == before
    (open_up(folder) / "helper.py").unlink()
    assert materialise(folder.parent, CODE) == folder
    assert is_whole(folder)
    clear(folder)
    folder.mkdir()
    assert materialise(folder.parent, CODE) == folder
    assert is_whole(folder)
    assert [each.name for each in folder.parent.iterdir()] == [folder.name]
    for shut, mode in ((folder, 0o700), (folder / TREE, 0o500), (flow, 0o400)):  # to the user of a child
        shut.chmod(mode)
        assert materialise(folder.parent, CODE) == folder
        assert shut.stat().st_mode & 0o444 == 0o444


def test_trees_that_nobody_uses_go_with_all_that_a_death_left(folder: Path) -> None:
    """Read-only folders, half-made ones, files."""
    code = folder.parent
    other = materialise(code, {"other.py": b""})
    write(code / ".new-half", {"x/y.py": b""})
    (code / "stray").write_text("")
    (code / "link").symlink_to(folder)
    sweep(code, {other.name})
    assert [each.name for each in code.iterdir()] == [other.name]


def test_a_staged_tree_is_gone_afterwards() -> None:
    """Also when somebody has written to it."""
    with staged(CODE) as tree:
        assert read(str(tree)) == CODE
        tree.chmod(0o755)
        (tree / "more").mkdir()
        (tree / "more" / "x").touch()
    assert not tree.parent.exists()
    assert tree_hash(CODE) != tree_hash({})


def test_a_staged_tree_whose_command_was_killed_goes_with_the_next_look(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else each kill leaves a copy of somebody's code for good; what another command uses stays, and so do others'."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    killed = (
        "import os, pathlib\n"
        "from waypost.host.code.staging import staged\n"
        "with staged({'a/flow.py': b'x = 1'}) as tree:\n"
        "    print(tree, flush=True)\n"
        "    os.kill(os.getpid(), 9)\n"
    )
    environment = {**os.environ, "TMPDIR": str(tmp_path)}
    ended = subprocess.run([sys.executable, "-c", killed], env=environment, capture_output=True, text=True, check=False)
    left = Path(ended.stdout.strip()).parent
    assert (left / TREE / "a" / "flow.py").exists()
    locking = tmp_path / "waypost-look-young"
    locking.mkdir()
    foreign = tmp_path / "waypost-mine"
    foreign.mkdir()
    with staged(CODE) as used:
        assert not left.exists()
        assert locking.exists(), "one that is so young and empty may be about to be locked"
        for each in (locking, foreign, used.parent):
            os.utime(each, (0, 0))
        with staged(CODE):
            assert not locking.exists()
            assert read(str(used)) == CODE
    assert list(tmp_path.iterdir()) == [foreign]

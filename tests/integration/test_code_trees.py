"""Which files belong to a workflow, found without running it; what can't be deployed is refused by name."""

import os
import subprocess
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from typing import Any

import pytest

from waypost.host.code.errors import HidesOurs, LeavesTree, LooksSecret, NoEntry, NotAFile, NothingListed, TooBig
from waypost.host.code.file import FileTree
from waypost.host.code.folder import FolderTree
from waypost.host.code.source import Source
from waypost.host.errors import BadWorkflow
from waypost.model.code import FILE, FILES, TOTAL
from waypost.testing.boxed import NOBODY

FLOW = """
from waypost import Workflow

orders = Workflow("orders", address="orders@example.com", files=[{files}])

@orders.run
async def order(mail):
    return 1
"""


def write(root: Path, **files: str) -> Path:
    """Make files, ``a__b`` for ``a/b``; the folder."""
    for name, text in files.items():
        place = root / name.replace("__init__", "\0").replace("__", "/").replace("\0", "__init__")
        place = place if place.suffix else place.with_suffix(".py")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(text)
    return root


def of_file(root: Path, name: str = "orders.py") -> list[str]:
    """The tree of a file, as ``files=`` in its text says."""
    tree = FileTree(root / name)
    return list(tree.paths(tree.listed()))


def git(folder: Path, *arguments: str) -> None:
    """Run git in a folder."""
    subprocess.run(["git", "-C", folder, *arguments], check=True, capture_output=True)


# --- a FILE ----------------------------------------------------------------------------------------------------------


def test_the_tree_of_a_file_is_what_it_imports_from_below_its_root(tmp_path: Path) -> None:
    """Packages with the ``__init__`` of each folder, relative imports, late ones; nothing else that lies there."""
    write(
        tmp_path,
        shop____init__="",
        shop__orders="from . import prices\nfrom .deep.er import x\nimport json, msgspec\n" + FLOW.format(files=""),
        shop__prices="def f():\n    import helpers\n",
        shop__deep____init__="",
        shop__deep__er="x = 1\n",
        shop__deep__unused="",
        helpers="from spaces.inner import y\n",
        spaces__inner="y = 1\n",
        unrelated="",
    )
    assert of_file(tmp_path, "shop/orders.py") == [
        "helpers.py",
        "shop/__init__.py",
        "shop/deep/__init__.py",
        "shop/deep/er.py",
        "shop/orders.py",
        "shop/prices.py",
        "spaces/inner.py",
    ]


def test_a_star_brings_the_modules_that_a_package_exports(tmp_path: Path) -> None:
    """Python imports them; names that are no modules are none."""
    write(
        tmp_path,
        orders="from parts import *\n" + FLOW.format(files=""),
        parts____init__="__all__ = ['a', 'f']\ndef f(): ...\n",
        parts__a="",
        parts__b="",
    )
    assert of_file(tmp_path) == ["orders.py", "parts/__init__.py", "parts/a.py"]


def test_data_files_are_those_that_are_listed(tmp_path: Path) -> None:
    """By name, by folder, by pattern, from the workflow's own folder; caches below a folder are none."""
    write(tmp_path, orders=FLOW.format(files="'a.txt', 'pages/', 'sql/*.sql'"))
    for name in (
        "a.txt",
        "b.txt",
        "pages/x.html",
        "pages/deep/y.html",
        "pages/__pycache__/z.pyc",
        "sql/1.sql",
        "sql/n",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("data")
    assert of_file(tmp_path) == ["a.txt", "orders.py", "pages/deep/y.html", "pages/x.html", "sql/1.sql"]


@pytest.mark.parametrize("listed", ["nothing.txt", "*.nothing", "../up.txt", "/etc/hostname", "empty/", "."])
def test_what_is_listed_must_be_there(tmp_path: Path, listed: str) -> None:
    """A typing mistake would only be found by the step that wants the file."""
    folder = tmp_path / "flows"
    write(folder, orders=FLOW.format(files=repr(listed)))
    (tmp_path / "up.txt").write_text("")
    (folder / "empty").mkdir()
    with pytest.raises(NothingListed, match="no such file"):
        of_file(folder)


def test_a_symbolic_link_stands_for_a_file_of_the_same_tree(tmp_path: Path) -> None:
    """A copy of it is deployed: the tree has regular files only."""
    write(tmp_path, orders="import other\n" + FLOW.format(files=""), real="x = 1\n")
    (tmp_path / "other.py").symlink_to("real.py")
    tree = FileTree(tmp_path / "orders.py")
    assert tree.source.read(tree.paths())["other.py"] == b"x = 1\n"


@pytest.mark.parametrize("target", ["/etc/hostname", "../outside.py", "nowhere.py", "other.py"])
def test_a_symbolic_link_that_leaves_the_tree_is_refused(tmp_path: Path, target: str) -> None:
    """It would deploy what nobody looked at, or nothing."""
    folder = tmp_path / "flows"
    write(tmp_path, outside="")
    write(folder, orders="import other\n" + FLOW.format(files=""))
    (folder / "other.py").symlink_to(target)
    with pytest.raises(LeavesTree, match=r"other\.py is a symbolic link"):
        of_file(folder)


def test_what_is_no_regular_file_is_refused(tmp_path: Path) -> None:
    """Reading a pipe would wait for ever."""
    write(tmp_path, orders=FLOW.format(files="'pipe'"))
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(NotAFile, match="pipe is no regular file"):
        of_file(tmp_path)


def test_what_goes_away_while_it_is_looked_at_is_said_or_left_out(tmp_path: Path) -> None:
    """Whoever edits meanwhile, or changes the branch, met a traceback of ours."""
    write(tmp_path, old__inner__m="", new__inner__m="")
    (tmp_path / "link").symlink_to("old")
    source = Source("orders.py", tmp_path)
    assert source.is_folder("link/inner")
    rmtree(tmp_path / "old")
    (tmp_path / "link").unlink()
    (tmp_path / "link").symlink_to("new")
    assert not source.is_folder("link/inner")
    (tmp_path / "link/up").symlink_to("..")
    assert "link/up" in source.below("link")
    with pytest.raises(NotAFile, match=r"old/inner/m\.py went away while it was being read"):
        source.read({"old/inner/m.py": 0})
    with pytest.raises(NotAFile, match="old went away while it was being read"):
        list(source.below("old"))
    with pytest.raises(NotAFile, match="can't be read: File name too long"):
        source.is_folder("x" * 300)


def test_a_folder_that_goes_away_while_a_pattern_is_looked_for_is_said_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Python's glob raises then, or from 3.13 on finds less."""
    write(tmp_path, old__inner__m="")
    look = os.scandir

    def taking(path: Path) -> Any:
        if Path(path).name == "inner":
            (tmp_path / "old").rename(tmp_path / "new")
        return look(path)

    monkeypatch.setattr(os, "scandir", taking)
    with pytest.raises(NotAFile, match=r"old/\*/\* went away while it was being looked for"):
        Source("orders.py", tmp_path).matching("old/*/*")


@pytest.mark.parametrize(
    ("pattern", "meant"),
    [
        ("*.sql", ["x.sql"]),
        ("**.sql", ["x.sql"]),
        ("**/*.sql", ["a/.h.sql", "a/b/z.sql", "a/y.sql", "x.sql"]),
        ("*/*.sql", ["a/.h.sql", "a/y.sql", "link/.h.sql", "link/y.sql"]),
        ("a/**", ["a/.h.sql", "a/b/z.sql", "a/loop", "a/y.sql"]),
        ("**/b/**", ["a/b/z.sql"]),
        ("**/**/z.???", ["a/b/z.sql"]),
        ("**/y.sql", ["a/y.sql"]),
        ("a/[!y]*", ["a/.h.sql", "a/loop"]),
        ("a/*/z.sql", ["a/b/z.sql"]),
        ("x.sql/*", []),
        ("nothing/*", []),
    ],
)
def test_a_pattern_means_the_same_on_each_python(pattern: str, meant: list[str], tmp_path: Path) -> None:
    """On 3.11 ``**`` at the end found folders only, and ``**.sql`` ended in a traceback; on 3.13 both were files."""
    (tmp_path / "a/b").mkdir(parents=True)
    for name in ("x.sql", "a/y.sql", "a/.h.sql", "a/b/z.sql"):
        (tmp_path / name).write_text("")
    (tmp_path / "a/loop").symlink_to("loop")
    (tmp_path / "link").symlink_to("a")
    assert Source("orders.py", tmp_path).matching(pattern) == meant


@pytest.mark.parametrize("mode", [0o000, 0o444])
def test_a_folder_that_may_not_be_read_is_named(mode: int) -> None:
    """Looking for what is never code in it, as an ordinary user, ended in a traceback."""
    us = os.geteuid()
    with TemporaryDirectory() as name:  # pytest's own are closed to others
        folder = Path(name)
        folder.chmod(0o755)
        write(folder, orders=FLOW.format(files=""), shut__m="")
        (folder / "shut").chmod(mode)
        os.seteuid(us or NOBODY)
        try:
            with pytest.raises(NotAFile, match=r"shut.* can't be read: Permission denied"):
                FolderTree(folder)
            with pytest.raises(NotAFile, match=r"shut.* can't be read: Permission denied"):
                Source("orders.py", folder).matching("*/m.py" if mode == 0 else "**/*.py")
        finally:
            os.seteuid(us)
            (folder / "shut").chmod(0o700)


@pytest.mark.parametrize("name", [".env.local", "server.key", "CERT.PEM", "id_rsa"])
def test_a_name_that_looks_like_a_secret_is_refused_unless_it_is_listed_itself(tmp_path: Path, name: str) -> None:
    """The history keeps it for ever; a pattern or a folder doesn't mean it."""
    write(tmp_path, orders=FLOW.format(files="'conf/'"))
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / name).write_text("")
    with pytest.raises(LooksSecret, match="looks like a secret") as refused:
        of_file(tmp_path)
    assert f"files=['conf/{name}']" in refused.value.hint
    write(tmp_path, orders=FLOW.format(files=f"'conf/', 'conf/{name}'"))
    assert f"conf/{name}" in of_file(tmp_path)


@pytest.mark.parametrize("link", ["settings.txt", "conf/a"])
def test_a_link_to_a_secret_is_one_by_whatever_name(tmp_path: Path, link: str) -> None:
    """The secret's bytes would be in the history; who lists the link, or what it leads to, has said that it is none."""
    (tmp_path / "conf").mkdir()
    (tmp_path / ".env").write_text("TOKEN=1")
    (tmp_path / link).symlink_to(tmp_path / ".env")
    write(tmp_path, orders=FLOW.format(files=""))
    with pytest.raises(LooksSecret, match=rf"{link} is a symbolic link to \.env, which looks like a secret") as refused:
        FolderTree(tmp_path).paths()
    assert f"files=['{link}']" in refused.value.hint
    for listed in (link, ".env"):
        write(tmp_path, orders=FLOW.format(files=repr(listed)))
        assert link in FolderTree(tmp_path).paths([listed])


@pytest.mark.parametrize(
    ("sizes", "why"),
    [
        ([1] * FILES, rf"it has {FILES + 1:,} files"),
        ([FILE + 1, 5], r"1 of its files is over 1,000,000 bytes"),
        ([FILE] * (TOTAL // FILE), r"it has 10,000,\d+ bytes"),
    ],
    ids=["too many", "too large", "too much"],
)
def test_a_tree_over_a_bound_is_refused_with_its_five_largest(tmp_path: Path, sizes: list[int], why: str) -> None:
    """Whoever deploys a data set by mistake sees at once which it is."""
    write(tmp_path, orders=FLOW.format(files="'data/'"))
    (tmp_path / "data").mkdir()
    for number, size in enumerate(sizes):
        with (tmp_path / "data" / f"{number:04d}").open("wb") as file:
            file.truncate(size)
    tree = FileTree(tmp_path / "orders.py")
    with pytest.raises(TooBig, match=why) as refused:
        tree.source.read(tree.paths(tree.listed()))
    named = refused.value.message.splitlines()[1:]
    assert len(named) == min(5, len(sizes) + 1)
    assert "data/000" in "".join(named)


def test_a_tree_at_its_bounds_is_none_too_big(tmp_path: Path) -> None:
    """The last file and the last byte are allowed."""
    write(tmp_path, orders=FLOW.format(files="'data'"))
    with (tmp_path / "data").open("wb") as file:
        file.truncate(FILE)
    tree = FileTree(tmp_path / "orders.py")
    assert len(tree.source.read(tree.paths(tree.listed()))["data"]) == FILE


def test_a_neighbour_with_a_name_of_ours_is_refused(tmp_path: Path) -> None:
    """Also one that isn't imported: the file may mean it one day."""
    write(tmp_path, orders=FLOW.format(files=""), ipc="")
    with pytest.raises(HidesOurs, match="would hide the host's own ipc"):
        of_file(tmp_path)


# --- a DIR -----------------------------------------------------------------------------------------------------------


def project(root: Path) -> Path:
    """A folder with a workflow in it, and with all that is never code."""
    write(root, src__orders=FLOW.format(files=""), src__helper="", readme="", src__extra="")
    for name in (
        *(".env", ".cache/x", "src/__pycache__/orders.pyc", "src/x.pyc", "node_modules/m/index.js", "venv/pyvenv.cfg"),
        *("venv/lib/x.py", ".waypost/keys/k", "deep/data/format.json", "page one.html"),
        *("elsewhere/format.json", "elsewhere/host.lock", "elsewhere/keys/host.ed25519"),
    ):
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text("")
    return root


def test_the_tree_of_a_folder_outside_of_git_leaves_out_what_is_never_code(tmp_path: Path) -> None:
    """Dot names, caches, virtual environments, ``node_modules``, a data directory wherever it is."""
    tree = FolderTree(project(tmp_path), tmp_path / "deep/data")
    assert list(tree.paths()) == ["page one.html", "readme.py", "src/extra.py", "src/helper.py", "src/orders.py"]
    assert tree.entry == "src/orders.py"


def test_the_tree_of_a_folder_in_git_is_what_git_would_take(tmp_path: Path) -> None:
    """What is tracked and what isn't ignored; a file that was deleted is none."""
    folder = project(tmp_path / "project")
    git(tmp_path, "init", "-q")
    (folder / ".gitignore").write_text(
        "venv/\nnode_modules/\n*.pyc\n.env\n.cache/\ndeep/\nsrc/extra.py\n!.gitignore\nelsewhere/\n"
    )
    (folder / "gone.py").write_text("")
    git(tmp_path, "add", "project/gone.py", "project/src/orders.py")
    (folder / "gone.py").unlink()
    assert list(FolderTree(folder).paths()) == [
        f"{name}" for name in (".gitignore", "page one.html", "readme.py", "src/helper.py", "src/orders.py")
    ]


def test_a_secret_that_git_would_take_is_refused(tmp_path: Path) -> None:
    """It isn't in the history yet, and would be."""
    write(tmp_path, orders=FLOW.format(files=""))
    git(tmp_path, "init", "-q")
    (tmp_path / ".env").write_text("TOKEN=x")
    with pytest.raises(LooksSecret, match=r"\.env looks like a secret"):
        FolderTree(tmp_path).paths()


def test_how_a_secret_would_be_listed_is_said_as_the_workflow_would_list_it(tmp_path: Path) -> None:
    """From its own folder; what lies beside that can only be taken out."""
    write(tmp_path, src__orders=FLOW.format(files=""))
    (tmp_path / "src/id_cards").write_text("")
    with pytest.raises(LooksSecret) as refused:
        FolderTree(tmp_path).paths()
    assert "files=['id_cards']" in refused.value.hint
    (tmp_path / "src/id_cards").rename(tmp_path / "id_cards")
    with pytest.raises(LooksSecret) as refused:
        FolderTree(tmp_path).paths()
    assert refused.value.hint == "take it out of the folder"


def test_a_repository_in_the_folder_is_refused(tmp_path: Path) -> None:
    """Of it git takes a name and no file."""
    write(tmp_path, orders=FLOW.format(files=""), other__x="")
    git(tmp_path, "init", "-q")
    git(tmp_path / "other", "init", "-q")
    git(tmp_path / "other", "-c", "user.name=x", "-c", "user.email=x@x", "commit", "-q", "--allow-empty", "-m", "x")
    with pytest.raises(NotAFile, match="other is a git repository of its own"):
        FolderTree(tmp_path)


def test_a_repository_in_a_folder_that_is_in_none_is_refused_as_well(tmp_path: Path) -> None:
    """What of it is code, and what it ignores, only its own git could say; what is never code isn't looked into."""
    write(tmp_path, orders=FLOW.format(files=""), other__deep__x="", node_modules__y="")
    git(tmp_path / "node_modules", "init", "-q")
    assert FolderTree(tmp_path).entry == "orders.py"
    git(tmp_path / "other/deep", "init", "-q")
    with pytest.raises(NotAFile, match="other/deep is a git repository of its own") as refused:
        FolderTree(tmp_path)
    assert refused.value.hint == "deploy it by itself, or take it out of the folder"


def test_a_folder_that_git_ignores_is_refused(tmp_path: Path) -> None:
    """An empty tree would be deployed."""
    write(tmp_path, build__orders=FLOW.format(files=""))
    git(tmp_path, "init", "-q")
    (tmp_path / ".gitignore").write_text("build/\n")
    with pytest.raises(BadWorkflow, match="git ignores all that is in it"):
        FolderTree(tmp_path / "build")


@pytest.mark.parametrize(
    ("files", "found"),
    [({"a": "x = 1"}, ()), ({"a": FLOW.format(files=""), "b": FLOW.format(files="")}, ("a.py", "b.py"))],
)
def test_a_folder_has_one_workflow(tmp_path: Path, files: dict[str, str], found: tuple[str, ...]) -> None:
    """Which of several is meant is for somebody to say."""
    with pytest.raises(NoEntry) as refused:
        FolderTree(write(tmp_path, **files))
    assert refused.value.found == found


def test_links_between_folders_of_a_tree_are_followed_once(tmp_path: Path) -> None:
    """And one to a folder that it lies in has no end."""
    write(tmp_path, orders=FLOW.format(files=""), real__x="")
    (tmp_path / "alias").symlink_to("real")
    assert list(FolderTree(tmp_path).paths()) == ["alias/x.py", "orders.py", "real/x.py"]
    (tmp_path / "real/up").symlink_to("..")
    with pytest.raises(LeavesTree, match="a folder that it lies in"):
        FolderTree(tmp_path)


def test_a_name_that_cannot_be_kept_is_refused(tmp_path: Path) -> None:
    """Bytes that are no Unicode, or control marks."""
    write(tmp_path, orders=FLOW.format(files=""))
    Path(os.fsdecode(os.fsencode(tmp_path) + b"/\xff.txt")).write_text("")
    with pytest.raises(NotAFile, match="has a name that can't be kept"):
        FolderTree(tmp_path)

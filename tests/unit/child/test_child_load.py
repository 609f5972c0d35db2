"""Loading a user's file: its own name, its own bytes, and a text that its author understands when it fails."""

import hashlib
import sys
import textwrap
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from waypost.child.errors import NotLoadable
from waypost.child.load import Place, load, place_of

GOOD = """
from waypost import Workflow

orders = Workflow("orders", address="orders@example.com")

@orders.run
async def order(mail):
    return 1
"""

Write = Callable[[str, str], Path]


@pytest.fixture
def write(tmp_path: Path) -> Iterator[Write]:
    """Write a file under tmp_path; afterwards the import system is as before."""
    path, modules = list(sys.path), set(sys.modules)

    def do(name: str, text: str) -> Path:
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(textwrap.dedent(text), encoding="utf-8")
        return file

    yield do
    sys.path[:] = path
    for name in set(sys.modules) - modules:
        if getattr(sys.modules[name], "__file__", None) and str(tmp_path) in str(sys.modules[name].__file__):
            del sys.modules[name]


def refusal(file: Path) -> NotLoadable:
    """The error of loading a file."""
    with pytest.raises(NotLoadable) as caught:
        load(place_of(file))
    return caught.value


def test_a_file_is_imported_under_its_own_name_with_its_folder_last(write: Write) -> None:
    """Pickle, dataclasses and relative imports find the module by that name; nothing of ours is hidden."""
    file = write("flows/lw_orders.py", GOOD)
    loaded = load(place_of(file))
    assert loaded.workflow.name == "orders"
    assert loaded.place == Place(str(file.parent), "lw_orders")
    assert loaded.sha256 == hashlib.sha256(file.read_bytes()).hexdigest()
    assert sys.modules["lw_orders"].__file__ == str(file)
    assert sys.path[-1] == str(file.parent)


def test_a_file_in_a_package_may_import_its_neighbours(write: Write) -> None:
    """A workflow that grows becomes a package."""
    write("lw_shop/__init__.py", "")
    write("lw_shop/prices.py", "PRICE = 3\n")
    file = write("lw_shop/orders.py", "from .prices import PRICE\n" + GOOD)
    place = place_of(file)
    assert (place.root, place.module) == (str(file.parents[1]), "lw_shop.orders")
    assert place.path == str(file)
    assert load(place).workflow.name == "orders"
    assert sys.modules["lw_shop"].orders is sys.modules["lw_shop.orders"]


def test_a_dash_in_the_name_is_no_obstacle(write: Write) -> None:
    """People name scripts so."""
    assert load(place_of(write("lw-my-orders.py", GOOD))).workflow.name == "orders"


def test_what_runs_is_what_was_hashed(write: Write) -> None:
    """A stale cache, or a file changed while the child starts, would run under the wrong hash."""
    file = write("lw_changed.py", GOOD)
    place, before = place_of(file), load(place_of(file)).sha256
    write("lw_changed.py", GOOD.replace("return 1", "return 2"))
    with pytest.raises(NotLoadable, match="has changed since it was deployed") as caught:
        load(place, sha256=before)
    assert caught.value.code == "changed"


@pytest.mark.parametrize(
    ("text", "code", "shown"),
    [
        ("import lw_not_there\n", "import", "line 1: ModuleNotFoundError: No module named 'lw_not_there'"),
        ("x = 1\ny = x / 0\n", "import", "line 2: ZeroDivisionError: division by zero\n    y = x / 0"),
        ("def f(:\n", "syntax", "line 1: invalid syntax"),
        ("import sys\nsys.exit(3)\n", "import", "line 2: SystemExit: 3"),
        ("x = 1\n", "no-workflow", "has no Workflow"),
        (GOOD + 'more = Workflow("more", address="m@example.com")\n', "two-workflows", "orders, more"),
        (GOOD.replace("@orders.run", "@orders.step"), "declaration", "no run function"),
        (GOOD.replace('"orders@example.com"', '"orders"'), "declaration", "line 4"),
        (GOOD + "@orders.step(timeout=3)\ndef f(): ...\n", "declaration", "timeout"),
        ("\0", "syntax", "null bytes"),
        ("caf\xe9 = '\udcff'", "syntax", "utf-8"),
    ],
)
def test_a_file_that_cannot_be_used_says_why_and_where(
    tmp_path: Path, write: Write, text: str, code: str, shown: str
) -> None:
    """The author sees this text in a terminal, without a traceback."""
    file = write("lw_bad.py", "")
    file.write_bytes(text.encode("utf-8", "surrogateescape"))
    error = refusal(file)
    assert (error.code, error.path) == (code, str(file))
    assert shown in str(error)
    assert error.hint
    assert code not in {"import", "syntax"} or "lw_bad" not in sys.modules


def test_a_variable_that_is_read_at_import_is_told_where_to_go(write: Write) -> None:
    """It is there in the author's shell, so "correct the line" would leave them looking for a typing mistake."""
    text = "from os import environ\nTOKEN = environ['CLAIMS_TOKEN']\n"
    failure = refusal(write("lw_environment.py", text))
    assert failure.message.startswith("lw_environment.py line 2: KeyError: 'CLAIMS_TOKEN'")
    assert "env=['CLAIMS_TOKEN']" in failure.hint
    assert "inside a step" in failure.hint
    assert refusal(write("lw_mapping.py", "{}['CLAIMS_TOKEN']\n")).hint == "correct the line"


def test_a_package_that_is_missing_is_to_be_installed_where_waypost_is(write: Write) -> None:
    """A first workflow imports what its author has elsewhere: no line of it is wrong."""
    failure = refusal(write("lw_package.py", "import lw_absent.part\n"))
    assert f"install what has lw_absent where Waypost is (`{sys.executable} -m pip install" in failure.hint


def test_an_error_in_an_imported_helper_names_the_line_in_the_workflow_file(write: Write) -> None:
    """The author looks at their own file first."""
    write("lw_helper.py", "raise RuntimeError('no license')\n")
    assert "lw_user.py line 1: RuntimeError: no license" in str(refusal(write("lw_user.py", "import lw_helper\n")))


def test_a_workflow_that_is_only_imported_is_not_the_files_own(write: Write) -> None:
    """Sharing steps between files must not make two deployments of one file."""
    write("lw_base.py", GOOD)
    assert refusal(write("lw_other.py", "from lw_base import orders\n")).code == "no-workflow"


@pytest.mark.parametrize("name", ["nothing.py", "."])
def test_a_missing_file_is_said_to_be_missing(tmp_path: Path, name: str) -> None:
    """Before anything else is looked at."""
    assert refusal(tmp_path / name).code == "missing"


@pytest.mark.parametrize("name", ["lw orders.py", "lw.orders.py", "3orders.py", "lw_orders.txt"])
def test_a_name_that_python_cannot_import_is_refused(write: Write, name: str) -> None:
    """Python's own message for these is about something else."""
    error = refusal(write(name, GOOD))
    assert error.code == "name"
    assert "rename" in error.hint


def test_a_name_that_is_taken_is_refused(write: Write) -> None:
    """email.py would be imported as Python's own email, silently."""
    error = refusal(write("colorsys.py", GOOD))
    assert error.code == "name"
    assert "colorsys" in str(error)


@pytest.mark.parametrize("name", ["actors", "ipc", "substrate", "waypost"])
@pytest.mark.parametrize("form", ["{}/__init__.py", "{}/frames.py", "{}.py"])
def test_a_neighbour_with_one_of_our_names_is_refused(write: Write, name: str, form: str) -> None:
    """The file would import ours where it means its own; the message asks for another name."""
    file = write("orders/lw_orders.py", GOOD)
    write("orders/" + form.format(name), "")
    error = refusal(file)
    assert error.code == "hides-ours"
    assert f"would hide the host's own {name}; please rename it" in str(error)

"""What a file imports, read from its text alone."""

import pytest

from waypost.host.code.imports import exported, has_workflow, imports, listed_files


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("import a, b.c as d", ("a", "b.c")),
        ("from a.b import c, d", ("a.b", "a.b.c", "a.b.d")),
        ("from . import x", ("shop", "shop.x")),
        ("from .x.y import z", ("shop.x.y", "shop.x.y.z")),
        ("from .. import top", ()),
        ("from a import *", ("a", "a.*")),
        ("def f():\n    import late", ("late",)),
        ("from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import t", ("typing", "typing.TYPE_CHECKING", "t")),
        ("import importlib\nimportlib.import_module('p.q')", ("importlib", "p.q")),
        ("m = __import__('r')", ("r",)),
        ("import_module('.near', __package__)", ("shop.near",)),
        ("import_module(name)", ()),
        ("import a\nimport a", ("a",)),
        ("def f(:", ()),
        ("\0", ()),
    ],
)
def test_every_import_counts_wherever_it_stands(text: str, found: tuple[str, ...]) -> None:
    """Of a module ``shop.orders``; what is no Python is said by whoever imports it."""
    assert imports(text.encode(), "shop.orders", package=False) == found


def test_relative_imports_of_a_package_begin_at_itself() -> None:
    """``from . import x`` in ``shop/__init__.py`` is ``shop.x``; at the root it is an error of Python's."""
    assert imports(b"from . import x", "shop", package=True) == ("shop", "shop.x")
    assert imports(b"from . import x", "orders", package=False) == ()


@pytest.mark.parametrize("head", ["from waypost import Workflow\nw = ", "import waypost\nw: object = waypost."])
def test_a_file_with_a_workflow_is_known_by_its_text(head: str) -> None:
    """So that of a folder one file can be chosen without running any of them."""
    text = f"{head}Workflow('x', address='x@example.com', files=['a.html', 'b/*.html', name])".encode()
    assert has_workflow(text)
    assert listed_files(text) == ("a.html", "b/*.html")


@pytest.mark.parametrize("text", ["x = 1", "def f():\n    w = Workflow('x')", "def f(:"])
def test_a_file_without_one_is_none(text: str) -> None:
    """One that is made in a function is no deployment."""
    assert not has_workflow(text.encode())


def test_what_a_package_exports_may_be_modules() -> None:
    """``from package import *`` imports those that ``__all__`` names."""
    assert exported(b"__all__ = ['a', 'b', c]\n") == ("a", "b")
    assert exported(b"x = 1") == exported(b"def f(:") == listed_files(b"def f(:") == ()

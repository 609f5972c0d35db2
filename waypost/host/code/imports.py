"""What a Python file imports, read from its text: nothing of it is run.

Every ``import`` counts, wherever it stands: in a function, behind a condition, for a type checker alone. So does
``import_module("a.b")`` and ``__import__("a.b")`` with a name that is written out. Names that are made up while the
program runs aren't seen: the trial import finds those that are needed at once, ``Workflow(files=[…])`` the others.
"""

import ast
import warnings
from collections.abc import Iterator

_CALLS = {"import_module", "__import__"}


def imports(source: bytes, module: str, *, package: bool) -> tuple[str, ...]:
    """The dotted names that a module may import, in the order of its text, each once.

    ``module`` is its own name, ``package`` whether it is an ``__init__``: what relative imports start from. Of
    ``from a import b`` both ``a`` and ``a.b`` are named: whether ``b`` is a module is for the disk to say. ``a.*`` is
    ``from a import *``. A text that is no Python imports nothing: whoever imports it says why it is none.
    """
    around = module.split(".") if package else module.split(".")[:-1]
    return tuple(dict.fromkeys(name for node in ast.walk(_parsed(source)) for name in _of(node, around)))


def listed_files(source: bytes) -> tuple[str, ...]:
    """The texts in ``Workflow(…, files=[…])`` as far as they are written out: they may be read at the import."""
    return tuple(
        item.value
        for node in ast.walk(_parsed(source))
        if isinstance(node, ast.Call) and _called(node) == "Workflow"
        for keyword in node.keywords
        if keyword.arg == "files" and isinstance(keyword.value, ast.List | ast.Tuple)
        for item in keyword.value.elts
        if isinstance(item, ast.Constant) and isinstance(item.value, str)
    )


def has_workflow(source: bytes) -> bool:
    """Whether a module makes a ``Workflow(…)`` at its top, as one that is deployed does."""
    return any(
        isinstance(node, ast.Assign | ast.AnnAssign)
        and isinstance(node.value, ast.Call)
        and _called(node.value) == "Workflow"
        for node in _parsed(source).body
    )


def exported(source: bytes) -> tuple[str, ...]:
    """The names in a package's ``__all__`` that are written out: ``from package import *`` imports modules of these."""
    return tuple(
        item.value
        for node in _parsed(source).body
        if isinstance(node, ast.Assign)
        and any(isinstance(target, ast.Name) and target.id == "__all__" for target in node.targets)
        and isinstance(node.value, ast.List | ast.Tuple)
        for item in node.value.elts
        if isinstance(item, ast.Constant) and isinstance(item.value, str)
    )


def _parsed(source: bytes) -> ast.Module:
    """The text as a tree; an empty one where it is no Python."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are told at the import, to whom they concern
        try:
            return ast.parse(source)
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            return ast.Module([], [])


def _of(node: ast.AST, around: list[str]) -> Iterator[str]:
    match node:
        case ast.Import():
            yield from (alias.name for alias in node.names)
        case ast.ImportFrom():
            base = _absolute(node.module or "", node.level, around)
            if base is None:
                return
            if base:
                yield base
            yield from (f"{base}.{alias.name}" if base else alias.name for alias in node.names)
        case ast.Call(args=[ast.Constant(value=str() as name), *_]) if _called(node) in _CALLS:
            dots = len(name) - len(name.lstrip("."))
            base = _absolute(name[dots:], dots, around)
            if base:
                yield base
        case _:
            pass


def _absolute(name: str, level: int, around: list[str]) -> str | None:
    """A name from where it is imported; None where the dots lead out of the package."""
    if not level:
        return name
    if level > len(around):
        return None
    kept = around[: len(around) - level + 1]
    return ".".join([*kept, name] if name else kept)


def _called(node: ast.Call) -> str:
    """The last name of what is called."""
    match node.func:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name
        case _:
            return ""

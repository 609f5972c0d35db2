"""The tree of code that a child was started on: hashed before any of it is run, and run as it was hashed.

Python's own caches of compiled code have no part in it, neither to read nor to write: they are other bytes than those
that were hashed. What the host has compiled of the same bytes lies beside the tree, and is taken by its hash alone. A
module that came into the folder afterwards isn't there.
"""

import hashlib
import marshal
import os
import sys
from functools import partial
from importlib.machinery import EXTENSION_SUFFIXES, ExtensionFileLoader, FileFinder, PathFinder, SourceFileLoader
from types import CodeType
from typing import Any

from waypost.child.errors import NotLoadable
from waypost.model.code import tree_hash
from waypost.tree_on_disk import read

# By pathlib all of this would be shorter, and the start of a child 6 ms longer.
# ruff: noqa: PTH112, PTH118, PTH120, PTH123

NONE = "0" * 64
"""What stands for the hash of a folder that is no tree of code."""

Sources = dict[str, bytes]
"""Python files by their absolute paths."""

Compiled = dict[str, bytes]
"""Their code, each in ``marshal``'s form."""


def look(tree: str) -> tuple[str, Sources]:
    """The hash of what lies in a folder now, and the Python files among it."""
    files = read(tree)
    if files is None:
        return NONE, {}
    return tree_hash(files), {os.path.join(tree, path): data for path, data in files.items() if path.endswith(".py")}


def compiled_beside(tree: str, sha256: str | None) -> Compiled:
    """What the host has compiled of a tree; nothing where that isn't there, or is anything else."""
    if sha256 is None:
        return {}
    try:
        with open(os.path.join(os.path.dirname(tree), "compiled"), "rb") as file:
            raw = file.read()
    except OSError:
        return {}
    if hashlib.sha256(raw).hexdigest() != sha256:
        return {}
    found: Compiled = marshal.loads(raw)  # noqa: S302 - the host's own bytes, by their hash
    return found


def run_exactly(tree: str, sources: Sources, compiled: Compiled) -> None:
    """From now on, modules below this folder are imported from these bytes alone."""
    inside = os.path.join(tree, "")
    exactly: Any = partial(_Exactly, sources, compiled)  # called as the class is; the stub wants a class

    def finder(path: str) -> FileFinder:
        if not os.path.join(path, "").startswith(inside) or not os.path.isdir(path):
            raise ImportError(path)  # somebody else's, or an archive
        return FileFinder(path, (ExtensionFileLoader, EXTENSION_SUFFIXES), (exactly, [".py"]))

    sys.path_hooks.insert(0, finder)


def code_in(compiled: Compiled, path: str) -> CodeType | None:
    """The code of a module; None where it wasn't compiled."""
    raw = compiled.get(path)
    code: CodeType | None = None if raw is None else marshal.loads(raw)  # noqa: S302 - as above
    return code


def refuse_clashes(root: str, sources: Sources) -> None:
    """A file whose name another module has would never be imported: ``root`` is last on the path. Raises NotLoadable.

    To be called before ``root`` is on the path.
    """
    inside = os.path.join(root, "")
    _refuse_clashes(root, [path.removeprefix(inside) for path in sources if path.startswith(inside)], "", ())


def _refuse_clashes(root: str, paths: list[str], above: str, parts: tuple[str, ...]) -> None:
    """``above``: at the top, or in a folder that is one namespace package with these ``parts`` elsewhere."""
    for shown in sorted({path.removeprefix(above).partition("/")[0] for path in paths if path.startswith(above)}):
        name, folder = shown.removesuffix(".py"), f"{above}{shown}/"
        if "." in name:
            continue  # no name: Python would look for what stands behind the dot
        whole = name != shown or f"{folder}__init__.py" in paths
        other, spread = _another(f"{above}{name}".replace("/", "."), root, parts, whole=whole)
        if other:
            raise NotLoadable(
                "name",
                os.path.join(root, above, shown),
                f"{above}{shown} has the name of another module, {other}, which would be imported in its place",
                hint=f"rename {above}{shown}, or uninstall what has its name: what is deployed must be what runs",
            )
        if spread and not whole:  # which would come before those
            _refuse_clashes(root, paths, folder, spread)


def _another(name: str, root: str, parts: tuple[str, ...], *, whole: bool) -> tuple[str, tuple[str, ...]]:
    """What else would be imported by this name, empty where nothing would; and where else it is a namespace's.

    As Python looks for it: through all finders, and at what is loaded before all of them, as by the .pth file of an
    installed namespace package. ``whole``: ours is a module, or a package with an ``__init__``.
    """
    if name in sys.stdlib_module_names:
        return f"Python's own {name}", ()
    bare = name.rpartition(".")[2]  # by a whole name it would ask for the package, which isn't loaded
    found = (each.find_spec(bare if each is PathFinder else name, parts or None) for each in sys.meta_path)
    spec = next((each for each in found if each is not None), None)
    if spec is not None and spec.origin is not None:
        return "" if spec.origin.startswith(os.path.join(root, "")) else spec.origin, ()
    loaded = None if name == "__main__" else sys.modules.get(name)
    if loaded is None:
        return "", () if spec is None else tuple(spec.submodule_search_locations or ())
    spread = tuple(getattr(loaded, "__path__", ()))
    if whole or not spread:
        return next(iter(spread), "one that is loaded as Python starts"), ()
    return "", spread


class _Exactly(SourceFileLoader):
    """Runs the bytes that were hashed."""

    def __init__(self, sources: Sources, compiled: Compiled, fullname: str, path: str) -> None:
        super().__init__(fullname, path)
        self._sources, self._compiled = sources, compiled

    def get_code(self, fullname: str) -> CodeType | None:
        """What the host has compiled of it, or else what is compiled now."""
        path = self.get_filename(fullname)
        return code_in(self._compiled, path) or super().get_code(fullname)

    def path_stats(self, path: str) -> dict[str, float]:
        """Nothing by which a cache could be told to be fresh: so none is read, and none is written."""
        raise OSError(path)

    def get_data(self, path: str) -> bytes:
        """A Python file as it was hashed, any other file as it is. Raises OSError for one that wasn't there."""
        if not path.endswith(".py"):
            return super().get_data(path)
        if path not in self._sources:
            raise FileNotFoundError(path)
        return self._sources[path]

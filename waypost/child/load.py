"""A user's file becomes a module, under its own real name, and the one Workflow in it.

The real name, so that pickle, dataclasses, typing and relative imports work as in any program. The file's folder goes
last on the import path: nothing in it can hide what is ours or Python's. What runs is what was hashed: the bytes are
read once, of the file, and of all of the tree of code where it lies in one. Every failure is a NotLoadable with a text
for the file's author.
"""

import hashlib
import importlib.util
import os
import sys
from importlib.machinery import ModuleSpec, SourceFileLoader
from types import CodeType, ModuleType

import msgspec

from waypost.authoring.errors import Misdeclared
from waypost.authoring.workflow import Workflow
from waypost.child.deployed import Compiled, Sources, code_in, compiled_beside, look, refuse_clashes, run_exactly
from waypost.child.errors import Changed, NotLoadable

# By pathlib all of this would be shorter, and the start of a child 6 ms longer.
# ruff: noqa: PTH100, PTH112, PTH113, PTH118, PTH119, PTH120, PTH122, PTH123, PTH208

OURS = ("actors", "ipc", "substrate", "waypost")


class Place(msgspec.Struct, frozen=True):
    """Where a workflow file lies: ``root`` is the folder for the import path, ``module`` its dotted name in there."""

    root: str
    module: str

    @property
    def path(self) -> str:
        """The file: ``<root>/<module>.py``, or the package's ``__init__.py``."""
        bare = os.path.join(self.root, *self.module.split("."))
        package = os.path.join(bare, "__init__.py")
        return package if os.path.isfile(package) else f"{bare}.py"


class Loaded(msgspec.Struct, frozen=True):
    """A file that is ready to run; ``sha256``: of its tree of code, or of its bytes where it lies in none, in hex."""

    place: Place
    sha256: str
    workflow: Workflow


def place_of(file: str | os.PathLike[str]) -> Place:
    """Find a file's name: climb from it to the first folder that is no package. Raises NotLoadable."""
    path = os.path.abspath(file)
    name = os.path.basename(path)
    stem, suffix = os.path.splitext(name)
    if not os.path.isfile(path):
        raise NotLoadable("missing", f"{file}", f"{file} is no file", hint="name a Python file with a Workflow in it")
    if suffix != ".py" or not stem.replace("-", "_").isidentifier():
        raise NotLoadable(
            "name", f"{file}", f"{name} can't be imported", hint="rename it: letters, digits, '_' and '-', then .py"
        )
    packages: list[str] = []
    folder = os.path.dirname(path)
    while os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, package = os.path.split(folder)
        packages.insert(0, package)
    names = packages if name == "__init__.py" else [*packages, stem]
    return Place(folder, ".".join(names))


def load(place: Place, *, tree: str | None = None, sha256: str | None = None, compiled: str | None = None) -> Loaded:
    """Import a workflow file and find its Workflow.

    ``tree``: the folder of the tree of code that it lies in; ``sha256``: what the hash must be, where that is known;
    ``compiled``: the hash of what the host has compiled of the tree.
    Raises NotLoadable; Changed before a line of it is run.
    """
    path, found, sources, made = place.path, "", Sources(), Compiled()
    if tree is not None:
        found, sources = look(tree)
        if sha256 is not None and found != sha256:
            raise Changed(tree, deployed=sha256, found=found)
        made = compiled_beside(tree, compiled)
        run_exactly(tree, sources, made)
    source = sources[path] if path in sources else _read(path)
    if tree is None:
        found = hashlib.sha256(source).hexdigest()
        if sha256 is not None and found != sha256:
            raise Changed(path, deployed=sha256, found=found)
    _check_neighbours(place)
    refuse_clashes(place.root, sources)
    module = _import(place, path, code_in(made, path) or _compile(path, source))
    return Loaded(place, found, _only_workflow(module, path))


def _read(path: str) -> bytes:
    try:
        with open(path, "rb") as file:
            return file.read()
    except OSError as failure:
        raise NotLoadable("missing", path, f"{path} can't be read: {failure.strerror}") from None


def _check_neighbours(place: Place) -> None:
    for name in OURS:
        folder = os.path.join(place.root, name)
        file = f"{folder}.py"
        alone = os.path.isfile(file)
        if alone or _other_package(name, folder):
            shown = f"{os.path.basename(place.root)}/{name}{'.py' if alone else '/'}"
            raise NotLoadable(
                "hides-ours",
                file if alone else folder,
                f"{shown} would hide the host's own {name}; please rename it",
                hint=f"rename {shown}",
            )


def _other_package(name: str, folder: str) -> bool:
    """Whether the folder has Python code and isn't ours: the file may lie in our own tree."""
    if not os.path.isdir(folder) or not any(each.endswith(".py") for each in os.listdir(folder)):
        return False
    spec = importlib.util.find_spec(name)
    return spec is None or spec.origin is None or os.path.realpath(folder) != os.path.dirname(spec.origin)


class _Exactly(SourceFileLoader):
    """Runs the bytes that were hashed, never a cached or newer version of the file."""

    def __init__(self, fullname: str, path: str, code: CodeType) -> None:
        super().__init__(fullname, path)
        self._code = code

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - importlib's signature
        return self._code


def _compile(path: str, source: bytes) -> CodeType:
    try:
        return compile(source, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as failure:
        from waypost.child.blame import not_compilable

        raise not_compilable(failure, path) from None


def _import(place: Place, path: str, code: CodeType) -> ModuleType:
    if place.root not in sys.path:
        sys.path.append(place.root)
    _look_again(place.root)
    spec = _spec(place, path)
    parent, _, name = place.module.rpartition(".")
    spec.loader = _Exactly(place.module, path, code)
    module = importlib.util.module_from_spec(spec)
    sys.modules[place.module] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as failure:  # noqa: BLE001 - SystemExit and the like are the file's failure, too
        del sys.modules[place.module]
        raise _blamed(failure, path) from None
    if parent:
        setattr(sys.modules[parent], name, module)
    return module


def _look_again(folder: str) -> None:
    """Have the import system list this folder anew, and those in it: `importlib.invalidate_caches` does it to all."""
    inside = os.path.join(folder, "")
    for each in tuple(sys.path_importer_cache):
        if os.path.join(each, "").startswith(inside):
            del sys.path_importer_cache[each]


def _spec(place: Place, path: str) -> ModuleSpec:
    try:
        spec = importlib.util.find_spec(place.module)
    except BaseException as failure:  # noqa: BLE001 - a package around the file runs here
        raise _blamed(failure, path) from None
    if spec is None or os.path.realpath(spec.origin or "") != os.path.realpath(path):
        other = (spec.origin or "a namespace package") if spec else "nothing"
        shown = os.path.basename(path)
        raise NotLoadable(
            "name",
            path,
            f"{shown} would be imported as {place.module!r}, but that name is {other}",
            hint="rename the file",
        )
    return spec


def _blamed(failure: BaseException, path: str) -> NotLoadable:
    from waypost.child.blame import not_importable

    return not_importable(failure, path)


def _only_workflow(module: ModuleType, path: str) -> Workflow:
    shown = os.path.basename(path)
    found = {id(v): v for v in vars(module).values() if isinstance(v, Workflow) and v.module == module.__name__}
    match list(found.values()):
        case []:
            raise NotLoadable(
                "no-workflow",
                path,
                f"{shown} has no Workflow",
                hint='write one at module level: orders = Workflow("orders", address="orders@example.com")',
            )
        case [workflow]:
            try:
                workflow.declared()
            except Misdeclared as missing:
                raise NotLoadable("declaration", path, f"{shown}: {missing}", hint=missing.hint) from None
            return workflow
        case several:
            names = ", ".join(workflow.name for workflow in several)
            raise NotLoadable("two-workflows", path, f"{shown} has several Workflows: {names}", hint="one to a file")

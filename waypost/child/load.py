"""A user's file becomes a module, under its own real name, and the one Workflow in it.

The real name, so that pickle, dataclasses, typing and relative imports work as in any program. The file's folder goes
last on the import path: nothing in it can hide what is ours or Python's. What runs is what was hashed: the bytes are
read once. Every failure is a NotLoadable with a text for the file's author.
"""

import hashlib
import importlib
import importlib.util
import os
import sys
import traceback
from dataclasses import dataclass
from importlib.machinery import ModuleSpec, SourceFileLoader
from pathlib import Path
from types import CodeType, ModuleType

from waypost.authoring.errors import Misdeclared
from waypost.authoring.workflow import Workflow
from waypost.child.errors import Changed, NotLoadable
from waypost.model.errors import WaypostError

OURS = ("actors", "ipc", "substrate", "waypost")


@dataclass(frozen=True, slots=True)
class Place:
    """Where a workflow file lies: ``root`` is the folder for the import path, ``module`` its dotted name in there."""

    root: Path
    module: str

    @property
    def path(self) -> Path:
        """The file: ``<root>/<module>.py``, or the package's ``__init__.py``."""
        bare = self.root.joinpath(*self.module.split("."))
        package = bare / "__init__.py"
        return package if package.is_file() else bare.with_name(f"{bare.name}.py")


@dataclass(frozen=True, slots=True)
class Loaded:
    """A file that is ready to run; ``sha256`` of its bytes, in hex."""

    place: Place
    sha256: str
    workflow: Workflow


def place_of(file: Path) -> Place:
    """Find a file's name: climb from it to the first folder that is no package. Raises NotLoadable."""
    path = file.absolute()
    if not path.is_file():
        raise NotLoadable("missing", str(file), f"{file} is no file", hint="name a Python file with a Workflow in it")
    if path.suffix != ".py" or not path.stem.replace("-", "_").isidentifier():
        raise NotLoadable(
            "name",
            str(file),
            f"{path.name} can't be imported",
            hint="rename it: letters, digits, '_' and '-', then .py",
        )
    packages: list[str] = []
    folder = path.parent
    while (folder / "__init__.py").is_file():
        packages.insert(0, folder.name)
        folder = folder.parent
    names = packages if path.name == "__init__.py" else [*packages, path.stem]
    return Place(folder, ".".join(names))


def load(place: Place, *, sha256: str | None = None) -> Loaded:
    """Import a workflow file and find its Workflow.

    ``sha256``: what the file's hash must be, where that is known. Raises NotLoadable.
    """
    path = place.path
    try:
        source = path.read_bytes()
    except OSError as failure:
        raise NotLoadable("missing", str(path), f"{path} can't be read: {failure.strerror}") from None
    found = hashlib.sha256(source).hexdigest()
    if sha256 is not None and found != sha256:
        raise Changed(str(path), deployed=sha256, found=found)
    _check_neighbours(place)
    module = _import(place, path, _compile(path, source))
    return Loaded(place, found, _only_workflow(module, path))


def _check_neighbours(place: Place) -> None:
    for name in OURS:
        spec = importlib.util.find_spec(name)
        ours = None if spec is None or spec.origin is None else Path(spec.origin).parent
        folder, file = place.root / name, place.root / f"{name}.py"
        if file.is_file() or (folder.is_dir() and folder.resolve() != ours and any(folder.glob("*.py"))):
            shown = f"{place.root.name}/{name}{'.py' if file.is_file() else '/'}"
            raise NotLoadable(
                "hides-ours",
                str(file if file.is_file() else folder),
                f"{shown} would hide the host's own {name}; please rename it",
                hint=f"rename {shown}",
            )


class _Exactly(SourceFileLoader):
    """Runs the bytes that were hashed, never a cached or newer version of the file."""

    def __init__(self, fullname: str, path: str, code: CodeType) -> None:
        super().__init__(fullname, path)
        self._code = code

    def get_code(self, fullname: str) -> CodeType:  # noqa: ARG002 - importlib's signature
        return self._code


def _compile(path: Path, source: bytes) -> CodeType:
    try:
        return compile(source, path, "exec", dont_inherit=True)
    except (SyntaxError, ValueError) as failure:  # ValueError: null bytes, on some Pythons
        line = getattr(failure, "lineno", None)
        text = getattr(failure, "text", None)
        where = f"{path.name} line {line}" if line else path.name
        shown = f"\n    {text.strip()}" if text else ""
        reason = getattr(failure, "msg", None) or str(failure)
        raise NotLoadable("syntax", str(path), f"{where}: {reason}{shown}", hint="correct the line") from None


def _import(place: Place, path: Path, code: CodeType) -> ModuleType:
    if str(place.root) not in sys.path:
        sys.path.append(str(place.root))
    importlib.invalidate_caches()
    spec = _spec(place, path)
    parent, _, name = place.module.rpartition(".")
    spec.loader = _Exactly(place.module, str(path), code)
    module = importlib.util.module_from_spec(spec)
    sys.modules[place.module] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as failure:  # noqa: BLE001 - SystemExit and the like are the file's failure, too
        del sys.modules[place.module]
        raise _not_importable(failure, path) from None
    if parent:
        setattr(sys.modules[parent], name, module)
    return module


def _spec(place: Place, path: Path) -> ModuleSpec:
    try:
        spec = importlib.util.find_spec(place.module)
    except BaseException as failure:  # noqa: BLE001 - a package around the file runs here
        raise _not_importable(failure, path) from None
    if spec is None or Path(spec.origin or "").resolve() != path.resolve():
        other = (spec.origin or "a namespace package") if spec else "nothing"
        raise NotLoadable(
            "name",
            str(path),
            f"{path.name} would be imported as {place.module!r}, but that name is {other}",
            hint="rename the file",
        )
    return spec


def _not_importable(failure: BaseException, path: Path) -> NotLoadable:
    if isinstance(failure, SyntaxError) and failure.filename is not None:
        where = f"{Path(failure.filename).name} line {failure.lineno}"
        shown = f"\n    {failure.text.strip()}" if failure.text else ""
        return NotLoadable("syntax", str(path), f"{where}: {failure.msg}{shown}", hint="correct the line")
    frames = [frame for frame in traceback.extract_tb(failure.__traceback__) if _is_users(frame.filename)]
    own = [frame for frame in frames if Path(frame.filename) == path]
    where, shown = f"{path.name}: ", ""
    for frame in (own or frames)[-1:]:
        where = f"{Path(frame.filename).name} line {frame.lineno}: "
        shown = f"\n    {frame.line}" if frame.line else ""
    code = "declaration" if isinstance(failure, WaypostError) else "import"
    reason = str(failure) if isinstance(failure, WaypostError) else f"{type(failure).__name__}: {failure}"
    hint = failure.hint if isinstance(failure, WaypostError) else ""
    if isinstance(failure, KeyError) and _raised_by(failure) is os.environ:
        hint = f"no variable of yours is there while a file is imported: name it in Workflow(…, env=[{failure}]) and "
        hint += "read it inside a step"
    return NotLoadable(code, str(path), f"{where}{reason}{shown}", hint=hint or "correct the line")


def _raised_by(failure: BaseException) -> object:
    """The object in whose method it was raised; None where there is none."""
    frames = [frame for frame, _ in traceback.walk_tb(failure.__traceback__)]
    return frames[-1].f_locals.get("self") if frames else None


def _is_users(filename: str) -> bool:
    return not filename.startswith("<") and Path(__file__).parents[1] not in Path(filename).parents


def _only_workflow(module: ModuleType, path: Path) -> Workflow:
    found = {id(v): v for v in vars(module).values() if isinstance(v, Workflow) and v.module == module.__name__}
    match list(found.values()):
        case []:
            raise NotLoadable(
                "no-workflow",
                str(path),
                f"{path.name} has no Workflow",
                hint='write one at module level: orders = Workflow("orders", address="orders@example.com")',
            )
        case [workflow]:
            try:
                workflow.declared()
            except Misdeclared as missing:
                raise NotLoadable("declaration", str(path), f"{path.name}: {missing}", hint=missing.hint) from None
            return workflow
        case several:
            names = ", ".join(workflow.name for workflow in several)
            raise NotLoadable(
                "two-workflows", str(path), f"{path.name} has several Workflows: {names}", hint="one to a file"
            )

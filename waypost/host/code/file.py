"""The tree of a FILE: the file, and what it imports from below its root, found without running any of it.

The root is the first folder upwards without an ``__init__.py``; names that nothing below it has are somebody else's and
stay where they are. Data files are those that ``Workflow(files=[…])`` lists, from the workflow's own folder.
"""

import importlib.util
from collections.abc import Iterable, Iterator
from importlib.machinery import EXTENSION_SUFFIXES
from pathlib import Path

from waypost.host.code.errors import HidesOurs, LooksSecret, NothingListed
from waypost.host.code.imports import exported, imports, listed_files
from waypost.host.code.patterns import MAGIC
from waypost.host.code.source import Source
from waypost.host.errors import BadWorkflow
from waypost.host.own import PACKAGES
from waypost.model.code import FILE, is_path, is_secret

_SUFFIXES = (".py", *EXTENSION_SUFFIXES)


class FileTree:
    """What belongs to one workflow file. ``entry`` is its path in the tree, ``source`` where that is."""

    def __init__(self, file: Path) -> None:
        """Raises BadWorkflow: no such file, or a name that can't be imported."""
        path = file.absolute()
        if not path.is_file():
            raise BadWorkflow(str(file), "there is no such file", hint="name a Python file with a Workflow in it")
        if path.suffix != ".py" or not path.stem.replace("-", "_").isidentifier():
            hint = "rename it: letters, digits, '_' and '-', then .py"
            raise BadWorkflow(str(file), f"{path.name} can't be imported", hint=hint)
        root = root_of(path.parent)
        self.source = Source(str(file), root)
        self.entry = path.relative_to(root).as_posix()
        refuse_hiding(self.source, "")

    def paths(self, listed: Iterable[str] = (), modules: Iterable[str] = ()) -> dict[str, int]:
        """Every file of the tree, with its bytes. ``listed``: as ``files=`` has it; ``modules``: further dotted names.

        Raises BadWorkflow's children.
        """
        by_name = tuple(listed)
        found: dict[str, int] = {}
        todo = [self.entry, *packages_above(self.entry)]
        todo += [path for module in modules for path in self.module(module)]
        while todo:
            path = todo.pop()
            size = None if path in found else self.source.size(path)
            if size is None:
                continue
            found[path] = size
            if path.endswith(".py") and size <= FILE:
                todo += self._imported(path)
        for path in listed_paths(self.source, self.entry, by_name):
            found[path] = self.source.size(path) or 0
        refuse_secrets(self.source, self.entry, found, by_name)
        return dict(sorted(found.items()))

    def module(self, name: str) -> Iterator[str]:
        """The files that importing a dotted name would run, as far as they lie below the root; none that is ours."""
        above, parts = "", name.split(".")
        if parts[0] in PACKAGES:
            return
        for at, part in enumerate(parts):
            if not part or "/" in part:
                return
            if part == "*":
                yield from self._star(above, ".".join(parts[:at]))
                return
            bare = f"{above}/{part}" if above else part
            package = f"{bare}/__init__.py"
            files = [bare + each for each in _SUFFIXES if self.source.size(bare + each) is not None]
            if self.source.size(package) is not None:
                yield package
            elif files:
                yield from files
                return
            elif not self.source.is_folder(bare):
                return
            above = bare

    def _star(self, folder: str, package: str) -> Iterator[str]:
        if package and self.source.size(f"{folder}/__init__.py") is not None:
            for name in exported(self.text(f"{folder}/__init__.py")):
                yield from self.module(f"{package}.{name}")

    def _imported(self, path: str) -> Iterator[str]:
        package = path.rpartition("/")[2] == "__init__.py"
        module = path.removesuffix("/__init__.py" if package else ".py").replace("/", ".")
        for name in imports(self.text(path), module, package=package):
            yield from self.module(name)

    def text(self, path: str) -> bytes:
        """A file's bytes."""
        return self.source.read({path: 0})[path]

    def listed(self) -> tuple[str, ...]:
        """What the file lists as far as its text says so: it may read these as it is imported."""
        return listed_files(self.text(self.entry))


def root_of(folder: Path) -> Path:
    """The first folder upwards that is no package."""
    while (folder / "__init__.py").is_file():
        folder = folder.parent
    return folder


def packages_above(path: str) -> list[str]:
    """The ``__init__.py`` of each folder that a file of a tree lies in, as far as there may be one."""
    folders = path.split("/")[:-1]
    return ["/".join([*folders[: n + 1], "__init__.py"]) for n in range(len(folders))]


def refuse_hiding(source: Source, root: str) -> None:
    """A neighbour with the name of one of our packages is refused, unless it is that very package. Raises HidesOurs."""
    folder = source.root / root
    for name in PACKAGES:
        spec = importlib.util.find_spec(name)
        ours = None if spec is None or spec.origin is None else Path(spec.origin).parent
        if (folder / f"{name}.py").is_file():
            raise HidesOurs(source.shown, f"{folder.name}/{name}.py", name)
        if (folder / name).is_dir() and (folder / name).resolve() != ours and any((folder / name).glob("*.py")):
            raise HidesOurs(source.shown, f"{folder.name}/{name}/", name)


def listed_paths(source: Source, entry: str, listed: Iterable[str]) -> Iterator[str]:
    """The files that ``files=`` means: by name, all below a folder, or by a pattern. Raises NothingListed."""
    above = entry.rpartition("/")[0]
    for text in listed:
        bare = text.rstrip("/")
        path = f"{above}/{bare}" if above else bare
        if not is_path(path):
            raise NothingListed(source.shown, text)
        found: list[str] = []
        if source.size(path) is not None:
            found = [path]
        elif source.is_folder(path):
            found = list(source.below(path, left_out=_cache))
        elif MAGIC.intersection(path):
            found = [each for each in source.matching(path) if source.size(each) is not None]
        if not found:
            raise NothingListed(source.shown, text)
        yield from found


def refuse_secrets(source: Source, entry: str, paths: Iterable[str], listed: Iterable[str]) -> None:
    """A name that looks like a secret's is refused unless ``files=`` has that very name. Raises LooksSecret.

    A link has the name of what it leads to, too: under another one it would be deployed all the same.
    """
    above, slash, _ = entry.rpartition("/")
    allowed = {f"{above}{slash}{text}" for text in listed}
    for path in paths:
        real = source.real(path)
        if path not in allowed and (is_secret(path) or (is_secret(real) and real not in allowed)):
            within = path.startswith(f"{above}{slash}")
            link = "" if is_secret(path) else real
            raise LooksSecret(source.shown, path, path.removeprefix(f"{above}{slash}") if within else "", link)


def _cache(path: str) -> bool:
    return path.rpartition("/")[2] == "__pycache__"

"""What each workflow declares, asked of a keyless child of its own: the host never imports user code.

The child sees nothing but the tree of code as it would be deployed, in a folder of its own. What it misses there, and
lies below the workflow's root, belongs to the tree, too, and it is asked again. Nothing is made for code that can't be
deployed; the errors are its author's to read.
"""

import os
import secrets
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Protocol

import msgspec

from actors.messages import DeploymentSpec
from ipc import strays
from ipc.environment import AS_THE_HOST, FIXED, MARK
from ipc.strays import OPTION
from waypost.host.code.file import FileTree, root_of
from waypost.host.code.folder import FolderTree
from waypost.host.code.source import Source
from waypost.host.code.staging import begins, staged
from waypost.host.code.untimely import deployed_already, refuse_unsayable, refuse_untimely
from waypost.host.described import Described
from waypost.host.errors import BadWorkflow, Taken
from waypost.host.processes.guardian import Guardian
from waypost.host.processes.guest import guest
from waypost.host.processes.isolation import NONE, Isolation
from waypost.model import declaration
from waypost.model.code import Files, deployed
from waypost.model.errors import Invalid
from waypost.model.ids import deployment

_SHOWN_LINES = 10
_CRASHED = "Fatal Python error: "
_KEPT = 1024 * 1024
"""Bytes of each stream: a declaration is far smaller."""
_TRIALS = 100
"""Times that a child is asked: each but the first brings at least one more file into the tree."""


class Tree(Protocol):
    """A FILE's tree of code or a DIR's, as far as it is known; ``entry`` is the workflow file's path in it."""

    source: Source
    entry: str

    def listed(self) -> tuple[str, ...]:
        """What the workflow lists as its data, as far as its text says so."""
        ...

    def paths(self, listed: Iterable[str] = (), modules: Iterable[str] = ()) -> dict[str, int]:
        """Every file of it, with its bytes."""
        ...

    def module(self, name: str) -> Iterator[str]:
        """The files that importing this name would run, as far as they lie below the root."""
        ...


def describe_all(
    files: Iterable[Path],
    *,
    timeout: float,
    environment: Mapping[str, str],
    data: Path | None = None,
    isolation: Isolation = NONE,
) -> tuple[Described, ...]:
    """Describe every file, in order, as ``describe`` does. Raises BadWorkflow, Taken."""
    found: list[Described] = []
    with guest(isolation):
        for file in files:
            one = describe(file, timeout=timeout, environment=environment, data=data, isolation=isolation)
            refuse_taken(one, found)
            found.append(one)
    return tuple(found)


def refuse_taken(one: Described, others: Iterable[Described]) -> None:
    """Two deployments of one host have neither a name nor an address in common. Raises Taken."""
    for other in others:
        for what, mine, theirs in (
            ("name", one.spec.name, other.spec.name),
            ("address", one.spec.address, other.spec.address),
        ):
            if mine == theirs:
                raise Taken(what, mine, other.spec.file, one.spec.file)


def describe(
    place: Path,
    *,
    timeout: float,
    environment: Mapping[str, str],
    data: Path | None = None,
    isolation: Isolation = NONE,
) -> Described:
    """Find the tree of code of a file, or of a folder, and ask a child what is declared in it.

    ``timeout`` is in seconds, for each time that it is asked; ``data`` is a data directory that is no part of the tree;
    ``isolation`` is the child's: what is imported here is the code that runs there.
    Raises BadWorkflow with the child's reason, and the line it names; NoGit, GitFailed.
    """
    with guest(isolation):
        return _described(place, data, Looking(timeout, environment, isolation))


def _described(place: Path, data: Path | None, how: "Looking") -> Described:
    tree: Tree = FolderTree(place, data) if place.is_dir() else FileTree(place)
    listed, modules = tree.listed(), list[str]()
    for _ in range(_TRIALS):
        sizes = tree.paths(listed, modules)
        files = tree.source.read(sizes)
        answer = _ask(str(place), files, tree.entry, how)
        if isinstance(answer, declaration.Description):
            if answer.workflow.files == listed:
                one = described(str(place), files, answer)
                refuse_unsayable(str(place), data, one.spec.name)
                try:
                    refuse_untimely(str(place), answer.workflow)
                except BadWorkflow:
                    if not deployed_already(data, one.spec.name, one.record):
                        raise
                return one
            listed = answer.workflow.files
        elif answer.wanted and any(path not in sizes for path in tree.module(answer.wanted)):
            modules.append(answer.wanted)
        else:
            raise BadWorkflow(str(place), answer.error, hint=_sourceless(tree, answer.wanted) or answer.hint)
    raise BadWorkflow(str(place), f"after {_TRIALS} trials its import still wants other files")


def _sourceless(tree: Tree, wanted: str) -> str:
    """What to say of a module that lies there compiled and without its source; empty where it doesn't."""
    above, bare = root_of((tree.source.root / tree.entry).parent), wanted.replace(".", "/")
    for path in (f"{bare}.pyc", f"{bare}/__init__.pyc"):
        if wanted and os.path.isfile(above / path):  # noqa: PTH113 - the name may be one that no file can have
            source = path.removesuffix("c")
            return f"{path} is compiled code without its source, which can't be deployed: put {source} in its place"
    return ""


def ask(
    shown: str,
    files: Files,
    entry: str,
    *,
    timeout: float,
    environment: Mapping[str, str],
    isolation: Isolation = NONE,
) -> declaration.Description | declaration.NotDescribed:
    """One child's answer about one tree of code; paths in it are those in the tree. Raises BadWorkflow."""
    with guest(isolation):
        return _ask(shown, files, entry, Looking(timeout, environment, isolation))


def _ask(shown: str, files: Files, entry: str, how: "Looking") -> declaration.Description | declaration.NotDescribed:
    try:
        folder, out, why = looked(files, "describe", entry, how)
    except subprocess.TimeoutExpired:
        raise BadWorkflow(
            shown,
            f"importing it took more than {how.timeout:g} s",
            hint="do slow work inside a step, not when the file is imported",
        ) from None
    try:
        return _within(folder, declaration.read(out))
    except Invalid as bad:
        raise BadWorkflow(shown, why) from bad


@dataclass(frozen=True, slots=True)
class Looking:
    """How a child looks at code: ``timeout`` in seconds, whose environment it has a part of, how it is shut in."""

    timeout: float
    environment: Mapping[str, str]
    isolation: Isolation = NONE


def looked(
    files: Files, what: Literal["describe", "rehearse"], entry: str, how: Looking, given: int = subprocess.DEVNULL
) -> tuple[Path, bytes, str]:
    """What a child says that is started on this tree to look at its entry; ``given`` is the file that it reads.

    Gives the folder that the tree was in, all that it said, and what to say where that isn't to be used. Raises
    TimeoutExpired, with what it had said by then.
    """
    with staged(files) as folder:
        mark = how.isolation.mark(f"{begins(folder)}{secrets.token_hex(16)}.")
        how.isolation.let_in(folder, folder.parent)
        boxed = how.isolation.arguments(str(folder))
        marked = (OPTION, mark.text) if mark.text else ()
        # "=", as a file's name may begin with a dash.
        arguments = (f"--tree={folder}", *marked, *boxed, f"--{what}={folder / entry}")
        kept = {name: how.environment[name] for name in AS_THE_HOST if name in how.environment}
        try:
            return folder, *_answer(arguments, how.timeout, kept | FIXED | {MARK: mark.text}, given)
        finally:
            strays.end(mark)  # what its import has started, wherever that went


def described(shown: str, files: Files, answer: declaration.Description) -> Described:
    """What a child has said, as a deployment. Raises BadWorkflow."""
    declared = answer.workflow
    try:
        name = deployment(declared.name)
    except Invalid as bad:
        raise BadWorkflow(shown, bad.message, hint=bad.hint) from None
    record = deployed(files, root=answer.root, module=answer.module, declared=declared)
    spec = DeploymentSpec(
        name=name,
        address=declared.address,
        definition=record.definition,
        code=record.tree,
        file=shown,
        steps=tuple(step.name for step in declared.steps),
        mail_to=declared.mail_to,
        secrets=declared.asked(),
        runs=declared.runs,
        env=declared.env,
        on_crash_loop=declared.on_crash_loop,
        warm=declared.warm is True,
        children=tuple(each.name for each in declared.children or ()),
        cut_short=tuple(step.name for step in declared.steps if step.on_drain == "cancel"),
        python=answer.python,
        waypost=answer.waypost,
        distributions=answer.distributions,
    )
    return Described(spec, record, declared.runs, files)


def _within(
    folder: Path, answer: declaration.Description | declaration.NotDescribed
) -> declaration.Description | declaration.NotDescribed:
    """The same with paths in the tree: the folder is gone by the time that somebody reads them."""
    inside = f"{folder}/"
    if isinstance(answer, declaration.NotDescribed):
        return msgspec.structs.replace(
            answer, error=answer.error.replace(inside, ""), path=answer.path.removeprefix(inside)
        )
    return msgspec.structs.replace(answer, root=answer.root.removeprefix(str(folder)).removeprefix("/"))


def _answer(arguments: Sequence[str], timeout: float, environment: Mapping[str, str], given: int) -> tuple[bytes, str]:
    command = (sys.executable, "-P", "-X", "utf8", "-m", "waypost.child", "--parent", str(os.getpid()), *arguments)
    guardian = Guardian()  # of this look alone, as there may be no host yet: should this process be killed meanwhile
    try:
        with subprocess.Popen(  # noqa: S603 - our own child; the file's name is an argument, never a shell's
            command,
            stdin=given,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=environment,
            start_new_session=True,
        ) as child:
            guardian.watch(child.pid)
            try:
                out, complaints = _collected(child, timeout)
            finally:
                # Too slow, or Ctrl-C, which doesn't reach its session; and if it has come to its end, what it has
                # started may not have. It isn't reaped yet, so the number is its own.
                _kill_group(child.pid)
                guardian.close()
    finally:
        guardian.close()
    last = _telling(complaints.decode("utf-8", "replace"))
    return out, "\n    ".join([f"its import ended the interpreter ({_ended(child.returncode or 0)})", *last])


def _telling(said: str) -> list[str]:
    """The last lines; of a dump that Python makes when it crashes the first ones, as it begins with the last call."""
    lines = said.strip().splitlines()
    crash = next((at for at, line in enumerate(lines) if line.startswith(_CRASHED)), None)
    return lines[-_SHOWN_LINES:] if crash is None else lines[crash : crash + _SHOWN_LINES]


def _ended(code: int) -> str:
    try:
        return f"exit status {code}" if code >= 0 else signal.Signals(-code).name
    except ValueError:
        return f"signal {-code}"


def _collected(child: subprocess.Popen[bytes], timeout: float) -> tuple[bytes, bytes]:
    """What it writes until it ends, the last bytes of each stream. Raises TimeoutExpired; it isn't reaped by this.

    What is left of its group when it has ended is killed. What has left that may have its streams, and isn't waited
    for: all that the child itself has written is in them by then, and a pipe holds no more than is read at once.
    """
    deadline = time.monotonic() + timeout
    with os.fdopen(os.pidfd_open(child.pid), "rb", buffering=0) as end, selectors.DefaultSelector() as selector:
        selector.register(end, selectors.EVENT_READ)
        streams = [(stream, bytearray()) for stream in (child.stdout, child.stderr) if stream is not None]
        for stream, said in streams:
            os.set_blocking(stream.fileno(), False)
            selector.register(stream, selectors.EVENT_READ, said)
        ended = False
        while not ended:
            left = deadline - time.monotonic()
            if left <= 0:
                raise subprocess.TimeoutExpired(child.args, timeout)
            ready = [key for key, _ in selector.select(left)]
            if ended := any(key.fileobj is end for key in ready):
                _kill_group(child.pid)
                selector.unregister(end)
                ready = list(selector.get_map().values())
            for key in ready:
                with suppress(BlockingIOError):  # it has said nothing more, and somebody else could
                    if more := os.read(key.fd, _KEPT):
                        key.data.extend(more)
                        del key.data[:-_KEPT]  # whoever prints for ever fills no memory but its own
                    else:
                        selector.unregister(key.fileobj)
    out, complaints = (bytes(said) for _, said in streams)
    return out, complaints


def _kill_group(leader: int) -> None:
    """While its leader isn't reaped."""
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(leader, signal.SIGKILL)

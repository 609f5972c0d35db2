"""What each workflow file declares, asked of a keyless child of its own: the host never imports user code.

Nothing is made for a file that can't be deployed; the errors are the file author's to read.
"""

import os
import selectors
import signal
import subprocess
import sys
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from actors.messages import DeploymentSpec
from ipc.environment import AS_THE_HOST, FIXED
from waypost.host.errors import BadWorkflow, Taken
from waypost.model import declaration
from waypost.model.errors import Invalid
from waypost.model.ids import deployment

_SHOWN_LINES = 10
_KEPT = 1024 * 1024
"""Bytes of each stream: a declaration is far smaller."""


@dataclass(frozen=True, slots=True)
class Described:
    """A deployment as data, and the arguments with which its child finds the code."""

    spec: DeploymentSpec
    root: str
    module: str
    runs: declaration.Runs

    @property
    def arguments(self) -> tuple[str, ...]:
        """For ``python -m waypost.child``."""
        return ("--root", self.root, f"--module={self.module}", "--sha256", self.spec.code)


def describe_all(files: Iterable[Path], *, timeout: float, environment: Mapping[str, str]) -> tuple[Described, ...]:
    """Describe every file, in order. ``timeout`` is in seconds, for one file. Raises BadWorkflow, Taken."""
    found: list[Described] = []
    for file in files:
        one = describe(file, timeout=timeout, environment=environment)
        for other in found:
            for what, mine, theirs in (
                ("name", one.spec.name, other.spec.name),
                ("address", one.spec.address, other.spec.address),
            ):
                if mine == theirs:
                    raise Taken(what, mine, other.spec.file, one.spec.file)
        found.append(one)
    return tuple(found)


def describe(file: Path, *, timeout: float, environment: Mapping[str, str]) -> Described:
    """Ask a child what the file declares. Raises BadWorkflow with the child's reason, and the line it names."""
    answer = _answer(file, timeout, environment)
    if isinstance(answer, declaration.NotDescribed):
        raise BadWorkflow(str(file), answer.error, hint=answer.hint)
    declared = answer.workflow
    try:
        name = deployment(declared.name)
    except Invalid as bad:
        raise BadWorkflow(str(file), bad.message, hint=bad.hint) from None
    spec = DeploymentSpec(
        name=name,
        address=declared.address,
        definition=answer.definition,
        code=answer.sha256,
        file=str(file),
        steps=tuple(step.name for step in declared.steps),
        mail_to=declared.mail_to,
        runs=declared.runs,
        env=declared.env,
        python=answer.python,
        waypost=answer.waypost,
    )
    return Described(spec, answer.root, answer.module, declared.runs)


def _answer(
    file: Path, timeout: float, environment: Mapping[str, str]
) -> declaration.Description | declaration.NotDescribed:
    # "=", as a file's name may begin with a dash.
    child_options = ("--parent", str(os.getpid()), f"--describe={file}")
    command = (sys.executable, "-P", "-X", "utf8", "-m", "waypost.child", *child_options)
    kept = {name: environment[name] for name in AS_THE_HOST if name in environment}
    with subprocess.Popen(  # noqa: S603 - our own child; the file's name is an argument, never a shell's
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=kept | FIXED,
        start_new_session=True,
    ) as child:
        try:
            out, complaints = _collected(child, timeout)
        except subprocess.TimeoutExpired:
            raise BadWorkflow(
                str(file),
                f"importing it took more than {timeout:g} s",
                hint="do slow work inside a step, not when the file is imported",
            ) from None
        finally:
            if child.returncode is None:
                # Too slow, or Ctrl-C, which doesn't reach its session. With it goes what it has started meanwhile; it
                # isn't reaped yet, so the number is its own.
                os.killpg(child.pid, signal.SIGKILL)
    try:
        return declaration.read(out)
    except Invalid as bad:
        last = complaints.decode("utf-8", "replace").strip().splitlines()[-_SHOWN_LINES:]
        why = "\n    ".join([f"its import ended the interpreter (exit status {child.returncode})", *last])
        raise BadWorkflow(str(file), why) from bad


def _collected(child: subprocess.Popen[bytes], timeout: float) -> tuple[bytes, bytes]:
    """What it writes until it ends, the last bytes of each stream. Raises TimeoutExpired; ends nothing itself."""
    deadline = time.monotonic() + timeout
    with selectors.DefaultSelector() as selector:
        streams = [(stream, bytearray()) for stream in (child.stdout, child.stderr) if stream is not None]
        for stream, said in streams:
            selector.register(stream, selectors.EVENT_READ, said)
        while selector.get_map():
            left = deadline - time.monotonic()
            if left <= 0:
                raise subprocess.TimeoutExpired(child.args, timeout)
            for key, _ in selector.select(left):
                if more := os.read(key.fd, _KEPT):
                    key.data.extend(more)
                    del key.data[:-_KEPT]  # whoever prints for ever fills no memory but its own
                else:
                    selector.unregister(key.fileobj)
        child.wait(max(0.0, deadline - time.monotonic()))
    out, complaints = (bytes(said) for _, said in streams)
    return out, complaints

"""Code in a box, in a process that is set up as a child is: for tests of what isolation keeps away.

By ``lowly``, the tests that need it run as an ordinary user, too: root passes over what would stop others.
"""

import os
import platform
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from ipc.box import Box, Entry

NOBODY = 65534
CHECKOUT = Path(__file__).parents[2]
SYSTEM = ("/usr", "/etc", "/bin", "/sbin", "/lib", "/lib64")
_ENTER = "import sys; from ipc.parent import settle; settle(int(sys.argv.pop(1)), sys.argv.pop(1))\n"


def python_of(user: int) -> tuple[str, list[str]]:
    """An interpreter that this user can read, and the import path with which it finds what this one does."""
    if user == os.geteuid() != NOBODY:
        return sys.executable, []
    path = [entry for entry in sys.path if "site-packages" in entry or (Path(entry) / "waypost").is_dir()]
    return f"/usr/bin/python{sys.version_info[0]}.{sys.version_info[1]}", path


def reachable_by(user: int) -> bool:
    """Whether ``python_of`` gives one that works for this user."""
    python, path = python_of(user)
    command = ["setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups", python, "-c", "import msgspec"]
    try:
        done = subprocess.run(  # noqa: S603 - our own program
            command, env={"PYTHONPATH": ":".join(path)}, capture_output=True, check=False
        )
    except OSError:
        return False
    return done.returncode == 0


def venv_for(folder: Path, user: int) -> str:
    """A virtual environment that has what this one has, of an interpreter that this user can read; its Python."""
    common, path = python_of(NOBODY)
    python = common if reachable_by(NOBODY) or user != os.geteuid() else os.path.realpath(sys.executable)
    version = f"python{sys.version_info[0]}.{sys.version_info[1]}"
    packages = folder / "lib" / version / "site-packages"
    packages.mkdir(parents=True)
    (folder / "bin").mkdir()
    (folder / "bin" / "python").symlink_to(python)
    (folder / "pyvenv.cfg").write_text(f"home = {Path(python).parent}\nversion = {platform.python_version()}\n")
    (packages / "shared.pth").write_text("\n".join(path) + "\n")
    return str(folder / "bin" / "python")


def sight(*more: Entry, user: int) -> tuple[Entry, ...]:
    """Entries with which this user's Python works, and more."""
    found: list[Entry] = []
    for path in SYSTEM:
        if Path(path).is_symlink():
            found.append(Entry("link", path, os.readlink(path)))  # noqa: PTH115 - as it is written there
        elif Path(path).is_dir():
            found.append(Entry("ro", path, path))
    found.append(Entry("tmp", "/tmp", "1777"))  # noqa: S108 - one of its own
    own = {sys.prefix, sys.base_prefix} if user == os.geteuid() else set[str]()
    found.extend(Entry("ro", path, path) for path in sorted({*own, str(CHECKOUT)}))
    return (*found, *more)


def run(code: str, box: Box, *, user: int | None = None, arguments: Iterable[str] = ()) -> "subprocess.Popen[bytes]":
    """Start code in a box; its pipes are the caller's. ``user``: who is the host."""
    user = os.geteuid() if user is None else user
    python, path = python_of(user)
    become: Sequence[str] = ()
    if user != os.geteuid():
        become = ("setpriv", "--reuid", str(user), "--regid", str(user), "--clear-groups")
    command = [*become, python, "-P", "-c", _ENTER + code, str(os.getpid()), box.text(), *arguments]
    return subprocess.Popen(  # noqa: S603 - our own program
        command,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env={"PATH": os.defpath, "PYTHONPATH": ":".join(path)},
        start_new_session=True,
    )


def said(process: "subprocess.Popen[bytes]", seconds: float = 30.0) -> tuple[str, str, int]:
    """What it printed on both streams, and how it ended."""
    with process:
        try:
            out, err = process.communicate(timeout=seconds)
        except subprocess.TimeoutExpired:
            process.kill()
            raise
    return out.decode(), err.decode(), process.returncode

"""Stock git, for what is carried from one place to another: bundles and clones. Nobody's configuration has a say."""

import os
import subprocess
from pathlib import Path
from typing import IO

from waypost.host.keeping_errors import GitFailed, NoGit

_SETTINGS = (
    "core.hooksPath=/dev/null",
    "core.fsmonitor=false",
    "protocol.ext.allow=never",
    "fetch.fsckObjects=true",
    "fetch.unpackLimit=1",
    "gc.auto=0",
    "maintenance.auto=false",
)
_SHOWN = 2000


def git(repository: Path, *arguments: str, into: IO[bytes] | None = None) -> str:
    """Run git on a bare repository; what it prints, or nothing where that goes ``into`` a file, behind its end.

    Raises NoGit, GitFailed with its last words.
    """
    kept = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment = {
        **kept,
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "LC_ALL": "C",
    }
    settings = [word for setting in _SETTINGS for word in ("-c", setting)]
    command = ["git", *settings, "--git-dir", str(repository), *arguments]
    if into is not None:
        into.seek(0, os.SEEK_END)
    try:
        done = subprocess.run(  # noqa: S603 - a fixed program; what comes from outside stands behind `--`
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE if into is None else into,
            stderr=subprocess.PIPE,
            check=False,
        )
    except FileNotFoundError:
        raise NoGit from None
    if done.returncode:
        raise GitFailed(arguments[0], done.stderr.decode("utf-8", "replace")[-_SHOWN:].strip())
    return "" if into is not None else done.stdout.decode("utf-8", "replace")


def largest(repository: Path) -> int:
    """Bytes of the largest object, unpacked: a small pack may hold one that no memory holds. Raises GitFailed."""
    sizes = git(repository, "cat-file", "--batch-all-objects", "--unordered", "--buffer", "--batch-check=%(objectsize)")
    return max(map(int, sizes.split()), default=0)


def bundle(repository: Path, into: IO[bytes]) -> str:
    """Write the branch ``log`` with all its history behind what is in ``into``; the commit at its head.

    Raises NoGit, GitFailed.
    """
    at = into.seek(0, os.SEEK_END)
    git(repository, "bundle", "create", "--quiet", "-", "refs/heads/log", into=into)
    into.seek(at)
    # `# v2 git bundle`, then a line for each branch: the commit's id, a blank, the branch.
    into.readline()
    return into.readline().split(b" ")[0].decode("ascii", "replace")


def fetch(repository: Path, source: str) -> None:
    """Bring the branch ``log`` of a bundle, a clone or a remote into an empty repository. Raises NoGit, GitFailed."""
    git(repository, "fetch", "--quiet", "--no-tags", "--", source, "+refs/heads/log:refs/heads/log")
    (repository / "FETCH_HEAD").unlink(missing_ok=True)

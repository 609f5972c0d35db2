"""Repositories for tests: made in one line, looked at with stock git."""

import os
import subprocess
from collections import Counter
from collections.abc import Mapping
from pathlib import Path

from substrate import layout, state
from substrate.checking.fsck import Looked
from substrate.checking.fsck import fsck as rules_of
from substrate.files.disk import Disk
from substrate.signing.keys import PublicKey, SigningKey
from substrate.storage.store import Store
from waypost.model.limits import DEFAULT, Limits

AUTHOR = "workflow-process <workflow-process@deployment.waypost>"
AT = 1_800_000_000_000
REPOSITORY_ID = "0123456789abcdef"
DEPLOYMENT = "test"
"""Of the repositories that are made here: what tests put into them is of no layout."""
BOUND = 256
"""Entries that a directory may have (storage §1)."""


def first_files(repository_id: str = REPOSITORY_ID) -> dict[str, bytes]:
    """What flush 1 of a test repository holds."""
    known = state.Format(
        format=state.VERSION, repository=repository_id, epoch=1, deployment=DEPLOYMENT, address="test@example.com"
    )
    return {layout.FORMAT: state.encode(known), layout.STATE: state.encode(state.State())}


def fresh_store(path: Path, key: SigningKey, *, disk: Disk | None = None, limits: Limits = DEFAULT) -> Store:
    """A new repository, opened."""
    return Store.create(
        path, repository_id=REPOSITORY_ID, key=key, first=first_files(), at=AT, disk=disk, limits=limits
    )


def put(store: Store, files: Mapping[str, bytes], *, subject: str = "put files", deletes: tuple[str, ...] = ()) -> int:
    """One commit, whose author and date don't matter."""
    return store.commit(author=AUTHOR, subject=subject, puts=files, deletes=deletes, at=AT)


def git(repository: Path, *arguments: str, check: bool = True) -> str:
    """Run git on a repository, without anybody's configuration, hooks or environment; what it prints."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("GIT_")}
    environment |= {"GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull, "GIT_TERMINAL_PROMPT": "0"}
    command = ["git", "-c", "core.hooksPath=/dev/null", "-c", "core.fsmonitor=false", "-C", str(repository), *arguments]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)  # noqa: S603 - a fixed program
    if check and done.returncode:
        raise AssertionError(f"git {' '.join(arguments)}: {done.returncode}\n{done.stdout}{done.stderr}")
    return done.stdout + done.stderr


def fsck(repository: Path) -> str:
    """What is wrong with it: what ``git fsck --strict`` says, directories over their bound, and the rule book."""
    said = git(repository, "fsck", "--strict", "--full", "--no-progress")
    return said + "".join((*overfull(repository), *unruly(repository)))


def unruly(repository: Path) -> list[str]:
    """A line for each commit that breaks a rule; of a bare store's, whose files are of no layout, none is asked."""
    looked = Looked()
    found = [f"{each.commit} {each.rule} {each.path}: {each.value}\n" for each in rules_of(repository, looked)]
    return [] if looked.deployment == DEPLOYMENT else found


def overfull(repository: Path) -> list[str]:
    """A line for each directory of the newest sealed commit that has more than 256 entries."""
    listed = git(repository, "ls-tree", "-r", "-t", "-z", "--name-only", "refs/heads/log", check=False)
    entries = Counter(path.rpartition("/")[0] for path in listed.split("\0"))
    return [f"{path or 'the root'} has {count} entries\n" for path, count in entries.items() if count > BOUND]


def verify_commit(repository: Path, commit: str, key: PublicKey) -> str:
    """What ``git verify-commit`` says when only this key is allowed. Raises AssertionError when it isn't good."""
    allowed = repository.parent / "allowed_signers"
    allowed.write_text(f'{key.fingerprint} namespaces="git" {key.line()}\n', encoding="ascii")
    settings = ["-c", "gpg.format=ssh", "-c", f"gpg.ssh.allowedSignersFile={allowed}"]
    return git(repository, *settings, "verify-commit", "-v", commit)


def files_of(store: Store, path: str = "") -> dict[str, bytes]:
    """Every file that a store shows, by path."""
    found: dict[str, bytes] = {}
    for name in store.entries(path):
        below = f"{path}/{name}" if path else name
        data = store.read(below)
        found |= files_of(store, below) if data is None else {below: data}
    return found

"""What is done to a data directory while no host runs on it: under the host's own lock, with the host's own key.

What this promises: no host and no second such verb is at work meanwhile; each of them may be killed and run again.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from substrate.files import plain
from substrate.files.disk import Disk
from substrate.files.folder import Folder
from substrate.signing.keys import SigningKey
from substrate.storage.heads import Heads
from substrate.storage.opening import inspect
from substrate.upkeep.rollback import Accepted, accept
from substrate.upkeep.rotation import rotate
from waypost.host.datadir.directory import DataDir, clear
from waypost.host.datadir.lock import HostLock
from waypost.host.datadir.signing import key_of
from waypost.host.keeping_errors import NoSuchDeployment
from waypost.model.times import stamp


@contextmanager
def alone(data: DataDir) -> Iterator[None]:
    """Hold the host's lock for the length of a block. Raises HostRuns, NotWritable."""
    since = stamp(now())
    with HostLock.take(data.lock, command=("waypost", *sys.argv[1:]), since=since):
        yield


def now() -> int:
    """Unix milliseconds."""
    return time.time_ns() // 1_000_000


def known(data: DataDir, name: str) -> None:
    """Refuse a name that no deployment here has or had. Raises NoSuchDeployment."""
    noted = {file.stem for file in data.head("_").parent.glob("*.json")}
    names = tuple(sorted({*data.deployments(), *noted}))
    if name not in names:
        raise NoSuchDeployment(name, names)


def rotate_key(data: DataDir, disk: Disk | None = None) -> SigningKey:
    """Exchange the signing key of all deployments here; the new one. The old private half is gone afterwards.

    The old public half stays in ``keys/retired/``. Everything is looked at before anything is changed; what was begun
    is ended by doing it again, and until then no host starts. Raises HostRuns, SubstrateError, OSError.
    """
    writer = disk or Disk()
    with alone(data):
        clear(data)
        old = key_of(data)
        if not data.next_key.exists():
            for name in data.deployments():
                _look(data, name, old)
        new = SigningKey.load_or_create(data.next_key, writer)
        at = now()
        for name in data.deployments():
            rotate(data.repo(name), old, new, data.head(name), at=at, disk=writer)
        _exchange(data, old, new, writer)
    return new


def _look(data: DataDir, name: str, key: SigningKey) -> None:
    """See that a repository can be opened, as a start would. Raises SubstrateError."""
    folder = Folder(str(data.repo(name)))
    found = inspect(folder, key.public, plain.read)
    Heads(data.head(name), Disk()).check(folder, key.public, found)


def _exchange(data: DataDir, old: SigningKey, new: SigningKey, disk: Disk) -> None:
    """Give the new key its name: its public half first, and the private one last, by which this is known to be over."""
    retired = data.keys / "retired"
    disk.make_directory(str(retired), 0o700)
    kept = retired / f"{old.public.raw.hex()[:16]}.pub"
    disk.write_file(str(kept), f"{old.public.line()} waypost host, retired\n".encode())
    disk.sync_directory(str(retired))
    aside = data.keys / "host.ed25519.pub.new"
    disk.write_file(str(aside), f"{new.public.line()} waypost host\n".encode())
    disk.rename(str(aside), str(data.public_key))
    disk.unlink(f"{data.next_key}.pub")
    disk.sync_directory(str(data.keys))
    disk.rename(str(data.next_key), str(data.signing_key))
    disk.sync_directory(str(data.keys))


def accept_rollback(data: DataDir, name: str) -> Accepted:
    """Go on from what is there of a deployment. Raises NoSuchDeployment, HostRuns, SubstrateError."""
    known(data, name)
    with alone(data):
        return accept(data.repo(name), key_of(data), data.head(name), at=now())

"""What is done to a data directory while no host runs on it: under the host's own lock, with the host's own key.

What this promises: no host and no second such verb is at work meanwhile; each of them may be killed and run again.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager

from substrate.keys import SigningKey
from substrate.rollback import Accepted, accept
from waypost.host.datadir import DataDir
from waypost.host.errors import NoSuchDeployment
from waypost.host.lock import HostLock
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


def accept_rollback(data: DataDir, name: str) -> Accepted:
    """Go on from what is there of a deployment. Raises NoSuchDeployment, HostRuns, SubstrateError."""
    known(data, name)
    with alone(data):
        return accept(data.repo(name), SigningKey.load(data.signing_key), data.head(name), at=now())

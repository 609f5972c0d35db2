"""One operation on a repository that nobody else has open: opened, written, closed, under a lock that the caller holds.

Promise: when it returns, what was asked for is durable; when it raises, it is there whole or not at all.
"""

import errno
import os
from pathlib import Path
from typing import Any

from substrate.effects import To
from substrate.errors import FlushFailed
from substrate.files.disk import Disk
from substrate.messages import Done, Operation, Refused, Submit, Withheld
from substrate.settings import Settings
from substrate.signing.keys import SigningKey
from substrate.writer import Writer
from waypost.acting import Reply
from waypost.host.errors import NotNow, NotWritable, RefusedByRule
from waypost.model.limits import DEFAULT, Limits
from waypost.model.times import Now

_TOKEN = 1


def once(
    path: Path, settings: Settings, what: Operation, *, key: SigningKey, disk: Disk, now: Now, limits: Limits = DEFAULT
) -> Any:
    """The operation's value, as its docstring says.

    Raises RefusedByRule, NotNow, NotWritable; SubstrateError where the repository can't be opened.
    """
    try:
        writer = Writer.open(path, settings, key=key, disk=disk, limits=limits, now=now)
        effects = [*writer.submit(Submit(what=what), To(token=_TOKEN), now), *writer.close(now)]
    except FlushFailed as failure:
        number = failure.errno or errno.EIO
        raise NotWritable(str(path), OSError(number, os.strerror(number))) from failure
    match next((effect.value for effect in effects if isinstance(effect, Reply) and effect.token == _TOKEN), None):
        case Done(value=value):
            return value
        case Refused(code, why, hint):
            raise RefusedByRule(code, why, hint)
        case Withheld(reason):
            raise NotNow(reason)
        case other:
            raise TypeError(f"a writer answered {other!r}")

"""As whom code is looked at before it is deployed, where children have users of their own: a user that all hosts share.

It is the last of the range, which no deployment is given. Whoever looks shares it as long as it does; what the code has
started is ended by whoever leaves last, so that nobody's look is cut short by the end of another one, and nothing is
left once nobody looks. What a look that was killed has left is ended by the next one that is alone.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from waypost.host.processes.isolation import Isolation
from waypost.host.processes.reserved import PLACE, Reserved, shared
from waypost.host.processes.sweeping import Sweeping

log = logging.getLogger(__name__)


@contextmanager
def guest(isolation: Isolation, place: Path = PLACE) -> Iterator[None]:
    """Let code be looked at in this block. One within another is a part of it. Raises OSError.

    ``place``: of the file of all that is reserved on this machine.
    """
    uid = isolation.asked.uids[-1]
    if isolation.mode == "namespace":  # nothing is left of that; but another one's end isn't to cut it short
        with shared(uid, place):
            yield
        return
    if isolation.mode != "uid":
        yield
        return
    with Reserved.begin(place) as reserved, Sweeping(reserved) as sweeping:
        with reserved.turn(uid):
            _end(uid, reserved, sweeping)
            if reserved.share(uid):
                reserved.use(uid)
            else:
                log.warning("user %d, as which code is looked at, is a deployment's of another host that runs", uid)
        try:
            yield
        finally:
            with reserved.turn(uid):
                reserved.leave(uid)
                _end(uid, reserved, sweeping)
                reserved.leave(uid)


def _end(uid: int, reserved: Reserved, sweeping: Sweeping) -> None:
    """All that runs as it, where nobody else looks."""
    if reserved.take(uid) and reserved.used(uid):
        sweeping.end([uid])

"""As whom code is looked at before it is deployed, where children have users of their own: a user that all hosts share.

It is the last of the range, which no deployment is given. Whoever looks shares it as long as it does; what the code has
started is ended by whoever leaves last, in whichever isolation, so that nobody's look is cut short by the end of
another one, and nothing is left once nobody looks. What a look that was killed has left is ended by the next one that
is alone.
"""

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from waypost.host.processes.isolation import Isolation
from waypost.host.processes.reserved import PLACE
from waypost.host.processes.sweeping import shared

log = logging.getLogger(__name__)


@contextmanager
def guest(isolation: Isolation, place: Path = PLACE) -> Iterator[None]:
    """Let code be looked at in this block. One within another is a part of it. Raises OSError.

    ``place``: of the file of all that is reserved on this machine.
    """
    if isolation.mode == "none":
        yield
        return
    uid = isolation.asked.uids[-1]
    with shared(uid, place) as reserved:
        if reserved is None:
            log.warning("user %d, as which code is looked at, is a deployment's of another host that runs", uid)
        elif isolation.mode == "uid":  # of one in a namespace nothing is left
            reserved.use(uid)
        yield

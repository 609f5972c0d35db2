"""A limit of this process, lowered for a while: what comes of it where the system has no more to give."""

import resource
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def lowered(kind: int, to: int = 0) -> Iterator[None]:
    """Meanwhile the soft limit of this kind (``resource.RLIMIT_…``, in its unit) is this; then it is as it was."""
    soft, hard = resource.getrlimit(kind)
    resource.setrlimit(kind, (to, hard))
    try:
        yield
    finally:
        resource.setrlimit(kind, (soft, hard))

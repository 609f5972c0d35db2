"""``python -m waypost.child.probe PARENT BOX``: go into a box, and load there what a child needs.

A host finds out by this what isolation it can have: by doing it once, and not by what a kernel says of itself.
"""

import sys

from ipc.errors import IpcError
from ipc.parent import settle

WORD = "boxed"
EX_CONFIG = 78


def main(parent: str, box: str) -> int:
    """Print ``WORD`` from inside, or why there is no inside; gives the exit status."""
    try:
        settle(int(parent), box)
        import waypost.child.load
        import waypost.child.serving  # noqa: F401 - that it can be loaded is the answer
    except (IpcError, ImportError, OSError) as failure:
        print(failure, file=sys.stderr)  # noqa: T201 - a program's words
        return EX_CONFIG
    print(WORD)  # noqa: T201 - the same
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))

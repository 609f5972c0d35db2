"""Tests run by a user who may do nothing: what root gets away with (modes, owners, links) is no proof for others.

    python -m waypost.testing.unprivileged FOLDER TEST…

To be started by root. Everything is imported and collected as root, because the interpreter itself may lie where nobody
may look; before the first test runs, the process becomes ``nobody`` for good. FOLDER becomes that user's, and tests may
write nowhere else.
"""

import codecs
import os
import pwd
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

USER = "nobody"


class Drop:
    """A plugin of pytest's."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtestloop(self, session: pytest.Session) -> None:
        """Become nobody; first load what Python would only load on its first use."""
        for name in ("ascii", "latin-1", "idna"):
            codecs.lookup(name)
        who = pwd.getpwnam(USER)
        assert session.items, "nothing to run"
        os.chown(self.folder, who.pw_uid, who.pw_gid)
        os.setgroups([])
        os.setgid(who.pw_gid)
        os.setuid(who.pw_uid)
        os.environ["HOME"] = str(self.folder)
        assert os.getuid() == os.geteuid() == who.pw_uid != 0
        try:
            Path("/root/.unprivileged").touch()
        except OSError:
            return
        raise AssertionError("root's own folder can still be written to")


def main(arguments: Sequence[str]) -> int:
    """Run the tests; pytest's exit status."""
    folder, *tests = arguments
    plain = ("-q", "-p", "no:cacheprovider", "-p", "no:xdist", "-o", "addopts=", "-W", "error")
    return int(pytest.main([*plain, f"--basetemp={folder}/tests", *tests], plugins=[Drop(Path(folder))]))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

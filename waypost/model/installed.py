"""What a workflow's process finds beside its code: the interpreter, Waypost, and what else is installed."""

import hashlib
import importlib.metadata
import platform
import re
from dataclasses import dataclass

from waypost import __version__


@dataclass(frozen=True, slots=True)
class Installed:
    """Versions of Python and Waypost; ``distributions``: the digest of all that is installed."""

    python: str
    waypost: str
    distributions: str


def present() -> Installed:
    """What this process finds. Some 50 ms."""
    return Installed(platform.python_version(), __version__, distributions())


def distributions() -> str:
    """Digest of the installed distributions: SHA-256 over the sorted lines ``name==version``, names as in PEP 503.

    A format for ever: what a run began on is compared with what is there another day.
    """
    lines = {
        f"{re.sub(r'[-_.]+', '-', each.name).lower()}=={each.version}\n"
        for each in importlib.metadata.distributions()
        if each.name
    }
    return hashlib.sha256("".join(sorted(lines)).encode("utf-8", "backslashreplace")).hexdigest()

"""``--describe FILE``: what a workflow file declares, as one JSON object on standard output, or why it can't be used.

Keyless and without a host: this is how a host learns of a file without importing it (decisions §1).
"""

import os
import platform
import sys

import msgspec

from waypost import __version__
from waypost.authoring.scope import become_child
from waypost.child.errors import NotLoadable
from waypost.child.load import load, place_of
from waypost.model.declaration import Description, NotDescribed

EX_DATAERR = 65


def describe(file: str) -> int:
    """Print the description of a file, or NotDescribed; gives the exit code, 0 or 65.

    What the file itself prints while it is imported goes to standard error: the answer stays one JSON object.
    """
    become_child()
    answer_fd = os.dup(1)
    sys.stdout.flush()
    os.dup2(2, 1)
    answer, code = _answer(file)
    with os.fdopen(answer_fd, "wb") as out:
        out.write(msgspec.json.encode(answer) + b"\n")
    return code


def _answer(file: str) -> tuple[Description | NotDescribed, int]:
    try:
        loaded = load(place_of(file))
    except NotLoadable as failure:
        return NotDescribed(
            error=_plain(str(failure)), code=failure.code, path=_plain(failure.path), hint=_plain(failure.hint)
        ), EX_DATAERR
    declared = loaded.workflow.declared()
    return Description(
        workflow=declared,
        definition=declared.digest(),
        root=loaded.place.root,
        module=loaded.place.module,
        sha256=loaded.sha256,
        python=platform.python_version(),
        waypost=__version__,
    ), 0


def _plain(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()

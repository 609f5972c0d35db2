"""``--describe FILE``: what a workflow file declares, as one JSON object on standard output, or why it can't be used.

Keyless and without a host: this is how a host learns of a file without importing it (decisions §1).
"""

import os
import sys

import msgspec

from waypost.authoring.scope import become_child
from waypost.child.errors import NotLoadable
from waypost.child.load import load, place_of
from waypost.model.declaration import Description, NotDescribed
from waypost.model.installed import present

EX_DATAERR = 65


def describe(file: str, tree: str | None = None) -> int:
    """Print the description of a file, or NotDescribed; gives the exit code, 0 or 65.

    ``tree``: the materialised tree of code that it lies in, which is all that it may import of its own. What the file
    itself prints while it is imported goes to standard error: the answer stays one JSON object.
    """
    become_child()
    answer_fd = os.dup(1)
    sys.stdout.flush()
    os.dup2(2, 1)
    answer, code = _answer(file, tree)
    with os.fdopen(answer_fd, "wb") as out:
        out.write(msgspec.json.encode(answer) + b"\n")
    return code


def _answer(file: str, tree: str | None) -> tuple[Description | NotDescribed, int]:
    try:
        installed = present()
        loaded = load(place_of(file), tree=tree)
    except NotLoadable as failure:
        return NotDescribed(
            error=_plain(str(failure)),
            code=failure.code,
            path=_plain(failure.path),
            hint=_plain(failure.hint),
            wanted=_plain(failure.wanted),
        ), EX_DATAERR
    declared = loaded.workflow.declared()
    return Description(
        workflow=declared,
        definition=declared.digest(),
        root=loaded.place.root,
        module=loaded.place.module,
        sha256=loaded.sha256,
        python=installed.python,
        waypost=installed.waypost,
        distributions=installed.distributions,
    ), 0


def _plain(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()

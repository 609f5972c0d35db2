"""What Python makes of the modules of a tree, made once: a child that compiles them all is late by milliseconds each.

One file, which a child takes by its hash alone: ``marshal`` of a dictionary, from a module's absolute path to the
``marshal`` of its code. Nothing of it is run here. It is no format: each host makes it for its own Python.
"""

import marshal
import warnings

from waypost.model.code import Files

LARGEST = 2_000_000
"""Bytes of Python in a tree; above that a start of the host would wait for too long, and a child compiles by itself."""


def precompile(files: Files, folder: str) -> bytes:
    """The modules of a tree that lies in this folder; nothing where there are none, or too much of them.

    What doesn't compile is left out: whoever imports it is told why.
    """
    modules = {path: data for path, data in files.items() if path.endswith(".py")}
    if sum(map(len, modules.values())) > LARGEST:
        return b""
    made: dict[str, bytes] = {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # they are told at the import, to whom they concern
        for path, data in sorted(modules.items()):
            place = f"{folder}/{path}"
            try:
                made[place] = marshal.dumps(compile(data, place, "exec", dont_inherit=True, optimize=0))
            except (SyntaxError, ValueError, RecursionError, MemoryError):
                continue
    return marshal.dumps(made) if made else b""

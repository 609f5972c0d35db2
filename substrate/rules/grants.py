"""What steps are granted: each file in its one form, so that its hash is its content's, and few enough to travel.

A file in the form of the reference system, which an import left as it was once, is let be: it grants nothing.
"""

from collections.abc import Iterator

from substrate import layout
from substrate.errors import BadPath
from substrate.operations.granting import read
from substrate.rules.commit import Before, Commit, Sorted
from substrate.rules.table import Broken, broken
from waypost.model.errors import Invalid
from waypost.model.grants import STEPS

KIND = "step-grants"


def granted(before: Before, commit: Commit, made: Sorted) -> Iterator[Broken]:
    """What a commit does to grants."""
    put = [path for path, place in made.others.items() if place.kind == KIND]
    if not put:
        return
    for path in put:
        yield from readable(path, commit.puts[path])
    there = {f"{layout.GRANTS}/{name}" for name in before.entries(layout.GRANTS)}
    count = len(there.difference(made.gone_others).union(put))
    if count > STEPS:
        yield broken("grants", layout.GRANTS, f"{count} steps with grants of their own")


def readable(path: str, raw: bytes) -> Iterator[Broken]:
    """Whether a file can be read, strictly, as grants."""
    try:
        read(path, raw)
    except (BadPath, Invalid) as bad:
        yield broken("grants", path, bad.message)

"""The question whether a repository is at rest, and its answer. Records only; part of ``substrate.messages``."""

from dataclasses import dataclass

from waypost.model.ids import RunId
from waypost.model.times import Now

NAMED = 64
"""Runs that are named of a repository at rest: whoever looks for one of them needn't look into the others."""


@dataclass(frozen=True, slots=True)
class ReadRest:
    """Whether anything is to be done that needs no word from outside. Value: ``Rest``."""


@dataclass(frozen=True, slots=True)
class Rest:
    """How a repository is at ``position``, its newest visible commit since opening.

    ``quiet``: since when nothing was made durable, in monotonic seconds; 0 where nothing was since opening.
    ``busy``: what is to be done by itself, in words; empty: nothing. ``deadline``: when the next thing will be, in
    Unix ms; None: never. ``live``: runs that may go on, the oldest ones, at most ``NAMED``. ``judged``: by which
    time that was said. Of one that is busy none of these is looked for.
    """

    position: int
    quiet: float
    busy: str
    deadline: int | None
    live: tuple[RunId, ...] = ()
    judged: Now | None = None

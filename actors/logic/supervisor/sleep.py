"""The states in which a deployment lets its child go because there is nothing to do, and in which it sleeps.

Records only; ``supervisor_dozing`` moves between them.
"""

from dataclasses import dataclass
from typing import TypeAlias

from actors.logic.supervisor.books import Books, Early
from waypost.model.ids import RunId
from waypost.model.times import Now


@dataclass(frozen=True, slots=True)
class Dozing:
    """Nothing has been written for its idle time; dispatch is asked whether all is at rest, and then begins nothing.

    ``wish``: why the child itself wants another one in its place, if it goes on after all.
    """

    books: Books
    pid: int
    since: float
    wish: str | None = None


@dataclass(frozen=True, slots=True)
class LettingGo:
    """All was at rest as of ``position``; the child was asked to leave, and its exit is waited for."""

    books: Books
    position: int


@dataclass(frozen=True, slots=True)
class Auditing:
    """Nobody is left who could write but the repository itself: it is asked whether anything has come since.

    ``audited``: correlation of the answer. ``early``: what came meanwhile, and is enough to go on.
    """

    books: Books
    position: int
    audited: int
    early: tuple[Early, ...] = ()


@dataclass(frozen=True, slots=True)
class Dormant:
    """Nothing runs, and nothing is to be done before ``deadline`` (Unix ms; None: before something comes).

    ``live``: its runs, as far as they are named, and ``judged`` as ``substrate.rest`` says.
    """

    books: Books
    deadline: int | None
    live: tuple[RunId, ...] = ()
    judged: Now | None = None


# --- what a crew may end for ---------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Audit:
    """All but the repository's writer end, which is then asked whether anything has come since ``position``."""

    position: int
    early: tuple[Early, ...] = ()


@dataclass(frozen=True, slots=True)
class Asleep:
    """Nothing has come. Afterwards it is dormant, unless something comes before that."""

    deadline: int | None
    early: tuple[Early, ...] = ()
    live: tuple[RunId, ...] = ()
    judged: Now | None = None


Sleepy: TypeAlias = Dozing | LettingGo | Auditing

"""What is written of a deployment's runs when its child ends and another one comes.

Records only; part of ``substrate.messages``. The value of each operation is in its docstring.
"""

from dataclasses import dataclass

from waypost.model.attempts import Consequence
from waypost.model.ids import Generation, RunId


@dataclass(frozen=True, slots=True)
class BeginGeneration:
    """Raise the generation and put every claim back (what the old one still says is refused). Value: Generation.

    ``blame``: a claim that is put back counts against its mail, because whoever had claimed it has ended over it. Where
    only a child has ended, it doesn't: no child has anything to do with a mail before it is taken up.
    """

    blame: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ResumeRuns:
    """RunResumed of ``generation`` for each of these runs, in one commit.

    Of runs that aren't driven any more, or can't be read, nothing is written. Value: tuple of those that were resumed.
    """

    generation: Generation
    runs: tuple[RunId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupt:
    """The child of ``generation`` ended, and nobody wanted that: it counts against those of ``runs`` that it drove.

    In one commit; of runs that are parked, paused, ended or not this generation's nothing is written. Value: tuple of
    ``Interrupted``, one for each run that it was counted against.
    """

    generation: Generation
    reason: str
    runs: tuple[RunId, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Interrupted:
    """A run that an exit was counted against: how many by now, and what follows (``waypost.model.attempts``)."""

    run: RunId
    attempt: int
    then: Consequence
    suspect: bool
    """Whether it is one now: to be resumed alone, or set aside."""
    suspected: bool
    """Whether it was one before."""

"""What is said of a deployment as a whole: that it is drained, held, latched, and goes on.

Records only; part of ``substrate.messages``, by whose name they are imported.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ResumeDeployment:
    """An operator lets a deployment go on that is held (its outbox, its timers, its child), or being drained.

    Value: ``GoesOn``. Refused with code ``not-held``.
    """

    by: str


@dataclass(frozen=True, slots=True)
class GoesOn:
    """``after``: what it was, ``draining``, or what held it. ``latched``: it is crash-looping, so no child comes."""

    after: str
    latched: bool = False


@dataclass(frozen=True, slots=True)
class DrainDeployment:
    """An operator has a deployment come to rest; ``end``: wait until every run has ended instead. Value: ``Drain``.

    Every host goes on with it until it is held. Refused with code ``held``, ``latched``, ``draining`` or ``retiring``.
    """

    by: str
    end: bool = False


@dataclass(frozen=True, slots=True)
class NoteDrain:
    """So many milliseconds has the clock of a drain counted that waits until every run has ended. Value: None.

    Less than was noted before changes nothing. Refused with code ``not-draining``.
    """

    spent: int


@dataclass(frozen=True, slots=True)
class HoldDeployment:
    """A deployment that was being drained rests: no child, nothing leaves, until it is resumed. Value: None.

    Refused with code ``not-draining``: an operator has thought better of it.
    """


@dataclass(frozen=True, slots=True, kw_only=True)
class LatchDeployment:
    """Children ended too often: no host starts another until an operator resets it. Value: its ``Latch``, or None.

    ``fail``: every run that isn't parked fails first, a portion in a commit; as long as there are some, the value is
    None, and it is to be asked for again. ``detail`` is for people. One that is latched already stays as it is.
    """

    detail: str
    fail: bool = False


@dataclass(frozen=True, slots=True)
class ResetDeployment:
    """An operator lets a latched deployment have a child again. Value: ``Unlatched``. Refused: ``not-latched``."""

    by: str


@dataclass(frozen=True, slots=True)
class Unlatched:
    """``held``: no child comes all the same: it is held, or drained. ``ending``: one comes, and begins no run."""

    held: bool = False
    ending: bool = False

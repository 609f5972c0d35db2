"""Where a run stands in a child process."""

from enum import Enum, auto


class Phase(Enum):
    """Where a run stands in this child."""

    REPLAYING = auto()
    """Its log is being read; nothing is proposed."""
    LIVE = auto()
    HELD = auto()
    """An operator paused it: results of bodies under way are recorded, nothing new is begun."""
    ENDING = auto()
    """Its end is proposed."""
    OVERTAKEN = auto()
    """Its end was refused, because a cancellation was quicker; that is on its way here."""
    LEFT = auto()
    """It ended, or the code doesn't fit it; this child is done with it."""

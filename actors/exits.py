"""What dispatch tells its supervisor of an exit that nobody expected: against whom it counts.

Part of ``actors.messages``' unions; here because it says more than a word.
"""

from dataclasses import dataclass

from substrate.messages import Interrupted
from waypost.model.ids import Generation


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitCounted:
    """An unexpected exit is durably counted against the runs that the child drove; dispatch's one answer to it.

    It answers the ``GenerationDown`` that told of the exit: whoever decides what follows from an exit waits for this
    answer, or for the end of the dispatch, and one of the two always comes.
    """

    generation: Generation
    runs: tuple[Interrupted, ...]
    """Each that it was counted against, as the log has it now; those that were parked are not among them."""
    beside: int = 0
    """How many more were driven and are spared."""

    @property
    def alone(self) -> bool:
        """Whether one suspect was driven and nobody else: it is charged to that one, and not to the deployment."""
        return not self.beside and len(self.runs) == 1 and self.runs[0].suspected

    @property
    def explained(self) -> bool:
        """Whether it made a suspect, or went against one: so it has brought a run nearer to being set aside."""
        return any(each.suspect for each in self.runs)

    @property
    def explains(self) -> int:
        """How many exits before it are explained, too: those that were counted against a run that is a suspect now."""
        return max((each.attempt - 1 for each in self.runs if each.suspect and not each.suspected), default=0)

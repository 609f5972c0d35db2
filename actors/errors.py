"""What the actors refuse, in types."""

from waypost.model.errors import WaypostError


class ActorsError(WaypostError):
    """Base of all errors of the actors."""


class RuleBroken(ActorsError):
    """A child asked for something that no honest runtime asks for: the channel is over, and so is the child.

    ``reason`` says what it did, in words.
    """

    def __init__(self, reason: str) -> None:
        super().__init__(f"the child broke the protocol: {reason}", hint="it is ended and started again")
        self.reason = reason


class LogUnreadable(ActorsError):
    """The substrate's answers about a run's log don't fit together; the deployment's actors are made anew."""

    def __init__(self, run: str, seq: int, why: str) -> None:
        super().__init__(f"the log of {run} can't be followed after event {seq}: {why}")
        self.run = run
        self.seq = seq
        self.why = why


class OutOfTurn(ActorsError):
    """A message came in a state in which nobody sends it: a bug of the host, not of a workflow."""

    def __init__(self, actor: str, state: str, message: str) -> None:
        super().__init__(f"{actor} is {state} and was told {message}")
        self.actor = actor
        self.state = state
        self.told = message

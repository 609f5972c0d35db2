"""The root of every error that Waypost raises on purpose.

Each package adds its own base below it; subclasses carry fields, the text is for people: what, where, what to do.
"""


class WaypostError(Exception):
    """Base of all of Waypost's own errors.

    ``hint`` names what to do next, in one line; the command line prints it under the message.
    """

    fault: str | None = None
    """A fault of the world that whoever starts an actor again must know by name (``disk``); None for all others."""

    def __init__(self, message: str, *, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint


class Invalid(WaypostError):
    """A value from outside breaks a rule; the message names the value and the rule."""

"""What a workflow's author may meet: in the run, or while the file is being read."""

from waypost.model.errors import WaypostError


class AuthoringError(WaypostError):
    """Base of the errors that concern a workflow's own code."""


class Misdeclared(AuthoringError):
    """The workflow file says something that can't be: two steps of one name, an unknown setting, no run function."""


class StepError(AuthoringError):
    """A step failed for good. It carries what was recorded, never the original object: the same live and in replay.

    ``step``: its name; ``type``: the name of what it raised; ``reason``: that error's text; ``traceback``: as text.
    """

    def __init__(self, *, step: str, type: str, reason: str, traceback: str = "") -> None:  # noqa: A002 - as recorded
        super().__init__(f"step {step} failed: {type}: {reason}")
        self.step = step
        self.type = type
        self.reason = reason
        self.traceback = traceback


class DeadlinePassed(AuthoringError, TimeoutError):
    """Nobody answered in time. ``waited_for`` names the approval's title, or the mail."""

    def __init__(self, waited_for: str) -> None:
        super().__init__(f"the deadline has passed: {waited_for}")
        self.waited_for = waited_for


class SendRefused(AuthoringError):
    """The host didn't take the mail; ``reason`` says which rule it broke. Nothing was sent."""

    def __init__(self, reason: str) -> None:
        super().__init__(f"the mail was not taken: {reason}", hint="name the recipient in Workflow(mail_to=[…])")
        self.reason = reason


class ChildFailed(AuthoringError):
    """A child run has ended without a result. It carries what was recorded: the same live and in replay.

    ``run``: the child's id; ``workflow``: the child's name, as it is declared; ``outcome``: ``failed`` or
    ``cancelled``; ``type``, ``reason``: the name and the text of what it raised; of one that was cancelled
    ``RunCancelled``, and why.
    """

    def __init__(self, *, run: str, workflow: str, outcome: str, type: str = "", reason: str = "") -> None:  # noqa: A002 - as recorded
        whose = f"child {workflow} ({run})"
        said = (f"{whose} failed", type) if outcome == "failed" else (f"{whose} was cancelled",)
        super().__init__(": ".join(filter(None, (*said, reason))))
        self.run = run
        self.workflow = workflow
        self.outcome = outcome
        self.type = type
        self.reason = reason


class ChildRefused(AuthoringError):
    """A child run may not be started; ``reason`` says which rule forbids it. Nothing was started."""

    def __init__(self, workflow: str, reason: str) -> None:
        super().__init__(f"child {workflow} was not started: {reason}")
        self.workflow = workflow
        self.reason = reason


class SecretRefused(AuthoringError):
    """The step may not have what it asked for; nothing was given. ``handle``: of the credential, or empty."""

    def __init__(self, handle: str, why: str, *, hint: str = "") -> None:
        super().__init__(f"{why}; {hint}" if hint else why, hint=hint)
        self.handle = handle


class BadSignal(AuthoringError):
    """A signal's payload isn't of the type that the workflow waits for; ``name`` and ``why`` say which, and where."""

    def __init__(self, name: str, why: str) -> None:
        super().__init__(f"signal {name!r} doesn't fit: {why}", hint="catch BadSignal and wait for another one")
        self.name = name
        self.why = why


class NotReplayable(AuthoringError, RuntimeError):
    """The workflow asked for something that a replay could not repeat. ``instead`` names what to write."""

    def __init__(self, asked: str, instead: str) -> None:
        super().__init__(f"{asked} can't be replayed; {instead}", hint=instead)
        self.asked = asked
        self.instead = instead


class RunCancelled(BaseException):
    """Raised out of the call at which a ``def`` workflow waits, when its run is cancelled, or taken from this process.

    An ``async def`` workflow sees asyncio.CancelledError instead. Both are BaseExceptions, so that ``except Exception``
    doesn't swallow them.
    """

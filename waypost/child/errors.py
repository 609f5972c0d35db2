"""Errors of the child runtime."""

from waypost.model.errors import WaypostError


class ChildError(WaypostError):
    """Base of what the child runtime itself raises."""


class NotLoadable(ChildError):
    """A workflow file can't be used. ``code`` is stable, for programs; ``path`` is the file.

    Codes: ``missing``, ``name``, ``hides-ours``, ``syntax``, ``import``, ``no-workflow``, ``two-workflows``,
    ``declaration``, ``changed``. ``wanted``: a module that was imported and wasn't there.
    """

    def __init__(self, code: str, path: str, message: str, *, hint: str = "", wanted: str = "") -> None:
        super().__init__(message, hint=hint)
        self.code = code
        self.path = path
        self.wanted = wanted


class Changed(NotLoadable):
    """The code isn't what was deployed; ``found`` is the hash that it has now."""

    def __init__(self, path: str, *, deployed: str, found: str) -> None:
        super().__init__(
            "changed",
            path,
            f"{path} has changed since it was deployed: it was {deployed[:12]}…, now it is {found[:12]}…",
            hint="put the old file back, or deploy it anew",
        )
        self.found = found


class Mismatch(ChildError):
    """The code doesn't do what the log says it did.

    ``call``: where; ``recorded`` and ``now``: both sides in words, empty when that side has nothing there.
    """

    def __init__(self, call: str, recorded: str, now: str) -> None:
        super().__init__(
            f"at {call} the log has {recorded or 'nothing'}, the code now does {now or 'nothing'}",
            hint="put the old code back, or resume the run once it does what the log says",
        )
        self.call = call
        self.recorded = recorded
        self.now = now


class CodeMissing(ChildError):
    """A child run's function isn't in the deployed code any more; ``child`` is its name."""

    def __init__(self, workflow: str, child: str) -> None:
        super().__init__(
            f"{workflow} has no child {child} any more",
            hint="deploy code that has it, or cancel the run",
        )
        self.child = child


class NoThread(ChildError):
    """The system has no thread to spare for a ``def`` run (`RLIMIT_NPROC`, or the machine's own limit)."""


class HostBroke(ChildError):
    """The host's side of the wire broke a rule (a gap in a log, an answer to nothing): this child must end."""

"""How a deployment is, and how a child of it ended: what its supervisor tells whoever asks.

Records only; part of ``actors.messages``, which carry them.
"""

from dataclasses import dataclass
from typing import Literal

from actors.draining import Executing, Line, Renewed
from waypost.model.ids import Deployment, Generation, RunId
from waypost.model.limits import Limits
from waypost.model.times import Now
from waypost.model.why import Sentence

SYSEXITS = {
    64: "EX_USAGE",
    65: "EX_DATAERR",
    66: "EX_NOINPUT",
    67: "EX_NOUSER",
    68: "EX_NOHOST",
    69: "EX_UNAVAILABLE",
    70: "EX_SOFTWARE",
    71: "EX_OSERR",
    72: "EX_OSFILE",
    73: "EX_CANTCREAT",
    74: "EX_IOERR",
    75: "EX_TEMPFAIL",
    76: "EX_PROTOCOL",
    77: "EX_NOPERM",
    78: "EX_CONFIG",
}
"""Exit statuses that have a name (sysexits.h)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ExitReason:
    """How a child ended: exit status or signal by name; ``failure``: why it never began, or why the host ended it.

    ``blame``: whose doing it was. ``stderr``: the last lines that the child wrote there, made safe to show.
    """

    blame: Literal["child", "host"] = "child"
    status: int | None = None
    signal: str = ""
    starved: bool = False
    """Whether the kernel says that it has ended somebody here for want of memory in that time."""
    failure: str = ""
    stderr: tuple[str, ...] = ()

    def __str__(self) -> str:
        """One line for people."""
        if self.failure:
            return self.failure
        if self.signal:
            return f"ended by {self.signal}" + (": out of memory, as the kernel counts it" if self.starved else "")
        name = SYSEXITS.get(self.status or 0, "")
        return f"exit status {self.status}" + (f" ({name})" if name else "")


@dataclass(frozen=True, slots=True)
class Exited:
    """A child that ended unasked: when (Unix ms), ``why`` in words, and how the process did."""

    generation: Generation
    at: int
    why: str
    reason: ExitReason


UNTOLD = Sentence(waits_for="its supervisor to say how it is", then="it says so")
"""Before anything is known."""


@dataclass(frozen=True, slots=True)
class Budget:
    """What is left before a deployment is crash-looping.

    ``ages``: of the exits that count, in seconds of children's lives, when the newest child was launched; ``launched``:
    when that was, in monotonic seconds, while it is there.
    """

    ages: tuple[float, ...] = ()
    launched: float | None = None

    def left(self, mono: float, limits: Limits) -> int:
        """How many more exits it takes, at this time; 0: none."""
        life = 0.0 if self.launched is None else max(0.0, mono - self.launched)
        ages = () if life >= limits.stable_after else tuple(age + life for age in self.ages)
        recent = sum(age <= limits.crash_window for age in ages)
        return max(0, min(limits.crash_exits - recent, limits.crash_total - len(ages)))


@dataclass(frozen=True, slots=True, kw_only=True)
class Description:
    """How a deployment is. ``reason`` says why it is down or backing off; ``until`` is Unix ms.

    ``code``: the reason for programs, where it is down: ``crash-looping``, ``host-fault``, ``storage-failed``,
    ``damaged``, ``code-changed``, or as opening was refused; where it is stopped and nobody wanted that,
    ``recycle-failed``; where it runs, ``disk-full`` (it takes no new mail),
    ``barred`` (no run begins, or goes on with a new process: grants or credentials are missing) or ``broken-code`` (it
    doesn't load).
    ``since`` (ISO 8601): when it came into this state, as far as that is known.
    ``exited``: the last child that ended unasked.
    """

    name: Deployment
    address: str
    state: str
    reason: str
    generation: Generation
    pid: int | None
    until: int | None
    isolation: str
    code: str = ""
    since: str = ""
    exited: Exited | None = None
    executing: tuple[Executing, ...] = ()
    """While it drains: what is waited for; as many as are named, ``more`` are not."""
    more: int = 0
    renewed: Renewed | None = None
    """How the present process came to follow another one."""
    budget: Budget = Budget()
    line: Line = ""
    """Where it stands in the line of those that mail has woken."""
    live: tuple[RunId, ...] = ()
    """Of one that sleeps: its runs, as far as they are named."""
    judged: Now | None = None
    """Of one that sleeps: by which time it was said until when."""
    why: Sentence = UNTOLD
    """What it waits for, and what follows then."""


@dataclass(frozen=True, slots=True)
class Changed:
    """Asked: answered with the Description as soon as it is another one than ``known``."""

    known: Description

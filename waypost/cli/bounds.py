"""``waypost run --limit NAME=VALUE``: the bounds of supervision, as an operator sets them for one host.

Those of formats and of what comes from outside aren't among them: other readers count on these.
"""

import math
from collections.abc import Iterable

import msgspec

from waypost.host.errors import Usage
from waypost.model.limits import DEFAULT, Limits

MAY_BE_SET = {
    "ready_deadline": "until a new process must have said that it is ready",
    "kill_grace": "between SIGTERM and SIGKILL",
    "frame_look": "between two looks at what a process has begun to say; where nothing more comes for two, it is ended",
    "stop_deadline": "in which each part of a deployment must have ended",
    "idle": "without anything to do, after which a deployment lets its process go: docs/dormancy.md",
    "threads": "of a host, as a rule: as many deployments are awake at once as that allows",
    "cores": "that the host's own threads keep to, together; its processes have all of them: docs/hosting.md",
    "drain": "until a process that is to be replaced is, also where runs execute",
    "drain_stop": "until a host that was told to end does, also where runs execute",
    "drain_end": "in which steps with on_drain='cancel' execute, until `waypost drain --end` cancels their runs",
    "drain_look": "between two looks at who is left then",
    "recycle_age": "of running, after which a process is replaced by a fresh one; never, unless it is set",
    "recycle_memory": "bytes in memory of a process and all it has begun, above which it is replaced; the same",
    "recycle_grants": "since a process was given its grants, after which it is replaced; the same",
    "recycle_look": "between two looks at these, at most",
    "backoff_first": "from the end of a process until runs go on in the next; doubles with each that follows",
    "backoff_cap": "until runs go on at most",
    "stable_after": "of running, after which earlier exits are forgotten",
    "crash_exits": "unexpected exits within `crash_window` that latch a deployment as crash-looping",
    "crash_window": "in which these count; pauses don't",
    "crash_total": "unexpected exits without a stable time between them that latch it, too",
    "actor_failures": "failures of the host's own parts within `actor_window` that take a deployment down",
    "actor_window": "in which these count",
    "attempts": "exits after which the run, or mail, that may be the reason is set aside",
    "cancel_grace": "for a cancelled run to clean up, from when its code was told",
    "log_bytes": "of what a process writes, before the file is turned over",
}
"""Name and meaning. Whole numbers count, the others are seconds."""


def bounds(given: Iterable[str], limits: Limits = DEFAULT) -> Limits:
    """The limits with these changed, each ``NAME=VALUE``. Raises Usage."""
    changed: dict[str, float | int] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if name not in MAY_BE_SET or not equals:
            raise Usage(f"--limit {text[:80]!r} sets no bound", hint=f"NAME=VALUE, with one of {', '.join(MAY_BE_SET)}")
        changed[name] = _number(name, value, whole=isinstance(getattr(limits, name), int))
    return msgspec.structs.replace(limits, **changed)


def _number(name: str, text: str, *, whole: bool) -> float | int:
    try:
        number = int(text) if whole else float(text)
    except ValueError:
        number = 0
    if not 0 < number < math.inf:
        what = "a whole number above 0" if whole else "a number of seconds above 0"
        raise Usage(f"--limit {name}={text[:40]!r} is no bound", hint=f"give {what}")
    return number

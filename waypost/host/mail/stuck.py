"""A mail that can't leave: what its courier knows of it, and the sentence that `waypost why` has for it. Pure.

It is tried again for ever, as whatever holds it up may be mended at any time; so that nobody has to find it in a log,
the deployment's answer names the oldest one.
"""

import shlex
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from waypost.model.ids import Deployment
from waypost.model.times import stamp
from waypost.model.why import Sentence, command

_FEW: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class Stuck:
    """The oldest mail of a deployment that can't leave; times are Unix ms.

    ``since`` is when it failed first, ``until`` when it is tried again; ``to`` is whom it is for, ``blocked`` the
    deployment of this host that didn't take it, where it was one.
    """

    ordinal: int
    to: tuple[str, ...]
    why: str
    since: int
    until: int
    blocked: Deployment | None = None


def sentence(stuck: Stuck, out: Path) -> Sentence:
    """What it waits for, since when, what follows, and what helps; ``out`` is where mail for others is put."""
    who = ", ".join(stuck.to[:_FEW]) + (", …" if len(stuck.to) > _FEW else "")
    where = shlex.quote(str(out))
    return Sentence(
        waits_for=f"outgoing mail {stuck.ordinal} to {who} to leave, which failed: {stuck.why}",
        since=stamp(stuck.since),
        until=stamp(stuck.until),
        then="it is tried again, a minute apart at most; its run goes on meanwhile",
        command=command("why", stuck.blocked) if stuck.blocked else f"df -h {where}",
        alternative="" if stuck.blocked else f"ls -la {where}",
    )

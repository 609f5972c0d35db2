"""Between every decision and the disk: a writer asks here before each commit, whatever has decided it."""

import logging
from dataclasses import dataclass

from substrate.messages import Refused
from substrate.operations.change import Change
from substrate.rules.commit import Before, Ground, proposed
from substrate.rules.judge import judge_all
from substrate.rules.plain import plain_append

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class BrokenRule(Refused):
    """A commit that our own operation has decided breaks a rule. Nothing was written, nothing has changed."""

    rule: str = ""
    path: str = ""
    value: str = ""


class Gate:
    """The rules over one open repository."""

    def __init__(self, before: Before, ground: Ground) -> None:
        self._before, self._ground = before, ground

    def refuses(self, change: Change) -> BrokenRule | None:
        """The first rule that this commit would break now; None when it may be made. Raises Damaged."""
        commit = proposed(change)
        if plain_append(self._before, commit, self._ground) is not None:
            return None
        found = judge_all(self._before, commit, self._ground).broken
        if not found:
            return None
        _log.error("%r was not committed: %s", change.subject, "; ".join(map(str, found)))
        first = found[0]
        return BrokenRule(
            "rule",
            f"rule {first.rule} refuses {first.path or 'the commit'}: {first.value}",
            "nothing was written; please report it with the host's log: this is a fault of Waypost's",
            rule=first.rule,
            path=first.path,
            value=first.value,
        )

"""Giving runs to a new child: RunResumed in the log of each, in one commit.

The count of exits that it repeats is read where it is written. A run that isn't driven any more is left out, and so is
one whose log can't be read: that is nobody else's fault.
"""

import logging

from substrate.errors import Damaged
from substrate.messages import Refused, ResumeRuns
from substrate.operations.append import extend
from substrate.operations.change import Context, Decided, Extension, Settled, View, changed, fence
from waypost.model import events as ev
from waypost.model import run as fold
from waypost.model.ids import RunId

_log = logging.getLogger(__name__)


def resume_runs(view: View, operation: ResumeRuns, context: Context) -> Decided:
    """Resume them. Value: tuple of the runs that are this generation's now. Refused with code ``generation``."""
    refused = fence(view, operation.generation)
    if refused is not None:
        return refused
    extended = (_resumed(view, run, operation, context) for run in dict.fromkeys(operation.runs))
    made = [each for each in extended if each is not None]
    if not made:
        return Settled(())
    runs = tuple(each.fact.run for each in made)
    which = runs[0] if len(runs) == 1 else f"{len(runs)} runs"
    return changed(made, f"append RunResumed to {which}", value=runs)


def _resumed(view: View, run: RunId, operation: ResumeRuns, context: Context) -> Extension | None:
    try:
        before = view.known(run)
        if not isinstance(before.run, fold.Driven) or before.run.ledger.generation >= operation.generation:
            return None
        event = ev.RunResumed(generation=operation.generation, attempt=before.run.ledger.attempts)
        made = extend(view, run, before, (event,), context)
    except Damaged as failure:
        _log.error("%s can't be resumed: %s", run, failure.message)
        return None
    return None if isinstance(made, Refused) else made
